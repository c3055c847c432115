"""weir orchestrate: its tools for agents over MCP, its blueprints, and agents who ask each other.
WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_orchestrate_tools.py."""
import asyncio
import concurrent.futures
import contextlib
import json
import os
import subprocess
import threading
import time

import harness
import httpx
import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from ports import free_port
from test_orchestrate import (  # noqa: F401 - fixtures
    Held,
    connect,
    database,
    eventually,
    fresh_schema,
    orchestrate,
    rows,
    runtime,
    text_of,
)

from mcp import ClientSession

pytestmark = pytest.mark.skipif(not os.environ.get("WEIR_WITH_POSTGRES"),
                                reason="needs PostgreSQL: WEIR_WITH_POSTGRES=1")

SCRIPT = "test/e2e/scripts/asks.yaml"
TOOLS = ["get_user_profile", "get_workspace_info", "list_conversations", "search_past_messages",
         "send_message_to_agent", "ask_questions", "memory_status", "memory_list_wings",
         "memory_get_taxonomy", "memory_list_rooms", "memory_search", "memory_add_drawer",
         "memory_delete_drawer", "memory_diary_write", "memory_diary_read"]


def with_sdk(weir, work, conversation="", user="user-1", workspace="ws-1"):
    """What work(session) brings, with a session of the official SDK's."""

    async def meet():
        headers = {"authorization": "Bearer " + harness.token(user, workspace)}
        if conversation:
            headers["x-conversation-id"] = conversation
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            url = weir.base + "/mcp/v1"
            async with streamable_http_client(url, http_client=http) as (read, write):
                async with ClientSession(read, write) as session:
                    await session.initialize()
                    return await work(session)

    return asyncio.run(asyncio.wait_for(meet(), 60))


def use(weir, tool, arguments=None, **who):
    """(whether it failed, what it says) of one call."""

    async def work(session):
        answer = await session.call_tool(tool, arguments or {})
        text = answer.content[0].text
        if answer.is_error:
            return True, text
        assert json.loads(text) == answer.structured_content
        return False, answer.structured_content

    return with_sdk(weir, work, **who)


