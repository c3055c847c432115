"""What a session remembers, and what its callers are told: by what the vendor's API received.

Each test runs with all four kinds of provider, most of them on each wire: over Converse, /invoke
and /stream.
"""
import json

import crawbl
import prompts
import pytest
import vendors
import wires
from orchestrator import Orchestrator, agent
from test_models_errors import ERROR_EVENTS
from vendors import call, cut, hold, insert, instead, reset

SIX_TIMES_SEVEN = call("calculator", {"expression": "6*7"}, id="call_one")
CALLED = ("call", "calculator", {"expression": "6*7"})
LOOKS = {"content": "Let me look.", "toolCalls": [SIX_TIMES_SEVEN]}
LONG_ANSWER = "Nevertheless it went on for a while, and then it was over."
SHOWN = "Nevertheless"  # its first piece
PIECE = len(SHOWN)
BEGUN = {"anthropic": 3, "gemini": 1, "openai": 2, "openai-responses": 7}  # events up to it


@pytest.fixture(params=wires.NAMES)
def wire(request):
    return request.param


def said(models, kind, at=-1):
    """What the vendor was sent, the newest request unless another is named."""
    return prompts.said(kind, models.asked[at].body)


def forty_two(item):
    return item[0] == "result" and str(item[1].get("result")) == "42"


# --- a turn that does not end well stays (K27) ----------------------------------------------

# name -> (settings of the daemon, what becomes of the answer, what of it was shown)
FAILURES = {
    "failed": ({}, lambda kind: instead(500, "oops", "text/plain"), ""),
    "was held off": (
        {},
        lambda kind: instead(429, '{"error":{"message":"Slow down"}}', retry_after="99"),
        "",
    ),
    "was refused a key": ({}, lambda kind: instead(401, '{"error":{"message":"No"}}'), ""),
    "failed in its middle": ({}, lambda kind: insert(ERROR_EVENTS[kind], BEGUN[kind]), SHOWN),
    "was cut": ({}, lambda kind: cut(BEGUN[kind]), SHOWN),
    "stalled": ({"stall": "300ms"}, lambda kind: hold(BEGUN[kind]), SHOWN),
    "passed the limit": ({"turn": "400ms"}, lambda kind: hold(BEGUN[kind]), SHOWN),
}


@pytest.fixture
def weir_of(house):
    """Start a daemon: limits of a turn by their name, all else is its provider's."""

    def start(agents=({},), turn="20s", **provider):
        limits = {"turn": turn, "shutdown": "1s"}
        return house(agents, provider={"retries": 0, **provider}, limits=limits)

    return start


@pytest.mark.parametrize("failure", FAILURES)
def test_the_next_prompt_holds_a_turn_that(failure, weir_of, models, kind, wire):
    settings, fault, shown = FAILURES[failure]
    models.say(kind_model(kind), LONG_ANSWER, "I know.", chunkSize=PIECE)
    models.relay.spoil(fault(kind))
    talk = wires.open(wire, weir_of(**settings))
    told = talk.ask("My name is Ann.")
    assert told.error and len(models.asked) == 1, told
    if wire != "invoke":
        assert told.text == shown
    assert talk.ask("Who am I?").output == "I know."
    assert said(models, kind) == remembered("My name is Ann.", shown) + [("user", "Who am I?")]
    kept = talk.export()
    assert [e["text"] for e in kept if e["type"] == "started"] == ["My name is Ann.", "Who am I?"]
    assert "".join(e["text"] for e in kept if e["type"] == "text") == shown + "I know."
    assert [e["type"] for e in kept if e["type"] in ("failed", "done")] == ["failed", "done"]


def kind_model(kind):
    return vendors.KINDS[kind][1]


def remembered(question, shown):
    return [("user", question)] + ([("assistant", shown)] if shown else [])


