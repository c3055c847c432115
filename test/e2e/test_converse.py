"""Converse, as an orchestrator meets it. Each test names its row of the contract's checks."""
import asyncio
import json
import time

import crawbl
import grpc
import httpx
import pytest
from agentruntime.v1 import runtime_pb2 as pb
from agentruntime.v1 import runtime_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from replicas import eventually
from test_leaving import http_of

pytestmark = pytest.mark.weir(script="test/e2e/scripts/contract.yaml")

GOLDEN = pytest.mark.weir(script="test/e2e/scripts/golden.yaml")


def states(weir, session):
    """Of its runs, the oldest first."""
    with http_of(weir) as http:
        return [run["state"] for run in http.get("/weir/v1/runs", params={"session_id": session}).json()["runs"]]


# --- many streams, many turns ---------------------------------------------------------


def test_two_turns_at_once_on_each_of_200_streams_over_4_connections_all_end_well(weir):
    """2.1: requests that arrive during a turn wait; streams do not wait for each other."""

    async def talk(stub, name):
        call = stub.Converse(metadata=weir.metadata(), timeout=crawbl.PATIENCE)
        for number in (1, 2):
            await call.write(crawbl.first(f"hello {name} {number}", session_id=name))
        await call.done_writing()
        events = [event async for event in call]
        assert await call.code() == grpc.StatusCode.OK
        return events

    async def everybody():
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        channels = [grpc.aio.insecure_channel(weir.target, options=options) for _ in range(4)]
        stubs = [runtime_pb2_grpc.AgentRuntimeStub(channel) for channel in channels]
        try:
            return await asyncio.gather(*(talk(stubs[n % 4], f"s{n}") for n in range(200)))
        finally:
            await asyncio.gather(*(channel.close() for channel in channels))

    for number, events in enumerate(asyncio.run(everybody())):
        text = "".join(event.chunk.text for event in events)
        assert text == "".join(f"manager heard: hello s{number} {turn}" for turn in (1, 2))
        assert sum(event.HasField("done") for event in events) == 2
        assert events[-1].HasField("done")


def test_50_requests_on_one_stream_are_answered_in_order_and_then_the_call_is_ok(weir):
    """C12: the client half-closes while the last one runs."""
    with crawbl.open_stream(weir) as stream:
        for number in range(49):
            stream.send(f"number {number}", session_id="order")
        stream.send("short while", session_id="order")
        for number in range(49):
            assert stream.turn().done.turns[0].text == f"manager heard: number {number}"
        assert stream.next().chunk.text == "begin"
        stream.half_close()
        assert stream.turn().done.turns[0].text == "beginend"
        assert stream.status() == grpc.StatusCode.OK


def test_a_half_close_between_turns_ends_the_call_ok(weir):
    """2.1.3"""
    with crawbl.open_stream(weir) as stream:
        assert stream.ask("hello").error is None
        stream.half_close()
        assert stream.status() == grpc.StatusCode.OK


def test_a_stream_without_a_single_request_ends_ok(weir):
    """2.1.3"""
    with crawbl.open_stream(weir) as stream:
        stream.half_close()
        assert stream.status() == grpc.StatusCode.OK


