"""weir as a server of the Model Context Protocol: agents as tools, for the official clients."""
import asyncio
import json
import os
import pathlib
import subprocess
import threading
import time

import harness
import httpx
import httpx2
import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from test_mcp import package

ASKS = "agents: [{slug: manager, description: Pays, tools: {pay: ask}}]\n"
APPROVALS = {"script": "test/e2e/scripts/approvals.yaml", "config": ASKS}
SLOW = {"script": "test/e2e/scripts/slow.yaml", "config": "agents: [{slug: manager}]\n"}
PATIENCE = 60
OPEN = {"CRAWBL_MCP_SIGNING_KEY": None}  # no token is asked for on loopback


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


class Reports(list):
    """What a call reported while it went on."""

    async def __call__(self, progress, total, message):
        assert total is None
        self.append((progress, message))

    def rising(self):
        places = [progress for progress, _ in self]
        return places == sorted(set(places))

    def text(self):
        return "".join(message for _, message in self)


def signed():
    return httpx2.AsyncClient(
        headers={"authorization": "Bearer " + harness.token()}, timeout=PATIENCE
    )


async def over_http(weir, work):
    url = f"http://127.0.0.1:{weir.port('http')}/mcp"
    async with signed() as http, streamable_http_client(url, http_client=http) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            return await work(session)


async def over_stdio(arguments, work, **env):
    command = StdioServerParameters(
        command=str(harness.BINARY),
        args=["mcp", *arguments],
        env=harness.clean_environment(env),
    )
    async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return await work(session)


@pytest.fixture(params=("http", "stdio of a daemon", "stdio alone"))
def meet(request, start_weir, tmp_path):
    """meet(settings, work): what `work` brings with a session of this transport."""

    def with_settings(settings, work):
        if request.param == "stdio alone":
            own = own_settings(tmp_path, **settings)
            return run(over_stdio(own, work))
        if request.param == "http":
            return run(over_http(start_weir(**settings), work))
        weir = start_weir(**settings, env={**OPEN, "AGENT_AUTH_TOKEN": "s3cret"})
        address = f"127.0.0.1:{weir.port('http')}"
        return run(over_stdio(["--http", address], work, AGENT_AUTH_TOKEN="s3cret"))

    return with_settings


def own_settings(folder, script, config):
    """For a `weir mcp` that finds no daemon."""
    file = folder / "own.yaml"
    file.write_text(f"script: {harness.ROOT / script}\n{config}")
    return ["-c", str(file), "--data", str(folder / "own"), "--http", "127.0.0.1:0"]


# --- what clients see -----------------------------------------------------------------------


def test_each_agent_is_a_tool(meet):
    async def work(session):
        return (await session.list_tools()).tools

    (tool,) = meet(APPROVALS, work)
    assert (tool.name, tool.description) == ("manager", "Pays")
    assert tool.input_schema["required"] == ["message"]
    assert set(tool.input_schema["properties"]) == {"message", "session", "approval"}
    assert "answer" in tool.output_schema["properties"]


def test_a_call_is_a_turn_and_reports_what_is_said(meet):
    reports = Reports()

    async def work(session):
        first = await session.call_tool(
            "manager", {"message": "hello there", "session": "s"}, progress_callback=reports
        )
        return first

    result = meet(APPROVALS, work)
    assert not result.is_error
    assert result.structured_content == {
        "status": "done",
        "answer": "heard: hello there",
        "session": "s",
    }
    assert result.content[0].text == reports.text() == "heard: hello there"
    assert reports.rising()


def test_calls_without_a_session_are_conversations_of_their_own(meet):
    async def work(session):
        results = [await session.call_tool("manager", {"message": "hi"}) for _ in range(2)]
        return [r.structured_content["session"] for r in results]

    one, other = meet(APPROVALS, work)
    assert one != other


def test_an_approval_is_reported_and_answered(meet):
    async def work(session):
        asked = await session.call_tool("manager", {"message": "pay"})
        waits = asked.structured_content
        again = await session.call_tool(
            "manager",
            {"message": "hm", "session": waits["session"], "approval": waits["approval"]["id"]},
        )
        done = await session.call_tool(
            "manager",
            {"message": "yes", "session": waits["session"], "approval": waits["approval"]["id"]},
        )
        late = await session.call_tool(
            "manager",
            {"message": "no", "session": waits["session"], "approval": waits["approval"]["id"]},
        )
        return asked, again, done, late

    asked, again, done, late = meet(APPROVALS, work)
    approval = asked.structured_content["approval"]
    assert asked.structured_content["status"] == "waiting"
    assert (approval["tool"], approval["args"]) == ("pay", {"eur": 300})
    assert approval["id"] in asked.content[0].text
    assert again.structured_content["approval"]["question"] == approval["question"]
    assert done.structured_content["answer"] == 'Done: {"paid":"300"}'
    assert late.is_error and "decided" in late.content[0].text