def post_tool(weir, conversation, tool, arguments, user="user-1", workspace="ws-1"):
    """A call without a session, as the contract's runtimes make it."""
    headers = {"authorization": "Bearer " + harness.token(user, workspace),
               "x-conversation-id": conversation, "accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}}
    answer = httpx.post(weir.base + "/mcp/v1", headers=headers, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = [line[6:] for line in text.splitlines() if line.startswith("data: ")][-1]
    result = json.loads(text)["result"]
    if result.get("isError"):
        return {"error": result["content"][0]["text"]}
    return result["structuredContent"]


@pytest.fixture
def far(orchestrate, runtime):  # noqa: F811
    """An orchestrator whose runtime uses its tools."""
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    runtime.tool = lambda request, tool, arguments: post_tool(
        weir, request.session_id, tool, arguments, request.user_id or "user-1",
        request.workspace_id or "ws-1")
    return weir


@pytest.fixture
def team(orchestrate, start_weir):  # noqa: F811
    """An orchestrator and a weir runtime, each knowing the other."""
    address = f"127.0.0.1:{free_port()}"
    weir = orchestrate(driver="address", runtime_address=address)
    start_weir(script=SCRIPT, env={"CRAWBL_MCP_ENDPOINT": weir.base + "/mcp/v1"},
               args=["--grpc", address])
    return weir


# --- the tools ---------------------------------------------------------------------------------


def test_the_official_client_finds_the_tools_and_uses_them(orchestrate):  # noqa: F811
    weir = orchestrate(driver="fake")

    async def work(session):
        listed = await session.list_tools()
        return [tool.name for tool in listed.tools]

    assert with_sdk(weir, work) == TOOLS
    swarm = weir.swarm()
    weir.say("Where is Kyoto?")
    failed, info = use(weir, "get_workspace_info", {"include_agents": True})
    assert not failed and info["workspace_id"] == "ws-1" and info["conversations"] == 3
    assert [a["slug"] for a in info["agents"]] == ["manager", "wally", "eve"]
    assert "agents" not in use(weir, "get_workspace_info")[1]
    assert use(weir, "get_user_profile")[1] == {
        "user_id": "user-1", "plan_id": "free", "workspaces": [{"id": "ws-1", "name": "My Workspace"}]}
    found = use(weir, "list_conversations")[1]["conversations"]
    assert [c["id"] for c in found][0] == swarm and {c["agent_slug"] for c in found} == {"", "wally", "eve"}
    search = {"conversation_id": swarm, "query": "kyoto WHERE", "limit": 5}
    matches = use(weir, "search_past_messages", search)[1]["messages"]
    assert [m["role"] for m in matches] == ["agent", "user"] and matches[1]["text"] == "Where is Kyoto?"
    assert use(weir, "search_past_messages", {**search, "query": "kyoto 100%"})[1] == {"messages": []}
    assert use(weir, "search_past_messages", {**search, "conversation_id": "c-of-another"}) == (
        True, "conversation not found")


def test_memories_are_the_workspaces_own(orchestrate):  # noqa: F811
    weir = orchestrate(driver="fake")
    drawer = {"wing": "trips", "room": "japan", "content": "Kyoto in spring"}
    assert not use(weir, "memory_add_drawer", drawer)[0]
    assert "Kyoto in spring" in json.dumps(use(weir, "memory_search", {"query": "kyoto"})[1])
    other = use(weir, "memory_search", {"query": "kyoto"}, user="user-2", workspace="ws-2")[1]
    assert "Kyoto" not in json.dumps(other)
    weir.kill()
    weir.start()
    weir.ready()
    assert "Kyoto in spring" in json.dumps(use(weir, "memory_search", {"query": "kyoto"})[1])


def test_every_call_is_in_the_audit_log(orchestrate):  # noqa: F811
    weir = orchestrate(driver="fake")
    swarm = weir.swarm()
    use(weir, "get_workspace_info", {"description": "a\0b"}, conversation=swarm)
    use(weir, "memory_add_drawer", {"wing": "w", "room": "r", "content": "x" * 5000}, conversation=swarm)
    use(weir, "search_past_messages", {"conversation_id": "none", "query": "a", "limit": 1})
    audit = "SELECT user_id, workspace_id, session_id, tool, success, error FROM mcp_audit_logs " \
            "ORDER BY created_at"
    eventually(lambda: len(rows(weir, audit)) == 3)
    assert rows(weir, audit) == [
        ["user-1", "ws-1", swarm, "get_workspace_info", "t", ""],
        ["user-1", "ws-1", swarm, "memory_add_drawer", "t", ""],
        ["user-1", "ws-1", "none", "search_past_messages", "f", "conversation not found"]]
    [[cut]] = rows(weir, "SELECT input FROM mcp_audit_logs WHERE tool = 'memory_add_drawer'")
    cut = json.loads(cut)
    assert cut["_truncated"] is True and cut["_limit"] == 4096 and cut["_original_size"] > 5000


AUDITED = "SELECT input, output, success, error FROM mcp_audit_logs WHERE tool = '{}' ORDER BY created_at"


def test_whatever_a_call_is_given_its_row_is_stored(orchestrate):  # noqa: F811
    """A number that jsonb cannot hold is a text in the row."""
    weir = orchestrate(driver="fake")
    given = '{"include_agents":false,"a":1e999999,"b":[-1E-999999,5],"c":"\\u0000","d":' + "9" * 3000 + "}"
    headers = {"authorization": "Bearer " + harness.token(), "accept": "application/json, text/event-stream",
               "content-type": "application/json"}
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_workspace_info","arguments":' \
           + given + "}}"
    answer = httpx.post(weir.base + "/mcp/v1", headers=headers, content=body, timeout=60)
    assert answer.json()["result"]["structuredContent"]["workspace_id"] == "ws-1"
    audit = AUDITED.format("get_workspace_info")
    eventually(lambda: rows(weir, audit), seen=weir.log)
    [[kept, output, success, error]] = rows(weir, audit)
    kept = json.loads(kept)
    assert (kept["a"], kept["b"], kept["c"]) == ("1e999999", ["-1E-999999", 5], "\ufffd")
    assert kept["d"] == int("9" * 3000) and json.loads(output)["workspace_id"] == "ws-1"
    assert (success, error) == ("t", "")
    sessions = "SELECT session_id, success FROM mcp_audit_logs WHERE tool = 'list_conversations' " \
               "ORDER BY created_at"
    for number, named in enumerate(["\0", "x" * 300_000, "c\n", "c2"], 1):
        use(weir, "list_conversations", {"conversation_id": named})
        eventually(lambda: len(rows(weir, sessions)) == number, seen=weir.log)
    assert rows(weir, sessions) == [["", "t"], ["", "t"], ["", "t"], ["c2", "t"]]
    assert "is not in mcp_audit_logs" not in weir.log()


