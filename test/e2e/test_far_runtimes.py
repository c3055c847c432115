"""Agents of kind converse: an AgentRuntime elsewhere is one, however it behaves."""
import concurrent.futures
import contextlib
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time

import crawbl
import far_runtime
import harness
import pytest
from ports import free_port
from test_tls import Authority

KEY = {"FAR_KEY": harness.SIGNING_KEY}


def config(runtime, rogue, more=""):
    far = f"kind: converse, address: '{runtime.address}', key_env: FAR_KEY"
    return (
        "threads: 1\nagents:\n"
        f"  - {{slug: far, {far}, thinking: true{more}}}\n"
        f"  - {{slug: fresh, {far}, stream_per_turn: true, remote_agent: wally, instructions: be brief}}\n"
        f"  - {{slug: hasty, {far}, silence: 300ms}}\n"
        f"  - {{slug: shaped, {far}, output: {{type: object, required: [city]}}}}\n"
        f"  - {{slug: rogue, kind: converse, address: '{rogue.address}'}}\n"
    )


@pytest.fixture(scope="module")
def runtime():
    with far_runtime.Runtime() as runtime:
        yield runtime


@pytest.fixture(scope="module")
def rogue():
    with far_runtime.Rogue() as rogue:
        yield rogue


@pytest.fixture(scope="module")
def weir(tmp_path_factory, runtime, rogue):
    daemon = harness.Daemon(tmp_path_factory.mktemp("far"), config=config(runtime, rogue), env=KEY).start()
    yield daemon
    daemon.stop()
    assert not daemon.sanitizer_log()


def stream(weir, text, session):
    """The events of a turn over SSE: (event, data)."""
    with weir.http() as http:
        body = http.post("/stream", json={"input": text, "session_id": session}).text
    found = []
    for block in body.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if lines:
            found.append((lines.get("event", "data"), lines["data"]))
    assert found[-1] == ("data", "[DONE]")
    return found[:-1]


def said(events):
    return "".join(json.loads(data).get("delta", "") for event, data in events if event == "data")


def ask(weir, text, agent="far", **fields):
    return crawbl.one_turn(weir, text, agent_id=agent, **fields)


def of(runtime, session):
    """What the runtime was asked in a session, the newest last."""
    return [a for a in runtime.asked if a.request.session_id.endswith(session)]


# --- what it says ----------------------------------------------------------------------------


def test_a_turn_is_what_the_runtime_says_on_both_wires(weir, runtime):
    assert said(stream(weir, "hello there", "s-1")) == "heard: hello there"
    turn = ask(weir, "hello grpc", session_id="s-2")
    assert turn.text == "heard: hello grpc" and turn.error is None
    assert [t.text for t in turn.done.turns] == ["heard: hello grpc"]
    (usage,) = turn.of("usage")
    assert (usage.prompt_tokens, usage.completion_tokens, usage.model) == (7, 5, "far-model")
    asked = of(runtime, "s-2")[0]
    assert (asked.request.user_id, asked.request.workspace_id) == (crawbl.USER, crawbl.WORKSPACE)
    payload = harness.token(crawbl.USER, crawbl.WORKSPACE).partition(".")[0]
    assert asked.token.startswith("Bearer ") and len(asked.token) == len("Bearer ") + len(payload) + 65


def test_tools_and_delegates_of_the_runtime_are_shown(weir):
    turn = ask(weir, "tools please")
    assert turn.text == "looking. \n\nfound it"
    assert [c.tool for c in turn.of("tool_call")] == ["web_fetch", "shell"]
    calls = {c.call_id: c.tool for c in turn.of("tool_call")}
    results = {calls[r.call_id]: r for r in turn.of("tool_result")}
    assert json.loads(results["web_fetch"].result_json) == {"body": "found"}
    assert results["shell"].error and results["shell"].error_message == "not allowed"
    (usage,) = turn.of("usage")
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (30, 3, 33)
    assert usage.cached_tokens == 15
    turn = ask(weir, "delegate this")
    assert turn.text == "let me ask wally.\n\nwally here"
    assert [c.tool for c in turn.of("tool_call")] == ["transfer_to_agent"]


def test_thinking_turns_without_chunks_and_later_events(weir):
    turn = ask(weir, "think hard")
    assert [t.text for t in turn.of("thinking")] == ["hm"] and turn.text == "thought"
    assert ask(weir, "turns only").text == "said at once\n\nand twice"
    assert ask(weir, "later version").text == "known"