def test_a_plain_no_decides_without_the_id(meet):
    async def work(session):
        asked = await session.call_tool("manager", {"message": "pay", "session": "till"})
        done = await session.call_tool("manager", {"message": "no", "session": "till"})
        return asked, done

    asked, done = meet(APPROVALS, work)
    assert asked.structured_content["status"] == "waiting"
    assert done.structured_content["status"] == "done"
    assert "paid" not in done.structured_content["answer"]


def test_what_is_wrong_with_arguments_is_for_the_model(meet):
    async def work(session):
        wrong = [{}, {"message": ""}, {"message": 5}, {"message": "m", "sessions": "s"}]
        wrong += [{"message": "m", "session": "s", "approval": "x"}]
        wrong += [{"message": "m", "approval": "1-2"}]
        return [await session.call_tool("manager", arguments) for arguments in wrong]

    for result in meet(APPROVALS, work):
        assert result.is_error
        assert result.content[0].text


def test_an_unknown_tool_is_an_error_of_the_protocol(meet):
    async def work(session):
        with pytest.raises(MCPError) as refused:
            await session.call_tool("nobody", {"message": "hi"})
        return refused.value.code

    assert meet(APPROVALS, work) == -32602


def test_a_failed_turn_is_an_error_with_its_reason(meet):
    async def work(session):
        return await session.call_tool("manager", {"message": "fail"})

    result = meet(SLOW, work)
    assert result.is_error
    assert result.meta["weir/reason"]


def runs_of(weir, session):
    url = f"http://127.0.0.1:{weir.port('http')}/weir/v1/runs"
    headers = {"authorization": "Bearer " + harness.token()}
    return httpx.get(url, params={"session_id": session}, headers=headers).json()["runs"]


def wait_for(look, what):
    give_up = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < give_up, what
        time.sleep(0.02)
    return found


def test_a_cancelled_call_cancels_its_run(start_weir):
    weir = start_weir(**SLOW)

    async def work(session):
        heard = asyncio.Event()

        async def report(progress, total, message):
            heard.set()

        call = asyncio.ensure_future(
            session.call_tool(
                "manager", {"message": "for ever", "session": "e"}, progress_callback=report
            )
        )
        await heard.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        state = ""
        while state != "cancelled":
            await asyncio.sleep(0.02)
            (found,) = await asyncio.to_thread(runs_of, weir, "e")
            state = found["state"]
        return await session.call_tool("manager", {"message": "quick"})

    after = run(over_http(weir, work))
    assert after.structured_content["answer"] == "Here you are."


def test_the_console_reads_the_same_texts_at_the_same_time(start_weir):
    weir = start_weir(**SLOW)
    reports, texts = Reports(), []
    headers = {"authorization": "Bearer " + harness.token()}

    def read_along():
        (found,) = wait_for(lambda: runs_of(weir, "along"), "the run did not begin")
        url = f"http://127.0.0.1:{weir.port('http')}/weir/v1/runs/{found['id']}/events"
        with httpx.stream("GET", url, headers=headers, timeout=PATIENCE) as stream:
            kind = None
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: ") and kind == "text":
                    texts.append(json.loads(line[6:])["text"])

    reader = threading.Thread(target=read_along)
    reader.start()

    async def work(session):
        return await session.call_tool(
            "manager", {"message": "go", "session": "along"}, progress_callback=reports
        )

    result = run(over_http(weir, work))
    reader.join(PATIENCE)
    assert "".join(texts) == reports.text() == result.structured_content["answer"] == "on " * 10


# --- 2026-07-28 -----------------------------------------------------------------------------


def test_a_stateless_client_is_served(start_weir):
    weir = start_weir(**APPROVALS, env=OPEN)
    reports = Reports()

    async def work():
        async with Client(f"http://127.0.0.1:{weir.port('http')}/mcp") as client:
            tools = (await client.list_tools()).tools
            result = await client.call_tool(
                "manager", {"message": "hello"}, progress_callback=reports
            )
            return client.protocol_version, [t.name for t in tools], result

    version, tools, result = run(work())
    assert (version, tools) == ("2026-07-28", ["manager"])
    assert result.structured_content["answer"] == reports.text() == "heard: hello"