def test_an_answer_whose_connection_breaks_stays(weir_of, models, kind, wire):
    """A reset may overtake what was sent before it: what the caller saw is what stays."""
    models.say(kind_model(kind), LONG_ANSWER, "I know.", chunkSize=PIECE)
    models.relay.spoil(reset(BEGUN[kind]))
    talk = wires.open(wire, weir_of())
    told = talk.ask("My name is Ann.")
    assert told.error
    shown = "".join(e["text"] for e in talk.events() if e["type"] == "text")
    assert SHOWN.startswith(shown) and (wire == "invoke" or told.text == shown)
    assert talk.ask("Who am I?").output == "I know."
    assert said(models, kind) == remembered("My name is Ann.", shown) + [("user", "Who am I?")]


@pytest.mark.parametrize("how", ["its caller left", "was cancelled by its id"])
def test_the_next_prompt_holds_a_turn_that_ended_because_it(how, weir_of, models, kind, wire):
    models.say(kind_model(kind), LONG_ANSWER, "I know.", chunkSize=PIECE)
    models.relay.spoil(hold(BEGUN[kind]))
    talk = wires.open(wire, weir_of())
    with talk.begin("My name is Ann.", shown=SHOWN) as caller:
        if how == "was cancelled by its id":
            talk.cancel()
            assert caller.rest().error
    assert talk.over()["state"] == "cancelled"
    assert talk.ask("Who am I?").output == "I know."
    assert said(models, kind) == remembered("My name is Ann.", SHOWN) + [("user", "Who am I?")]
    assert [e["type"] for e in talk.export() if e["type"] in ("cancelled", "done")] == [
        "cancelled",
        "done",
    ]


@pytest.mark.parametrize("death", ["kill", "stop"])
def test_the_next_prompt_holds_a_turn_that_was_streaming_at_a(death, weir_of, models, kind, wire):
    models.say(kind_model(kind), LONG_ANSWER, "I know.", chunkSize=PIECE)
    models.relay.spoil(hold(BEGUN[kind]))
    weir = weir_of()
    talk = wires.open(wire, weir)
    with talk.begin("My name is Ann.", shown=SHOWN):
        wires.on_disk(weir, SHOWN)
        if death == "kill":
            weir.process.kill()
        else:
            weir.signal(15)
            assert weir.wait() == 0
    wires.killed(weir)
    assert talk.ask("Who am I?").output == "I know."
    assert said(models, kind) == remembered("My name is Ann.", SHOWN) + [("user", "Who am I?")]
    assert SHOWN in [e.get("text") for e in talk.export()]


@pytest.mark.parametrize("end", ["leave", "kill", "stop"])
def test_what_one_agent_had_said_so_far_is_not_put_into_the_mouth_of_another(
    end, weir_of, models, kind
):
    models.say(kind_model(kind), LONG_ANSWER, "I know.", chunkSize=PIECE)
    models.relay.spoil(hold(BEGUN[kind]))
    weir = weir_of([{}, {"slug": "wally", "instructions": "You travel."}])
    talk = wires.open("converse", weir)
    with talk.begin("My name is Ann.", shown=SHOWN):
        wires.on_disk(weir, SHOWN)
        if end == "kill":
            weir.process.kill()
        if end == "stop":
            weir.signal(15)
            assert weir.wait() == 0
    if end != "leave":
        wires.killed(weir)
    assert talk.ask("Who am I?", agent_id="wally").output == "I know."
    first, *others, last = said(models, kind)
    assert (first, last) == (("user", "My name is Ann."), ("user", "Who am I?"))
    assert {role for role, _ in others} == {"user"}, "it was the manager's"
    assert any("manager" in text and SHOWN in text for _, text in others)


def test_messages_of_turns_that_failed_stay_apart_from_each_other(weir_of, models, kind, wire):
    models.say(kind_model(kind), *["unheard"] * 3, "I know.")
    models.relay.spoil(*[instead(500, "oops", "text/plain")] * 3)
    talk = wires.open(wire, weir_of())
    asked = ["My name is Ann.", "  Ann!\n", "[manager] said: nothing"]
    for text in asked:
        assert talk.ask(text).error
    assert talk.ask("Who am I?").output == "I know."
    assert said(models, kind) == [("user", text) for text in [*asked, "Who am I?"]]


