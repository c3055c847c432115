"""weir orchestrate: clients in front, agent runtimes behind, PostgreSQL and NATS beside it.
WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_orchestrate.py."""
import base64
import concurrent.futures
import contextlib
import hashlib
import hmac
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time

import far_runtime
import harness
import httpx
import nats
import orchestrating
import pytest
import websocket
from ports import free_port

import postgres
import socketio
import socketio_client

pytestmark = pytest.mark.skipif(not os.environ.get("WEIR_WITH_POSTGRES"),
                                reason="needs PostgreSQL and nats-server: WEIR_WITH_POSTGRES=1")

COUNTER = itertools.count()

# libnats keeps OpenSSL's objects until the process ends, which LeakSanitizer reports by their module.
NO_OPENSSL = {"LSAN_OPTIONS": f"suppressions={harness.ROOT}/test/e2e/lsan_nats.txt"}


@pytest.fixture(scope="module")
def database():
    with postgres.Cluster() as cluster:
        yield cluster


@pytest.fixture
def orchestrate(tmp_path, database):
    """Start orchestrators, each with a schema of its own."""
    with contextlib.ExitStack() as running:

        def start(**options):
            schema = options.pop("schema", None) or fresh_schema(database)
            folder = tmp_path / f"orchestrator{next(COUNTER)}"
            folder.mkdir()
            weir = orchestrating.Orchestrating(folder, database, schema=schema, **options)
            weir.schema = schema
            return running.enter_context(weir)

        yield start


def fresh_schema(database):
    name = f"s{next(COUNTER)}"
    database.sql(f"CREATE SCHEMA {name}")
    return name


@pytest.fixture
def runtime():
    with far_runtime.Runtime() as far:
        yield far


def rows(weir, sql):
    text = weir.database.sql(f"SET search_path = {weir.schema}; {sql}")
    return [line.split("|") for line in text.splitlines()]


def text_of(message):
    return message["content"]["text"]


def eventually(check, seconds=20, seen=None):
    """Until it is so; `seen` is shown when it never is."""
    give_up = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < give_up, seen and seen()
        time.sleep(0.05)


# --- a runtime that is none ----------------------------------------------------------------


def test_the_fake_runtime_answers_word_by_word(orchestrate):
    weir = orchestrate(driver="fake")
    answer = weir.say("hello  there")
    assert text_of(answer) == "Fake runtime reply: hello  there "
    assert answer["status"] == "delivered" and answer["role"] == "agent"
    assert answer["agent"]["slug"] == "manager" and "system_prompt" not in answer["agent"]
    page = weir.messages()
    assert [(m["role"], text_of(m), m["status"]) for m in page["data"]] == [
        ("user", "hello  there", "delivered"), ("agent", text_of(answer), "delivered")]


def test_the_first_use_makes_three_agents_and_their_conversations_once(orchestrate):
    weir = orchestrate(driver="fake")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        swarms = set(pool.map(lambda _: weir.swarm(), range(8)))
    assert len(swarms) == 1
    assert list(weir.agents()) == ["manager", "wally", "eve"]
    kinds = sorted((c["type"], c["title"]) for c in weir.conversations())
    assert kinds == [("agent", "Eve"), ("agent", "Wally"), ("swarm", "My Swarm")]


def test_without_its_tables_it_serves_nobody_and_says_how_to_make_them(orchestrate, tmp_path,
                                                                      database):
    weir = orchestrating.Orchestrating(tmp_path, database, schema=fresh_schema(database),
                                       migrate=False, driver="fake")
    weir.start()
    eventually(lambda: "weir orchestrate --migrate" in weir.log())
    assert weir.http().get("/v1/users/usage/summary").status_code == 503
    # Clients of Socket.IO come again after a 503; one that was "unauthorized" would not.
    opening = "/socket.io/?EIO=4&transport=polling"
    assert weir.http().get(opening).status_code == 503
    weir.stop()
    assert "version 2 now, from 0" in weir.migrate()
    assert "up to date: version 2" in weir.migrate()
    with weir:
        assert text_of(weir.say("hi")).startswith("Fake")
        assert weir.http().get(opening).status_code == 200


# --- runtimes elsewhere --------------------------------------------------------------------


