"""The orchestrator's agents and tools: GET /v1/internal/agents and MCP (contracts/crawbl.md 2.10, 2.9)."""
import json
import signal
import socket
import threading
import time

import crawbl
import harness
import pytest
import uvicorn
from mcp.server.mcpserver import MCPServer
from orchestrator import Orchestrator, agent, open_token
from test_models import ollama, serve

SCRIPT = "test/e2e/scripts/blueprint.yaml"
TEAM = [
    agent("wally", prompt="You search.", tools=["greet"], model="special-1"),
    agent("manager", role="manager", prompt="You manage.", description="Manages."),
    agent("eve", prompt="You plan.", description="Knows dates."),
]


@pytest.fixture(params=["json", "events and sessions"])
def orchestrator(request):
    stateful = request.param != "json"
    with Orchestrator(sessions=stateful, events=stateful) as double:
        double.agents[crawbl.WORKSPACE] = TEAM
        double.tools["greet"] = lambda args, _: f"hello {args['name']}"
        double.tools["zip"] = lambda args, _: "zipped"
        yield double


@pytest.fixture
def plain():
    with Orchestrator() as double:
        double.tools["greet"] = lambda args, _: "hello"
        yield double


@pytest.fixture
def vendor():
    server = serve()
    yield server
    server.shutdown()
    server.server_close()


def offered(body):
    return {tool["function"]["name"] for tool in body.get("tools", [])}


def test_prompts_models_and_tools_reach_the_provider(start_weir, orchestrator, vendor):
    weir = start_weir(env={**orchestrator.env, **ollama(vendor), "WEIR_MODEL": "ollama/gemma3"})
    assert crawbl.one_turn(weir, "hi").text == "Hello."
    _, body = vendor.asked[-1]
    system = body["messages"][0]["content"]
    assert system.startswith("You manage.") and "eve: Knows dates." in system
    assert body["model"] == "gemma3"
    assert {"transfer_to_agent", "greet", "zip"} <= offered(body)
    assert crawbl.one_turn(weir, "hi", agent_id="wally").text == "Hello."
    _, body = vendor.asked[-1]
    assert body["messages"][0]["content"].startswith("You search.")
    assert body["model"] == "special-1"
    assert "greet" in offered(body) and "zip" not in offered(body)


def test_agents_of_the_blueprint_speak_and_hand_over(start_weir, orchestrator):
    weir = start_weir(script=SCRIPT, env=orchestrator.env)
    assert crawbl.one_turn(weir, "hello", agent_id="eve").error is None
    turn = crawbl.one_turn(weir, "transfer")
    assert [t.agent_id for t in turn.done.turns] == ["wally"]
    assert len(orchestrator.of("/v1/internal/agents")) <= 2 * 4, "it is kept for a while"


def test_every_request_names_the_conversation_and_brings_a_fresh_token(start_weir, orchestrator):
    weir = start_weir(script=SCRIPT, env={**orchestrator.env, "WEIR_THREADS": "1"})
    with crawbl.open_stream(weir) as stream:
        first = stream.ask("greet", session_id="s-1")
        assert first.text == "greeted"
        assert json.loads(first.of("tool_result")[0].result_json) == {"output": "hello Ann"}
        second = int(time.time())
        while int(time.time()) == second:
            time.sleep(0.01)
        assert stream.ask("greet", session_id="s-1").text == "greeted"
    methods = [request.method for request in orchestrator.requests]
    assert methods.count("initialize") == 1 and methods.count("tools/call") == 2
    assert methods.count("tools/list") == 2, "all pages, once"
    for request in orchestrator.requests:
        assert (request.user, request.workspace) == (crawbl.USER, crawbl.WORKSPACE)
        if request.body:
            assert request.headers["x-conversation-id"] == "s-1"
            assert "application/json" in request.headers["accept"]
            assert "text/event-stream" in request.headers["accept"]
        if request.body and request.method != "initialize":
            assert request.headers["mcp-protocol-version"] == "2025-11-25"
    early, late = orchestrator.of("tools/call")
    assert early.token != late.token and early.at < late.at
    assert not orchestrator.broken


def test_a_tool_may_converse_on_the_session_that_waits_for_it(start_weir, orchestrator):
    """2.7: send_message_to_agent"""
    weir = start_weir(script=SCRIPT, env=orchestrator.env)

    def send(args, request):
        session = request.headers["x-conversation-id"]
        turn = crawbl.one_turn(weir, args["message"], session_id=session, agent_id=args["agent_slug"])
        return turn.text

    orchestrator.tools["send_message_to_agent"] = send
    turn = crawbl.one_turn(weir, "ask eve", session_id="nested")
    assert turn.error is None and turn.text == "asked"
    assert json.loads(turn.of("tool_result")[0].result_json) == {"output": "hello"}