# --- the wire -------------------------------------------------------------------------------


class Wire:
    """Requests as a client's HTTP library sends them."""

    def __init__(self, weir, version="2025-11-25", **token):
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{weir.port('http')}",
            headers={
                "authorization": "Bearer " + harness.token(**token),
                "accept": "application/json, text/event-stream",
            },
            timeout=PATIENCE,
        )
        self.version = version

    def post(self, method, id=1, **params):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        return self.http.post("/mcp", json={**message, **({"id": id} if id else {})})

    def begin(self):
        answer = self.post(
            "initialize",
            protocolVersion=self.version,
            capabilities={},
            clientInfo={"name": "wire", "version": "1"},
        )
        self.http.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        self.http.headers["mcp-protocol-version"] = answer.json()["result"]["protocolVersion"]
        assert self.post("notifications/initialized", id=None).status_code == 202
        return self

    def call(self, id=1, token="t", **arguments):
        meta = {"_meta": {"progressToken": token}} if token else {}
        params = {"name": "manager", "arguments": arguments, **meta}
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        return self.http.stream("POST", "/mcp", json=message)

    def resume(self, last):
        return self.http.stream("GET", "/mcp", headers={"last-event-id": last})


def events(lines):
    """(id, message) of each event; the message of one without data is None."""
    id, data = None, None
    for line in lines:
        if line.startswith("id: "):
            id = line[4:]
        elif line.startswith("data:"):
            data = line[5:].strip()
        elif not line and data is not None:
            yield id, json.loads(data) if data else None
            id, data = None, None


def told(messages):
    return "".join(m["params"]["message"] for m in messages if m.get("method"))


def test_a_broken_stream_goes_on_where_it_broke(start_weir):
    weir = start_weir(**SLOW)
    wire = Wire(weir).begin()
    before, last = [], None
    with wire.call(id="q", message="go", session="broken") as stream:
        for id, message in events(stream.iter_lines()):
            last = id or last
            if message:
                before.append(message)
            if len(before) == 3:
                break
    with wire.resume(last) as stream:
        after = [message for _, message in events(stream.iter_lines()) if message]
    assert told(before + after) == "on " * 10
    assert after[-1]["id"] == "q"
    assert after[-1]["result"]["structuredContent"]["answer"] == "on " * 10


def test_the_first_event_lets_a_client_come_back_before_anything_was_said(start_weir):
    wire = Wire(start_weir(**SLOW)).begin()
    with wire.call(message="go") as stream:
        (first, nothing) = next(events(stream.iter_lines()))
    assert first and nothing is None
    with wire.resume(first) as stream:
        after = [message for _, message in events(stream.iter_lines()) if message]
    assert told(after) == "on " * 10


def test_a_call_goes_on_after_a_restart_of_the_daemon(start_weir):
    weir = start_weir(**SLOW)
    wire = Wire(weir).begin()
    with wire.call(message="quick", session="r") as stream:
        seen = list(events(stream.iter_lines()))
    weir.restart()
    again = Wire(weir).begin()
    with again.resume(seen[0][0]) as stream:
        after = [message for _, message in events(stream.iter_lines()) if message]
    assert after[-1] == seen[-1][1]


def test_another_callers_stream_is_not_resumed(start_weir):
    weir = start_weir(**SLOW)
    wire = Wire(weir).begin()
    with wire.call(message="quick") as stream:
        seen = list(events(stream.iter_lines()))
    for other in (Wire(weir, user="eve").begin(), Wire(weir, workspace="far").begin()):
        with other.resume(seen[0][0]) as stream:
            assert stream.status_code == 404
            assert "quick" not in stream.read().decode()
        with other.resume("12.1.MQ") as stream:
            assert stream.status_code == 404


def test_a_client_that_does_not_come_back_ends_its_run(start_weir):
    weir = start_weir(**SLOW, args=["--mcp-server-on-disconnect", "detach-for=100ms"])
    wire = Wire(weir).begin()
    with wire.call(message="for ever", session="gone") as stream:
        next(stream.iter_lines())
    wait_for(lambda: runs_of(weir, "gone")[0]["state"] == "cancelled", "the run goes on")


