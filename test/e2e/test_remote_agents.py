"""Agents on servers elsewhere: of the Runtime Contract, and of Chat Completions."""
import asyncio
import concurrent.futures
import contextlib
import json
import socket
import subprocess
import sys
import time

import crawbl
import harness
import httpx
import pytest
import rogue
import vendors

AGENT = harness.ROOT / "examples/remote/agent.py"


@pytest.fixture(scope="module")
def far():
    """The example, FastAPI on uvicorn."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(AGENT), str(port)])
    try:
        give_up = time.monotonic() + 30
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{port}/health", verify=harness.NO_TLS).status_code == 200:
                    break
            assert time.monotonic() < give_up and process.poll() is None
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def config(url, more="", others="", top="", kind="http"):
    return f"threads: 1\n{top}agents:\n  - {{slug: far, kind: {kind}, url: '{url}'{more}}}\n{others}"


def output(weir, text, session="s"):
    answer = vendors.invoke(weir, text, session_id=session)
    assert answer.status_code == 200, answer.text
    return answer.json()["output"]


def resume(weir, session, said):
    with weir.http() as http:
        return http.post("/resume", json={"thread_id": session, "human_input": said})


# --- turns -----------------------------------------------------------------------------------


def test_a_turn_is_what_the_server_says_on_every_wire(far, start_weir):
    weir = start_weir(config=config(far))
    told = vendors.stream(weir, "weather in Kyoto", session_id="a")
    assert told.text == "sunny in Kyoto "
    assert told.of("tool_call") == [{"name": "weather", "args": {"city": "Kyoto"}}]
    [result] = told.of("result")
    [call] = result["history"]
    assert json.loads(call["result"]) == {"city": "Kyoto", "weather": "sunny"}
    assert told.of("step")[0]["description"] == "thinking"
    assert output(weir, "weather in Bergen", "b") == "rain in Bergen "
    assert output(weir, "hello", "b") == "turn 2: hello "  # the server remembers
    with crawbl.open_stream(weir) as call:
        turn = call.ask("weather in Kyoto", session_id="b")
        assert turn.text == "sunny in Kyoto " and turn.error is None
        [made], [answered] = turn.of("tool_call"), turn.of("tool_result")
        assert made.tool == "weather" and json.loads(made.args_json) == {"city": "Kyoto"}
        assert answered.call_id == made.call_id
        [usage] = turn.of("usage")
        assert (usage.prompt_tokens, usage.completion_tokens, usage.model) == (16, 14, "tiny-1")
        assert call.ask("hello", session_id="b").text == "turn 2: hello "  # another user's "b"
    failed = vendors.stream(weir, "fail now")
    assert failed.of("error") == [
        {"error": "NOT_FOUND: the agent 'far' failed: there is no such city"}]
    assert weir.log().count("X-Runtime-Contract-Version") == 0


def test_it_may_be_a_delegate(far, start_weir, tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(
        "script: 1\nagents: [{slug: boss, delegates: [far]}, {slug: far}]\nscenes:\n"
        "  - {match: hello, replies: [[{text: 'one moment. '}, {transfer: far}]]}\n"
    )
    config_text = (
        "threads: 1\nagents:\n  - {slug: boss, provider: scripted, delegates: [far]}\n"
        f"  - {{slug: far, kind: http, url: '{far}'}}\n"
    )
    weir = start_weir(config=config_text, env={"WEIR_SCRIPT": str(script)})
    assert output(weir, "hello there", "d-1").endswith("turn 1: hello there ")
    turn = crawbl.one_turn(weir, "hello there")
    assert turn.text.endswith("turn 1: hello there ")
    assert {chunk.agent_id for chunk in turn.of("chunk")} == {"boss", "far"}


# --- a person decides ------------------------------------------------------------------------


def test_a_pause_elsewhere_is_our_question_and_survives_kill_9(far, start_weir):
    weir = start_weir(config=config(far))
    asked = vendors.invoke(weir, "book a boat", session_id="p-1").json()
    assert asked["metadata"]["interrupted"] is True
    assert asked["output"] == "Shall I book a boat?"
    weir.kill()
    weir.restart()
    answer = resume(weir, "p-1", "yes").json()
    assert answer["output"] == "done: book a boat", answer
    assert resume(weir, "p-1", "yes").json()["output"] == answer["output"]  # said once, told twice
    assert vendors.invoke(weir, "book a car", session_id="p-1").json()["metadata"]["interrupted"]
    assert resume(weir, "p-1", {"but": "red"}).json()["output"] == 'not done ({"but": "red"})'
    with crawbl.open_stream(weir) as call:
        first = call.ask("book a bus", session_id="p-2")
        assert first.error is None and "Shall I book a bus?" in str(first.events)
        assert call.ask("yes", session_id="p-2").text == "done: book a bus"


def test_an_answer_to_nothing_fails_with_what_the_server_says(far, start_weir):
    weir = start_weir(config=config(far))
    assert vendors.invoke(weir, "book it", session_id="q").json()["metadata"]["interrupted"]
    direct = httpx.post(far + "/resume", json={"thread_id": "q", "human_input": "no"}, verify=harness.NO_TLS)
    assert direct.status_code == 200  # somebody else was faster
    error = resume(weir, "q", "yes").json()["error"]
    assert error["details"]["reason"] == "AGENT_FAILED"
    assert "nothing waits there" in error["message"]


# --- what it is sent -------------------------------------------------------------------------


class Plain(rogue.Handler):
    """A server without a stream, without a memory, and without the version's header."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((self.path, dict(self.headers), body))
        if self.path != "/invoke":
            self.whole(404, {"detail": "Not Found"})
            return
        history = [{"name": "look", "args": {"at": "it"}, "result": "seen", "duration_ms": 1}]
        self.whole(200, {
            "output": {"messages": [{"type": "ai", "content": "said"}]}, "metadata": None,
            "history": history, "tokens": {"input": 3, "output": 4}, "cost_usd": 0.5})