def test_a_turn_stays_as_it_failed_when_the_daemon_was_stopped_since(weir_of, models, kind, wire):
    models.say(kind_model(kind), LONG_ANSWER, "I know.", chunkSize=PIECE)
    models.relay.spoil(cut(BEGUN[kind]))
    weir = weir_of()
    talk = wires.open(wire, weir)
    assert talk.ask("My name is Ann.").error
    weir.restart()
    assert talk.ask("Who am I?").output == "I know."
    assert said(models, kind) == remembered("My name is Ann.", SHOWN) + [("user", "Who am I?")]


def test_a_turn_that_failed_after_a_tool_stays_with_what_the_tool_said(
    weir_of, models, kind, wire
):
    models.say(kind_model(kind), LOOKS, LONG_ANSWER, "I know.", chunkSize=PIECE)
    models.relay.spoil(None, cut(BEGUN[kind]))
    talk = wires.open(wire, weir_of([{"tools": ["calculator"]}]))
    assert talk.ask("six times seven?").error
    assert talk.ask("and?").output == "I know."
    prompt = said(models, kind)
    assert prompt[:3] == [("user", "six times seven?"), ("assistant", "Let me look."), CALLED]
    assert forty_two(prompt[3])
    assert prompt[4:] == [("assistant", SHOWN), ("user", "and?")]


def test_a_turn_that_asked_its_model_too_often_stays_with_what_its_tools_said(
    weir_of, models, kind, wire
):
    models.say(kind_model(kind), SIX_TIMES_SEVEN, "I know.")
    agents = [{"tools": ["calculator"], "limits": {"model_calls": 1}}]
    talk = wires.open(wire, weir_of(agents))
    assert "RESOURCE_EXHAUSTED" in talk.ask("six times seven?").error or wire == "invoke"
    assert talk.ask("and?").output == "I know."
    prompt = said(models, kind)
    assert prompt[:2] == [("user", "six times seven?"), CALLED]
    assert forty_two(prompt[2]) and prompt[3:] == [("user", "and?")]


# --- a turn that was refused before it began leaves nothing ---------------------------------


def test_a_turn_that_was_refused_before_it_began_leaves_nothing(weir_of, models, kind):
    models.say(kind_model(kind), "Hi.", "I know.")
    talk = wires.open("converse", weir_of())
    assert talk.ask("Hello").error is None
    assert talk.ask("", agent_id="manager").turn.code == "INVALID_ARGUMENT"
    assert talk.ask("of nobody", agent_id="nobody").turn.code == "NOT_FOUND"
    assert talk.ask("of another", user_id="user-2").turn.code == "PERMISSION_DENIED"
    assert talk.ask("Who am I?").output == "I know."
    assert said(models, kind) == [
        ("user", "Hello"), ("assistant", "Hi."), ("user", "Who am I?")
    ]
    assert [e["text"] for e in talk.export() if e["type"] == "started"] == ["Hello", "Who am I?"]


def test_a_turn_that_found_its_session_busy_leaves_nothing(house, models, kind, wire):
    models.say(house.model, LONG_ANSWER, "I know.", chunkSize=PIECE)
    models.relay.spoil(hold(BEGUN[kind]))
    talk = wires.open(wire, house(session={"busy": "reject"}))
    with talk.begin("My name is Ann.", shown=SHOWN):
        refused = wires.open(wire, talk.weir, talk.session).ask("I come too soon.")
        assert "ABORTED" in refused.error or "BUSY" in refused.error
    assert talk.over()["state"] == "cancelled"
    assert talk.ask("Who am I?").output == "I know."
    assert b"too soon" not in models.asked[-1].raw
    assert not any("too soon" in e.get("text", "") for e in talk.export())