def test_a_call_whose_row_cannot_be_stored_is_in_our_own_log(orchestrate):  # noqa: F811
    weir = orchestrate(driver="fake")
    rows(weir, "ALTER TABLE mcp_audit_logs ADD CHECK (tool <> 'list_conversations')")
    use(weir, "list_conversations", {})
    weir.said("a tool call is not in mcp_audit_logs: list_conversations of workspace ws-1, user user-1, "
              "which succeeded: ")


@pytest.mark.parametrize("tool, arguments", [
    ("memory_add_drawer", {"wing": "w", "room": "r", "content": "a\0b"}),
    ("memory_add_drawer", {"wing": "w\0", "room": "r", "content": "b"}),
    ("memory_diary_write", {"agent_name": "wally", "entry": "a\0b"}),
    ("memory_diary_write", {"agent_name": "wally", "entry": "b", "topic": "\0"}),
    ("memory_search", {"query": "a\0b"}),
    ("search_past_messages", {"query": "a\0b", "limit": 5}),
    ("send_message_to_agent", {"agent_slug": "wally", "message": "a\0b"}),
    ("ask_questions", {"turns": [{"questions": [{"prompt": "a\0b", "mode": "single",
                                                 "options": [{"label": "a"}, {"label": "b"}]}]}]}),
])
@pytest.mark.parametrize("memory", ["files", "postgres"])
def test_a_text_with_a_nul_is_refused_before_anything_is_written(orchestrate, database, tool, arguments, memory):  # noqa: F811
    env = {}
    if memory == "postgres":
        if not tool.startswith("memory_"):
            pytest.skip("it does not use the store")
        schema = fresh_schema(database)
        env = {"WEIR_STORE_URL": database.url, "WEIR_STORE_SCHEMA": schema}
        subprocess.run([harness.BINARY, "migrate"], env={**os.environ, **env}, check=True, capture_output=True)
    weir = orchestrate(driver="fake", env=env)
    swarm = weir.swarm()
    if tool == "search_past_messages":
        arguments = {"conversation_id": swarm, **arguments}
    failed, text = use(weir, tool, arguments, conversation=swarm)
    assert failed and "has a NUL (U+0000)" in text and "leave it out" in text
    assert weir.messages()["data"] == []
    assert use(weir, "memory_status")[1]["total_drawers"] == 0
    audit = AUDITED.format(tool)
    eventually(lambda: rows(weir, audit), seen=weir.log)
    assert [row[2] for row in rows(weir, audit)] == ["f"]


def leave_during(weir, tool, arguments, conversation):
    """A call whose caller goes away before the answer."""
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(weir.base + "/mcp/v1", timeout=1, headers={
            "authorization": "Bearer " + harness.token(), "x-conversation-id": conversation,
            "accept": "application/json, text/event-stream"},
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})


def test_a_change_whose_caller_left_is_audited_with_what_came_of_it(orchestrate):  # noqa: F811
    weir = orchestrate(driver="fake")
    weir.say("hello")
    swarm = weir.swarm()
    turns = [{"questions": [{"prompt": "which?", "mode": "single", "options": [{"label": "a"}, {"label": "b"}]}]}]
    with Held(weir, swarm) as held:
        held.lock(f"{weir.schema}.stored_messages")
        leave_during(weir, "ask_questions", {"turns": turns, "agent_slug": "eve"}, swarm)
        assert rows(weir, AUDITED.format("ask_questions")) == []
    audit = AUDITED.format("ask_questions")
    eventually(lambda: rows(weir, audit), seen=weir.log)
    [[kept, output, success, error]] = rows(weir, audit)
    output = json.loads(output)
    assert json.loads(kept)["turns"] == turns and output["_unheard"] is True and output["status"] == "sent"
    assert (success, error) == ("t", "")
    [card] = [m for m in weir.messages()["data"] if m["content"]["type"] == "questions"]
    assert card["id"] == output["message_id"] and card["agent"]["slug"] == "eve"