def test_a_failed_turn_has_the_code_of_the_runtime_and_the_stream_goes_on(weir, runtime):
    for mark, code, text in (
        ("ERROR: NOT_FOUND: no such thing", "NOT_FOUND", "no such thing"),
        ("ERROR: InvalidArgument: converse: message is required", "INVALID_ARGUMENT", "converse: message"),
        ("ERROR: of an older kind", "UNKNOWN", "of an older kind"),
    ):
        turn = ask(weir, f"error {mark}", session_id="s-error")
        assert turn.code == code and text in turn.error, turn.error
        (usage,) = turn.of("usage")
        assert (usage.prompt_tokens, usage.completion_tokens) == (4, 2)
    assert ask(weir, "hello again", session_id="s-error").error is None
    assert len({a.stream for a in of(runtime, "s-error")}) == 1
    events = stream(weir, "error ERROR: INTERNAL: runner: boom", "s-3")
    assert events[-1][0] == "error" and "boom" in events[-1][1]


# --- streams ---------------------------------------------------------------------------------


def test_a_conversation_keeps_its_stream_and_others_have_their_own(weir, runtime):
    for n in range(3):
        ask(weir, f"hello {n}", session_id="s-kept")
    ask(weir, "hello", session_id="s-other")
    kept = of(runtime, "s-kept")
    assert len(kept) == 3 and len({a.stream for a in kept}) == 1
    assert of(runtime, "s-other")[0].stream != kept[0].stream
    assert len({a.peer for a in runtime.asked}) == 1  # all on one connection


def test_a_stream_for_each_turn_and_who_is_asked(weir, runtime):
    for n in range(3):
        assert ask(weir, f"hello {n}", "fresh", session_id="s-fresh").error is None
    asked = of(runtime, "s-fresh")
    assert len({a.stream for a in asked}) == 3
    assert {(a.request.agent_id, a.request.system_prompt) for a in asked} == {("wally", "be brief")}


def test_a_hundred_conversations_at_once_share_a_connection(weir, runtime):
    before = len(runtime.asked)
    runtime.together.reset()
    channel = weir.channel()
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        def one(n):
            with crawbl.open_stream(weir, channel) as call:
                return call.ask(f"meet {n}", agent_id="far").text

        texts = list(pool.map(one, range(100)))
    assert texts == [f"heard: meet {n}" for n in range(100)]
    assert len({a.peer for a in runtime.asked[before:]}) == 1


def test_a_cancel_reaches_the_runtime(weir, runtime):
    """Many times: it also meets the runtime while it still sends its chunk."""
    channel = weir.channel()
    for _ in range(60):
        runtime.cancelled.clear()
        with crawbl.open_stream(weir, channel) as call:
            call.send("silence", agent_id="far")
            assert call.next().chunk.text == "..."
            call.call.cancel()
            assert runtime.cancelled.wait(crawbl.PATIENCE)


def test_a_cancel_at_any_moment_leaves_nothing_at_the_runtime(weir, runtime):
    channel = weir.channel()
    before = len(runtime.asked)
    for n in range(60):
        with crawbl.open_stream(weir, channel) as call:
            call.send("silence", agent_id="far")
            time.sleep(n % 6 / 1000)  # before, while and after it is asked
            call.call.cancel()
    assert ask(weir, "hello after").error is None  # comes behind all of them on the connection
    assert len(runtime.asked) > before + 1
    give_up = time.monotonic() + crawbl.PATIENCE
    while runtime.silent and time.monotonic() < give_up:
        time.sleep(0.01)
    assert not runtime.silent


def test_a_slow_reader_gets_all_of_a_long_answer(weir):
    with crawbl.open_stream(weir) as call:
        call.send("long 2000", agent_id="far")
        first = call.next()
        time.sleep(0.3)
        rest = call.turn()
    assert first.chunk.text + rest.text == "".join(f"{n:>400} " for n in range(2000))


# --- what goes wrong -------------------------------------------------------------------------


@pytest.mark.parametrize("way, code, text", [
    ("midway", "UNAVAILABLE", "went away in the middle of the turn: going down"),
    ("nodone", "UNAVAILABLE", "ended its stream without a DoneEvent"),
    ("refuse UNAUTHENTICATED", "FAILED_PRECONDITION", "refuses to be asked: unauthenticated: no"),
    ("refuse RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED", "refuses to be asked"),
    ("huge", "RESOURCE_EXHAUSTED", "larger than the limit"),
])
def test_a_broken_turn_says_so_and_the_next_one_is_fine(weir, way, code, text):
    session = "s-" + way.replace(" ", "-")
    turn = ask(weir, way, session_id=session)
    assert turn.code == code and text in turn.error, turn.error
    assert ask(weir, "hello again", session_id=session).text == "heard: hello again"


