"""The store in PostgreSQL, with a private server. They run in `make check` and not in `make test`:
WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_postgres.py."""
import json
import os
import signal
import subprocess
import threading
import time

import pytest

import embeddings
import harness
import postgres
import test_memory as memories
import test_nimi_vectors as vectors
from test_nimi_memory import Memory

pytestmark = pytest.mark.skipif(not os.environ.get("WEIR_WITH_POSTGRES"),
                                reason="needs PostgreSQL: WEIR_WITH_POSTGRES=1")

HEADERS = {"Authorization": "Bearer secret"}
SCRIPT = "test/e2e/scripts/quick.yaml"


@pytest.fixture(scope="module")
def server():
    with postgres.Cluster() as cluster:
        yield cluster


@pytest.fixture
def store(server, request):
    """The settings of a store of its own."""
    schema = "s_" + "".join(c for c in request.node.name.lower() if c.isalnum())[:50]
    return {"WEIR_STORE_URL": server.url, "WEIR_STORE_SCHEMA": schema,
            "AGENT_AUTH_TOKEN": "secret"}


def migrate(store, **more):
    return subprocess.run([harness.BINARY, "migrate"], env={**os.environ, **store, **more},
                          capture_output=True, text=True)


def turn(weir, session, text="hello"):
    with weir.http(headers=HEADERS) as http:
        return http.post("/invoke", json={"input": text, "session_id": session})


def exported(weir, session):
    with weir.http(headers=HEADERS) as http:
        answer = http.get(f"/weir/v1/sessions/{session}/export")
    answer.raise_for_status()
    return [json.loads(line) for line in answer.text.splitlines()]


def test_tables_are_made_by_migrate_and_never_silently(start_weir, store, server):
    with pytest.raises(Exception):
        start_weir(script=SCRIPT, env=store)
    first, second = migrate(store), migrate(store)
    assert first.returncode == 0 and "from version 0" in first.stdout
    assert second.returncode == 0 and "already" in second.stdout
    weir = start_weir(script=SCRIPT, env=store)
    assert turn(weir, "s1").status_code == 200


def test_a_memory_with_a_nul_is_refused_as_any_store_refuses_it(start_weir, store):
    assert migrate(store).returncode == 0
    weir = start_weir(script=SCRIPT, env={**store, "AGENT_AUTH_TOKEN": None})
    memories.nul_is_refused(weir, memories.Memory(weir), memories.http(weir))


def test_a_search_of_memories_that_takes_long_holds_up_no_turn(start_weir, store, server):
    """Lists of memories wait for a table that another session has; turns do not need it."""
    assert migrate(store).returncode == 0
    weir = start_weir(script=SCRIPT, env={**store, "AGENT_AUTH_TOKEN": None})
    client, stop, statuses = memories.http(weir), threading.Event(), []
    memories.put(client, "k", "v")
    table = store["WEIR_STORE_SCHEMA"] + ".agent_memories"
    waiting = f"SELECT count(*) FROM pg_locks WHERE relation = '{table}'::regclass AND NOT granted"

    def ask():
        while not stop.is_set():  # one that waits for long is ended, and asked again
            statuses.append(memories.http(weir).get(memories.MEMORIES, timeout=60).status_code)

    asking = [threading.Thread(target=ask) for _ in range(5)]
    try:
        with server.session(f"BEGIN; LOCK TABLE {table}"):
            for thread in asking:
                thread.start()
            until(lambda: int(server.sql(waiting)) == 2)  # half of four connections
            for number in range(3):
                assert turn(weir, f"s{number}").status_code == 200
            until(lambda: int(server.sql(waiting)) == 2)
        until(lambda: 200 in statuses)
    finally:
        stop.set()
        for thread in asking:
            if thread.ident:
                thread.join()


def until(true):
    give_up = time.monotonic() + 60
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_migrate_keeps_memories_that_are_there_and_changes_their_key(store, server):
    schema = store["WEIR_STORE_SCHEMA"]
    server.sql(f"""CREATE SCHEMA {schema}; CREATE TABLE {schema}.agent_memories(
        workspace_id uuid, key text, content text not null, category text not null default '',
        created_at timestamptz, updated_at timestamptz, primary key (workspace_id, key));
        INSERT INTO {schema}.agent_memories VALUES(
        '00000000-0000-0000-0000-000000000001', 'k', 'tea', 'likes', now(), now())""")
    assert migrate(store).returncode == 0
    server.sql(f"""INSERT INTO {schema}.agent_memories(workspace_id, category, key, content)
        VALUES('00000000-0000-0000-0000-000000000001', 'other', 'k', 'milk')""")
    assert server.sql(f"SELECT category, content FROM {schema}.agent_memories ORDER BY 1") == \
        "likes|tea\nother|milk"