def test_a_server_that_does_not_stream_is_asked_without(start_weir):
    with rogue.Rogue(Plain) as server:
        more = ", key_env: FAR_KEY, headers: {x-team: blue}, config: {a: {b: [1.50, ~]}}"
        more += ", metadata: {team: t}, history: metadata"
        weir = start_weir(config=config(server.url + "/", more), env={"FAR_KEY": vendors.KEY})
        told = vendors.stream(weir, "one", session_id="x/y")
        assert told.text == "said" and told.of("tool_call") == [{"name": "look", "args": {"at": "it"}}]
        assert output(weir, "two", "x/y") == "said"
        assert [path for path, _, _ in server.asked] == ["/stream", "/invoke", "/invoke"]
        _, headers, body = server.asked[-1]
        assert headers["authorization"] == "Bearer " + vendors.KEY and headers["x-team"] == "blue"
        assert body == {
            "input": "two",
            "session_id": "x%2Fy",
            "thread_id": "x%2Fy",
            "config": {"thread_id": "x%2Fy", "user_id": "anonymous", "a": {"b": [1.5, None]}},
            "metadata": {
                "team": "t",
                "conversation_history": [
                    {"role": "user", "content": "one"}, {"role": "assistant", "content": "said"}],
            },
        }
        assert weir.log().count("does not send X-Runtime-Contract-Version") == 1
        assert "$0.50" in weir.log()
        vendors.no_key_in(weir, told)