def test_a_read_whose_caller_left_is_audited_as_such(orchestrate):  # noqa: F811
    weir = orchestrate(driver="fake")
    weir.say("hello")
    swarm = weir.swarm()
    search = {"conversation_id": swarm, "query": "hello", "limit": 5}
    with Held(weir, swarm) as held:
        leave_during(weir, "search_past_messages", search, swarm)
        eventually(lambda: len(held.waiting()) == 1)
    audit = AUDITED.format("search_past_messages")
    eventually(lambda: rows(weir, audit), seen=weir.log)
    [[kept, output, success, error]] = rows(weir, audit)
    assert json.loads(kept) == search and json.loads(output)["_unheard"] is True
    assert (success, error) == ("f", "the caller left before it was done")


def test_a_question_to_an_agent_whose_caller_left_is_audited(far, runtime):  # noqa: F811
    leave_during(far, "send_message_to_agent", {"agent_slug": "eve", "message": "silence"}, far.swarm())
    audit = AUDITED.format("send_message_to_agent")
    eventually(lambda: rows(far, audit), seen=far.log)
    [[_, output, success, error]] = rows(far, audit)
    assert success == "f" and "cancelled" in error and json.loads(output)["_unheard"] is True


@pytest.mark.parametrize("header, text", [
    (None, "missing authorization"), ("Basic abc", "missing authorization"),
    ("Bearer nonsense", "invalid token"), ("Bearer {foreign}", "invalid token")])
def test_a_runtime_without_a_good_token_is_refused(orchestrate, header, text):  # noqa: F811
    weir = orchestrate(driver="fake")
    foreign = harness.token(key="another")
    headers = {"authorization": header.format(foreign=foreign)} if header else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = httpx.post(weir.base + "/mcp/v1", json=body, headers=headers)
    assert (answer.status_code, answer.text) == (401, text)
    answer = httpx.get(weir.base + "/v1/internal/agents", headers=headers)
    assert (answer.status_code, answer.text) == (401, "unauthorized")


def test_somebody_elses_workspace_has_no_tools(orchestrate):  # noqa: F811
    weir = orchestrate(driver="fake")
    swarm = weir.swarm()
    assert use(weir, "get_workspace_info", user="user-2", workspace="ws-1") == (True, "workspace not found")
    search = {"conversation_id": swarm, "query": "a", "limit": 1}
    assert use(weir, "search_past_messages", search, user="user-2", workspace="ws-2") == (
        True, "conversation not found")


def test_a_blueprint_is_that_of_the_tokens_workspace(orchestrate):  # noqa: F811
    weir = orchestrate(driver="fake")
    manager = weir.agents()["manager"]["id"]
    rows(weir, "UPDATE agent_settings SET model = 'gpt-5', allowed_tools = '{web_fetch}' "
               f"WHERE agent_id = '{manager}'")
    bearer = {"authorization": "Bearer " + harness.token()}
    answer = httpx.get(weir.base + "/v1/internal/agents?workspace_id=ws-1", headers=bearer).json()
    assert answer["workspace_id"] == "ws-1" and set(answer) == {"workspace_id", "agents"}
    assert [a["slug"] for a in answer["agents"]] == ["manager", "wally", "eve"]
    assert set(answer["agents"][0]) == {"slug", "role", "system_prompt", "description",
                                        "allowed_tools", "model"}
    assert answer["agents"][0]["allowed_tools"] == ["web_fetch"] and answer["agents"][0]["model"] == "gpt-5"
    assert answer["agents"][1]["allowed_tools"] is None and answer["agents"][1]["model"] == "auto"
    bare = {"authorization": harness.token()}
    assert httpx.get(weir.base + "/v1/internal/agents", headers=bare).json() == answer
    other = httpx.get(weir.base + "/v1/internal/agents?workspace_id=ws-2", headers=bearer)
    assert other.status_code == 403


QUESTION = {"prompt": "hello where", "mode": "multi", "options": [{"label": "Kyoto"}, {"label": "Nara"}],
            "allow_custom": True}