def test_silence_ends_the_turn_and_the_runtime_hears_of_it(weir, runtime):
    runtime.cancelled.clear()
    turn = ask(weir, "silence", "hasty")
    assert turn.code == "DEADLINE_EXCEEDED" and "said nothing for too long" in turn.error
    assert runtime.cancelled.wait(crawbl.PATIENCE)


def test_tokens_are_accounted_for_whatever_became_of_the_turn(weir):
    """One sum for each turn: two model calls of a good one, and those before a failure."""
    def sums():
        answer = weir.http().get("/weir/v1/usage", headers={"authorization": "Bearer " + harness.token()})
        (row,) = answer.json()["usage"]
        return [row[name] for name in ("prompt_tokens", "completion_tokens", "cached_tokens")]

    before = sums()
    ask(weir, "tools please")
    for way in ("error ERROR: INTERNAL: boom", "midway"):
        turn = ask(weir, way)
        (usage,) = turn.of("usage")
        assert turn.error and (usage.prompt_tokens, usage.completion_tokens) == (4, 2)
    assert [now - then for now, then in zip(sums(), before)] == [38, 7, 19]


def test_an_answer_of_the_wrong_shape_is_asked_for_once_more(weir, runtime):
    turn = ask(weir, "shape of Kyoto", "shaped", session_id="s-shape")
    assert turn.error is None and [t.text for t in turn.done.turns] == ['{"city": "Kyoto"}']
    first, second = of(runtime, "s-shape")
    assert first.request.message == "shape of Kyoto"
    assert second.request.message.startswith("That is not the JSON that was asked for")


def test_a_second_done_is_no_answer_to_the_next_turn(weir, runtime):
    runtime.dropped.clear()
    assert ask(weir, "two dones", session_id="s-two").text == "once"
    assert runtime.dropped.wait(crawbl.PATIENCE)
    assert ask(weir, "hello after", session_id="s-two").text == "heard: hello after"


def test_a_done_that_comes_when_the_next_turn_was_asked_costs_one_answer(weir, runtime):
    """The contract does not tell them apart; a stream for each turn does."""
    runtime.dropped.clear()
    for text, answer in (("late done", "once"), ("hello after", "twice")):
        assert ask(weir, text, session_id="s-late").text == answer
    assert runtime.dropped.wait(crawbl.PATIENCE)
    assert ask(weir, "hello last", session_id="s-late").text == "heard: hello last"
    for text, answer in (("late done", "once"), ("hello after", "heard: hello after")):
        assert ask(weir, text, "fresh", session_id="s-late").text == answer


@pytest.mark.parametrize("way, code, text", [
    ("reset", "INTERNAL", "INTERNAL_ERROR"),
    ("midgoaway", "UNAVAILABLE", "went away in the middle"),
    ("hangup", "UNAVAILABLE", "closed the connection"),
    ("http 503", "UNAVAILABLE", "HTTP status 503"),
    ("http 401", "FAILED_PRECONDITION", "HTTP status 401"),
    ("http 200", "UNKNOWN", "not gRPC"),
    ("nonsense", "INTERNAL", "no ConverseEvent"),
    ("gzip", "INTERNAL", "switch its compression off"),
    ("cut", "INTERNAL", "inside a message"),
])
def test_a_rogue_ends_its_turn_only(weir, rogue, way, code, text):
    turn = ask(weir, way, "rogue")
    assert turn.code == code and text in turn.error, turn.error
    assert rogue.asked[way] == 1  # it may have been seen: never again by itself
    assert ask(weir, "hello after", "rogue").text == "heard: hello after"


@pytest.mark.parametrize("way", ["refused", "goaway"])
def test_what_the_runtime_never_saw_is_asked_again(weir, rogue, way):
    turn = ask(weir, f"{way} once", "rogue")
    assert turn.error is None and turn.text == f"heard: {way} once"
    assert rogue.asked[f"{way} once"] == 2


def test_a_runtime_that_goes_away_fails_its_turns_and_is_dialled_again(start_weir, rogue):
    with far_runtime.Runtime(start=False) as runtime:
        weir = start_weir(config=config(runtime, rogue), env=KEY)
        turn = ask(weir, "hello", session_id="s-1")
        assert turn.code == "UNAVAILABLE" and "cannot be reached" in turn.error
        later = crawbl.in_background(crawbl.one_turn_of, weir, "hello late", "s-1")
        time.sleep(0.1)
        runtime.start()  # it comes while the turn waits to ask again
        assert later().text == "heard: hello late"
        with crawbl.open_stream(weir) as call:
            call.send("silence", session_id="s-2")
            assert call.next().chunk.text == "..."
            runtime.stop()
            turn = call.turn()
            assert turn.code in ("UNAVAILABLE", "CANCELLED") and "went away" in turn.error, turn.error
            runtime.start()
            assert call.ask("hello back", session_id="s-2").text == "heard: hello back"