def test_a_caller_who_leaves_takes_his_tool_call_along(start_weir, orchestrator):
    weir = start_weir(script=SCRIPT, env=orchestrator.env)
    asked, go_on = threading.Event(), threading.Event()

    def greet(args, request):
        asked.set()
        go_on.wait(crawbl.PATIENCE)
        return "late"

    orchestrator.tools["greet"] = greet
    stream = crawbl.open_stream(weir)
    stream.send("greet", session_id="left")
    assert asked.wait(crawbl.PATIENCE)
    stream.call.cancel()
    wait_until(lambda: orchestrator.of("notifications/cancelled"))
    called, cancelled = orchestrator.of("tools/call")[-1], orchestrator.of("notifications/cancelled")[-1]
    assert cancelled.body["params"]["requestId"] == called.body["id"]
    go_on.set()
    assert crawbl.one_turn(weir, "hello", session_id="left").text == "hello"


def wait_until(happened, patience=crawbl.PATIENCE):
    give_up = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(0.05)


def test_two_workspaces_never_share_agents(start_weir, plain):
    plain.agents["ws-a"] = [agent("manager", role="manager"), agent("ada")]
    plain.agents["ws-b"] = [agent("manager", role="manager"), agent("bob")]
    weir = start_weir(script=SCRIPT, env=plain.env)
    for workspace, own, other in (("ws-a", "ada", "bob"), ("ws-b", "bob", "ada")):
        with crawbl.open_stream(weir, metadata=weir.metadata("u", workspace)) as stream:
            ids = {"workspace_id": workspace, "user_id": "u", "session_id": "s"}
            stream._requests.put(crawbl.pb.ConverseRequest(message="hi", agent_id=own, **ids))
            assert stream.turn().error is None
            stream._requests.put(crawbl.pb.ConverseRequest(message="hi", agent_id=other, **ids))
            assert stream.turn().code == "NOT_FOUND"


@pytest.mark.parametrize(
    "agents, named",
    [
        (None, None),
        ([], None),
        ([agent("ada")], None),
        ([agent("manager", role="manager"), agent("ada")], "ws-other"),
        ([agent("manager", role="manager"), agent("ada", prompt="x" * 2**20)], None),
    ],
    ids=["refused", "nobody", "no manager", "another workspace", "more than 1 MiB"],
)
def test_a_bad_blueprint_leaves_the_configured_agents(start_weir, plain, agents, named):
    plain.agents[crawbl.WORKSPACE], plain.named = agents, named
    weir = start_weir(script=SCRIPT, env={**plain.env, "WEIR_THREADS": "1"})
    assert crawbl.one_turn(weir, "hello", agent_id="ada").code == "NOT_FOUND"
    assert crawbl.one_turn(weir, "hello", agent_id="wally").text == "hello"
    assert crawbl.one_turn(weir, "greet").text == "greeted", "the tools are there all the same"
    assert weir.said("no blueprint").count("no blueprint") == 1
    token = plain.requests[0].token.split()[1]
    assert token not in weir.log()


def test_an_orchestrator_that_is_down_at_the_start_is_found_later(start_weir, plain):
    plain.agents[crawbl.WORKSPACE] = TEAM
    plain.stop()
    weir = start_weir(script=SCRIPT, env={**plain.env, "WEIR_THREADS": "1"})
    assert crawbl.one_turn(weir, "hello").text == "hello"
    assert crawbl.one_turn(weir, "hello", agent_id="eve").code == "NOT_FOUND"
    plain.start()
    wait_until(lambda: crawbl.one_turn(weir, "hello", agent_id="eve").error is None)
    plain.stop()
    assert crawbl.one_turn(weir, "hello", agent_id="eve").error is None, "the last good one stays"
    failed = crawbl.one_turn(weir, "greet").of("tool_result")[0]
    assert "cannot be reached" in failed.error_message
    assert weir.said("no blueprint").count("no blueprint") == 1


def test_a_blueprint_can_be_switched_off(start_weir, plain):
    plain.agents[crawbl.WORKSPACE] = TEAM
    weir = start_weir(script=SCRIPT, config="converse: {blueprint: false}\n", env=plain.env)
    assert crawbl.one_turn(weir, "hello", agent_id="eve").code == "NOT_FOUND"
    assert crawbl.one_turn(weir, "greet").text == "greeted"
    assert not plain.of("/v1/internal/agents")