# --- a message that the provider refuses does not poison the session ------------------------

TOO_LONG = {
    "anthropic": '{"type":"error","error":{"type":"invalid_request_error",'
    '"message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
    "gemini": '{"error":{"code":400,"status":"INVALID_ARGUMENT",'
    '"message":"The input token count (1200000) exceeds the maximum number of tokens allowed"}}',
    "openai": '{"error":{"type":"invalid_request_error","code":"context_length_exceeded",'
    '"message":"This model\'s maximum context length is 128000 tokens."}}',
    "openai-responses": '{"error":{"type":"invalid_request_error",'
    '"code":"context_length_exceeded","message":"Your input exceeds the context window"}}',
}
FILTERED = {
    "anthropic": '{"type":"error","error":{"type":"invalid_request_error",'
    '"message":"Output blocked by content filtering policy"}}',
    "gemini": '{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"candidates":[]}',
    "openai": '{"error":{"code":"content_filter","status":400,"message":"The response was '
    'filtered due to the prompt triggering the content management policy."}}',
    "openai-responses": '{"error":{"code":"content_filter","status":400,"message":"The response '
    'was filtered due to the prompt triggering the content management policy."}}',
}


def filtered(kind):
    if kind == "gemini":  # says so in a stream that begins well
        return instead(200, f"data: {FILTERED[kind]}\n\n", "text/event-stream")
    return instead(400, FILTERED[kind])


REFUSALS = {
    "is too long": lambda kind: instead(400, TOO_LONG[kind]),
    "is filtered": filtered,
    "is not understood": lambda kind: instead(422, '{"error":{"message":"Cannot read this"}}'),
}
POISON = "A forbidden spell"


def refuse_one(models, talk, text, fault):
    """A turn of which the provider refuses every call."""
    models.relay.spoil(*[fault] * 10)
    told = talk.ask(text)
    models.relay.spoils.clear()
    assert told.error, told


@pytest.mark.parametrize("refusal", REFUSALS)
def test_the_session_goes_on_with_a_note_in_place_of_a_message_that(
    refusal, weir_of, models, kind, wire
):
    models.say(kind_model(kind), *["Fine."] * 14)
    talk = wires.open(wire, weir_of())
    assert talk.ask("Hello").output == "Fine."
    refuse_one(models, talk, POISON, REFUSALS[refusal](kind))
    refused = talk.runs()[-1]
    assert refused["state"] == "failed"
    assert talk.ask("and now?").output == "Fine."
    first = said(models, kind)
    assert_noted(first, models.asked[-1].raw)
    talk.weir.restart()
    assert talk.ask("still there?").output == "Fine."
    later = said(models, kind)
    assert later == first + [("assistant", "Fine."), ("user", "still there?")]
    assert POISON in [e.get("text") for e in talk.export() if e["type"] == "started"]


def assert_noted(prompt, raw):
    """What the vendor gets instead of the words that it had refused."""
    assert POISON.encode() not in raw
    assert prompt[:2] == [("user", "Hello"), ("assistant", "Fine.")]
    assert prompt[-1] == ("user", "and now?")
    note = prompt[2:-1]
    assert note and all(role in ("user", "assistant") and text for role, text in note), note


def test_a_later_call_that_is_refused_leaves_the_message_as_it_was(weir_of, models, kind, wire):
    models.say(kind_model(kind), SIX_TIMES_SEVEN, *["Fine."] * 12)
    talk = wires.open(wire, weir_of([{"tools": ["calculator"]}]))
    models.relay.spoil(None, *[REFUSALS["is not understood"](kind)] * 9)
    assert talk.ask("six times seven?").error
    models.relay.spoils.clear()
    assert talk.ask("and now?").output == "Fine."
    prompt = said(models, kind)
    assert prompt[:2] == [("user", "six times seven?"), CALLED]
    assert forty_two(prompt[2]) and prompt[3:] == [("user", "and now?")]