def test_1000_turns_on_one_stream_leave_the_daemon_as_large_as_before(weir):
    """O7"""

    def resident():
        with open(f"/proc/{weir.pid}/status", encoding="ascii") as status:
            line = next(line for line in status if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    with crawbl.open_stream(weir) as stream:
        for number in range(1000):
            assert stream.ask("hello", session_id=f"s{number}").error is None
            if number == 300:
                before = resident()
        grown = resident() - before
    assert grown < 3 or crawbl.is_sanitized(), f"{grown:.1f} MiB more"


def test_200_turns_of_one_session_leave_the_daemon_as_large_as_before(weir):
    """O7: a long conversation is remembered without growing for ever."""
    with crawbl.open_stream(weir) as stream:
        for _ in range(200):
            assert stream.ask("hello", session_id="long").error is None


# --- the order of events --------------------------------------------------------------


def test_a_turn_with_three_tool_round_trips_keeps_the_order_of_the_contract(weir):
    """O2, 2.3"""
    turn = crawbl.one_turn(weir, "three tools")
    kinds = [kind for kind in turn.kinds if kind != "chunk"]
    assert kinds == ["usage", "tool_call", "tool_result"] * 3 + ["usage", "done"]
    assert [usage.call_sequence for usage in turn.of("usage")] == [0, 1, 2, 3]
    assert turn.done.model == "contract-script"

    calls, results = turn.of("tool_call"), turn.of("tool_result")
    assert [call.tool for call in calls] == ["look_up", "broken", "wait_short"]
    assert {call.agent_id for call in calls} == {"manager"}
    assert [call.call_id for call in calls] == [result.call_id for result in results]
    assert len({call.call_id for call in calls}) == 3 and calls[1].call_id == "my-own-id"
    for document in [c.args_json for c in calls] + [r.result_json for r in results]:
        assert isinstance(json.loads(document), dict), document
    assert json.loads(calls[0].args_json)["what"] == 'a "pencil" & <ink>'
    assert "12345678901234567890" in calls[0].args_json
    assert calls[1].args_json == calls[2].args_json == "{}"


def test_a_tool_that_fails_says_so_in_its_json_and_in_its_fields(weir):
    """2.3: result_json is {"error": text}, error is set, error_message is the text"""
    result = crawbl.one_turn(weir, "three tools").of("tool_result")[1]
    assert json.loads(result.result_json) == {"error": "the drawer is stuck"}
    assert result.error and result.error_message == "the drawer is stuck"


def test_a_tool_that_works_sets_no_error(weir):
    """2.3"""
    result = crawbl.one_turn(weir, "three tools").of("tool_result")[0]
    assert json.loads(result.result_json) == {"found": 'a "pencil" & <ink>', "by": "manager"}
    assert not result.error and result.error_message == ""


def test_usage_carries_every_count_and_unknown_ones_are_zero(weir):
    """O2, K21: one usage event for each model call, also where the model counted nothing."""
    first, second, third, fourth = crawbl.one_turn(weir, "three tools").of("usage")
    assert (first.prompt_tokens, first.completion_tokens, first.total_tokens) == (10, 1, 11)
    assert (second.total_tokens, second.thoughts_tokens) == (22, 3)
    assert (second.cached_tokens, second.tool_use_prompt_tokens) == (4, 5)
    assert (third.prompt_tokens, third.completion_tokens, third.total_tokens) == (0, 0, 0)
    assert fourth.total_tokens == 44
    assert {(u.agent_id, u.model) for u in (first, second, third, fourth)} == {
        ("manager", "contract-script")
    }


def test_all_calls_of_a_reply_come_before_any_of_their_results(weir):
    """2.3: calls in reply order; results as each finishes, paired by call_id"""
    turn = crawbl.one_turn(weir, "two tools at once")
    kinds = [kind for kind in turn.kinds if kind not in ("chunk", "usage")]
    assert kinds == ["tool_call", "tool_call", "tool_result", "tool_result", "done"]
    assert [call.call_id for call in turn.of("tool_call")] == ["slow-one", "quick-one"]
    assert [result.call_id for result in turn.of("tool_result")] == ["quick-one", "slow-one"]


def test_chunks_add_up_to_the_text_of_the_turn_and_no_text_comes_twice(weir):
    """2.3"""
    turn = crawbl.one_turn(weir, "hello there, whoever you are")
    assert len(turn.of("chunk")) > 1
    assert turn.text == turn.done.turns[0].text == "manager heard: hello there, whoever you are"
    assert {chunk.agent_id for chunk in turn.of("chunk")} == {"manager"}


def test_a_transfer_is_a_tool_call_and_the_rest_of_the_turn_is_the_other_agent_s(weir):
    """2.6"""
    turn = crawbl.one_turn(weir, "hand over")
    call, result = turn.of("tool_call")[0], turn.of("tool_result")[0]
    assert (call.agent_id, call.tool) == ("manager", "transfer_to_agent")
    assert json.loads(call.args_json) == {"agent_name": "wally"}
    assert (result.call_id, json.loads(result.result_json)) == (call.call_id, {})
    after = turn.events[turn.kinds.index("tool_result") + 1 :]
    assert {e.chunk.agent_id for e in after if e.HasField("chunk")} == {"wally"}
    assert turn.done.turns[-1].agent_id == "wally"
    assert turn.done.turns[-1].text == "Wally has it."
    assert [usage.agent_id for usage in turn.of("usage")] == ["manager", "wally"]
    assert [usage.call_sequence for usage in turn.of("usage")] == [0, 1]


def test_a_named_agent_takes_the_turn_itself(weir):
    """2.2"""
    for slug in ("wally", "eve", "manager"):
        turn = crawbl.one_turn(weir, "who is there", agent_id=slug)
        assert turn.text == f"{slug} heard: who is there"
        assert [t.agent_id for t in turn.done.turns] == [slug]


def test_agents_that_hand_the_turn_to_and_fro_are_stopped_with_an_error(weir):
    """O7"""
    turn = crawbl.one_turn(weir, "to and fro")
    assert turn.code == "RESOURCE_EXHAUSTED"


def test_a_model_that_always_calls_a_tool_is_stopped_after_25_calls(weir):
    """U6: usage events = calls made"""
    turn = crawbl.one_turn(weir, "always a tool")
    assert turn.code == "RESOURCE_EXHAUSTED"
    assert [usage.call_sequence for usage in turn.of("usage")] == list(range(25))
    assert all(json.loads(call.args_json) == {"what": "more"} for call in turn.of("tool_call"))


# --- text -----------------------------------------------------------------------------


def test_a_delta_never_cuts_a_character(weir):
    """1.1: the model's stream was cut at every byte"""
    turn = crawbl.one_turn(weir, "umlauts")
    assert turn.text == turn.done.turns[0].text == "Grüße 系统 😀 é"


def test_bytes_that_are_no_text_become_replacement_characters(weir):
    """U10"""
    turn = crawbl.one_turn(weir, "broken bytes")
    assert turn.error is None
    assert turn.text.startswith("before") and turn.text.endswith("after")
    assert "\ufffd" in turn.text[len("before") : -len("after")]


@pytest.mark.parametrize("message", ["empty text", "say nothing"])
def test_a_reply_without_text_is_a_done_without_turns(weir, message):
    """2.3"""
    turn = crawbl.one_turn(weir, message)
    assert turn.error is None and turn.done.model == "contract-script"
    assert not turn.done.turns
    assert all(chunk.text for chunk in turn.of("chunk")), "an empty delta"
    assert len(turn.of("usage")) == 1


def test_a_blank_reply_adds_no_turn(weir):
    """2.3: one entry per final, non-blank reply"""
    turn = crawbl.one_turn(weir, "blank text")
    assert turn.error is None and not turn.done.turns


def test_a_model_whose_name_looks_like_an_error_does_not_make_the_turn_one(weir):
    """K10"""
    turn = crawbl.one_turn(weir, "disguise")
    assert not turn.done.model.startswith("ERROR:")
    assert turn.done.turns[0].text == "All is well."


def test_reasoning_is_not_sent_unless_the_agent_s_settings_ask_for_it(weir):
    """K13"""
    turn = crawbl.one_turn(weir, "think aloud")
    assert turn.of("thinking") == [] and turn.text == "Said."


@pytest.mark.weir(config="agents:\n  - {slug: manager, thinking: true}\n")
def test_reasoning_is_sent_where_the_agent_s_settings_ask_for_it(weir):
    """K13"""
    turn = crawbl.one_turn(weir, "think aloud")
    assert "".join(t.text for t in turn.of("thinking")) == "Should I say it?"
    assert {t.agent_id for t in turn.of("thinking")} == {"manager"}
    assert turn.kinds.index("thinking") < turn.kinds.index("chunk")
    assert [t.text for t in turn.done.turns] == ["Said."], "thoughts are no answer"


def test_a_message_of_one_mebibyte_is_taken(weir):
    """2.5"""
    turn = crawbl.one_turn(weir, "blank text" + "x" * (1 << 20))
    assert turn.error is None


def test_a_message_above_4_mib_ends_the_call_resource_exhausted_and_spares_its_neighbour(weir):
    """4, limits: receive 4 MiB"""
    channel = weir.channel()
    with crawbl.open_stream(weir, channel) as neighbour, crawbl.open_stream(weir, channel) as big:
        assert neighbour.ask("hello").error is None
        big.send("x" * (4 << 20))
        assert big.status() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert neighbour.ask("hello").error is None


# --- requests that are refused --------------------------------------------------------

REFUSED = {
    "an empty message": (dict(message=""), "INVALID_ARGUMENT"),
    "an empty session": (dict(session_id=""), "INVALID_ARGUMENT"),
    "no workspace": (dict(workspace_id=""), "INVALID_ARGUMENT"),
    "no user": (dict(user_id=""), "INVALID_ARGUMENT"),
    "an unknown agent": (dict(agent_id="nobody"), "NOT_FOUND"),
    # Shown up to a length, which is inside a character: the event was no protobuf.
    "an unknown agent with a long name": (dict(agent_id="x" + "\u00e4" * 60), "NOT_FOUND"),
    "another workspace": (dict(workspace_id="ws-2"), "PERMISSION_DENIED"),
    "another user": (dict(user_id="user-2"), "PERMISSION_DENIED"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_first_request_with(weir, what):
    """O1, K8, K15: a DoneEvent says what is wrong, and the stream stays open for a good turn."""
    fields, code = REFUSED[what]
    good = dict(
        session_id="s", message="hello", workspace_id=crawbl.WORKSPACE, user_id=crawbl.USER
    )
    with crawbl.open_stream(weir) as stream:
        stream.send_raw(pb.ConverseRequest(**{**good, **fields}))
        turn = stream.turn()
        assert turn.kinds == ["done"] and turn.code == code
        stream.send_raw(pb.ConverseRequest(**good))
        assert stream.turn().text == "manager heard: hello"


def test_an_empty_message_is_refused_in_words_that_upstream_uses(weir):
    """2.2"""
    assert crawbl.one_turn(weir, "").done.model == (
        "ERROR: INVALID_ARGUMENT: converse: message is required"
    )


def test_a_message_of_white_space_is_a_message(weir):
    """2.2"""
    assert crawbl.one_turn(weir, "  ").error is None


def test_later_requests_need_no_ids_but_may_not_name_others(weir):
    """2.2, K8"""
    with crawbl.open_stream(weir) as stream:
        assert stream.ask("hello", session_id="s").error is None
        assert stream.ask("again", session_id="s").error is None
        assert stream.ask("again", session_id="s", user_id="user-2").code == "PERMISSION_DENIED"
        wrong = stream.ask("again", session_id="s", workspace_id="ws-2")
        assert wrong.code == "PERMISSION_DENIED"
        assert stream.ask("again", session_id="s").error is None


@pytest.mark.weir(config="converse:\n  lenient: true\n")
def test_a_lenient_daemon_falls_back_as_upstream_does(weir):
    """K15: unknown agent -> Manager; empty session; missing ids"""
    with crawbl.open_stream(weir) as stream:
        stream.send_raw(pb.ConverseRequest(message="hello"))
        assert stream.turn().text == "manager heard: hello"
        assert stream.ask("hello", agent_id="nobody").text == "manager heard: hello"
        assert stream.ask("").code == "INVALID_ARGUMENT"


# --- failures inside a turn -----------------------------------------------------------

FAULTS = {
    "fail UNAVAILABLE": "UNAVAILABLE",
    "fail INTERNAL": "INTERNAL",
    "fail RESOURCE_EXHAUSTED": "RESOURCE_EXHAUSTED",
    "fail UNAUTHENTICATED": None,
    "fail INVALID_ARGUMENT": None,
    "fail DEADLINE_EXCEEDED": "DEADLINE_EXCEEDED",
    "fail eof": None,
    "fail after a tool": "INTERNAL",
    "fail the second time": None,
}


@pytest.mark.parametrize("message", FAULTS)
def test_a_model_that_does_this_ends_the_turn_and_not_the_stream(weir, message):
    """2.1.5, 2.4, O6, U2: a DoneEvent with an error, then the same stream goes on"""
    known = {name for name in grpc.StatusCode.__members__ if name != "OK"}
    with crawbl.open_stream(weir) as stream:
        turn = stream.ask(message, session_id="f")
        assert turn.code in ({FAULTS[message]} if FAULTS[message] else known), turn.error
        assert turn.error.partition(": ")[2], "the code stands alone"
        assert stream.ask("and now?", session_id="f").text == "manager heard: and now?"
        stream.half_close()
        assert stream.status() == grpc.StatusCode.OK


@pytest.mark.weir(config="limits:\n  turn: 300ms\n")
@pytest.mark.parametrize("message", ["fail stall", "endless tool", "long while", "stay silent"])
def test_a_turn_that_takes_too_long_ends_with_deadline_exceeded(weir, message):
    """2.5: named limits"""
    with crawbl.open_stream(weir) as stream:
        assert stream.ask(message, session_id="t").code == "DEADLINE_EXCEEDED"
        assert stream.ask("hello", session_id="t").error is None


@pytest.mark.weir(config="converse:\n  errors_as_text: true\n")
def test_a_failure_is_also_text_where_the_settings_ask_for_it(weir):
    """K12"""
    turn = crawbl.one_turn(weir, "fail INTERNAL")
    assert turn.code == "INTERNAL"
    assert [kind for kind in turn.kinds if kind != "usage"] == ["chunk", "done"]
    assert turn.text


def test_a_failure_is_no_text_by_default(weir):
    """K12"""
    assert crawbl.one_turn(weir, "fail INTERNAL").of("chunk") == []


# --- deadlines and cancels ------------------------------------------------------------


def test_a_client_s_deadline_in_mid_turn_ends_the_call_deadline_exceeded(weir):
    """K2, G5"""
    with crawbl.open_stream(weir, timeout=2) as stream:
        stream.send("long while", session_id="d")
        assert stream.next().chunk.text == "begin"
        with pytest.raises(grpc.RpcError):
            stream.next()
        assert stream.call.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert crawbl.one_turn(weir, "hello", session_id="d").error is None
    assert states(weir, "d") == ["cancelled", "done"]


def test_the_server_itself_ends_a_call_whose_grpc_timeout_has_passed(weir):
    """G5: seen without a client that counts on its own"""
    with httpx.Client(http1=False, http2=True, trust_env=False, timeout=10) as http:
        answer = http.post(
            f"http://{weir.target}{crawbl.METHOD}",
            headers={
                "content-type": "application/grpc",
                "te": "trailers",
                "grpc-timeout": "200m",
                **dict(weir.metadata()),
            },
            content=crawbl.frame(crawbl.first("long while").SerializeToString()),
        )
    events = [pb.ConverseEvent.FromString(f[5:]) for f in crawbl.frames(answer.content)]
    assert not any(event.HasField("done") for event in events), "nothing forged"


def test_a_cancel_in_mid_turn_frees_the_session_at_once(weir):
    """2.1.4, 2.7, G5"""
    for message in ("long while", "stay silent", "endless tool", "fail stall"):
        session = message.replace(" ", "-")
        stream = crawbl.open_stream(weir)
        stream.send(message, session_id=session)
        eventually(lambda: states(weir, session) == ["running"])  # noqa: B023  it is over here
        stream.call.cancel()
        assert crawbl.one_turn(weir, "hello", session_id=session).error is None
        assert states(weir, session) == ["cancelled", "done"]


def test_a_cancel_before_the_first_event_frees_the_session_too(weir):
    """2.1.4"""
    for _ in range(20):
        stream = crawbl.open_stream(weir, weir.channel())
        stream.send("long while", session_id="c")
        stream.call.cancel()
    assert crawbl.one_turn(weir, "hello", session_id="c").error is None


def test_a_stream_dropped_at_any_event_leaves_a_session_that_goes_on(weir):
    """O5"""
    whole = len(crawbl.one_turn(weir, "three tools").events)
    channel = weir.channel()
    for index in range(whole):
        stream = crawbl.open_stream(weir, channel)
        stream.send("three tools", session_id="dropped")
        for _ in range(index):
            stream.next()
        stream.call.cancel()
        with crawbl.open_stream(weir, channel) as again:
            turn = again.ask(f"after {index}", session_id="dropped")
            assert turn.text == f"manager heard: after {index}"


def test_a_client_that_does_not_read_is_ended_resource_exhausted(start_weir):
    """K9, B1"""
    weir = start_weir(
        script="test/e2e/scripts/contract.yaml",
        config="limits:\n  write_stall: 300ms\n",
    )
    channel = weir.channel(**{"grpc.http2.lookahead_bytes": 65536, "grpc.http2.bdp_probe": 0})
    with crawbl.open_stream(weir, channel) as stream:
        stream.send("a flood", session_id="flood")
        stream.next()
        time.sleep(1.2)
        assert stream.status() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert crawbl.one_turn(weir, "hello", session_id="flood").error is None


def test_a_client_that_reads_gets_a_flood_whole(weir):
    """K9: text is never dropped"""
    turn = crawbl.one_turn(weir, "a flood")
    assert turn.error is None
    assert turn.text == turn.done.turns[0].text == "0123456789abcdef" * 3 * 60000


# --- turns of one session -------------------------------------------------------------


def test_a_second_turn_of_a_busy_session_waits_for_the_first(weir):
    """design: session.busy is queue"""
    with crawbl.open_stream(weir) as one, crawbl.open_stream(weir) as other:
        one.send("long while", session_id="busy")
        assert one.next().chunk.text == "begin"
        other.send("hello", session_id="busy")
        eventually(lambda: states(weir, "busy") == ["running", "queued"])
        one.call.cancel()
        assert other.turn().text == "manager heard: hello"


def test_turns_of_other_sessions_do_not_wait_for_a_busy_one(weir):
    """2.7"""
    with crawbl.open_stream(weir) as busy:
        busy.send("long while", session_id="busy")
        assert busy.next().chunk.text == "begin"
        assert crawbl.one_turn(weir, "hello", session_id="idle").error is None


def test_sessions_of_other_users_and_workspaces_are_other_sessions(weir):
    """K23"""
    with crawbl.open_stream(weir) as busy:
        busy.send("long while", session_id="same")
        assert busy.next().chunk.text == "begin"
        for user, workspace in (("user-2", "ws-1"), ("user-1", "ws-2")):
            metadata = weir.metadata(user, workspace)
            with crawbl.open_stream(weir, metadata=metadata) as stream:
                turn = stream.ask("hi", session_id="same", user_id=user, workspace_id=workspace)
                assert turn.error is None


def test_20_turns_of_one_session_at_once_all_end_well(weir):
    """2.7: several mentions in one message"""
    turns = [
        crawbl.in_background(crawbl.one_turn_of, weir, f"mention {n}", "mentions")
        for n in range(20)
    ]
    assert [turn().text for turn in turns] == [f"manager heard: mention {n}" for n in range(20)]


def test_a_cancelled_turn_in_the_queue_is_not_played(weir):
    """2.1.4"""
    with crawbl.open_stream(weir) as one, crawbl.open_stream(weir) as waiting:
        one.send("long while", session_id="q")
        assert one.next().chunk.text == "begin"
        waiting.send("long while", session_id="q")
        eventually(lambda: states(weir, "q") == ["running", "queued"])
        third = crawbl.in_background(crawbl.one_turn_of, weir, "hello", "q")
        eventually(lambda: states(weir, "q") == ["running", "queued", "queued"])
        waiting.call.cancel()
        eventually(lambda: states(weir, "q") == ["running", "queued"])
        one.call.cancel()
        assert third().text == "manager heard: hello"
        assert states(weir, "q") == ["cancelled", "done"]


@pytest.mark.weir(config="session:\n  busy: reject\n")
def test_a_second_turn_of_a_busy_session_is_aborted_where_the_settings_say_reject(weir):
    """design: `ERROR: ABORTED`"""
    with crawbl.open_stream(weir) as one, crawbl.open_stream(weir) as other:
        one.send("short while", session_id="busy")
        assert one.next().chunk.text == "begin"
        assert other.ask("hello", session_id="busy").code == "ABORTED"
        assert one.turn().error is None
        assert other.ask("hello", session_id="busy").error is None


# --- nested turns ---------------------------------------------------------------------


def test_a_turn_that_waits_for_a_tool_lets_another_one_of_its_session_finish_first(weir):
    """K11, 2.7"""
    with crawbl.open_stream(weir) as parent:
        parent.send("slow tool", session_id="nested")
        while parent.next().WhichOneof("event") != "tool_call":
            pass
        child = crawbl.one_turn(weir, "hello", session_id="nested", agent_id="wally")
        assert child.text == "wally heard: hello"
        rest = parent.turn()
        assert rest.kinds[0] == "tool_result", "the child came after the tool"
        assert rest.text == "manager waited."


def test_a_chain_of_nested_turns_may_come_back_to_its_first_agent(weir):
    """K11: a lease per (session, agent) is not enough"""
    with crawbl.open_stream(weir) as parent:
        parent.send("slow tool", session_id="nested", agent_id="wally")
        while parent.next().WhichOneof("event") != "tool_call":
            pass
        child = crawbl.one_turn(weir, "hello", session_id="nested", agent_id="wally")
        assert child.error is None
        assert parent.turn().error is None


def nested(weir, message):
    """Four turns of one session, each inside the one before, which waits for its tool."""
    opened = []
    for _ in range(4):
        opened.append(crawbl.open_stream(weir))
        opened[-1].send(message, session_id="deep")
        while opened[-1].next().WhichOneof("event") != "tool_call":
            pass
    return opened


def test_turns_nest_three_deep_and_the_next_one_is_refused(weir):
    """K11: depth up to 3"""
    opened = nested(weir, "endless tool")
    assert crawbl.one_turn(weir, "hello", session_id="deep", agent_id="eve").error is not None
    assert states(weir, "deep").count("running") == len(opened), "it was refused only when others had ended"
    for stream in opened:
        stream.call.cancel()
    eventually(lambda: states(weir, "deep") == ["cancelled"] * len(opened))
    assert crawbl.one_turn(weir, "hello", session_id="deep").error is None


def test_turns_that_nest_three_deep_all_end(weir):
    """K11: nothing deadlocks"""
    opened = nested(weir, "slow tool")
    for stream in reversed(opened):
        assert stream.turn().text == "manager waited."
    assert crawbl.one_turn(weir, "hello", session_id="deep").error is None
    for stream in opened:
        stream.call.cancel()


def test_a_parent_waits_for_its_child(weir):
    """design: the parent waits for its children"""
    with crawbl.open_stream(weir) as parent, crawbl.open_stream(weir) as child:
        parent.send("two tools at once", session_id="wait")
        while parent.next().WhichOneof("event") != "tool_call":
            pass
        child.send("short while", session_id="wait", agent_id="eve")
        assert child.next().chunk.text == "begin"
        assert parent.turn().error is None  # its tool took 150 ms, its child 300
        assert "running" not in states(weir, "wait")
        assert child.turn().error is None


def test_a_cancel_of_the_parent_does_not_hang_its_child_nor_the_session(weir):
    """K11: no wait without a bound"""
    parent = crawbl.open_stream(weir)
    parent.send("endless tool", session_id="orphan")
    while parent.next().WhichOneof("event") != "tool_call":
        pass
    with crawbl.open_stream(weir) as child:
        child.send("short while", session_id="orphan", agent_id="wally")
        assert child.next().chunk.text == "begin"
        parent.call.cancel()
        assert child.turn().kinds[-1] == "done"
    assert crawbl.one_turn(weir, "hello", session_id="orphan").error is None


def test_a_cancel_of_the_child_lets_its_parent_go_on(weir):
    """K11"""
    with crawbl.open_stream(weir) as parent:
        parent.send("slow tool", session_id="p")
        while parent.next().WhichOneof("event") != "tool_call":
            pass
        child = crawbl.open_stream(weir)
        child.send("long while", session_id="p", agent_id="wally")
        assert child.next().chunk.text == "begin"
        child.call.cancel()
        assert parent.turn().text == "manager waited."


# --- a person is asked ----------------------------------------------------------------


@pytest.mark.parametrize(
    "answer, text", [("yes please", "Booked."), ("do not", "Left alone: do not.")]
)
def test_the_next_message_of_a_session_answers_a_question_to_a_person(weir, answer, text):
    """design: `waiting` frees the lease; Converse's next message answers it"""
    with crawbl.open_stream(weir) as stream:
        asked = stream.ask("ask me", session_id="hitl")
        assert asked.error is None
        assert "Shall I book it?" in asked.text + "".join(t.text for t in asked.done.turns)
        assert stream.ask(answer, session_id="hitl").text.endswith(text)
        assert stream.ask("hello", session_id="hitl").text == "manager heard: hello"


# --- the bytes ------------------------------------------------------------------------

GOLDEN_REQUEST = "00000000100a026331120268692a02773132027531"
GOLDEN_TURN = [
    "000000003e1a3c0a076d616e6167657212117472616e736665725f746f5f6167656e741a16"
    "7b226167656e745f6e616d65223a2277616c6c79227d220663616c6c2d31",
    "000000000e220c0a0663616c6c2d3112027b7d",
    "000000002422220a0663616c6c2d3212107b226572726f72223a22626f6f6d227d18012204626f6f6d",
    "000000000d0a0b0a0577616c6c7912024869",
    "00000000172a150a066770742d346f120b0a0577616c6c7912024869",
]
GOLDEN_USAGE = "0000000020321e0a0577616c6c7912066770742d346f18e20920d40228b60c30c80140a006"
GOLDEN_ERROR = (
    "00000000362a340a324552524f523a20494e5445524e414c3a2072756e6e65723a20636f6e74657874"
    "20646561646c696e65206578636565646564"
)


def post_frames(weir, body):
    headers = {"content-type": "application/grpc", "te": "trailers"}
    headers |= dict(weir.metadata("u1", "w1"))
    with httpx.Client(http1=False, http2=True, trust_env=False, timeout=10) as http:
        answer = http.post(f"http://{weir.target}{crawbl.METHOD}", headers=headers, content=body)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/grpc")
    return [part.hex() for part in crawbl.frames(answer.content)]


@GOLDEN
def test_the_frames_of_a_turn_are_the_golden_ones_byte_for_byte(weir):
    """1.2"""
    sent = post_frames(weir, bytes.fromhex(GOLDEN_REQUEST))
    assert [part for part in sent if part in GOLDEN_TURN] == GOLDEN_TURN
    others = [pb.ConverseEvent.FromString(bytes.fromhex(p)[5:]) for p in sent]
    others = [o.WhichOneof("event") for o, p in zip(others, sent) if p not in GOLDEN_TURN]
    assert set(others) <= {"usage", "tool_call"}


@GOLDEN
@pytest.mark.parametrize("message, golden", [("cost", GOLDEN_USAGE), ("fail", GOLDEN_ERROR)])
def test_this_frame_is_the_golden_one_byte_for_byte(weir, message, golden):
    """1.2"""
    request = pb.ConverseRequest(
        session_id="c1", message=message, agent_id="wally", workspace_id="w1", user_id="u1"
    )
    assert golden in post_frames(weir, crawbl.frame(request.SerializeToString()))


@GOLDEN
def test_a_request_with_fields_that_nobody_knows_is_served(weir):
    """1.1, I4: unknown fields are skipped"""
    request = bytes.fromhex(GOLDEN_REQUEST)[5:] + bytes.fromhex("9a3f0568656c6c6f")
    assert GOLDEN_TURN[-1] in post_frames(weir, crawbl.frame(request))


@GOLDEN
@pytest.mark.parametrize(
    "message", ["0a02c3281202686 9".replace(" ", ""), "000a", "0a05", "ff"], ids=str
)
def test_bytes_that_are_no_request_end_the_call_internal_and_spare_its_neighbour(weir, message):
    """I4"""
    channel = weir.channel()
    with crawbl.open_stream(weir, channel) as neighbour:
        assert neighbour.ask("hi").error is None
        call = channel.stream_stream(crawbl.METHOD)(
            iter([bytes.fromhex(message)]), metadata=weir.metadata(), timeout=10
        )
        with pytest.raises(grpc.RpcError) as failure:
            list(call)
        assert failure.value.code() == grpc.StatusCode.INTERNAL
        assert neighbour.ask("hi").error is None


# --- the transport --------------------------------------------------------------------


def test_health_says_serving_for_all_and_for_each_service(weir):
    """G17"""
    stub = health_pb2_grpc.HealthStub(weir.channel())
    for service in ("", "crawbl.agentruntime.v1.AgentRuntime"):
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as failure:
        stub.Check(health_pb2.HealthCheckRequest(service="nobody"), timeout=5)
    assert failure.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_watcher_of_an_unknown_service_is_told_so_and_stays(weir):
    """G17"""
    stub = health_pb2_grpc.HealthStub(weir.channel())
    watch = stub.Watch(health_pb2.HealthCheckRequest(service="nobody"), timeout=5)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    assert watch.is_active()
    watch.cancel()


def test_a_client_that_compresses_is_served_on_the_connection_of_one_that_does_not(weir):
    """G2: a real client's gzip"""
    channel = weir.channel()
    with (
        crawbl.open_stream(weir, channel) as plain,
        crawbl.open_stream(weir, channel, compression=grpc.Compression.Gzip) as squeezed,
    ):
        for stream in (plain, squeezed, plain):
            turn = stream.ask("hello " * 200)
            assert turn.text == "manager heard: " + "hello " * 200


def test_more_than_32_streams_stand_on_one_connection(weir):
    """9.7"""
    channel = weir.channel()
    streams = [crawbl.open_stream(weir, channel) for _ in range(90)]
    for number, stream in enumerate(streams):
        stream.send("hello", session_id=f"s{number}")
    for stream in streams:
        assert stream.turn().error is None
    for stream in streams:
        stream.half_close()
    for stream in streams:
        assert stream.status() == grpc.StatusCode.OK


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/grpc-web"}, 415),
        ({"content-type": "application/grpc+proto"}, 200),
        ({"content-type": "application/grpc;x=y"}, 200),
    ],
)
@GOLDEN
def test_a_call_with_this_content_type_is_answered(weir, headers, status):
    """G7"""
    headers = {"te": "trailers", **headers, **dict(weir.metadata("u1", "w1"))}
    with httpx.Client(http1=False, http2=True, trust_env=False, timeout=10) as http:
        answer = http.post(
            f"http://{weir.target}{crawbl.METHOD}",
            headers=headers,
            content=bytes.fromhex(GOLDEN_REQUEST),
        )
    assert answer.status_code == status


@pytest.mark.weir(config="converse:\n  sticky: true\n")
def test_history_holds_a_dropped_turn_whole_or_not_at_all(weir):
    """O5: seen through the sticky setting, which looks at who spoke last in the history"""
    whole = len(crawbl.one_turn(weir, "hand over").events)
    for index in range(whole):
        session = f"sticky-{index}"
        stream = crawbl.open_stream(weir)
        stream.send("hand over", session_id=session)
        for _ in range(index):
            stream.next()
        stream.call.cancel()
        speaker = crawbl.one_turn(weir, "who?", session_id=session).done.turns[0].agent_id
        assert speaker in ("manager", "wally")
    crawbl.one_turn(weir, "hand over", session_id="whole")
    assert crawbl.one_turn(weir, "who?", session_id="whole").text == "wally heard: who?"


def test_the_reply_that_ends_a_turn_stands_in_its_turns_and_all_text_in_its_chunks(weir):
    """9.3, K30"""
    turn = crawbl.one_turn(weir, "three tools")
    assert turn.text == "First.\n\nThen: short."
    assert [t.text for t in turn.done.turns] == ["Then: short."]
