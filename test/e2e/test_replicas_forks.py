"""A session is forked at several replicas of a store in PostgreSQL. It runs in `make check` and not in
`make test`: WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_replicas_forks.py."""
import concurrent.futures

from noting_model import ENV, said
from replicas import HEADERS, NEED_POSTGRES, replicas, server  # noqa: F401  fixtures
from test_forks import fork, model, turn  # noqa: F401  a fixture

pytestmark = NEED_POSTGRES


def test_a_fork_is_the_same_at_every_replica(replicas, model):  # noqa: F811
    replicas.start(2, script=None, config=model.config(), **ENV)
    with replicas.all[0].http(headers=HEADERS) as one, replicas.all[1].http(headers=HEADERS) as two:
        turn(one, "old", "one")
        run = turn(two, "old", "two")
        assert "event: done" in two.get(f"/weir/v1/runs/{run}/events").text  # shown once it is on the disk
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            body = {"run": run, "session_id": "new"}
            answers = list(pool.map(lambda i: (one, two)[i % 2].post("/weir/v1/sessions/old/fork", json=body).status_code, range(8)))
        assert sorted(answers) == [201] + [409] * 7
        assert fork(two, "old", run, "new", 409) == "SESSION_EXISTS"
        turn(one, "new", "three")
        turn(two, "new", "four")
    assert model.shown[-1] == [*said("one", "two", "three"), ("user", "four")]