def test_a_call_without_a_session_ends_with_its_connection(start_weir):
    weir = start_weir(**SLOW)
    wire = Wire(weir)
    with wire.call(message="for ever", session="gone") as stream:
        next(stream.iter_lines())
    wait_for(lambda: runs_of(weir, "gone")[0]["state"] == "cancelled", "the run goes on")


def test_a_session_ends_with_its_calls(start_weir):
    weir = start_weir(**SLOW)
    wire = Wire(weir).begin()
    with wire.call(message="for ever", session="long") as stream:
        lines = stream.iter_lines()
        next(lines)
        assert wire.http.delete("/mcp").status_code == 204
        rest = [m for _, m in events(lines) if m and "result" in m]
    assert rest == []
    wait_for(lambda: runs_of(weir, "long")[0]["state"] == "cancelled", "the run goes on")
    assert wire.post("tools/list").status_code == 404
    assert wire.http.delete("/mcp").status_code == 404


def test_a_session_is_its_owners_alone(start_weir):
    weir = start_weir(**APPROVALS)
    wire = Wire(weir).begin()
    thief = Wire(weir, user="eve")
    thief.http.headers["mcp-session-id"] = wire.http.headers["mcp-session-id"]
    assert thief.post("tools/list").status_code == 404
    assert thief.http.delete("/mcp").status_code == 404
    assert wire.post("tools/list").status_code == 200


def test_another_users_approval_is_not_answered(start_weir):
    weir = start_weir(**APPROVALS)
    with Wire(weir).call(token=None, message="pay", session="s") as stream:
        waits = list(events(stream.iter_lines()))[-1][1]["result"]["structuredContent"]
    arguments = {"message": "yes", "session": "s", "approval": waits["approval"]["id"]}
    with Wire(weir, user="eve").call(token=None, **arguments) as answer:
        result = json.loads(answer.read())["result"]
    assert result["isError"] and "paid" not in result["content"][0]["text"]
    (found,) = runs_of(weir, "s")
    assert found["state"] == "waiting"