def test_questions_reach_the_user_and_his_answers_the_runtime(orchestrate, runtime, connect):  # noqa: F811
    weir = orchestrate(driver="address", runtime_address=runtime.address)
    client = connect(weir)
    client.subscribe("ws-1")
    client.wait("workspace.subscribed")
    ask = {"turns": [{"label": "Trip", "questions": [QUESTION]}], "agent_slug": "eve",
           "description": "Plan a trip"}
    failed, answer = use(weir, "ask_questions", ask, conversation=weir.swarm())
    assert not failed
    [card] = [event["message"] for event in client.wait("message.new")]
    assert card["id"] == answer["message_id"] and card["agent"]["slug"] == "eve"
    content = card["content"]
    assert (content["type"], content["title"], content["answers"]) == ("questions", "Plan a trip", [])
    [turn] = content["turns"]
    [question] = turn["questions"]
    assert (turn["index"], turn["label"], question["prompt"]) == (0, "Trip", "hello where")
    chosen = {"question_id": question["id"], "option_ids": [question["options"][1]["id"]]}
    body = {"workspace_id": "ws-1", "message_id": card["id"], "local_id": "l", "answers": [chosen]}
    client.client.emit("message.answers", body, namespace="/v1")
    client.wait("message.answers.ack")
    eventually(lambda: runtime.asked)
    assert runtime.asked[0].request.message == "hello where: Nara"


@pytest.mark.parametrize("turns", [
    [], [{"questions": []}], [{"questions": [{**QUESTION, "mode": "some"}]}], "x", [5],
    [{"questions": [{**QUESTION, "options": [{"label": "one"}]}]}],
    [{"questions": [{**QUESTION, "options": [{"label": str(n)} for n in range(27)]}]}],
    [{"questions": [{**QUESTION, "prompt": "x" * 2049}]}], [{"questions": [QUESTION] * 21}],
    [{"questions": [QUESTION]}] * 11, [{"label": "x" * 129, "questions": [QUESTION]}]])
def test_what_is_no_question_is_refused(orchestrate, turns):  # noqa: F811
    weir = orchestrate(driver="fake")
    swarm = weir.swarm()
    answer = post_tool(weir, swarm, "ask_questions", {"turns": turns})
    assert answer["error"] and not weir.messages(swarm)["data"]


# --- a runtime that uses them ------------------------------------------------------------------


def test_our_runtime_gets_its_agents_and_uses_the_memory_in_a_turn(team):
    # zoe is none of the script's agents: only the blueprint has her
    team.swarm()
    rows(team, "INSERT INTO agents (id, workspace_id, name, role, slug) VALUES "
               "('a-zoe', 'ws-1', 'Zoe', 'sub-agent', 'zoe')")
    rows(team, "INSERT INTO conversations (id, workspace_id, agent_id, type, title) VALUES "
               "('c-zoe', 'ws-1', 'a-zoe', 'agent', 'Zoe')")
    assert text_of(team.say("hi", conversation="c-zoe")) == "hi"
    answer = team.say("remember")
    assert answer["status"] == "delivered" and "Kyoto in spring" in text_of(answer)
    tools = rows(team, "SELECT content->>'tool', content->>'state' FROM messages WHERE "
                       "content->>'type' = 'tool_status' ORDER BY created_at")
    assert tools == [["memory_add_drawer", "completed"], ["memory_search", "completed"]]


def test_a_runtime_that_we_start_finds_our_tools_by_itself(orchestrate, tmp_path):  # noqa: F811
    config = tmp_path / "runtime.yaml"
    config.write_text(f"script: {harness.ROOT / SCRIPT}\n")
    command = (f"{harness.BINARY} serve -c {config} --grpc 127.0.0.1:{{port}} --http off --nimi-grpc off "
               f"--nimi-http off --data {tmp_path}/runtime-{{workspace}}")
    weir = orchestrate(driver="child", runtime_command=command)
    assert json.loads(text_of(weir.say("ask eve")))["output"] == {"agent_slug": "eve", "response": "noon"}


ASKED = "SELECT from_agent_slug, to_agent_slug, status, depth, request_text, " \
        "translate(response_text, E'\\n', ' ') AS response_text FROM " \
        "agent_messages ORDER BY created_at"