# --- text around tool calls (K30) -----------------------------------------------------------


def test_each_reply_is_a_message_of_its_own_in_the_next_prompt(weir_of, models, kind, wire):
    models.say(kind_model(kind), LOOKS, "tool said 42", "As I said.")
    weir = weir_of([{"tools": ["calculator"]}])
    talk = wires.open(wire, weir)
    told = talk.ask("six times seven?")
    assert told.error is None and told.output == "tool said 42"
    asked_last = models.asked[-1].body
    weir.restart()
    assert talk.ask("again?").output == "As I said."
    prompt = said(models, kind)
    assert prompt[:3] == [("user", "six times seven?"), ("assistant", "Let me look."), CALLED]
    assert forty_two(prompt[3])
    assert prompt[4:] == [("assistant", "tool said 42"), ("user", "again?")]
    before = prompts.pieces(kind, asked_last)
    assert prompts.pieces(kind, models.asked[-1].body)[: len(before)] == before


def test_a_stream_shows_all_text_with_a_blank_line_before_the_next_reply(weir_of, models, kind):
    models.say(kind_model(kind), LOOKS, "tool said 42", "As I said.")
    talk = wires.open("stream", weir_of([{"tools": ["calculator"]}]))
    told = talk.ask("six times seven?")
    assert told.text == "Let me look.\n\ntool said 42" and told.output == "tool said 42"
    assert talk.ask("again?").text == "As I said."


def test_converse_shows_all_text_and_names_who_says_the_blank_line(weir_of, models, kind):
    models.say(kind_model(kind), LOOKS, "tool said 42", "As I said.")
    weir = weir_of([{"tools": ["calculator"]}])
    with crawbl.open_stream(weir) as stream:
        turn = stream.ask("six times seven?")
        assert turn.text == "Let me look.\n\ntool said 42"
        after = turn.events[turn.kinds.index("tool_result") :]
        later = [e.chunk for e in after if e.HasField("chunk")]
        assert later[0].text == "\n\n" and {c.agent_id for c in later} == {"manager"}
        assert [(t.agent_id, t.text) for t in turn.done.turns] == [("manager", "tool said 42")]
        second = stream.ask("again?")
        assert second.text == "As I said.", "each request is shown by itself"
        assert [t.text for t in second.done.turns] == ["As I said."]


def test_a_reply_of_calls_alone_puts_no_blank_line_before_the_next(weir_of, models, kind, wire):
    models.say(kind_model(kind), SIX_TIMES_SEVEN, "tool said 42")
    told = wires.open(wire, weir_of([{"tools": ["calculator"]}])).ask("six times seven?")
    assert told.text == told.output == "tool said 42"


HAND_OVER = call("transfer_to_agent", {"agent_name": "wally"}, id="call_t")
BACK = call("transfer_to_agent", {"agent_name": "manager"}, id="call_b")
TEAM = [{"delegates": ["wally"]}, {"slug": "wally", "instructions": "You travel."}]


def test_only_the_reply_that_ended_the_turn_is_a_turn_after_a_transfer(weir_of, models, kind):
    first = {"content": "Asking my colleague.", "toolCalls": [HAND_OVER]}
    models.say(kind_model(kind), first, "Kyoto")
    turn = wires.open("converse", weir_of(TEAM)).ask("Where to?").turn
    assert [(t.agent_id, t.text) for t in turn.done.turns] == [("wally", "Kyoto")]
    chunks = [(c.agent_id, c.text) for c in turn.of("chunk")]
    assert "".join(text for who, text in chunks if who == "manager") == "Asking my colleague."
    assert "".join(text for who, text in chunks if who == "wally") == "Kyoto"