BATCH = [
    {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "method": "notifications/x"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/nothing"},
    {"id": 3},
]


def test_batches_are_of_one_version(start_weir):
    weir = start_weir(**APPROVALS)
    for version in ("2025-06-18", "2025-11-25"):
        refused = Wire(weir, version).begin().http.post("/mcp", json=BATCH)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
    wire = Wire(weir, "2025-03-26").begin()
    answer = wire.http.post("/mcp", json=BATCH, headers={"accept": "application/json"})
    assert answer.status_code == 200
    one, two, three = answer.json()
    assert one == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (two["id"], two["error"]["code"]) == (2, -32601)
    assert (three["id"], three["error"]["code"]) == (3, -32600)
    streamed = wire.http.post("/mcp", json=BATCH)
    assert [m for _, m in events(streamed.text.split("\n"))] == [one, two, three]


@pytest.mark.parametrize(
    "body, status, code",
    [
        (b"{", 400, -32700),
        (b"[]", 400, -32600),
        (b"5", 400, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}', 200, -32602),
    ],
)
def test_a_message_that_is_wrong_is_refused(start_weir, body, status, code):
    wire = Wire(start_weir(**APPROVALS)).begin()
    answer = wire.http.post("/mcp", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_headers_are_checked(start_weir):
    weir = start_weir(**APPROVALS)
    wire = Wire(weir).begin()
    wire.http.headers["mcp-protocol-version"] = "1999-01-01"
    assert wire.post("ping").status_code == 400
    assert wire.http.get("/mcp").status_code == 405
    bare = httpx.Client(base_url=wire.http.base_url)
    assert bare.post("/mcp", json={}).status_code == 401
    assert bare.post("/mcp", json={}, headers={"authorization": "Bearer x"}).status_code == 403


def test_foreign_pages_are_refused(start_weir):
    url = f"http://127.0.0.1:{start_weir(**APPROVALS, env=OPEN).port('http')}/mcp"
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
        assert httpx.post(url, json=ping, headers=headers).status_code == 403
    assert httpx.post(url, json=ping).json()["result"] == {}


def test_it_can_be_switched_off(start_weir):
    weir = start_weir(**APPROVALS, args=["--mcp-server=false"])
    assert Wire(weir).post("ping").status_code == 404


# --- stdout is the protocol's alone ---------------------------------------------------------


def speak(lines, *arguments, **env):
    """What `weir mcp` writes on stdout for these lines, and what it says on stderr."""
    command = [str(harness.BINARY), "mcp", *arguments]
    done = subprocess.run(
        command,
        input="".join(line + "\n" for line in lines),
        env=harness.clean_environment(env),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_every_line_of_stdout_is_a_message(tmp_path):
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    settings = own_settings(tmp_path, **APPROVALS)
    messages, said = speak([ping, "", "nonsense", '{"id":2}'], *settings)
    assert {"jsonrpc": "2.0", "id": 1, "result": {}} in messages
    codes = {m["id"]: m["error"]["code"] for m in messages if "error" in m}
    assert codes == {None: -32700, 2: -32600}
    assert "serves" in said


def test_the_last_line_may_have_no_end_and_none_is_without_bounds(tmp_path):
    command = [str(harness.BINARY), "mcp", *map(str, own_settings(tmp_path, **APPROVALS))]
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    for said, code, reason in ((ping, 0, ""), (ping + "\n" + 17 * 2**20 * "x", 1, "longer than 16 MiB")):
        done = subprocess.run(command, input=said, env=harness.clean_environment({}), capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        assert done.returncode == code and reason in done.stderr
        assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_server_that_cannot_be_asked_is_an_error_of_each_request():
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    (message,), _ = speak([json.dumps(call), json.dumps(note)], "--url", "http://127.0.0.1:9/mcp")
    assert (message["id"], message["error"]["code"]) == (7, -32603)


@pytest.mark.parametrize("path", ("", "/", "/mcp"))
def test_an_address_and_an_endpoint_name_the_same_daemon(start_weir, path):
    weir = start_weir(**APPROVALS, env={**OPEN, "AGENT_AUTH_TOKEN": "s3cret"})
    url = f"http://127.0.0.1:{weir.port('http')}{path}"
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    (by_flag,), _ = speak([call], "--url", url, AGENT_AUTH_TOKEN="s3cret")
    (by_variable,), _ = speak([call], AGENT_AUTH_TOKEN="s3cret", WEIR_URL=url)
    assert by_flag == by_variable == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_daemon_that_was_started_again_is_asked_on(start_weir):
    weir = start_weir(**APPROVALS, env={**OPEN, "AGENT_AUTH_TOKEN": "s3cret"})
    url = f"http://127.0.0.1:{weir.port('http')}/mcp"

    async def work(session):
        first = await session.call_tool("manager", {"message": "one"})
        await asyncio.to_thread(weir.stop)
        weir._args += ["--http", url[len("http://") : -len("/mcp")]]
        await asyncio.to_thread(weir.start)
        return first, await session.call_tool("manager", {"message": "two"})

    first, second = run(over_stdio(["--url", url, "--token", "s3cret"], work))
    assert first.structured_content["answer"] == "heard: one"
    assert second.structured_content["answer"] == "heard: two"


# --- the conformance kit --------------------------------------------------------------------

# What is about tools and the transport. The rest needs resources, prompts, or the kit's own tools.
SCENARIOS = {
    "2025-11-25": [
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "tools-list",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ],
    "2026-07-28": [
        "server-stateless",
        "tools-list",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
        "http-header-validation",
        "caching",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
    ],
}


def is_untestable(check):
    """It needs one of the kit's own tools, or lists that a server of tools does not have."""
    said = check.get("errorMessage") or ""
    return said.startswith("Not testable:") or "-32601" in said


@pytest.mark.parametrize("version", SCENARIOS)
def test_the_conformance_kit_finds_nothing_wrong(start_weir, tmp_path, version):
    weir = start_weir(**APPROVALS, env=OPEN)
    here = pathlib.Path(__file__).parent
    kit = ["node", "--import", str(here / "node/glob_sync.mjs"), package("conformance"), "server"]
    kit += ["--url", f"http://127.0.0.1:{weir.port('http')}/mcp", "--spec-version", version]
    passed, wrong = 0, []
    for scenario in SCENARIOS[version]:
        told = subprocess.run(
            [*kit, "--scenario", scenario, "-o", str(tmp_path / scenario)],
            cwd=tmp_path,
            env={**os.environ},
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
        )
        files = list((tmp_path / scenario).rglob("checks.json"))
        assert files, told.stdout + told.stderr
        for check in json.loads(files[0].read_text()):
            passed += check["status"] == "SUCCESS"
            if check["status"] in ("FAILURE", "WARNING") and not is_untestable(check):
                wrong.append((scenario, check["id"], check.get("errorMessage")))
    assert wrong == []
    assert passed >= len(SCENARIOS[version])
