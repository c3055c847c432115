"""A run is cancelled at any replica of a store in PostgreSQL, wherever it is. They run in `make check`
and not in `make test`: WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_replicas_cancel.py."""
import asyncio
import concurrent.futures
import http.server
import json
import signal
import threading

import harness
import pytest
from a2a.utils.errors import TaskNotCancelableError
from a2a_agent import CONFIG, DIALECTS, Agent, run, state
from replicas import NEED_POSTGRES, eventually, replicas, server  # noqa: F401  fixtures
from test_openai import client_of
from test_replicas import read

pytestmark = NEED_POSTGRES

SCRIPT = "test/e2e/scripts/a2a.yaml"


class Ended(Exception):
    """There was nothing to cancel: the run had ended."""


# --- the doors ----------------------------------------------------------------------------------
# begin() starts a turn that goes on by itself, and answers the id of its run once it is in the
# store; cancel() answers how the run ended, as the door says it.


def api(replica, **options):
    headers = {"Authorization": "Bearer " + harness.token()}
    return replica.http(headers=headers, timeout=60, **options)


def state_of(replica, run_id):
    with api(replica) as http:
        return http.get(f"/weir/v1/runs/{run_id}").json().get("state")


def begin(replicas, replica, text, session="s"):
    with api(replica) as http:
        begun = http.post("/weir/v1/runs", json={"input": text, "session_id": session})
    assert begun.status_code == 202, begun.text
    id = begun.json()["id"]
    others = [other for other in replicas.all if other is not replica]
    eventually(lambda: all(state_of(other, id) for other in others))
    return id


class ByWeir:
    begin = staticmethod(begin)

    @staticmethod
    def cancel(replica, run_id):
        with api(replica) as http:
            answer = http.post(f"/weir/v1/runs/{run_id}/cancel")
        if answer.status_code == 409:
            assert answer.json()["error"]["code"] == "RUN_ENDED"
            raise Ended
        assert answer.status_code == 202 and answer.json()["id"] == run_id, answer.text
        eventually(lambda: state_of(replica, run_id) not in ("queued", "running", "waiting"))
        return state_of(replica, run_id)


class ByA2A:
    def __init__(self, dialect):
        self.dialect = DIALECTS[dialect]

    begin = staticmethod(begin)

    def cancel(self, replica, run_id):
        async def work():
            async with Agent(replica, self.dialect) as agent:
                try:
                    task = await agent.cancel(str(run_id))
                except TaskNotCancelableError as error:
                    raise Ended from error
            return state(task).replace("CANCELED", "cancelled").lower()

        return run(work())


class ByOpenai:
    @staticmethod
    def begin(replicas, replica, text, session="s"):
        with client_of(replica) as client:
            made = client.responses.create(model="manager", input=text, background=True)
        id = newest(replicas.all[-1])
        ByOpenai.made[replica.schema, id] = made.id
        return id

    @staticmethod
    def cancel(replica, run_id):
        with client_of(replica) as client:
            return client.responses.cancel(ByOpenai.made[replica.schema, run_id]).status

    made = {}  # ids of responses, by schema and run


def newest(replica):
    with api(replica) as http:
        eventually(lambda: http.get("/weir/v1/runs").json()["runs"])
        return http.get("/weir/v1/runs").json()["runs"][0]["id"]


DOORS = {"weir": ByWeir, "a2a": ByA2A("1.0"), "a2a rest": ByA2A("rest"), "a2a 0.3": ByA2A("0.3"),
         "openai": ByOpenai}


@pytest.fixture(params=DOORS)
def door(request):
    return DOORS[request.param]


def nothing_is_left(replicas):
    for table in ("cancelling", "lease", "posted"):
        eventually(lambda: replicas.sql(f"SELECT count(*) FROM {table}") == "0")


# --- what is cancelled --------------------------------------------------------------------------


def test_a_run_is_cancelled_at_another_replica(replicas, door):
    """Its reader at a third one sees that, and a second cancel is refused at each."""
    replicas.start(3, script=SCRIPT, config=CONFIG)
    first, second, third = replicas.all
    id = door.begin(replicas, first, "go on for ever")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_all, third, id)
        assert door.cancel(second, id) == "cancelled"
        kinds = reading.result(60)
    assert kinds[0] == "started" and kinds[-1] == "cancelled" and kinds.count("cancelled") == 1
    assert {state_of(replica, id) for replica in replicas.all} == {"cancelled"}
    for replica in replicas.all:
        if door is ByOpenai:
            assert door.cancel(replica, id) == "cancelled"
        else:
            with pytest.raises(Ended):
                door.cancel(replica, id)
    nothing_is_left(replicas)


def read_all(replica, id):
    headers = {"Authorization": "Bearer " + harness.token()}
    return [kind for _, kind in read(replica, id, headers=headers)]