def without_http2(cert, key):
    """The port of a TLS server that speaks HTTP/1.1 only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["http/1.1"])
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            peer, _ = listener.accept()
            with contextlib.suppress(OSError), context.wrap_socket(peer, server_side=True) as secure:
                secure.recv(1)

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


def test_a_runtime_over_tls_is_who_its_certificate_says(start_weir, tmp_path):
    root = Authority(tmp_path, "root")
    cert, key = root.sign("runtime")
    with far_runtime.Runtime(cert=cert, key=key) as runtime:
        agent = "{{slug: {}, kind: converse, tls: true, address: '127.0.0.1:{}'}}".format
        agents = f"agents: [{agent('far', runtime.port)}, {agent('old', without_http2(cert, key))}]\n"
        weir = start_weir(config=agents, env={"SSL_CERT_FILE": root.pem})
        with crawbl.open_stream(weir) as call:
            for n in range(2):
                assert call.ask(f"hello {n}").text == f"heard: hello {n}"
            assert len(call.ask("long 2000").text) == 2000 * 401
            old = call.ask("hello", agent_id="old")
        assert old.code == "UNAVAILABLE" and "HTTP/2" in old.error, old.error
        assert len({a.stream for a in runtime.asked}) == 1
        other = start_weir(config=agents, env={"SSL_CERT_FILE": Authority(tmp_path, "other").pem})
        turn = crawbl.one_turn(other, "hello")
        assert turn.code == "UNAVAILABLE" and "certificate" in turn.error, turn.error
        assert len(runtime.asked) == 3


def test_weir_is_a_runtime_of_weir(start_weir):
    inner = start_weir(script="test/e2e/scripts/contract.yaml")
    outer = start_weir(
        config=f"agents: [{{slug: far, kind: converse, address: '{inner.target}', key_env: FAR_KEY}}]\n", env=KEY
    )
    ways = "three tools, two tools at once, hand over, umlauts, many chunks, hello, say nothing"
    for message in ways.split(", "):
        alone = crawbl.one_turn(inner, message)
        through = crawbl.one_turn(outer, message)
        assert alone.error is None and through.error is None, through.error
        # Who spoke is known to the inner one alone; here their words are set apart.
        assert through.text.replace("\n\n", "") == alone.text.replace("\n\n", "")
        assert through.done.model == alone.done.model
        assert [c.tool for c in through.of("tool_call")] == [c.tool for c in alone.of("tool_call")]
        assert said(stream(outer, message, message)) == said(stream(inner, message, message))
    for message in ("fail RESOURCE_EXHAUSTED", "to and fro"):
        assert crawbl.one_turn(outer, message).code == "RESOURCE_EXHAUSTED"
    with crawbl.open_stream(outer) as call:  # the answer goes to where the question came from
        assert "Shall I book it?" in call.ask("ask me").text
        assert call.ask("yes").error is None


def test_a_conversation_is_one_for_the_runtime_too(weir, runtime):
    """A session of the same name of another person is another one."""
    ask(weir, "hello mine", session_id="s-shared")
    with crawbl.open_stream(weir, metadata=weir.metadata("user-2", "ws-1")) as call:
        call.send_raw(crawbl.first("hello theirs", "s-shared", user_id="user-2", agent_id="far"))
        assert call.turn().text == "heard: hello theirs"
    mine, theirs = of(runtime, "s-shared")
    assert mine.stream != theirs.stream and theirs.request.user_id == "user-2"
    assert mine.token != theirs.token


# --- the example -----------------------------------------------------------------------------


def test_the_runtime_of_the_examples_takes_turns(tmp_path):
    """docs/remote-agents.md"""
    port = free_port()
    settings = (harness.ROOT / "examples/remote/converse.yaml").read_text()
    (tmp_path / "weir.yaml").write_text(re.sub(r"(?<=127.0.0.1:)\d+", str(port), settings))
    env = {**harness.clean_environment({"HOME": tmp_path}), "RUNTIME_KEY": "of-the-example"}
    paths = os.pathsep.join([str(harness.BUILD / "stubs"), *sys.path])
    program = [sys.executable, str(harness.ROOT / "examples/remote/runtime.py"), str(port)]
    with subprocess.Popen(program, env={**env, "PYTHONPATH": paths}) as runtime:
        try:
            far_runtime.wait_for(port)
            for asked, answered in (("add 1 2 3", "That makes 6."), ("hello", "I heard 1 of your messages.")):
                command = [str(harness.BINARY), "run", "-c", str(tmp_path / "weir.yaml"), asked]
                run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
                assert run.returncode == 0 and answered in run.stdout, (run.stdout, run.stderr)
        finally:
            runtime.kill()