def test_an_agent_asks_another_and_gets_its_answer(team, connect):  # noqa: F811
    client = connect(team)
    client.subscribe("ws-1")
    client.wait("workspace.subscribed")
    answer = team.say("ask eve")
    assert json.loads(text_of(answer))["output"] == {"agent_slug": "eve", "response": "noon"}
    assert rows(team, ASKED) == [["manager", "eve", "completed", "0", "what time is it", "noon"]]
    client.wait("agent.delegation", 2)
    seen = [(d["from"]["slug"], d["to"]["slug"], d["status"], d["message_preview"], d["message_id"])
            for d in client.all("agent.delegation")]
    assert seen == [("manager", "eve", state, "what time is it", answer["id"])
                    for state in ("running", "completed")]
    eve = team.agents()["eve"]["id"]
    client.wait("message.done")
    assert [s["status"] for s in client.all("agent.status") if s["agent_id"] == eve] == [
        "thinking", "writing", "online"]
    # What eve said is the tool's result, no message.
    assert [m["agent"]["slug"] for m in team.messages()["data"] if m["role"] == "agent"] == [
        "manager", "manager"]
    assert rows(team, "SELECT tool_name, task_summary, status FROM agent_delegations") == [
        ["send_message_to_agent", "what time is it", "completed"]]


def test_three_may_ask_within_each_other_and_no_fourth(team):
    said = text_of(team.say("chain"))
    assert "too deeply" in said
    assert [row[:4] for row in rows(team, ASKED)] == [
        ["manager", "wally", "completed", "0"], ["wally", "eve", "completed", "1"],
        ["eve", "manager", "completed", "2"]]


def test_a_circle_ends(team):
    assert "asked by you already" in text_of(team.say("circle"))
    assert [row[:4] for row in rows(team, ASKED)] == [
        ["manager", "wally", "completed", "0"], ["wally", "manager", "completed", "1"]]


@pytest.mark.parametrize("text, why", [("myself", "to itself"),
                                       ("nobody", "there is no agent 'bob'; there are: manager, wally, eve")])
def test_whom_an_agent_cannot_ask(team, text, why):
    assert why in text_of(team.say(text))
    assert not rows(team, ASKED)


def test_what_an_asked_agent_uses_is_counted(far):
    answer = far.say("asks eve hello you")
    assert json.loads(text_of(answer)) == {"agent_slug": "eve", "response": "heard: " + far_said(far)}
    assert rows(far, "SELECT tokens_used, request_count FROM usage_counters") == [["24", "2"]]
    counted = rows(far, "SELECT message_id, agent_db_id, total_tokens FROM usage_events ORDER BY seq")
    agents = far.agents()
    assert counted == [[answer["id"], agents["manager"]["id"], "12"],
                       [answer["id"], agents["eve"]["id"], "12"]]
    assert rows(far, "SELECT agent_id, tokens_used FROM agent_usage_counters ORDER BY 1") == sorted(
        [[agents["manager"]["id"], "12"], [agents["eve"]["id"], "12"]])


def far_said(weir):
    """What eve was asked, with the conversation before it."""
    return ("The conversation so far:\nUser: asks eve hello you\n\n"
            "A message to you from Manager:\nhello you")


def test_a_used_up_quota_refuses_an_agents_question(far, runtime):  # noqa: F811
    far.say("hello")  # 12 tokens
    rows(far, "UPDATE usage_plans SET monthly_token_limit = 20")
    answer = far.say("asks eve hello you")  # 12 more, and the limit is reached
    assert json.loads(text_of(answer)) == {"error": "monthly token quota exceeded"}
    assert len(runtime.asked) == 2 and not rows(far, ASKED)
    assert far.post("hello").status_code == 429


def test_a_runtime_that_says_nothing_of_its_calls_is_limited_too(far, runtime):  # noqa: F811
    said = text_of(far.say("mute wally mute eve mute wally mute eve hello"))
    assert "too deeply" in said
    assert [row[:4] for row in rows(far, ASKED)] == [
        ["", "wally", "completed", "0"], ["", "eve", "completed", "1"], ["", "wally", "completed", "2"]]


def test_questions_side_by_side_are_not_within_each_other(far, runtime):  # noqa: F811
    runtime.together = threading.Barrier(2)
    swarm, agents = far.swarm(), far.agents()
    mentions = [{"agent_id": agents[slug]["id"], "agent_name": slug, "offset": 0, "length": 0}
                for slug in ("manager", "wally")]
    answer = far.post("asks eve meet you", swarm, mentions=mentions)
    assert answer.status_code == 201
    edges = "SELECT from_agent_slug, to_agent_slug, status, depth FROM agent_messages ORDER BY 1"
    assert rows(far, edges) == [["manager", "eve", "completed", "0"], ["wally", "eve", "completed", "0"]]