@pytest.mark.parametrize("in_memory", ["0s", "1h"])
def test_a_run_that_waits_for_a_person_is_cancelled_at_another_replica(replicas, door, in_memory):
    """Its tool is never called, and its question cannot be answered any more."""
    replicas.start(2, script=SCRIPT, config=CONFIG, WEIR_APPROVALS_IN_MEMORY=in_memory,
                   WEIR_LOG_LEVEL="debug")
    first, second = replicas.all
    id = door.begin(replicas, first, "pay")
    eventually(lambda: state_of(first, id) == "waiting")
    if in_memory == "0s":
        first.said("leaves memory")
    with api(second) as http:
        eventually(lambda: http.get("/weir/v1/approvals").json()["approvals"])
        [approval] = http.get("/weir/v1/approvals").json()["approvals"]
        assert door.cancel(second, id) == "cancelled"
        assert http.get("/weir/v1/approvals").json()["approvals"] == []
        late = http.post(f"/weir/v1/approvals/{approval['id']}", json={"answer": "yes"})
        assert late.status_code == 409, late.text
    kinds = read_all(second, id)
    assert kinds[-1] == "cancelled"
    nothing_is_left(replicas)


def test_of_cancels_at_all_replicas_at_once_each_gets_the_one_end(replicas):
    replicas.start(3, script=SCRIPT, config=CONFIG)
    for turn in range(3):
        id = begin(replicas, replicas.all[turn], "go on for ever", f"s{turn}")
        with concurrent.futures.ThreadPoolExecutor(9) as pool:
            doors = [ByWeir, ByA2A("1.0"), ByA2A("0.3")]
            asked = [pool.submit(outcome, door, replica, id)
                     for replica in replicas.all for door in doors]
            ends = [one.result(60) for one in asked]
        assert set(ends) <= {"cancelled", "ended"} and "cancelled" in ends
        assert read_all(replicas.all[0], id).count("cancelled") == 1
    nothing_is_left(replicas)


def outcome(door, replica, id):
    try:
        return door.cancel(replica, id)
    except Ended:
        return "ended"


def test_a_cancel_outlives_the_replica_that_has_the_run(replicas):
    """The owner stands still when it is cancelled, and never goes on: a turn that waits for a person
    is cancelled by who takes it over, and does not wait again."""
    replicas.start(3, script=SCRIPT, config=CONFIG)
    first, second, third = replicas.all
    waits = begin(replicas, first, "pay", "waits")
    eventually(lambda: state_of(second, waits) == "waiting")
    runs = begin(replicas, first, "go on for ever", "runs")
    first.signal(signal.SIGSTOP)
    with api(second) as http:
        for id in (waits, runs):
            assert http.post(f"/weir/v1/runs/{id}/cancel").status_code == 202
    first.kill()
    assert read_all(third, waits)[-1] == "cancelled"
    assert read_all(third, runs)[-1] == "failed"  # as any turn that is cut short
    with api(third) as http:
        assert http.get("/weir/v1/approvals").json()["approvals"] == []
    nothing_is_left(replicas)


def test_many_that_wait_are_cancelled_at_once(replicas):
    """More than are read at a time, asleep all of them."""
    replicas.start(2, script=SCRIPT, config=CONFIG, WEIR_APPROVALS_IN_MEMORY="0s")
    first, second = replicas.all
    with api(first) as http:
        ids = [http.post("/weir/v1/runs", json={"input": "pay", "session_id": f"s{i}"}).json()["id"]
               for i in range(150)]
    for id in ids:
        eventually(lambda id=id: state_of(second, id) == "waiting")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda id: ByWeir.cancel(second, id), ids)) == {"cancelled"}
    nothing_is_left(replicas)


# --- what the model sees ------------------------------------------------------------------------


class EndlessModel:
    """Speaks as long as it is listened to, and notes when nobody listens any more."""

    def __init__(self):
        self.asked, self.hung_up = threading.Semaphore(0), threading.Semaphore(0)
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                model.asked.release()
                try:
                    while not model.over.wait(0.02):
                        chunk = {"model": "m", "choices": [{"index": 0, "delta": {"content": "on "}}]}
                        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                        self.wfile.flush()
                except OSError:
                    model.hung_up.release()

            def log_message(self, *_):
                pass

        self.over = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def config(self):
        url = f"http://127.0.0.1:{self.server.server_port}/v1"
        return (f"providers: [{{name: house, kind: openai, base_url: '{url}', key_env: HOUSE_KEY}}]\n"
                "agents: [{slug: manager, model: house/big}]\n")


def test_the_model_is_hung_up(replicas, door):
    with EndlessModel() as model:
        replicas.start(2, script=None, config=model.config(), HOUSE_KEY="k")
        first, second = replicas.all
        id = door.begin(replicas, first, "go on")
        assert model.asked.acquire(timeout=60)
        assert door.cancel(second, id) == "cancelled"
        assert model.hung_up.acquire(timeout=60)
        assert not model.asked.acquire(blocking=False)  # it was asked once


def test_a_client_that_leaves_has_cancelled_all_the_same(replicas):
    """It asked, and hung up before the answer came."""
    replicas.start(2, script=SCRIPT, config=CONFIG)
    first, second = replicas.all
    id = begin(replicas, first, "go on for ever")
    first.signal(signal.SIGSTOP)

    async def work():
        async with Agent(second) as agent:
            asking = asyncio.ensure_future(agent.cancel(str(id)))
            while replicas.sql("SELECT count(*) FROM cancelling") == "0":
                await asyncio.sleep(0.01)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    run(work())
    first.signal(signal.SIGCONT)
    assert read_all(second, id)[-1] == "cancelled"
    nothing_is_left(replicas)