@pytest.mark.parametrize("wire", ["invoke", "stream"])
def test_output_is_the_reply_that_ended_the_turn_after_a_transfer(weir_of, models, kind, wire):
    first = {"content": "Asking my colleague.", "toolCalls": [HAND_OVER]}
    models.say(kind_model(kind), first, "Kyoto")
    told = wires.open(wire, weir_of(TEAM)).ask("Where to?")
    assert told.output == "Kyoto"
    if wire == "stream":  # it names no speaker
        assert told.text == "Asking my colleague.\n\nKyoto"


def test_who_speaks_again_after_another_one_begins_with_a_blank_line(weir_of, models, kind):
    replies = [("Asking my colleague.", HAND_OVER), ("Ask her again.", BACK)]
    models.say(
        kind_model(kind),
        *[{"content": text, "toolCalls": [one]} for text, one in replies],
        "Kyoto",
    )
    turn = wires.open("converse", weir_of(TEAM)).ask("Where to?").turn
    chunks = [(c.agent_id, c.text) for c in turn.of("chunk")]
    by = {who: "".join(t for w, t in chunks if w == who) for who, _ in chunks}
    assert by == {"manager": "Asking my colleague.\n\nKyoto", "wally": "Ask her again."}
    assert [(t.agent_id, t.text) for t in turn.done.turns] == [("manager", "Kyoto")]


# --- a turn within a turn (K11) -------------------------------------------------------------


@pytest.fixture
def nested(start_weir, models, kind):
    """A manager (model `boss`) whose tool asks wally (model `clerk`) in the same session, as an
    orchestrator does: nested.weir, nested.children."""
    with Orchestrator() as double:
        double.agents[crawbl.WORKSPACE] = [
            agent("manager", role="manager", prompt="You lead.", model="boss"),
            agent("wally", prompt="You travel.", model="clerk"),
        ]
        plain = {"slug": "manager", "instructions": "You lead.", "model": "house/boss"}
        text = vendors.settings(models.provider(kind, retries=0), [plain])
        double.weir = start_weir(config=text, env={**double.env, "HOUSE_KEY": vendors.KEY})
        double.children = []

        def send(args, request):
            session = request.headers["x-conversation-id"]
            child = crawbl.one_turn(
                double.weir, args["message"], session_id=session, agent_id=args["agent_slug"]
            )
            double.children.append(child)
            return child.text

        double.tools["send_message_to_agent"] = send
        yield double


ASKS_WALLY = {"agent_slug": "wally", "message": "nested question"}
ASKED_WALLY = ("call", "send_message_to_agent", ASKS_WALLY)


def of_model(models, kind, name):
    """The requests to one of the models, in order."""
    return [a for a in models.asked if name in (a.path if kind == "gemini" else a.body["model"])]


def test_a_parents_prompt_ends_with_its_tool_and_shows_no_child(nested, models, kind):
    asks = {"content": "A moment.", "toolCalls": [call(*ASKED_WALLY[1:], id="call_n")]}
    models.say("boss", asks, "Kyoto, he says.", "I know.")
    models.say("clerk", "nested answer")
    talk = wires.open("converse", nested.weir)
    told = talk.ask("Where to?")
    assert told.error is None and told.output == "Kyoto, he says."
    [child] = nested.children
    assert child.error is None and child.text == "nested answer"

    _, second = of_model(models, kind, "boss")
    assert prompts.said(kind, second.body) == [
        ("user", "Where to?"),
        ("assistant", "A moment."),
        ASKED_WALLY,
        ("result", {"output": "nested answer"}),
    ]
    [inner] = of_model(models, kind, "clerk")
    inner = prompts.said(kind, inner.body)
    assert inner[-1] == ("user", "nested question")
    assert not [item for item in inner if item[0] in ("call", "result")], "not answered yet"