def test_without_a_signing_key_nobody_is_asked(start_weir, plain):
    weir = start_weir(script=SCRIPT, env={**plain.env, "CRAWBL_MCP_SIGNING_KEY": None})
    with crawbl.open_stream(weir, metadata=()) as stream:
        assert stream.ask("hello").text == "hello"
    weir.said("CRAWBL_MCP_SIGNING_KEY")
    assert not plain.requests


def test_a_new_configuration_asks_anew(start_weir, plain):
    plain.agents[crawbl.WORKSPACE] = TEAM
    weir = start_weir(script=SCRIPT, env={**plain.env, "WEIR_THREADS": "1"})
    assert crawbl.one_turn(weir, "hello", agent_id="eve").error is None
    plain.agents[crawbl.WORKSPACE] = [agent("manager", role="manager"), agent("ada")]
    assert crawbl.one_turn(weir, "hello", agent_id="ada").code == "NOT_FOUND", "it is kept"
    weir.signal(signal.SIGHUP)
    wait_until(lambda: "was read again" in weir.log())
    wait_until(lambda: crawbl.one_turn(weir, "hello", agent_id="ada").error is None)


def sdk_server(stateless, json_response, seen):
    """The official SDK's own server, in a thread: returns its endpoint and how to stop it."""
    server = MCPServer("crawbl-orchestrator", version="1.0.0")

    @server.tool()
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"hello {name}"

    app = server.streamable_http_app(
        streamable_http_path="/mcp/v1", stateless_http=stateless, json_response=json_response
    )

    async def watched(scope, receive, send):
        if scope["type"] == "http":
            seen.append({k.decode().lower(): v.decode() for k, v in scope["headers"]})
        await app(scope, receive, send)

    listening = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(watched, log_level="error"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()

    def stop():
        running.should_exit = True
        thread.join(crawbl.PATIENCE)

    return f"http://127.0.0.1:{listening.getsockname()[1]}/mcp/v1", stop


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("json_response", [False, True])
def test_the_official_server_is_understood(start_weir, stateless, json_response):
    seen = []
    endpoint, stop = sdk_server(stateless, json_response, seen)
    try:
        weir = start_weir(script=SCRIPT, env={"CRAWBL_MCP_ENDPOINT": endpoint})
        turn = crawbl.one_turn(weir, "greet")
        assert turn.text == "greeted"
        output = json.loads(turn.of("tool_result")[0].result_json)["output"]
        assert output in ("hello Ann", {"result": "hello Ann"})
        assert all(open_token(headers["authorization"]) for headers in seen)
    finally:
        stop()


def ask_eve(weir, session):
    turn = crawbl.one_turn(weir, "may", agent_id="eve", session_id=session)
    assert "May eve?" in turn.text
    with weir.http(headers={"authorization": "Bearer " + harness.token()}) as http:
        [run] = http.get("/weir/v1/runs", params={"session_id": session}).json()["runs"]
    return run["id"]


def state_of(weir, run):
    with weir.http(headers={"authorization": "Bearer " + harness.token()}) as http:
        return http.get(f"/weir/v1/runs/{run}").json()["state"]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_an_agent_of_the_blueprint_that_asks_waits_on_after_a_restart(start_weir, orchestrator, end):
    weir = start_weir(script=SCRIPT, env=orchestrator.env)
    run = ask_eve(weir, "s-1")
    for _ in range(2):
        getattr(weir, end)()
        weir.start()
        assert state_of(weir, run) == "waiting"
    answer = crawbl.one_turn(weir, "yes, go on", session_id="s-1")
    assert answer.error is None and answer.text == "answered: yes, go on"
    assert [turn.agent_id for turn in answer.done.turns] == ["eve"]


def test_without_its_orchestrator_it_was_interrupted(start_weir, orchestrator):
    weir = start_weir(script=SCRIPT, env=orchestrator.env)
    run = ask_eve(weir, "s-1")
    weir.stop()
    orchestrator.agents[crawbl.WORKSPACE] = [agent("manager", role="manager", prompt="You manage.")]
    weir.start()
    assert state_of(weir, run) == "failed"


def test_a_stop_does_not_wait_for_an_orchestrator_that_is_silent(start_weir, orchestrator):
    weir = start_weir(script=SCRIPT, env=orchestrator.env)
    run = ask_eve(weir, "s-1")
    weir.stop()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp/v1"
        begun = time.monotonic()
        process = weir.spawn(CRAWBL_MCP_ENDPOINT=endpoint)
        connection, _ = silent.accept()  # it has asked, and nobody answers
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        assert time.monotonic() - begun < 10
        connection.close()
    weir.start()
    assert state_of(weir, run) == "waiting"
