"""weir orchestrate: clients in front, agent runtimes behind, PostgreSQL and NATS beside it.
WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_orchestrate.py."""
import concurrent.futures
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import threading
import time

import far_runtime
import harness
import httpx
import nats
import orchestrating
import postgres
import pytest
import socketio

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
    weir.stop()
    assert "version 2 now, from 0" in weir.migrate()
    assert "up to date: version 2" in weir.migrate()
    with weir:
        assert text_of(weir.say("hi")).startswith("Fake")


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
    weir = orchestrate(driver="address", runtime_address=runtime.address, stream_per_turn="true")
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
    assert rows(weir, "SELECT status FROM agent_delegations") == [["completed"]]


def test_mentioned_agents_answer_in_parallel_without_their_names(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    agents = weir.agents()
    mentions = [{"agent_id": agents["wally"]["id"], "agent_name": "Wally", "offset": 0, "length": 6},
                {"agent_id": agents["eve"]["id"], "agent_name": "Eve", "offset": 7, "length": 4}]
    weir.say("@Wally @Eve hello you", mentions=mentions)
    assert sorted((a.request.agent_id, a.request.message) for a in runtime.asked) == [
        ("eve", "hello you"), ("wally", "hello you")]
    assert len({a.request.session_id for a in runtime.asked}) == 1


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


def test_a_runtime_that_is_not_there_is_said_to_start(orchestrate):
    port = far_runtime.free_port()
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


def all_pages(weir, path, **query):
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


def test_behind_a_gateway_its_header_names_the_user(orchestrate):
    weir = orchestrate(driver="fake", gateway="true")
    summary = weir.base + "/v1/users/usage/summary"
    assert httpx.get(summary, headers={"x-firebase-uid": "user-1"}).status_code == 200
    assert httpx.get(summary).status_code == 401


@pytest.mark.parametrize("body", [
    b"{", b"[]", b"{}", b'{"content":{"text":"  "}}', b'{"content":{"text":5}}',
    b'{"content":{"text":"a\\u0000b"}}', b'{"content":{"text":"a"},"attachments":{}}',
    b'{"content":{"text":"a"},"attachments":["\\u0000"]}',
])
def test_what_is_no_message_is_refused(orchestrate, body):
    weir = orchestrate(driver="fake")
    swarm = weir.swarm()
    with weir.http() as http:
        answer = http.post(f"/v1/workspaces/ws-1/conversations/{swarm}/messages", content=body,
                           headers={"content-type": "application/json"})
    assert answer.status_code == 400 and answer.json()["code"] == "REQ0001", answer.text
    assert weir.messages()["data"] == []


def test_a_message_that_is_sent_twice_is_stored_and_answered_once(orchestrate, runtime):
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    first = weir.post("hello", local_id="local-1")
    second = weir.post("hello", local_id="local-1")
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json()["data"]["role"] == "user"
    assert len(runtime.asked) == 1 and len(weir.messages()["data"]) == 2


def test_text_comes_back_as_it_was_sent(orchestrate):
    weir = orchestrate(driver="fake")
    texts = ["'; DROP TABLE messages; --", "\\u0000 \\ \" \n\t", "系统 🦊", "$1 %s {workspace}"]
    for text in texts:
        weir.say(text)
    assert [text_of(m) for m in weir.messages()["data"] if m["role"] == "user"] == texts


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
        self.client = socketio.Client(reconnection=False)
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
    assert [event for event, _ in other.heard] == ["message.send.error"]
    assert len(runtime.asked) == 1


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