def test_an_input_that_is_no_text_goes_as_it_was_sent(start_weir):
    inputs = [{"message": "hi", "n": 12345678901234567890}, {"foo": 1}, [1, 2.50],
              {"messages": [{"role": "user", "content": "q1"}, {"role": "assistant", "content": "a1"},
                            {"role": "user", "content": "q2"}]}, "words"]
    with rogue.Rogue(Plain) as server:
        weir = start_weir(config=config(server.url))
        with weir.http() as http:
            for sent in inputs:
                assert http.post("/invoke", json={"input": sent}).status_code == 200
            assert http.post("/invoke", json={"messages": inputs[3]["messages"]}).status_code == 200
        told = [body["input"] for path, _, body in server.asked if path == "/invoke"]
        assert told == [*inputs, inputs[3]]


def test_earlier_turns_may_stand_in_front_of_the_input(start_weir):
    with rogue.Rogue(Plain) as server:
        weir = start_weir(config=config(server.url, ", stream: false, history: input"))
        output(weir, "one")
        output(weir, "two")
        assert [body["input"] for _, _, body in server.asked] == [
            "one", "User: one\n\nAssistant: said\n\nUser: two"]
        assert {path for path, _, _ in server.asked} == {"/invoke"}


# --- what goes wrong -------------------------------------------------------------------------

WRONG = {
    "busy": "AGENT_UNREACHABLE", "stranger": "AGENT_UNREACHABLE",
    "hang": "AGENT_STALLED", "stall": "AGENT_STALLED", "drip": "AGENT_STALLED",
    "comments": "AGENT_STALLED", "blanks": "AGENT_STALLED",
    "page": "AGENT_PROTOCOL", "empty": "AGENT_PROTOCOL", "nonsense": "AGENT_PROTOCOL",
    "line": "AGENT_PROTOCOL", "chatter": "AGENT_PROTOCOL",
    "broken": "AGENT_FAILED", "detail": "AGENT_FAILED", "after": "AGENT_FAILED",
    "implicit": "AGENT_FAILED",
    "early": "AGENT_ENDED", "cut": "AGENT_ENDED", "flood": "REPLY_TOO_LONG",
}  # fmt: skip


def test_each_way_to_go_wrong_ends_the_turn_once_with_its_reason(start_weir):
    with rogue.Rogue() as server, concurrent.futures.ThreadPoolExecutor(8) as pool:
        weir = start_weir(config=config(server.url, ", silence: 2s"))
        answers = list(pool.map(lambda way: vendors.invoke(weir, way, session_id=way), WRONG))
        reasons = {}
        for way, answer in zip(WRONG, answers):
            assert answer.status_code >= 400, (way, answer.text)
            error = answer.json()["error"]
            reasons[way] = error["details"]["reason"]
            assert "'far'" in error["message"] or way == "flood", error
            assert server.url.split("//")[1] not in error["message"]
        assert reasons == WRONG
        for way, answer in zip(WRONG, pool.map(lambda way: vendors.stream(weir, way), WRONG)):
            assert len(answer.of("error")) == 1 and not answer.of("result"), way
        for way, text in (("text", "in two"), ("endless", "all"), ("late", "all"), ("beats", "all")):
            assert output(weir, way) == text
        assert len(server.asked) == 2 * len(WRONG) + 4  # none was sent twice
    assert vendors.invoke(weir, "text").json()["error"]["details"]["reason"] == "AGENT_UNREACHABLE"


@pytest.mark.parametrize("kind", ["http", "openai"])
def test_a_character_that_was_cut_between_two_events_is_whole(start_weir, kind):
    """Servers in languages of UTF-16 cut between the halves of a surrogate pair."""
    with rogue.Rogue() as server:
        weir = start_weir(config=config(server.url, kind=kind))
        told = vendors.stream(weir, "halves")
        assert told.text == "a \U0001F600 b \ufffd c"