def test_a_turn_is_asked_with_the_conversation_and_a_token(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    assert text_of(weir.say("hello one")) == "heard: hello one"
    asked = runtime.asked[0]
    assert (asked.request.session_id, asked.request.agent_id) == (swarm, "")
    assert (asked.request.user_id, asked.request.workspace_id) == ("user-1", "ws-1")
    assert asked.request.system_prompt == "" and asked.token.startswith("Bearer ")


def test_turns_of_a_conversation_share_a_stream(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    for turn in range(5):
        weir.say(f"hello {turn}")
    assert {asked.stream for asked in runtime.asked} == {1}


def test_each_turn_can_have_a_stream(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address, stream_per_turn=True)
    for turn in range(3):
        weir.say(f"hello {turn}")
    assert len({asked.stream for asked in runtime.asked}) == 3


def test_usage_is_counted_with_the_message(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    for _ in range(3):
        weir.say("tools")
    assert rows(weir, "SELECT tokens_used, prompt_tokens_used, completion_tokens_used, "
                      "request_count FROM usage_counters") == [["99", "90", "9", "6"]]
    with weir.http() as http:
        summary = http.get("/v1/users/usage/summary").json()["data"]
    assert (summary["tokens_used"], summary["request_count"]) == (99, 6)
    assert (summary["token_limit"], summary["plan_id"]) == (500000, "free")
    manager = weir.agents()["manager"]["id"]
    assert rows(weir, f"SELECT tokens_used FROM agent_usage_counters WHERE agent_id = '{manager}'"
                ) == [["99"]]


def test_a_used_up_quota_refuses_the_message_before_it_is_stored(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    weir.say("hello")
    rows(weir, "UPDATE usage_plans SET monthly_token_limit = 12 WHERE plan_id = 'free'")
    refused = weir.post("hello")
    assert refused.status_code == 429
    assert refused.json() == {"message": "monthly token quota exceeded", "code": "QTA0001"}
    assert len(runtime.asked) == 1 and len(weir.messages()["data"]) == 2
    rows(weir, "UPDATE usage_plans SET monthly_token_limit = 13 WHERE plan_id = 'free'")
    weir.say("hello")


def test_tools_have_rows_that_end(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    answer = weir.say("tools")
    assert text_of(answer) == "looking. found it"
    tools = [m["content"] for m in weir.messages()["data"] if m["content"]["type"] == "tool_status"]
    assert tools == [
        {"type": "tool_status", "tool": "web_fetch", "state": "completed", "query": "http://a",
         "args": {"url": "http://a"}},
        {"type": "tool_status", "tool": "shell", "state": "failed", "query": "rm"},
    ]


def test_a_delegate_has_a_message_of_its_own(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    answer = weir.say("delegate")
    assert answer["status"] == "delegated" and answer["content"]["type"] == "delegation"
    assert answer["content"]["to"]["slug"] == "wally"
    last = weir.messages()["data"][-1]
    assert (last["agent"]["slug"], text_of(last), last["status"]) == ("wally", "wally here", "delivered")
    assert rows(weir, "SELECT task_summary, status FROM agent_delegations") == [
        [text_of(answer).strip(), "completed"]]


def test_mentioned_agents_answer_in_parallel_without_their_names(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    agents = weir.agents()
    mentions = [{"agent_id": agents["wally"]["id"], "agent_name": "Wally", "offset": 0, "length": 6},
                {"agent_id": agents["eve"]["id"], "agent_name": "Eve", "offset": 7, "length": 4}]
    weir.say("@Wally @Eve hello you", mentions=mentions)
    assert sorted((a.request.agent_id, a.request.message) for a in runtime.asked) == [
        ("eve", "hello you"), ("wally", "hello you")]
    assert len({a.request.session_id for a in runtime.asked}) == 1


@pytest.mark.parametrize("text", ["@Eve", " @Eve \n"])
def test_a_message_of_a_mention_alone_is_asked_as_it_stands(orchestrate, runtime, text):
    """Runtimes refuse an empty message."""
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    eve = weir.agents()["eve"]["id"]
    mention = {"agent_id": eve, "agent_name": "Eve", "offset": text.index("@"), "length": 4}
    setattr(runtime, "@Eve", runtime.hello)
    answer = weir.say(text, mentions=[mention])
    assert [(a.request.agent_id, a.request.message) for a in runtime.asked] == [("eve", "@Eve")]
    assert answer["status"] != "failed"


def test_an_agents_conversation_is_its(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    eve = next(c for c in weir.conversations() if c["title"] == "Eve")
    weir.say("hello", conversation=eve["id"])
    assert runtime.asked[0].request.agent_id == "eve"


def test_a_runtimes_error_is_readable_and_the_stream_goes_on(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    failed = weir.say("error ERROR: INTERNAL: runner: context deadline exceeded")
    assert failed["status"] == "failed"
    assert text_of(failed) == ("so far. \n\nThe assistant could not finish: "
                               "runner: context deadline exceeded")
    assert text_of(weir.say("hello")) == "heard: hello"
    assert {asked.stream for asked in runtime.asked} == {1}


@pytest.mark.parametrize("way", ["midway", "nodone"])
def test_a_stream_lost_in_mid_turn_keeps_what_was_said(orchestrate, runtime, way):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    lost = weir.say(way)
    assert (lost["status"], text_of(lost)) == ("incomplete", "half a ")
    assert text_of(weir.say("hello")) == "heard: hello"
    assert [a.request.message for a in runtime.asked] == [way, "hello"]


@pytest.mark.parametrize("way", ["refused", "goaway"])
def test_a_request_that_was_never_seen_is_sent_again(orchestrate, way):
    with far_runtime.Rogue() as rogue:
        weir = orchestrate(driver="address", runtime_address=rogue.address)
        assert text_of(weir.say(way)) == f"heard: {way}"
        assert rogue.asked[way] == 2


@pytest.mark.parametrize("way", ["reset", "midgoaway", "nonsense"])
def test_a_request_that_may_have_run_is_never_sent_again(orchestrate, way):
    with far_runtime.Rogue() as rogue:
        weir = orchestrate(driver="address", runtime_address=rogue.address)
        assert weir.say(way)["status"] in ("incomplete", "failed")
        assert rogue.asked[way] == 1


LEFT_ALONE = "could not be reached and is left alone"


def test_a_runtime_that_fails_one_workspace_is_asked_by_the_others_at_once(orchestrate, runtime):
    """One that cannot be reached is left alone after each failure, which the log says."""
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm("ws-2", "user-2")
    for _ in range(14):
        weir.post("refuse INTERNAL")
        assert weir.post("hello", swarm, "ws-2", "user-2").status_code == 201
    assert "refuse INTERNAL" in [asked.request.message for asked in runtime.asked]
    weir.stop()  # so that the log is whole
    assert LEFT_ALONE not in weir.log()


def test_a_runtime_that_cannot_be_reached_is_left_alone_for_a_while(orchestrate):
    weir = orchestrate(driver="address", runtime_address=f"127.0.0.1:{free_port()}")
    eventually(lambda: weir.post("hello").status_code == 503 and LEFT_ALONE in weir.log())


def test_a_turn_of_many_model_calls_writes_its_text_once_a_second(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    rows(weir, "CREATE TABLE writes (id text); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
               "$$BEGIN INSERT INTO writes VALUES (NEW.id); RETURN NEW; END$$; CREATE TRIGGER note AFTER UPDATE "
               "ON messages FOR EACH ROW WHEN (NEW.role = 'agent' AND NEW.status = 'pending') EXECUTE FUNCTION note()")
    began = time.monotonic()
    weir.say("calls 300")
    most = 2 + time.monotonic() - began
    assert 1 <= int(rows(weir, "SELECT count(*) FROM writes")[0][0]) <= most
    assert rows(weir, "SELECT request_count FROM usage_counters") == [["300"]]


def test_a_runtime_that_is_not_there_is_said_to_start(orchestrate):
    port = free_port()
    weir = orchestrate(driver="address", runtime_address=f"127.0.0.1:{port}")
    refused = weir.post("hello")
    assert refused.status_code == 503
    assert refused.json() == {"message": "Assistant is still starting", "code": "RTM0001"}
    assert [m["role"] for m in weir.messages()["data"]] == ["user"]


def test_a_workspace_has_so_many_turns_at_once(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address, turns=2,
                       turn_wait="300ms")
    runtime.together = threading.Barrier(3)
    swarm = weir.swarm()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(weir.post, f"meet {n}", swarm) for n in range(3)]
        codes = sorted(done.result().status_code for done in
                       concurrent.futures.wait(answers, return_when="FIRST_COMPLETED").done)
        assert codes == [503] and len(runtime.asked) == 2
        assert text_of(weir.say("hello", workspace="ws-2", user="user-2")) == "heard: hello"
        runtime.together.wait(20)
        assert sorted(a.result().status_code for a in answers) == [201, 201, 503]


def test_so_many_turns_may_wait_and_no_more(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address, turns=1)
    swarm = weir.swarm()
    runtime.together = threading.Barrier(2)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        first = pool.submit(weir.post, "meet first", swarm)
        eventually(lambda: runtime.asked)
        waiting = [pool.submit(weir.post, "hello", swarm) for _ in range(5)]
        refused = concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED").done
        assert [answer.result().status_code for answer in refused] == [503]
        runtime.together.wait(20)
        assert first.result().status_code == 201
        assert sorted(answer.result().status_code for answer in waiting) == [201] * 4 + [503]


def test_a_client_that_leaves_cancels_the_turn_and_what_was_said_is_kept(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    with pytest.raises(httpx.ReadTimeout), weir.http() as http:
        http.post(f"/v1/workspaces/ws-1/conversations/{swarm}/messages",
                  json={"content": {"text": "silence"}}, timeout=1)
    assert runtime.cancelled.wait(20)
    eventually(lambda: weir.messages()["data"][-1]["role"] == "agent")
    last = weir.messages()["data"][-1]
    assert (text_of(last), last["status"]) == ("...", "incomplete")


def test_a_runtime_that_says_nul_is_stored_without(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    assert weir.say("nul")["status"] == "delivered"
    user, answer, tool = weir.messages()["data"]
    assert text_of(answer) == "a\ufffdb\\u0000" and answer["status"] == "delivered"
    assert tool["content"]["query"] == "http://\ufffd"
    assert rows(weir, "SELECT model, agent_id, prompt_tokens FROM usage_events") == [["m?", "?", "1"]]


def test_whatever_a_runtime_says_its_usage_counts(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    answer = weir.say("control 5")
    assert answer["status"] == "failed" and text_of(answer).startswith("\1")
    assert text_of(answer).endswith("The assistant reached a limit: its answer is too long")
    assert text_of(weir.messages()["data"][-1]) == text_of(answer)
    assert rows(weir, "SELECT tokens_used, request_count FROM usage_counters") == [["100005", "1"]]


def test_an_answer_that_cannot_be_stored_is_not_said_to_be_delivered(orchestrate, runtime, connect):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    client = connect(weir)
    client.subscribe("ws-1")
    client.wait("workspace.subscribed")
    rows(weir, "ALTER TABLE messages ADD CHECK (role = 'user' OR status <> 'delivered')")
    answer = weir.post("hello", swarm)
    assert (answer.status_code, answer.json()["code"]) == (500, "INT0001")
    assert [done["status"] for done in client.wait("message.done")] == ["failed"]
    assert [m["message"]["role"] for m in client.all("message.new")] == ["user"]
    assert rows(weir, "SELECT tokens_used, request_count FROM usage_counters") == [["12", "1"]]


# --- programs ------------------------------------------------------------------------------


def test_a_workspace_gets_a_runtime_of_its_own_which_ends_when_idle(orchestrate, tmp_path):
    config = tmp_path / "runtime.yaml"
    config.write_text(f"script: {harness.ROOT}/test/e2e/scripts/asks.yaml\n")
    command = (f"{harness.BINARY} serve -c {config} --grpc 127.0.0.1:{{port}} --http off --nimi-grpc off "
               f"--nimi-http off --data {tmp_path}/runtime-{{workspace}}")
    weir = orchestrate(driver="child", runtime_command=command, runtime_idle="500ms")
    first = weir.say("hello")
    assert first["status"] == "delivered"
    other = weir.say("hello", workspace="ws-2", user="user-2")
    assert other["status"] in ("delivered", "delegated")
    assert weir.log().count(" serves on ") == 2
    eventually(lambda: weir.log().count("is idle and ends") == 2)
    again = weir.say("hello")
    assert again["status"] in ("delivered", "delegated")
    assert weir.log().count(" serves on ") == 3


def test_a_turn_that_comes_while_its_program_ends_waits_for_the_next(orchestrate, tmp_path):
    config = tmp_path / "runtime.yaml"
    config.write_text(f"script: {harness.ROOT}/test/e2e/scripts/asks.yaml\n")
    slow = tmp_path / "slow.sh"  # it holds its folder for a while after it was told to end
    slow.write_text('#!/bin/sh\nexec 9>"$1"\nflock -n 9 || { echo "in use: $1" >&2; exit 1; }\nshift\n'
                    "trap 'sleep 0.3; kill $child; wait $child; exit 0' TERM\n\"$@\" &\nchild=$!\nwait\n")
    slow.chmod(0o755)
    command = (f"{slow} {tmp_path}/lock-{{workspace}} {harness.BINARY} serve -c {config} --grpc 127.0.0.1:{{port}} "
               f"--http off --nimi-grpc off --nimi-http off --data {tmp_path}/r-{{workspace}}")
    weir = orchestrate(driver="child", runtime_command=command, runtime_idle="200ms")
    swarm = weir.swarm()
    for turn in range(1, 4):
        assert weir.post("hello", swarm).status_code == 201, weir.log()
        eventually(lambda: weir.log().count("is idle and ends") == turn)
    assert "in use" not in weir.log()


def test_what_a_program_complains_of_is_in_the_log(orchestrate):
    weir = orchestrate(driver="child", runtime_command="/bin/ls /no/{workspace}", runtime_start="2s")
    assert weir.post("hello").status_code == 503
    eventually(lambda: "/no/ws-1" in weir.log())


def test_a_program_whose_port_was_taken_says_so_and_the_next_turn_gets_another(orchestrate, tmp_path):
    taken = tmp_path / "taken.py"  # the first time it holds the port that the program is told
    taken.write_text("import os, socket, sys\nport, once, *command = sys.argv[1:]\n"
                     "if not os.path.exists(once):\n    open(once, 'w').close()\n"
                     "    holder = socket.create_server(('127.0.0.1', int(port)))\n"
                     "    holder.set_inheritable(True)\nos.execv(command[0], command)\n")
    config = tmp_path / "runtime.yaml"
    config.write_text(f"script: {harness.ROOT}/test/e2e/scripts/asks.yaml\n")
    command = (f"{sys.executable} -S {taken} {{port}} {tmp_path}/once {harness.BINARY} serve -c {config} "
               f"--grpc 127.0.0.1:{{port}} --http off --nimi-grpc off --nimi-http off --data {tmp_path}/runtime")
    weir = orchestrate(driver="child", runtime_command=command)
    swarm = weir.swarm()
    refused = weir.post("hello", swarm)
    assert (refused.status_code, refused.json()["code"]) == (503, "RTM0001")
    eventually(lambda: "the runtime of workspace 'ws-1' has ended with status" in weir.log())
    assert "cannot listen on 127.0.0.1:" in weir.log()
    assert weir.post("hello", swarm).status_code == 201, weir.log()
    assert weir.log().count(" serves on ") == 1


def test_a_workspace_is_one_folder_whatever_its_name(orchestrate):
    weir = orchestrate(driver="child", runtime_command="/bin/ls /no/{workspace} {user}", runtime_start="2s")
    with weir.http("-l", "../a.b") as http:
        home = "/v1/workspaces/..%2Fa.b/conversations"
        swarm = [c["id"] for c in http.get(home).json()["data"] if c["type"] == "swarm"][0]
        answer = http.post(f"{home}/{swarm}/messages", json={"content": {"type": "text", "text": "hello"}})
    assert answer.status_code == 503
    assert "/no/%2E%2E%2Fa%2Eb" in weir.log() and "'%2Dl'" in weir.log()


def test_a_runtime_that_never_serves_is_said_to_start(orchestrate):
    weir = orchestrate(driver="child", runtime_command="sleep 60", runtime_start="300ms")
    refused = weir.post("hello")
    assert (refused.status_code, refused.json()["code"]) == (503, "RTM0001")


def test_a_program_that_is_not_there_is_said_to_start(orchestrate):
    weir = orchestrate(driver="child", runtime_command="/no/such/program")
    assert weir.post("hello").json()["code"] == "RTM0001"
    assert "/no/such/program" in weir.log()


# --- REST ----------------------------------------------------------------------------------


def test_pages_go_back_and_hold_each_message_once(orchestrate):
    weir = orchestrate(driver="fake")
    assert weir.messages() == {"data": [], "pagination": {"hasNext": False}}
    for turn in range(6):
        weir.say(f"turn {turn}")
    whole = [m["id"] for m in weir.messages()["data"]]
    assert len(whole) == 12
    paged, scroll = [], {}
    while True:
        page = weir.messages(limit=5, **scroll)
        paged = [m["id"] for m in page["data"]] + paged
        if not page["pagination"]["hasNext"]:
            break
        scroll = {"scrollId": page["pagination"]["nextScrollId"]}
    assert paged == whole


def test_a_page_ends_before_it_is_too_large(orchestrate):
    weir = orchestrate(driver="fake")
    swarm = weir.swarm()
    rows(weir, "INSERT INTO messages (id, conversation_id, role, content, status, created_at) SELECT 'm' || n, "
               f"'{swarm}', 'agent', json_build_object('type', 'text', 'text', repeat(md5(n::text), 32768 * (1 + n % 2))), "
               "'delivered', now() + n * interval '1 second' FROM generate_series(10, 39) n")
    found, sizes = all_pages(weir, f"conversations/{swarm}/messages", limit=200)
    assert sorted(message["id"] for message in found) == [f"m{n}" for n in range(10, 40)]
    assert found[sizes[0] - 1]["id"] == "m39" and found[sizes[0]]["id"] == f"m{40 - sizes[0] - sizes[1]}"
    assert 5 <= len(sizes) <= 7 and all(sizes)
    rows(weir, "UPDATE agents SET description = repeat('d', 5242880)")
    assert all_pages(weir, "agents")[1] == [2, 1]


@pytest.mark.parametrize("query", ["scrollId=%ff", "limit=%2", "limit=%zz&scrollId="])
def test_a_page_whose_parameter_is_no_text_is_refused(orchestrate, query):
    weir = orchestrate(driver="fake")
    with weir.http() as http:
        answer = http.get(f"/v1/workspaces/ws-1/conversations/{weir.swarm()}/messages?{query}")
    assert answer.status_code == 400 and answer.json()["code"] == "REQ0001"


@pytest.mark.parametrize("scroll", ["9223372036854775806-1-x", "-9223372036854775808-1-x", "1-99-x", "x"])
def test_a_scroll_id_of_nobodys_making_is_refused(orchestrate, scroll):
    weir = orchestrate(driver="fake")
    with weir.http() as http:
        answer = http.get(f"/v1/workspaces/ws-1/conversations/{weir.swarm()}/messages", params={"scrollId": scroll})
    assert (answer.status_code, answer.json()) == (
        400, {"code": "REQ0001", "message": "scrollId or limit is not valid"})


def all_pages(weir, path, remove=True, **query):
    """All rows, and the size of each page; `remove`: the last row of each is deleted before the next."""
    found, sizes = [], []
    with weir.http() as http:
        while True:
            answer = http.get(f"/v1/workspaces/ws-1/{path}", params=query)
            assert answer.status_code == 200, answer.text
            page = answer.json()
            found += page["data"]
            sizes.append(len(page["data"]))
            if not page["pagination"]["hasNext"]:
                return found, sizes
            query["scrollId"] = page["pagination"]["nextScrollId"]
            if remove:
                rows(weir, f"DELETE FROM conversations WHERE id = '{page['data'][-1]['id']}'")


def test_long_lists_come_in_pages(orchestrate):
    weir = orchestrate(driver="fake")
    weir.swarm()
    rows(weir, "INSERT INTO conversations (id, workspace_id, type, title) SELECT 'c-' || n, 'ws-1', 'agent', "
               "'t-é ' || n % 50 FROM generate_series(1, 2500) n")
    rows(weir, "INSERT INTO agents (id, workspace_id, name, role, slug, sort_order) SELECT 'a-' || n, 'ws-1', "
               "'n', 'sub-agent', 's-' || n, n % 7 FROM generate_series(1, 450) n")
    found, sizes = all_pages(weir, "conversations")
    assert sizes == [200] * 12 + [103]
    assert len({c["id"] for c in found}) == 2503 and found[0]["title"] == "My Swarm"
    agents, sizes = all_pages(weir, "agents", limit=100)
    assert sizes == [100] * 4 + [53] and len({a["slug"] for a in agents}) == 453
    for bad in ("x", "1", "1-x-a", "1-99-a", "--", "-1"):
        with weir.http() as http:
            assert http.get("/v1/workspaces/ws-1/agents", params={"scrollId": bad}).status_code == 400


@pytest.mark.parametrize("size", [511, 512, 600, 7000, 100_000])
@pytest.mark.parametrize("letter", ["t", "é"])
def test_a_list_goes_on_after_a_name_of_any_length(orchestrate, letter, size):
    """The index holds long names that compress well. All share their beginning, however far."""
    weir = orchestrate(driver="fake")
    weir.swarm()
    rows(weir, f"INSERT INTO conversations (id, workspace_id, type, title) SELECT 'c-' || n, 'ws-1', 'agent', "
               f"repeat('{letter}', {size}) || n % 3 FROM generate_series(1, 9) n")
    rows(weir, f"INSERT INTO agents (id, workspace_id, name, role, slug, sort_order) SELECT 'a-' || n, 'ws-1', "
               f"'n', 'sub-agent', repeat('{letter}', {size}) || n, 9 FROM generate_series(1, 9) n")
    for path, count in (("conversations", 12), ("agents", 12)):
        whole = [row["id"] for row in all_pages(weir, path, remove=False)[0]]
        paged = [row["id"] for row in all_pages(weir, path, remove=False, limit=2)[0]]
        assert len(whole) == count and paged == whole


def test_a_list_that_goes_on_after_a_long_name_that_is_gone_leaves_none_out(orchestrate):
    weir = orchestrate(driver="fake")
    weir.swarm()
    rows(weir, "INSERT INTO conversations (id, workspace_id, type, title) SELECT 'c-' || n, 'ws-1', 'agent', "
               "repeat('t', 5000) || n FROM generate_series(1, 4) n")
    with weir.http() as http:
        first = http.get("/v1/workspaces/ws-1/conversations", params={"limit": 4}).json()
        assert first["data"][-1]["title"].startswith("t")
        rows(weir, f"DELETE FROM conversations WHERE id = '{first['data'][-1]['id']}'")
        after = http.get("/v1/workspaces/ws-1/conversations",
                         params={"scrollId": first["pagination"]["nextScrollId"]}).json()
    assert [c["id"] for c in after["data"]] == ["c-2", "c-3", "c-4"]


def test_another_tenants_things_are_not_found_like_things_that_never_were(orchestrate):
    weir = orchestrate(driver="fake")
    swarm = weir.swarm()
    weir.swarm("ws-2", "user-2")
    with weir.http("user-2", "ws-2") as http:
        path = "/v1/workspaces/{}/conversations/{}/messages"
        others = [http.get(path.format("ws-1", swarm)), http.get(path.format("ws-none", swarm))]
        conversations = [http.get(path.format("ws-2", swarm)), http.get(path.format("ws-2", "none"))]
    assert [(a.status_code, a.json()) for a in others] == [
        (404, {"message": "workspace not found", "code": "WSP0001"})] * 2
    assert [(a.status_code, a.json()) for a in conversations] == [
        (404, {"message": "conversation not found", "code": "CHT0001"})] * 2
    # A token for a workspace that is somebody else's.
    assert weir.post("hello", swarm, "ws-1", "user-3").status_code == 404


def test_callers_prove_who_they_are(orchestrate):
    weir = orchestrate(driver="fake")
    summary = weir.base + "/v1/users/usage/summary"
    good = {"authorization": "Bearer " + harness.token()}
    assert httpx.get(summary, headers=good).status_code == 200
    for headers in ({}, {"authorization": "Bearer x"}, {**good, "x-firebase-uid": "user-1"},
                    {"authorization": "Bearer " + harness.token(key="another key of 32 bytes")}):
        answer = httpx.get(summary, headers=headers)
        assert answer.status_code == 401 and answer.json()["code"] == "AUTH0001"


def test_old_keys_and_strict_tokens_hold_here_too(orchestrate):
    old = "old-key-old-key-old-key-old-key!"
    weir = orchestrate(driver="fake", strict_tokens=True, env={"CRAWBL_MCP_SIGNING_KEY_PREVIOUS": old})
    text = base64.urlsafe_b64encode(b"user-1:ws-1").decode().rstrip("=")
    undated = text + "." + hmac.new(orchestrating.KEY.encode(), text.encode(), hashlib.sha256).hexdigest()
    for token, status in [(harness.token(), 200), (harness.token(key=old), 200), (undated, 401),
                          (harness.token(key="another-key-another-key-another!"), 401),
                          (harness.token(at=int(time.time()) - 86400), 401)]:
        answer = httpx.get(weir.base + "/v1/users/usage/summary", headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == status


def test_behind_a_gateway_its_header_names_the_user(orchestrate):
    weir = orchestrate(driver="fake", gateway=True)
    summary = weir.base + "/v1/users/usage/summary"
    assert httpx.get(summary, headers={"x-firebase-uid": "user-1"}).status_code == 200
    assert httpx.get(summary).status_code == 401
    for first in ("user-1", ""):
        twice = [("X-Firebase-UID", first), ("X-Firebase-UID", "user-2")]
        assert httpx.get(summary, headers=twice).status_code == 401
    opened = httpx.get(weir.base + "/socket.io/?EIO=4&transport=polling", headers=twice).text
    polls = f"{weir.base}/socket.io/?EIO=4&transport=polling&sid={json.loads(opened[1:])['sid']}"
    assert httpx.post(polls, content="40/v1,").text == "ok"
    assert httpx.get(polls).text.startswith("44/v1,")  # CONNECT_ERROR


@pytest.mark.parametrize("body", [
    b"{", b"[]", b"{}", b'{"content":{"text":"  "}}', b'{"content":{"text":5}}',
    b'{"content":{"text":"a\\u0000b"}}', b'{"content":{"text":"a"},"attachments":{}}',
    b'{"content":{"text":"a"},"attachments":["\\u0000"]}', b'{"content":{"text":"a"},"local_id":"\\u0000"}',
    b'{"content":{"text":"a"},"mentions":[{"agent_id":"\\u0000"}]}',
])
def test_what_is_no_message_is_refused(orchestrate, body):
    weir = orchestrate(driver="fake")
    swarm = weir.swarm()
    with weir.http() as http:
        answer = http.post(f"/v1/workspaces/ws-1/conversations/{swarm}/messages", content=body,
                           headers={"content-type": "application/json"})
    assert answer.status_code == 400 and answer.json()["code"] == "REQ0001", answer.text
    assert b"u0000" not in body or "has a NUL (U+0000)" in answer.text or "have a NUL (U+0000)" in answer.text
    assert weir.messages()["data"] == []


def test_an_attachment_may_hold_what_jsonb_cannot(orchestrate):
    weir = orchestrate(driver="fake")
    swarm = weir.swarm()
    body = b'{"content":{"text":"a"},"attachments":[{"id":"x","size":1e999999,"name":"\\\\u0000"}]}'
    with weir.http() as http:
        answer = http.post(f"/v1/workspaces/ws-1/conversations/{swarm}/messages", content=body,
                           headers={"content-type": "application/json"})
    assert answer.status_code == 201, answer.text
    assert weir.messages()["data"][0]["attachments"] == [{"id": "x", "size": "1e999999", "name": "\\u0000"}]


@pytest.mark.parametrize("conversation", ["%00", "x" * 257, "%0a"])
def test_what_can_be_no_conversation_is_not_found(orchestrate, conversation):
    weir = orchestrate(driver="fake")
    path = f"/v1/workspaces/ws-1/conversations/{conversation}/messages"
    with weir.http() as http:
        answers = [http.get(path), http.post(path, json={"content": {"type": "text", "text": "hello"}})]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(404, "CHT0001")] * 2


def test_a_local_id_has_a_length(orchestrate):
    weir = orchestrate(driver="fake")
    assert weir.post("hello", local_id="x" * 256).status_code == 201
    answer = weir.post("hello", local_id="x" * 257)
    assert (answer.status_code, answer.json()["code"]) == (400, "REQ0001")


def test_a_message_that_is_sent_twice_is_stored_and_answered_once(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    first = weir.post("hello", local_id="local-1")
    second = weir.post("hello", local_id="local-1")
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json()["data"]["id"] == first.json()["data"]["id"]
    assert text_of(second.json()["data"]) == text_of(first.json()["data"]) == "heard: hello"
    assert len(runtime.asked) == 1 and len(weir.messages()["data"]) == 2
    other = weir.post("something else", local_id="local-1")
    assert (other.status_code, other.json()["code"]) == (409, "REQ0002")
    assert len(runtime.asked) == 1 and len(weir.messages()["data"]) == 2


def test_an_answer_that_nobody_knows_yet_is_not_shown_as_one(orchestrate, runtime):
    """Its process was killed: until the row is ended, whoever asks again is told to try later."""
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        cut = pool.submit(weir.post, "silence", swarm, local_id="local-1")
        eventually(lambda: rows(weir, "SELECT 1 FROM messages WHERE status = 'pending'"))
        weir.kill()
        with pytest.raises(httpx.HTTPError):
            cut.result()
    weir.start()
    weir.ready()
    again = weir.post("silence", swarm, local_id="local-1")
    assert (again.status_code, again.json()["code"]) == (503, "RTM0001")


def test_a_message_that_is_sent_again_while_it_is_answered_gets_that_answer(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(weir.post, "slowly", swarm, local_id="local-1") for _ in range(3)]
        ids = {answer.result().json()["data"]["id"] for answer in asked}
    assert len(ids) == 1 and len(runtime.asked) == 1


def test_a_message_whose_sender_left_before_it_was_answered_is_answered_when_it_comes_again(
        orchestrate, runtime):
    """Its row was stored after the connection had gone."""
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        lock = pool.submit(rows, weir, "BEGIN; LOCK TABLE messages IN EXCLUSIVE MODE; SELECT pg_sleep(3); ROLLBACK")
        eventually(lambda: rows(weir, "SELECT 1 FROM pg_locks WHERE granted AND mode = 'ExclusiveLock' AND "
                                      "relation = 'messages'::regclass"))
        with weir.http() as http, pytest.raises(httpx.TimeoutException):
            http.post(f"/v1/workspaces/ws-1/conversations/{swarm}/messages", timeout=0.5,
                      json={"content": {"type": "text", "text": "hello"}, "local_id": "local-1"})
        answer = pool.submit(weir.post, "hello", swarm, local_id="local-1").result()
        lock.result()
    assert text_of(answer.json()["data"]) == "heard: hello"
    assert len(runtime.asked) == 1 and len(weir.messages()["data"]) == 2


def test_text_comes_back_as_it_was_sent(orchestrate):
    weir = orchestrate(driver="fake")
    texts = ["'; DROP TABLE messages; --", "\\u0000 \\ \" \n\t", "系统 🦊", "$1 %s {workspace}"]
    for text in texts:
        weir.say(text)
    assert [text_of(m) for m in weir.messages()["data"] if m["role"] == "user"] == texts


# --- many tenants, one database --------------------------------------------------------------


class Held:
    """Reads of the messages of one workspace stand still, until it ends: each waits for a lock that another
    session has. What is held is what the server says."""

    def __init__(self, weir, conversation):
        self.weir = weir
        rows(weir, "ALTER TABLE messages RENAME TO stored_messages;"
                   "CREATE FUNCTION held(text) RETURNS bool LANGUAGE plpgsql COST 1000000 AS $$BEGIN "
                   f"IF $1 = '{conversation}' THEN PERFORM pg_advisory_xact_lock_shared(7227); END IF; "
                   "RETURN true; END$$;"
                   "CREATE VIEW messages AS SELECT * FROM stored_messages WHERE held(conversation_id)")

    def __enter__(self):
        self.session = self.weir.database.session("SELECT pg_advisory_lock(7227)")
        return self

    def __exit__(self, *_):
        self.session.close()

    def lock(self, table):
        """Nothing is written to this table either."""
        self.session.run(f"BEGIN; LOCK TABLE {table} IN SHARE MODE")

    def waiting(self):
        """The server's processes in which one stands still."""
        return {row[0] for row in rows(self.weir, "SELECT pid FROM pg_locks WHERE locktype = 'advisory' "
                                                  "AND objid = 7227 AND NOT granted")}


def keep_asking(weir, path, stop, statuses):
    """The same read again and again: the server ends one that stands still for long."""
    with weir.http() as http:
        while not stop.is_set():
            statuses.append(http.get(path).status_code)


def test_a_read_that_takes_long_holds_up_nobody_elses(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    weir.say("hello")
    swarm = weir.swarm()
    path = f"/v1/workspaces/ws-1/conversations/{swarm}/messages"
    others = weir.swarm("ws-2", "user-2")
    stop, statuses = threading.Event(), []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        try:
            with Held(weir, swarm) as held:
                for _ in range(6):
                    pool.submit(keep_asking, weir, path, stop, statuses)
                eventually(lambda: len(held.waiting()) == 2)
                for turn in range(3):
                    assert weir.post(f"hello {turn}", others, "ws-2", "user-2").status_code == 201
                    assert len(weir.messages(others, "ws-2", "user-2")["data"]) == 2 * turn + 2
                    assert set(weir.agents("ws-2", "user-2")) == {"manager", "wally", "eve"}
                # Six are asked, and half of four connections is the workspace's.
                eventually(lambda: len(held.waiting()) == 2)
            eventually(lambda: 200 in statuses)
        finally:
            stop.set()
    assert weir.say("hello")["status"] == "delivered"


def test_so_many_reads_of_a_workspace_may_wait_and_no_more(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address, reads=3)
    weir.say("hello")
    swarm = weir.swarm()
    path = f"/v1/workspaces/ws-1/conversations/{swarm}/messages"
    others = weir.swarm("ws-2", "user-2")
    with concurrent.futures.ThreadPoolExecutor(8) as pool, Held(weir, swarm) as held:
        asked = [pool.submit(lambda: weir.http().get(path)) for _ in range(8)]
        refused = [done.result() for done in
                   itertools.islice(concurrent.futures.as_completed(asked), 5)]
        assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [(429, "REQ0003")] * 5
        assert "3 run or wait for the database already" in refused[0].json()["message"]
        assert weir.messages(others, "ws-2", "user-2")["data"] == []
        assert len(held.waiting()) == 2


def test_a_lost_connection_repeats_its_own_reads_alone(orchestrate, runtime):
    """The server ends the two that stand still; nothing of others fails, and these are asked again."""
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    weir.say("hello")
    swarm = weir.swarm()
    others = weir.swarm("ws-2", "user-2")
    path = f"/v1/workspaces/ws-1/conversations/{swarm}/messages"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with Held(weir, swarm) as held:
            asked = [pool.submit(lambda: weir.http().get(path)) for _ in range(2)]
            eventually(lambda: len(held.waiting()) == 2)
            lost = held.waiting()
            rows(weir, f"SELECT pg_terminate_backend(pid) FROM unnest(array[{','.join(lost)}]) pid")
            assert weir.post("hello", others, "ws-2", "user-2").status_code == 201
            assert len(weir.messages(others, "ws-2", "user-2")["data"]) == 2
            eventually(lambda: held.waiting() and not held.waiting() & lost)
        assert [answer.result().status_code for answer in asked] == [200, 200]
        assert [len(answer.result().json()["data"]) for answer in asked] == [2, 2]


# --- processes that die ----------------------------------------------------------------------


def test_what_a_dead_process_left_is_ended(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address, stale="400ms")
    swarm = weir.swarm()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        cut = pool.submit(weir.post, "silence", swarm)
        eventually(lambda: rows(weir, "SELECT 1 FROM messages WHERE status = 'pending'"))
        # A turn that runs is no dead one, however long it runs.
        time.sleep(1)
        assert rows(weir, "SELECT 1 FROM messages WHERE status = 'pending'")
        weir.kill()
        with pytest.raises(httpx.HTTPError):
            cut.result()
    weir.start()
    weir.ready()
    eventually(lambda: not rows(weir, "SELECT 1 FROM messages WHERE status = 'pending'"))
    last = weir.messages(swarm)["data"][-1]
    assert (last["status"], text_of(last)) == ("failed", "The assistant was interrupted")


def test_however_many_a_dead_process_left_all_are_ended_at_the_start(orchestrate):
    weir = orchestrate(driver="fake")
    swarm = weir.swarm()
    rows(weir, "INSERT INTO messages (id, conversation_id, role, content, status, updated_at) SELECT 'd-' || n, "
               f"'{swarm}', 'agent', '{{\"type\":\"text\",\"text\":\"\"}}', 'pending', now() - interval '1 hour' "
               "FROM generate_series(1, 1700) n")
    weir.kill()
    weir.start()
    weir.ready()
    eventually(lambda: rows(weir, "SELECT count(*) FROM messages WHERE status = 'failed'") == [["1700"]])


def test_killed_at_any_moment_each_message_is_once_and_the_counters_are_the_sum(orchestrate,
                                                                                runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address, stale="400ms")
    workspaces = [(f"ws-{n}", f"user-{n}") for n in range(4)]
    swarms = {w: weir.swarm(w, u) for w, u in workspaces}
    sent, answered, stop = {}, {}, []

    def talk(workspace, user):
        for turn in itertools.count():
            if stop:
                return
            local = f"{workspace}-{turn}"
            text = ["tools", "hello", "delegate"][turn % 3]
            try:
                answer = weir.post(text, swarms[workspace], workspace, user, local_id=local)
                sent[local] = answer.status_code
                if answer.status_code == 201:
                    answered[local] = answer.json()["data"]["id"]
            except (httpx.HTTPError, KeyError):
                time.sleep(0.05)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        talking = [pool.submit(talk, *names) for names in workspaces]
        for kill in range(8):
            time.sleep(0.3 + 0.11 * kill % 0.4)
            weir.kill()
            weir.start()
            weir.ready()
        time.sleep(0.5)
        stop.append(True)
        for done in talking:
            done.result()
    eventually(lambda: not rows(weir, "SELECT 1 FROM messages WHERE status = 'pending'"))
    stored = {local for (local,) in rows(weir, "SELECT local_id FROM messages WHERE role = 'user'")}
    assert {local for local, status in sent.items() if status == 201} <= stored
    # Whatever was acknowledged is there, as it was.
    kept = {row[0] for row in rows(weir, "SELECT id FROM messages")}
    assert set(answered.values()) <= kept and len(answered) > 10
    assert rows(weir, "SELECT count(*) FROM (SELECT turn_id, agent_id FROM messages WHERE "
                      "role = 'agent' AND content->>'type' <> 'tool_status' "
                      "GROUP BY 1, 2 HAVING count(*) > 1) t") == [["0"]]
    assert rows(weir, "SELECT count(*) FROM messages WHERE content->>'state' = 'running'") == [["0"]]
    sums = "sum(total_tokens), sum(prompt_tokens), sum(completion_tokens), count(*)"
    counted = "tokens_used, prompt_tokens_used, completion_tokens_used, request_count"
    assert rows(weir, f"SELECT user_id, {sums} FROM usage_events GROUP BY 1 ORDER BY 1") == \
        rows(weir, f"SELECT user_id, {counted} FROM usage_counters ORDER BY 1")
    assert rows(weir, f"SELECT agent_db_id, {sums} FROM usage_events GROUP BY 1 ORDER BY 1") == \
        rows(weir, f"SELECT agent_id, {counted} FROM agent_usage_counters ORDER BY 1")


def test_sigterm_lets_a_turn_finish(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    runtime.together = threading.Barrier(2)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(weir.post, "meet me", swarm)
        eventually(lambda: runtime.asked)
        weir.signal(15)
        time.sleep(0.3)
        runtime.together.wait(20)
        assert answer.result().status_code == 201
    assert weir.wait() == 0
    weir.start()
    weir.ready()
    assert weir.messages(swarm)["data"][-1]["status"] == "delivered"


# --- Socket.IO -----------------------------------------------------------------------------


class Client:
    """python-socketio on /v1; `heard` has every event with its payload."""

    def __init__(self, weir, user="user-1", workspace="ws-1", **how):
        self.heard, self.workspace, self.weir = [], workspace, weir
        self.client = socketio_client.Client(reconnection=False)
        self.client.on("*", self._hear, namespace="/v1")
        how.setdefault("auth", {"token": harness.token(user, workspace)})
        how.setdefault("transports", ["websocket"])
        self.client.connect(weir.base, namespaces=["/v1"], wait_timeout=20, **how)

    def _hear(self, event, *data):
        self.heard.append((event, *data))

    def _seen(self):
        stored = [(m["role"], m["status"]) for m in self.weir.messages(workspace=self.workspace)["data"]]
        return stored, [event for event, *_ in self.heard]

    def all(self, event):
        return [data for name, data in self.heard if name == event]

    def wait(self, event, count=1):
        eventually(lambda: len(self.all(event)) >= count, seen=self._seen)
        return self.all(event)

    def subscribe(self, *workspaces):
        self.client.emit("workspace.subscribe", {"workspace_ids": list(workspaces)},
                         namespace="/v1")

    def send(self, text, conversation, **more):
        body = {"workspace_id": self.workspace, "conversation_id": conversation,
                "local_id": f"l-{next(COUNTER)}", "content": {"type": "text", "text": text}, **more}
        self.client.emit("message.send", body, namespace="/v1")
        return body["local_id"]

    def close(self):
        self.client.disconnect()


@pytest.fixture
def connect():
    clients = []

    def start(*args, **options):
        clients.append(Client(*args, **options))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


def test_messages_sent_back_to_back_are_each_acknowledged_and_shown(orchestrate, runtime, connect):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    client = connect(weir)
    client.subscribe("ws-1")
    client.wait("workspace.subscribed")
    sent = [client.send(f"hello {n}", swarm) for n in range(3)]
    client.wait("message.send.ack", 3)
    assert [ack["local_id"] for ack in client.all("message.send.ack")] == sent
    eventually(lambda: [m["status"] for m in weir.messages()["data"] if m["role"] == "agent"][-1:] == ["delivered"])
    shown = [m["message"]["local_id"] for m in client.all("message.new") if m["message"]["role"] == "user"]
    assert shown == sent
    assert text_of(weir.messages()["data"][-1]) == "heard: hello 2"


def test_a_message_sent_again_does_not_end_its_own_turn(orchestrate, runtime, connect):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    client = connect(weir)
    client.subscribe("ws-1")
    client.wait("workspace.subscribed")
    client.send("slowly", swarm, local_id="l-again")
    client.wait("message.send.ack")
    client.send("slowly", swarm, local_id="l-again")
    first, second = client.wait("message.send.ack", 2)
    assert first == second
    done = client.wait("message.done")
    assert done[0]["status"] == "delivered" and len(runtime.asked) == 1
    client.send("other words", swarm, local_id="l-again")
    assert client.wait("message.send.error")[0]["local_id"] == "l-again"
    assert len(runtime.asked) == 1


def test_who_sent_a_message_again_and_leaves_ends_its_turn(orchestrate, runtime, connect):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    client = connect(weir)
    for count in (1, 2):
        client.send("silence", swarm, local_id="l-left")
        client.wait("message.send.ack", count)
    client.close()
    assert runtime.cancelled.wait(20) and len(runtime.asked) == 1


def test_a_client_sees_a_turn_with_the_published_keys(orchestrate, runtime, connect):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm, manager = weir.swarm(), weir.agents()["manager"]["id"]
    client = connect(weir)
    client.subscribe("ws-1", "ws-of-another")
    assert client.wait("workspace.subscribed") == [{"workspace_ids": ["ws-1"]}]
    local = client.send("tools", swarm)
    client.wait("message.done")
    eventually(lambda: client.all("agent.status")[-1]["status"] == "online")
    ack = client.all("message.send.ack")[0]
    assert ack == {"local_id": local, "message_id": ack["message_id"], "conversation_id": swarm,
                   "status": "sent"}
    place = {"conversation_id": swarm}
    status = {"message_id": ack["message_id"], **place, "local_id": local}
    assert client.all("message.status") == [{**status, "status": "delivered"},
                                            {**status, "status": "read"}]
    assert [e["status"] for e in client.all("agent.status")] == ["thinking", "writing", "online"]
    chunks = client.all("message.chunk")
    assert "".join(c["chunk"] for c in chunks) == "looking. found it"
    assert {frozenset(c) for c in chunks} == {
        frozenset(("message_id", "conversation_id", "agent_id", "chunk"))}
    answer = chunks[0]["message_id"]
    assert client.all("message.done") == [{"message_id": answer, **place, "agent_id": manager,
                                           "status": "delivered"}]
    usage = client.all("usage.update")
    assert usage[0] == {"agent_id": "manager", **place, "message_id": answer, "model": "far-model",
                        "prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11,
                        "call_sequence": 0}
    assert usage[1]["call_sequence"] == 1
    tools = client.all("agent.tool")
    assert [(t["tool"], t["status"]) for t in tools] == [
        ("web_fetch", "running"), ("shell", "running"), ("shell", "done"), ("web_fetch", "done")]
    shown = [m["message"] for m in client.all("message.new")]
    assert [m["role"] for m in shown] == ["user", "agent", "agent", "agent"]
    assert shown[-1]["id"] == answer and text_of(shown[-1]) == "looking. found it"
    assert set(shown[-1]) == {"id", "conversation_id", "role", "content", "status", "created_at",
                              "updated_at", "attachments", "agent"}
    assert shown[-1] == weir.messages()["data"][1]
    names = [event for event, _ in client.heard]
    assert names.index("message.done") > len(names) - 1 - names[::-1].index("message.new")


def test_delegation_and_thinking_are_told_apart(orchestrate, runtime, connect):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    client = connect(weir)
    client.subscribe("ws-1")
    client.wait("workspace.subscribed")
    client.send("delegate", weir.swarm())
    client.wait("message.done", 2)
    client.wait("agent.delegation", 2)
    assert [(d["from"]["slug"], d["to"]["slug"], d["status"]) for d in
            client.all("agent.delegation")] == [("manager", "wally", "running"),
                                                ("manager", "wally", "completed")]
    assert [d["status"] for d in client.all("message.done")] == ["delegated", "delivered"]
    client.send("think", weir.swarm())
    client.wait("message.done", 3)
    assert [t["chunk"] for t in client.all("message.thinking")] == ["hm"]
    assert text_of(weir.messages()["data"][-1]) == "thought"


def test_by_polling_alone_every_chunk_is_heard(orchestrate, connect):
    weir = orchestrate(driver="fake")
    client = connect(weir, transports=["polling"])
    client.subscribe("ws-1")
    client.wait("workspace.subscribed")
    text = " ".join(str(word) for word in range(300))
    client.send(text, weir.swarm())
    client.wait("message.done")
    assert "".join(c["chunk"] for c in client.all("message.chunk")) == f"Fake runtime reply: {text} "


@pytest.mark.parametrize("transport", ["websocket", "polling"])
@pytest.mark.parametrize("count, size", [(1, 1500000), (3, 1000000), (3000, 1000)])
def test_whoever_reads_hears_an_answer_of_any_size(orchestrate, runtime, connect, transport, count, size):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    client = connect(weir, transports=[transport])
    client.subscribe("ws-1")
    client.wait("workspace.subscribed")
    client.send(f"pieces {count} {size}", swarm)
    # The client starts a thread for each event: it may note them in another order, and slowly.
    eventually(lambda: sum(len(piece["chunk"]) for piece in client.all("message.chunk")) == count * size,
               seconds=90, seen=lambda: len(client.heard))
    assert client.wait("message.done")[0]["status"] == "delivered"
    client.wait("message.new", 2)
    assert [len(text_of(said["message"])) for said in client.all("message.new")
            if said["message"]["role"] == "agent"] == [count * size]


def test_a_runtime_waits_for_a_sender_who_does_not_read(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    client = websocket.create_connection(
        weir.base.replace("http", "ws") + "/socket.io/?EIO=4&transport=websocket", timeout=20,
        skip_utf8_validation=True)
    client.recv()
    client.send("40/v1," + json.dumps({"token": harness.token("user-1", "ws-1")}))
    client.recv()
    client.send('42/v1,' + json.dumps(["workspace.subscribe", {"workspace_ids": ["ws-1"]}]))
    client.recv()
    client.send('42/v1,' + json.dumps(["message.send", {
        "workspace_id": "ws-1", "conversation_id": swarm,
        "content": {"type": "text", "text": "ponder 40"}}]))
    # Nothing held it back if it says all of it to a client that reads none.
    eventually(lambda: "a runtime is not read while" in weir.log() or runtime.thoughts == 39, seconds=90)
    assert runtime.thoughts < 39
    heard, last = 0, None
    while not last:
        packet = client.recv()
        heard += "message.thinking" in packet[:40]
        last = "message.done" in packet[:40] and json.loads(packet[packet.index("["):])[1]
    assert (heard, last["status"]) == (40, "delivered")
    client.close()


def test_the_next_message_of_a_socket_cancels_its_turn(orchestrate, runtime, connect):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    client = connect(weir)
    client.subscribe("ws-1")
    client.wait("workspace.subscribed")
    client.send("silence", weir.swarm())
    client.wait("message.chunk")
    client.send("hello", weir.swarm())
    assert runtime.cancelled.wait(20)
    done = client.wait("message.done", 2)
    assert sorted(d["status"] for d in done) == ["delivered", "incomplete"]


def test_sigterm_lets_the_turn_of_a_socket_finish(orchestrate, runtime, connect):
    """Whoever reads hears it to its end; no other turn begins, and nobody else may come."""
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    sender, reader = connect(weir), connect(weir)
    for client in (sender, reader):
        client.subscribe("ws-1")
        client.wait("workspace.subscribed")
    runtime.together = threading.Barrier(2)
    sender.send("meet me", swarm)
    eventually(lambda: runtime.asked)
    weir.signal(15)
    eventually(lambda: httpx.get(f"{weir.base}/socket.io/?EIO=4&transport=polling").status_code == 503)
    reader.send("hello", swarm)
    assert [failed["error"] for failed in reader.wait("message.send.error")] == ["message send failed"]
    runtime.together.wait(20)
    assert weir.wait() == 0
    for client in (sender, reader):
        eventually(lambda: not client.client.connected)
        assert [done["status"] for done in client.all("message.done")] == ["delivered"]
        assert [text_of(new["message"]) for new in client.all("message.new")] == ["meet me", "heard: meet me"]
    weir.start()
    weir.ready()
    assert [m["status"] for m in weir.messages(swarm)["data"]] == ["delivered", "delivered"]


def test_sigterm_lets_a_poller_come_for_the_end_of_its_turn(orchestrate, runtime):
    """Each request has a connection of its own, and there is none while the process begins to stop."""
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    path = f"{weir.base}/socket.io/?EIO=4&transport=polling"
    path += "&sid=" + json.loads(httpx.get(path).text[1:])["sid"]
    httpx.post(path, content="40/v1," + json.dumps({"token": harness.token()}))
    assert httpx.get(path).text.startswith("40/v1,")
    body = {"workspace_id": "ws-1", "conversation_id": swarm, "content": {"text": "meet me"}}
    runtime.together = threading.Barrier(2)
    for event in ("workspace.subscribe", {"workspace_ids": ["ws-1"]}), ("message.send", body):
        httpx.post(path, content="42/v1," + json.dumps(event))
        heard = httpx.get(path).text
        assert "error" not in heard
    eventually(lambda: runtime.asked)
    weir.signal(15)
    weir.said("stopping; turns have")
    runtime.together.wait(20)
    while "message.done" not in heard:
        heard = httpx.get(path).text
    assert "delivered" in heard
    assert weir.wait() == 0


def test_a_socket_that_leaves_cancels_its_turn(orchestrate, runtime, connect):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    client = connect(weir)
    client.send("silence", weir.swarm())
    client.wait("message.send.ack")
    eventually(lambda: runtime.silent)
    client.close()
    assert runtime.cancelled.wait(20)
    eventually(lambda: weir.messages()["data"][-1]["status"] == "incomplete")


def test_events_go_to_the_owner_alone(orchestrate, runtime, connect):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    own, other = connect(weir), connect(weir, "user-2", "ws-2")
    weir.swarm("ws-2", "user-2")
    other.subscribe("ws-1")
    own.subscribe("ws-1")
    own.wait("workspace.subscribed")
    own.send("hello", weir.swarm())
    own.wait("message.done")
    local = other.send("hello", weir.swarm(), workspace_id="ws-1")
    failed = other.wait("message.send.error")[0]
    assert (failed["local_id"], failed["error"]) == (local, "message send failed")
    for conversation in ("x" * 300, ""):
        other.send("hello", conversation)
    other.wait("message.send.error", 3)
    assert {event for event, _ in other.heard} == {"message.send.error"}
    assert len(runtime.asked) == 1
    weir.stop()  # so that the log is whole
    assert "the database: " not in weir.log()


def test_whoever_wants_an_acknowledgement_gets_the_answer_in_it(orchestrate, connect):
    weir = orchestrate(driver="fake")
    client = connect(weir)

    def call(event, data):
        return client.client.call(event, data, namespace="/v1", timeout=20)

    assert call("workspace.subscribe", {"workspace_ids": ["ws-2"]}) == {"workspace_ids": []}
    for _ in range(2):
        assert call("workspace.subscribe", {"workspace_ids": ["ws-1"]}) == {"workspace_ids": ["ws-1"]}
    body = {"workspace_id": "ws-1", "conversation_id": weir.swarm(), "local_id": "l-ack",
            "content": {"type": "text", "text": "hello"}}
    said = call("message.send", body)
    assert said["status"] == "sent" and said == client.wait("message.send.ack")[0]
    client.wait("message.done")
    assert "error" in call("message.send", {**body, "conversation_id": "none"})


def test_a_client_that_asks_without_end_is_cut_off(orchestrate, connect):
    weir = orchestrate(driver="fake")
    swarm, client, other = weir.swarm(), connect(weir), connect(weir)
    locked = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND " \
             f"relation = '{weir.schema}.conversations'::regclass"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(rows, weir, "BEGIN; LOCK TABLE conversations; SELECT pg_sleep(2); COMMIT")
        eventually(lambda: rows(weir, locked) == [["1"]])
        for _ in range(70):  # the database answers none of them now
            client.send("hello", swarm)
        eventually(lambda: not client.client.connected)
    other.send("hello", swarm)
    other.wait("message.send.ack")


def test_what_is_no_message_is_said_to_be_none(orchestrate, connect):
    weir = orchestrate(driver="fake")
    client = connect(weir)
    missing = "workspace_id, conversation_id, and content.text are required"
    for body in ({}, {"workspace_id": "ws-1"}, 5, {"content": {"text": 5}}):
        client.client.emit("message.send", body, namespace="/v1")
    errors = client.wait("message.send.error", 4)
    assert [e["error"] for e in errors] == [missing, missing, "invalid payload", "invalid payload"]


def test_a_client_without_a_token_is_refused(orchestrate, connect):
    weir = orchestrate(driver="fake")
    for auth in (None, {"token": "x"}):
        with pytest.raises(socketio.exceptions.ConnectionError):
            connect(weir, auth=auth)


def test_answers_to_questions_reach_the_runtime(orchestrate, runtime, connect):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    options = [{"id": "o1", "label": "Kyoto"}, {"id": "o2", "label": "Nara"}]
    content = {"type": "questions", "title": "Trip", "answers": [], "turns": [{"index": 0, "questions": [
        {"id": "q1", "prompt": "hello where", "mode": "multi", "options": options}]}]}
    rows(weir, "INSERT INTO messages (id, conversation_id, role, content, status) VALUES "
               f"('m-1', '{swarm}', 'agent', '{json.dumps(content)}', 'delivered')")
    client = connect(weir)
    answers = [{"question_id": "q1", "option_ids": ["o1", "o2"], "custom_text": "Osaka"}]
    body = {"workspace_id": "ws-1", "message_id": "m-1", "local_id": "l", "answers": answers}
    client.client.emit("message.answers", body, namespace="/v1")
    assert client.wait("message.answers.ack") == [
        {"local_id": "l", "message_id": "m-1", "status": "recorded"}]
    eventually(lambda: runtime.asked)
    assert runtime.asked[0].request.message == "hello where: Kyoto, Nara, Osaka"
    assert weir.messages()["data"][0]["content"]["answers"] == answers
    client.client.emit("message.answers", {**body, "message_id": "none"}, namespace="/v1")
    assert client.wait("message.answers.error") == [
        {"local_id": "l", "message_id": "none", "error": "failed to process answers"}]


@pytest.mark.parametrize("answers", [
    [],
    [{"question_id": "none", "option_ids": ["o1"]}],
    [{"question_id": "q1", "option_ids": ["o3"]}],
    [{"question_id": "q1", "option_ids": ["o1", "o2"]}],
    [{"question_id": "q1", "option_ids": ["o1"], "custom_text": "elsewhere"}],
    [{"question_id": "q1", "option_ids": ["o1"]}, {"question_id": "q1", "option_ids": ["o2"]}],
])
def test_answers_that_the_card_does_not_offer_change_nothing(orchestrate, runtime, connect, answers):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    swarm = weir.swarm()
    options = [{"id": "o1", "label": "Kyoto"}, {"id": "o2", "label": "Nara"}]
    card = {"type": "questions", "title": "Trip", "answers": [], "turns": [{"index": 0, "questions": [
        {"id": "q1", "prompt": "hello where", "mode": "single", "options": options, "allow_custom": False}]}]}
    rows(weir, "INSERT INTO messages (id, conversation_id, role, content, status) VALUES "
               f"('m-1', '{swarm}', 'agent', '{json.dumps(card)}', 'delivered')")
    client = connect(weir)
    body = {"workspace_id": "ws-1", "message_id": "m-1", "local_id": "l", "answers": answers}
    client.client.emit("message.answers", body, namespace="/v1")
    assert client.wait("message.answers.error")[0]["error"] == "failed to process answers"
    kyoto = [{"question_id": "q1", "option_ids": ["o1"]}]
    client.client.emit("message.answers", {**body, "answers": kyoto}, namespace="/v1")
    client.wait("message.answers.ack")
    client.client.emit("message.answers", {**body, "answers": kyoto}, namespace="/v1")
    client.wait("message.answers.ack", 2)
    # With the same local id, it is no other answer.
    nara = [{"question_id": "q1", "option_ids": ["o2"]}]
    client.client.emit("message.answers", {**body, "answers": nara}, namespace="/v1")
    client.wait("message.answers.error", 2)
    assert weir.messages()["data"][0]["content"]["answers"] == kyoto
    assert [asked.request.message for asked in runtime.asked] == ["hello where: Kyoto"]


@pytest.mark.parametrize("transport", ["websocket", "polling"])
def test_the_javascript_client_hears_every_turn(orchestrate, transport):
    weir = orchestrate(driver="fake")
    node = subprocess.run(
        [shutil.which("node"), str(harness.ROOT / "test/e2e/node/orchestrate.js")],
        env={**os.environ, "WEIR_URL": weir.base, "WEIR_TOKEN": harness.token("user-1", "ws-1"),
             "WEIR_SWARM": weir.swarm(), "WEIR_TRANSPORT": transport},
        capture_output=True, text=True, timeout=100,
    )
    assert node.returncode == 0, node.stdout + node.stderr


# --- NATS ----------------------------------------------------------------------------------


def test_usage_is_published_once_with_its_message_id(orchestrate, runtime, tmp_path):
    with nats.Server(tmp_path) as server:
        weir = orchestrate(driver="address", runtime_address=runtime.address, nats=server.url, env=NO_OPENSSL)
        weir.say("tools")
        (subject, number, payload), second = server.heard(2)
        assert subject == "crawbl.usage.v1.ws-1" and payload["event_id"] == number
        manager = weir.agents()["manager"]["id"]
        expected = {"user_id": "user-1", "workspace_id": "ws-1", "conversation_id": weir.swarm(),
                    "agent_id": "manager", "agent_db_id": manager, "model": "far-model",
                    "provider": "", "prompt_tokens": 10, "completion_tokens": 1,
                    "total_tokens": 11, "tool_use_prompt_tokens": 0, "thoughts_tokens": 0,
                    "cached_tokens": 5, "cost_usd": 0, "call_sequence": 0,
                    "session_id": weir.swarm()}
        assert {key: payload[key] for key in expected} == expected
        assert set(payload) == {*expected, "event_id", "event_time", "message_id", "turn_id"}
        assert second[2]["call_sequence"] == 1
        eventually(lambda: server.stored() == 2)


def test_workspaces_with_ids_alike_have_subjects_of_their_own(orchestrate, runtime, tmp_path):
    with nats.Server(tmp_path) as server:
        weir = orchestrate(driver="address", runtime_address=runtime.address, nats=server.url, env=NO_OPENSSL)
        for workspace in ("a_b", "a.b", "a b", "a%2Eb"):
            weir.say("hello", workspace=workspace, user="user-" + workspace)
        heard = {payload["workspace_id"]: subject for subject, _, payload in server.heard(4)}
    assert heard == {"a_b": "crawbl.usage.v1.a_b", "a.b": "crawbl.usage.v1.a%2Eb",
                     "a b": "crawbl.usage.v1.a%20b", "a%2Eb": "crawbl.usage.v1.a%252Eb"}


def test_usage_waits_while_nats_is_away_and_nothing_is_lost(orchestrate, runtime, tmp_path):
    server = nats.Server(tmp_path, start=False)
    weir = orchestrate(driver="address", runtime_address=runtime.address, nats=server.url, env=NO_OPENSSL)
    for turn in range(3):
        weir.say(f"hello {turn}")
    eventually(lambda: "usage cannot be published and waits" in weir.log())
    weir.kill()
    weir.start()
    weir.ready()
    weir.say("hello again")
    with server:
        server.start()
        ids = {number for _, number, _ in server.heard(4)}
        assert ids == {row[0] for row in rows(weir, "SELECT event_id FROM usage_events")}
        eventually(lambda: server.stored() == 4)
        # An acknowledgement that was lost: they are sent again, and the stream has them once.
        rows(weir, "UPDATE usage_events SET published_at = NULL")
        eventually(lambda: not rows(weir, "SELECT 1 FROM usage_events WHERE published_at IS NULL"))
        assert server.stored() == 4