@pytest.mark.parametrize("death", [None, "stop", "kill"])
def test_a_child_stands_after_its_parents_last_message_in_later_prompts(
    death, nested, models, kind
):
    models.say("boss", call(*ASKED_WALLY[1:], id="call_n"), "Kyoto, he says.", "I know.")
    models.say("clerk", "nested answer")
    talk = wires.open("converse", nested.weir)
    assert talk.ask("Where to?").error is None
    if death == "kill":
        wires.killed(nested.weir)
    if death == "stop":
        nested.weir.restart()
    assert talk.ask("and now?").output == "I know."
    _, second, third = of_model(models, kind, "boss")
    before = prompts.pieces(kind, second.body)
    assert prompts.pieces(kind, third.body)[: len(before)] == before
    prompt = prompts.said(kind, third.body)
    assert prompt[:4] == [
        ("user", "Where to?"),
        ASKED_WALLY,
        ("result", {"output": "nested answer"}),
        ("assistant", "Kyoto, he says."),
    ]
    assert prompt[-1] == ("user", "and now?")
    child = prompt[4:-1]
    assert child[0] == ("user", "nested question")
    assert any("nested answer" in text for _, text in child[1:])


def test_a_parent_is_not_told_of_a_child_that_failed_but_by_its_tool(nested, models, kind):
    models.say("boss", call(*ASKED_WALLY[1:], id="call_n"), "He is out.", "I know.")
    models.say("clerk", "unheard")
    models.relay.spoil(None, instead(500, "oops", "text/plain"))
    talk = wires.open("converse", nested.weir)
    assert talk.ask("Where to?").output == "He is out."
    _, second = of_model(models, kind, "boss")
    assert [item[0] for item in prompts.said(kind, second.body)] == ["user", "call", "result"]
    assert talk.ask("and now?").output == "I know."
    later = prompts.said(kind, of_model(models, kind, "boss")[-1].body)
    assert later[3:] == [
        ("assistant", "He is out."), ("user", "nested question"), ("user", "and now?")
    ]


# --- answers say what happened --------------------------------------------------------------

PAY = [{"tools": {"calculator": "ask"}}]


def test_calls_of_the_model_are_counted_from_nought_in_each_request(weir_of, models, kind):
    models.say(kind_model(kind), SIX_TIMES_SEVEN, "42.", SIX_TIMES_SEVEN, "42 again.")
    with crawbl.open_stream(weir_of([{"tools": ["calculator"]}])) as stream:
        for text in ("42.", "42 again."):
            turn = stream.ask("six times seven?")
            assert turn.text == text
            assert [u.call_sequence for u in turn.of("usage")] == [0, 1]


def test_what_follows_an_approval_is_told_as_a_turn_of_its_own(weir_of, models, kind):
    models.say(kind_model(kind), LOOKS, SIX_TIMES_SEVEN, "tool said 42")
    weir = weir_of(PAY)
    with crawbl.open_stream(weir) as stream:
        asked = stream.ask("six times seven?")
        assert asked.error is None and [u.call_sequence for u in asked.of("usage")] == [0]
        again = stream.ask("yes")
        assert again.error is None and [u.call_sequence for u in again.of("usage")] == [0]
        last = stream.ask("yes")
        assert [u.call_sequence for u in last.of("usage")] == [0]
        assert [(t.agent_id, t.text) for t in last.done.turns] == [("manager", "tool said 42")]
        assert last.text == "tool said 42" and len(models.asked) == 3
        models_named = [turn.done.model for turn in (asked, again, last)]
        assert models_named == [kind_model(kind)] * 3


def test_the_done_after_an_approval_names_its_model_also_after_a_restart(weir_of, models, kind):
    models.say(kind_model(kind), LOOKS, "tool said 42")
    weir = weir_of(PAY)
    talk = wires.open("converse", weir)
    assert talk.ask("six times seven?").error is None
    wires.killed(weir)
    turn = talk.ask("yes").turn
    assert turn.error is None and turn.done.model == kind_model(kind)
    assert [u.call_sequence for u in turn.of("usage")] == [0]
    assert [t.text for t in turn.done.turns] == ["tool said 42"]