@pytest.mark.parametrize("kind", ["http", "openai"])
def test_a_repeat_with_the_key_does_not_run_an_agent_again_that_may_have_acted(start_weir, kind):
    again = {"early": False, "cut": False, "hang": False, "page": False, "busy": True, "broken": True}
    if kind == "openai":  # whose other ways have shapes of their own
        again = {"early": False, "hang": False, "busy": True}
    with rogue.Rogue() as server:
        weir = start_weir(config=config(server.url, ", silence: 1s", kind=kind))
        with weir.http() as http:
            for way in again:
                before = len(server.asked)
                first, repeat = (
                    http.post("/invoke", json={"input": way, "session_id": way},
                              headers={"x-idempotency-key": way}) for _ in range(2))
                assert first.json()["error"]["details"]["reason"].startswith("AGENT_"), first.text
                assert repeat.json()["error"] == first.json()["error"]
                assert len(server.asked) - before == 1 + again[way], way
                if way == "early":
                    assert "try again" not in first.text


def test_a_caller_that_leaves_hangs_up_there(start_weir):
    with rogue.Rogue() as server:
        weir = start_weir(config=config(server.url))
        with weir.http() as http, http.stream("POST", "/stream", json={"input": "stall"}) as stream:
            assert next(stream.iter_lines()) == 'data: {"delta":"half"}'
        weir.said("cancelled")
        assert output(weir, "text") == "in two"


def test_two_hundred_turns_at_once(far, start_weir):
    weir = start_weir(config=config(far))

    async def turns():
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=weir.url, limits=limits, timeout=60, verify=harness.NO_TLS) as http:

            async def turn(n):
                body = {"input": f"word {n}", "session_id": f"many-{n}"}
                answer = await http.post("/invoke", json=body)
                return answer.json()["output"] == f"turn 1: word {n} "

            return await asyncio.gather(*(turn(n) for n in range(200)))

    assert all(asyncio.run(turns()))


# --- Chat Completions ------------------------------------------------------------------------


def openai(url, more=""):
    return (
        "threads: 1\nagents:\n"
        f"  - {{slug: chat, kind: openai, url: '{url}/v1', key_env: HOUSE_KEY, silence: 2s{more}}}\n"
    )


def test_a_server_of_chat_completions_is_an_agent_with_our_tools(start_weir, models):
    models.say("chat", vendors.call("calculator", {"expression": "6*7"}, id="c1"), "it is 42")
    weir = start_weir(
        config=openai(models.url, ", tools: {calculator: ask}"), env={"HOUSE_KEY": vendors.KEY}
    )
    asked = vendors.stream(weir, "what is 6*7?", session_id="o-1")
    assert asked.of("result")[0]["metadata"]["interrupted"] is True
    weir.kill()
    weir.restart()
    answer = resume(weir, "o-1", "yes").json()
    assert answer["output"] == "it is 42"
    assert [call["name"] for call in answer["history"]] == ["calculator"]
    first, second = (asked.body for asked in models.asked)
    assert first["model"] == "chat" and "temperature" not in first
    assert "calculator" in [tool["function"]["name"] for tool in first["tools"]]
    assert json.loads(second["messages"][-1]["content"])["result"] == 42
    models.say("chat", "Hi.", "Hello.")
    assert crawbl.one_turn(weir, "hello").text == "Hi."
    vendors.no_key_in(weir, answer)


def test_its_failures_are_those_of_an_agent_and_no_request_is_sent_twice(start_weir, models):
    models.say("chat", "one", "two", "three", "four")
    models.relay.spoil(
        vendors.instead(500, json.dumps({"error": {"message": "a bolt is loose"}})),
        vendors.reset(after=1), vendors.hold(after=1))  # fmt: skip
    weir = start_weir(config=openai(models.url), env={"HOUSE_KEY": vendors.KEY})
    errors = [vendors.invoke(weir, "hello").json()["error"] for _ in range(3)]
    assert [error["details"]["reason"] for error in errors] == [
        "AGENT_FAILED", "AGENT_ENDED", "AGENT_STALLED"]
    assert "a bolt is loose" in errors[0]["message"]
    assert len(models.asked) == 3
    vendors.no_key_in(weir, errors)