@pytest.mark.parametrize("text, why", [("error ERROR: INTERNAL: no luck", "INTERNAL"),
                                       ("midway", "runtime"), ("turns", None)])
def test_an_asked_agent_that_fails_is_a_failed_tool(far, text, why):
    said = json.loads(text_of(far.say("asks eve " + text)))
    [row] = rows(far, ASKED.replace("response_text", "error"))
    if why:
        assert why in said["error"] and row[2] == "failed" and row[-1]
    else:
        assert said["response"] == "said at once\n\nand twice"


def test_who_leaves_takes_the_asked_agent_along(far, runtime):  # noqa: F811
    swarm = far.swarm()
    headers = {"authorization": "Bearer " + harness.token(), "x-conversation-id": swarm,
               "accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "send_message_to_agent",
                       "arguments": {"agent_slug": "eve", "message": "silence"}}}
    with contextlib.suppress(httpx.ReadTimeout):
        httpx.post(far.base + "/mcp/v1", headers=headers, json=body, timeout=httpx.Timeout(20, read=1))
    assert runtime.cancelled.wait(20)
    eventually(lambda: [row[2] for row in rows(far, ASKED)] == ["failed"])


def test_what_a_dead_process_left_running_counts_no_longer(orchestrate, runtime):  # noqa: F811
    weir = orchestrate(driver="address", runtime_address=runtime.address, stale="400ms")
    swarm = weir.swarm()
    for depth in range(3):
        rows(weir, "INSERT INTO agent_messages (id, workspace_id, conversation_id, from_agent_slug, "
                   f"to_agent_slug, request_text, status, depth) VALUES ('m{depth}', 'ws-1', '{swarm}', "
                   f"'', 'eve', 'hello', 'running', {depth})")
    eventually(lambda: {row[2] for row in rows(weir, ASKED)} == {"failed"})
    assert "response" in post_tool(weir, swarm, "send_message_to_agent",
                                   {"agent_slug": "eve", "message": "hello"})
    assert rows(weir, "SELECT error FROM agent_messages WHERE id = 'm0'") == [["interrupted"]]


def test_a_workspace_has_32_questions_at_once_and_no_more(far, runtime):  # noqa: F811
    """Each in a conversation of its own, so that none is within another."""
    far.swarm()
    talks = [f"c-{n}" for n in range(33)]
    for talk in talks:
        rows(far, "INSERT INTO conversations (id, workspace_id, agent_id, type, title) SELECT "
                  f"'{talk}', 'ws-1', id, 'agent', 'C' FROM agents WHERE slug = 'eve' LIMIT 1")
    runtime.together = threading.Barrier(33)
    ask = {"agent_slug": "eve", "message": "meet you"}
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        asked = [pool.submit(post_tool, far, talk, "send_message_to_agent", ask) for talk in talks[:32]]
        eventually(lambda: len(runtime.asked) == 32)
        refused = post_tool(far, talks[32], "send_message_to_agent", ask)
        assert refused == {"error": "too many agents are being asked; try again later"}
        assert len(rows(far, ASKED)) == 32, "a refused one leaves no row"
        other = far.swarm(workspace="ws-2", user="user-2")
        hello = {**ask, "message": "hello"}
        said = post_tool(far, other, "send_message_to_agent", hello, user="user-2", workspace="ws-2")
        assert "heard" in said["response"], "another workspace is not limited by it"
        runtime.together.wait(60)
        assert all("heard" in answer.result()["response"] for answer in asked)
    assert "heard" in post_tool(far, talks[32], "send_message_to_agent", hello)["response"]


def test_sigterm_lets_an_asked_agent_finish(far, runtime):  # noqa: F811
    swarm = far.swarm()
    runtime.together = threading.Barrier(2)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(far.post, "asks eve meet me", swarm)
        eventually(lambda: len(runtime.asked) == 2)
        far.signal(15)
        time.sleep(0.3)
        runtime.together.wait(20)
        assert "heard" in text_of(answer.result().json()["data"])
    assert far.wait() == 0
    assert [row[2] for row in rows(far, ASKED)] == ["completed"]