def test_a_migration_that_fails_changes_nothing(store, server):
    schema = store["WEIR_STORE_SCHEMA"]
    server.sql(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.session(x int)")
    refused = migrate(store)
    assert refused.returncode == 1 and "session" in refused.stderr
    assert server.sql("SELECT count(*) FROM information_schema.tables"
                      f" WHERE table_schema = '{schema}'") == "1"


def test_sessions_are_there_after_a_kill_and_in_no_folder(start_weir, store, tmp_path):
    assert migrate(store).returncode == 0
    weir = start_weir(script=SCRIPT, env=store)
    for i in range(20):
        assert turn(weir, f"k{i % 3}").status_code == 200
    before = exported(weir, "k1")
    weir.kill()
    weir.restart()
    assert exported(weir, "k1") == before
    assert not list(tmp_path.glob("**/weir.db"))


def test_a_store_has_one_daemon_and_the_next_one_takes_over(start_weir, store):
    assert migrate(store).returncode == 0
    first = start_weir(script=SCRIPT, env=store)
    assert turn(first, "t").status_code == 200
    with pytest.raises(Exception) as refused:
        start_weir(script=SCRIPT, env=store)
    assert "another weir has it" in str(refused.value)
    first.kill()
    second = start_weir(script=SCRIPT, env=store)
    assert turn(second, "t").status_code == 200


def test_turns_go_on_when_the_server_comes_back(start_weir, store, server):
    assert migrate(store).returncode == 0
    weir = start_weir(script=SCRIPT, env=store)
    assert turn(weir, "r").status_code == 200
    server.end(signal.SIGQUIT)
    try:
        assert turn(weir, "r").status_code == 503
    finally:
        server.start()
    until = time.monotonic() + 30
    while turn(weir, "r").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_no_acknowledged_turn_is_lost_or_doubled_when_connections_break(start_weir, store, server):
    assert migrate(store).returncode == 0
    weir = start_weir(script=SCRIPT, env=store)
    done, asked, over = {}, {}, threading.Event()

    def talk(name):
        done[name] = asked[name] = 0
        while not over.is_set():
            asked[name] += 1
            if turn(weir, name, f"turn {asked[name]}").status_code == 200:
                done[name] += 1

    threads = [threading.Thread(target=talk, args=(f"b{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        time.sleep(0.3)
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                   " WHERE application_name = 'weir'")
    over.set()
    for thread in threads:
        thread.join()
    weir.kill()
    weir.restart()
    for name, count in done.items():
        events = exported(weir, name)
        ends = [e for e in events if e["event"]["type"] == "done"]
        begun = [e["event"]["text"] for e in events if e["event"]["type"] == "started"]
        assert 0 < count <= len(ends) <= asked[name]
        assert len(set(begun)) == len(begun)


def test_a_bank_is_recalled_by_vectors(start_weir, store):
    """More vectors than a step reads, with and without the word, also after a kill."""
    maker = embeddings.Embeddings()
    assert migrate(store).returncode == 0
    weir = start_weir(script=SCRIPT, env={**store, "HOUSE_KEY": "k"}, config=maker.config)
    anna = Memory(weir)
    anna.create(embedding_profile=vectors.profile())
    for first in range(0, 300, 100):
        anna.retain(*[f"a tale of stone {n}" for n in range(first, first + 100)])
    anna.retain("the automobile stands", "a car", "bread")
    found = vectors.reasons(vectors.embedded(anna, "car", 200)[:2])
    assert found == {"a car": "bm25+cosine", "the automobile stands": "cosine"}
    weir.kill()
    weir.restart()
    anna = Memory(weir)
    assert vectors.reasons(anna.recall("car", limit=2)) == found
    anna.retain("wagon")
    assert "wagon" in vectors.reasons(vectors.embedded(anna, "wagon", 200)[:1])
    anna.drop()
    anna.create(embedding_profile=vectors.profile())
    assert anna.recall("car") == []
    maker.end()


def test_a_daemon_whose_store_is_elsewhere_is_asked_for_its_process(start_weir, store):
    assert migrate(store).returncode == 0
    weir = start_weir(script=SCRIPT, env=store)

    def stop(*args):
        line = [harness.BINARY, "stop", "--data", weir.data, *args]
        return subprocess.run(line, env=harness.clean_environment(store), capture_output=True, text=True)

    nobody = stop("--http", "127.0.0.1:1")
    assert nobody.returncode == 1 and "127.0.0.1:1" in nobody.stderr
    assert "PostgreSQL" in nobody.stderr and weir.process.poll() is None
    there = stop("--http", f"127.0.0.1:{weir.port('http')}")
    assert (there.returncode, there.stdout) == (0, "stopped\n"), there.stderr
    assert weir.wait() == 0