@pytest.mark.parametrize("death", [None, "kill"])
@pytest.mark.parametrize("words, made", [("yes", True), ("no", False)])
def test_a_tool_that_a_person_decided_about_stands_in_the_history_of_resume(
    words, made, death, weir_of, models, kind
):
    models.say(kind_model(kind), LOOKS, "I see.")
    weir = weir_of(PAY)
    talk = wires.open("invoke", weir)
    with weir.http() as http:
        asked = http.post("/invoke", json=talk.body("six times seven?")).json()
        assert asked["metadata"]["interrupted"] is True
    if death:
        wires.killed(weir)
    with weir.http() as http:
        body = {"thread_id": talk.session, "human_input": words}
        answer = http.post("/resume", json=body).json()
    assert answer["output"] == "I see."
    [past] = answer["history"]
    assert past["name"] == "calculator" and ("42" in json.dumps(past["result"])) == made


@pytest.mark.parametrize("wire", ["invoke", "stream"])
def test_a_tool_that_was_allowed_by_a_typed_yes_stands_in_the_history(
    wire, weir_of, models, kind
):
    """K29: the one pending question is settled by a word that is a decision."""
    models.say(kind_model(kind), LOOKS, "I see.")
    weir = weir_of(PAY)
    talk = wires.open(wire, weir)
    with weir.http() as http:
        asked = http.post("/invoke", json=talk.body("six times seven?")).json()
        assert asked["metadata"]["interrupted"] is True
    told = talk.ask("yes")
    assert told.error is None and told.output == "I see."
    [past] = told.history
    assert past["name"] == "calculator" and "42" in json.dumps(past["result"])
    assert forty_two(said(models, kind)[-1]), "the word itself is not a message"


FIVE = [call("calculator", {"expression": f"{n}+1"}, id=f"call_{n}") for n in range(5)]


def test_more_calls_than_are_allowed_are_errors_and_the_turn_goes_on(weir_of, models, kind):
    models.say(kind_model(kind), FIVE, "I see.", "I know.")
    talk = wires.open("converse", weir_of([{"tools": ["calculator"], "limits": {"tool_calls": 3}}]))
    turn = talk.ask("go").turn
    assert turn.error is None and turn.text == "I see."
    results = turn.of("tool_result")
    assert len(turn.of("tool_call")) == len(results) == 5
    refused = [r for r in results if r.error]
    assert 2 <= len(refused) and all(r.error_message for r in refused)
    prompt = said(models, kind)
    assert [item[0] for item in prompt] == ["user"] + ["call"] * 5 + ["result"] * 5
    assert talk.ask("and?").output == "I know."
    assert said(models, kind)[: len(prompt)] == prompt


@pytest.mark.parametrize("count", [101])
def test_more_calls_than_any_turn_may_make_are_errors_too(count, weir_of, models, kind):
    """U5"""
    many = [call("calculator", {"expression": f"{n}+1"}, id=f"call_{n}") for n in range(count)]
    models.say(kind_model(kind), many, "I see.")
    turn = wires.open("converse", weir_of([{"tools": ["calculator"]}])).ask("go").turn
    assert turn.error is None and turn.text == "I see."
    assert len(turn.of("tool_result")) == count
    assert [r.error for r in turn.of("tool_result")].count(True) >= 1


def test_a_call_without_a_name_is_an_error_and_the_turn_goes_on(weir_of, models, kind):
    """U5"""
    models.say(kind_model(kind), SIX_TIMES_SEVEN, "I see.", "I know.")
    models.relay.spoil(vendors.rewrite(b'"calculator"', b'""'))
    talk = wires.open("converse", weir_of([{"tools": ["calculator"]}]))
    turn = talk.ask("go").turn
    assert turn.error is None and turn.text == "I see."
    [result] = turn.of("tool_result")
    assert result.error and result.error_message
    told = said(models, kind)
    assert told[0] == ("user", "go") and len(told) > 1, "the model reads what was wrong"
    assert talk.ask("and?").output == "I know."
