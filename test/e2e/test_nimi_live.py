"""Realtime sessions with a model that is talked to over a WebSocket (OpenAI's Realtime API)."""
import grpc
import nimi_client as nimi
import pytest
from nimi.runtime.v1 import audit_pb2
from nimi.runtime.v1 import realtime_pb2 as rt
from nimi_client import common
from realtime_server import RealtimeServer
from test_nimi_realtime import Session, kinds, text_of, turn

ECHO = "You said: {}. Grüße 🌊, and that was all of it, I believe."


@pytest.fixture(params=["ga", "beta"])
def server(request):
    with RealtimeServer(beta=request.param == "beta") as server:
        yield server


@pytest.fixture
def ga():
    with RealtimeServer() as server:
        yield server


@pytest.fixture
def start(start_weir):
    def start(server, **more):
        return start_weir(config=server.config(**more), env={"HOUSE_KEY": "sk-house-1234567890"})

    return start


def talk(weir, model="gpt-realtime", **fields):
    return Session(nimi.Client(weir), head={"model_id": "local/" + model}, **fields)


def say(session, *sounds, end=True, **fields):
    """Append sound; the last piece ends the turn."""
    items = [
        rt.RealtimeInputItem(
            audio=rt.RealtimeAudioInput(
                audio_bytes=sound, end_of_turn=end and at == len(sounds) - 1, **fields
            )
        )
        for at, sound in enumerate(sounds)
    ]
    request = rt.AppendRealtimeInputRequest(session_id=session.id, items=items)
    return session.client.ask(session.stub.AppendRealtimeInput, request)[0]


def asked(server, connection=0):
    return [event["type"] for event in server.seen[connection]]


# --- a conversation ------------------------------------------------------------------------------


def test_a_conversation(start, server):
    session = talk(start(server), system_prompt="Be brief.")
    assert session.opened.model_resolved == "gpt-realtime"
    events = session.read()
    assert events.next().event_type == rt.REALTIME_EVENT_OPENED
    said = session.append("hello")
    first = turn(events)
    assert text_of(first) == ECHO.format("hello")
    assert {event.trace_id for event in first} == {said.trace_id}
    completed = first[-1].completed
    assert completed.finish_reason == common.FINISH_REASON_STOP
    assert (completed.usage.input_tokens, completed.usage.output_tokens) == (17, 13)
    session.append("and", "again")
    assert text_of(turn(events)) == ECHO.format("again")
    session.append("once")
    assert text_of(turn(events)) == "all at once"

    assert session.close().ack.ok
    events.rest()
    assert events.code == grpc.StatusCode.OK
    assert events.sequences == list(range(1, len(events.all) + 1))
    update, *more = server.seen[0]
    assert update["session"]["instructions"] == "Be brief."
    assert ("modalities" in update["session"]) == server.beta
    created, asked_ = "conversation.item.create", "response.create"
    assert [e["type"] for e in more] == [created, asked_, created, created, asked_, created, asked_]
    headers = {name.lower(): value for name, value in server.headers[0].items()}
    assert headers["authorization"] == "Bearer sk-house-1234567890"
    assert len(server.seen) == 1


def test_what_is_spoken_is_heard_and_answered_in_sound(start, server):
    session = talk(start(server), output_audio_format="pcm16", output_sample_rate_hz=24000)
    events = session.read()
    say(session, b"ab" * 30000, end=False)
    say(session, b"cd" * 1000, mime_type="audio/pcm;rate=24000", sample_rate_hz=24000)
    heard = turn(events)
    assert text_of(heard) == ECHO.format("62000 bytes")
    chunks = [event.audio_chunk for event in heard if event.HasField("audio_chunk")]
    assert b"".join(chunk.chunk for chunk in chunks) == b"\x01\x02" * 18000
    assert [chunk.eof for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(len(chunk.chunk) <= 24 * 1024 for chunk in chunks)
    assert {(chunk.mime_type, chunk.sample_rate_hz) for chunk in chunks} == {("audio/pcm", 24000)}
    assert heard[-1].HasField("completed")
    assert asked(server)[-2:] == ["input_audio_buffer.commit", "response.create"]
    session.append("and in writing")
    assert text_of(turn(events)) == ECHO.format("and in writing")
    session.close()


def test_a_spoken_turn_interrupts_the_answer(start, server):
    session = talk(start(server), output_audio_format="pcm16")
    events = session.read()
    session.append("slowly")
    events.until(lambda event: event.HasField("audio_chunk"))
    say(session, b"stop" * 500)
    turn(events)
    assert events.all[-1].completed.finish_reason == common.FINISH_REASON_STOP
    second = turn(events)
    assert text_of(second) == ECHO.format("2000 bytes")
    assert "response.cancel" in asked(server)
    session.close()


def test_a_written_turn_waits_for_the_answer(start, ga):
    session = talk(start(ga))
    events = session.read()
    session.append("please wait")
    session.append("second")
    ga.go.set()
    assert text_of(turn(events)) == ECHO.format("please wait")
    assert text_of(turn(events)) == ECHO.format("second")
    assert "response.cancel" not in asked(ga)
    session.close()


@pytest.mark.parametrize(
    "word, reason",
    [("tool", common.FINISH_REASON_TOOL_CALL), ("cut", common.FINISH_REASON_LENGTH)],
)
def test_how_an_answer_ended_is_said(start, ga, word, reason):
    session = talk(start(ga))
    events = session.read()
    session.append(word)
    completed = turn(events)[-1].completed
    assert completed.finish_reason == reason and completed.usage.output_tokens == 13
    session.close()


def test_turns_are_counted_as_usage(start, ga):
    session = talk(start(ga))
    events = session.read()
    session.append("hello")
    turn(events)
    session.close()
    client = session.client
    request = audit_pb2.ListUsageStatsRequest(
        window=audit_pb2.USAGE_WINDOW_DAY, capability="TEXT_GENERATE"
    )
    while not (sums := client.ask(client.audit.ListUsageStats, request)[0].records):
        pass
    assert [(s.model_id, s.success_count) for s in sums] == [("gpt-realtime", 1)]
    assert (sums[0].input_tokens, sums[0].output_tokens) == (17, 13)


# --- refused before anything was promised --------------------------------------------------------


@pytest.mark.parametrize(
    "model, code, reason",
    [
        ("realtime-429", grpc.StatusCode.RESOURCE_EXHAUSTED, "AI_PROVIDER_RATE_LIMITED"),
        ("realtime-401", grpc.StatusCode.FAILED_PRECONDITION, "AI_PROVIDER_AUTH_FAILED"),
        ("realtime-accept", grpc.StatusCode.UNAVAILABLE, "AI_PROVIDER_UNAVAILABLE"),
        ("realtime-upgrade", grpc.StatusCode.UNAVAILABLE, "AI_PROVIDER_UNAVAILABLE"),
        ("realtime-never", grpc.StatusCode.DEADLINE_EXCEEDED, "AI_PROVIDER_TIMEOUT"),
        ("realtime-error", grpc.StatusCode.INVALID_ARGUMENT, "AI_INPUT_INVALID"),
    ],
)
def test_a_connection_that_fails_refuses_the_session(start, ga, model, code, reason):
    weir = start(ga, provider=", connect: 2s")
    with pytest.raises(nimi.Refused) as refused:
        talk(weir, model)
    assert (refused.value.code, refused.value.reason) == (code, reason)
    assert "sk-house" not in str(refused.value)
    session = talk(weir)
    events = session.read()
    session.append("hello")
    assert text_of(turn(events)) == ECHO.format("hello")


def test_what_such_a_session_cannot_do_is_refused(start, ga):
    weir = start(ga)
    for fields in ({"output_audio_format": "mp3"},
                   {"output_audio_format": "pcm16", "output_sample_rate_hz": 16000}):
        with pytest.raises(nimi.Refused) as refused:
            talk(weir, **fields)
        assert refused.value.reason == "AI_MEDIA_OPTION_UNSUPPORTED"
    session = talk(weir)
    for fields in ({"mime_type": "audio/mpeg"}, {"sample_rate_hz": 16000}):
        with pytest.raises(nimi.Refused) as refused:
            say(session, b"ab", **fields)
        assert refused.value.reason == "AI_MEDIA_OPTION_UNSUPPORTED"
    items = [rt.RealtimeInputItem(audio=rt.RealtimeAudioInput(audio_uri="https://x.test/a"))]
    request = rt.AppendRealtimeInputRequest(session_id=session.id, items=items)
    with pytest.raises(nimi.Refused) as refused:
        session.client.ask(session.stub.AppendRealtimeInput, request)
    assert refused.value.reason == "AI_MODALITY_NOT_SUPPORTED"
    assert asked(ga) == ["session.update"]


def test_other_models_of_the_provider_are_asked_as_before(start, ga):
    weir = start(ga, provider=", realtime: never")
    session = talk(weir)  # no connection is made to open it
    assert ga.seen == []
    with pytest.raises(nimi.Refused) as refused:
        say(session, b"ab")
    assert refused.value.reason == "AI_MODALITY_NOT_SUPPORTED"


# --- faults in the middle ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word, reason, lost",
    [
        ("die", common.AI_STREAM_BROKEN, True),
        ("bye", common.AI_STREAM_BROKEN, True),
        ("frame", common.AI_STREAM_BROKEN, True),
        ("huge", common.AI_STREAM_BROKEN, True),
        ("half", common.AI_STREAM_BROKEN, True),
        ("nonsense", common.AI_STREAM_BROKEN, True),
        ("error", common.AI_PROVIDER_INTERNAL, False),
        ("fail", common.AI_PROVIDER_RATE_LIMITED, False),
        ("refuse", common.AI_INPUT_INVALID, False),
        ("filter", common.AI_CONTENT_FILTER_BLOCKED, False),
    ],
)
def test_a_turn_that_fails_is_one_event_and_the_session_goes_on(start, ga, word, reason, lost):
    session = talk(start(ga))
    events = session.read()
    session.append("my name is Ada")
    turn(events)
    session.append(word)
    failed = turn(events)
    assert failed[-1].failed.reason_code == reason
    assert failed[-1].failed.action_hint.startswith(common.ReasonCode.Name(reason) + ": ")
    session.append("still there")
    assert text_of(turn(events)) == ECHO.format("still there")
    assert kinds(events.all).count("failed") == 1
    assert events.sequences == list(range(1, len(events.all) + 1))
    assert len(ga.seen) == (2 if lost else 1)
    if lost:  # the new connection was told what had been said, and no answer was asked for twice
        told = [(e["item"]["role"], e["item"]["content"][0]["text"])
                for e in ga.seen[1] if e["type"] == "conversation.item.create"]
        assert told == [("user", "my name is Ada"), ("assistant", ECHO.format("my name is Ada")),
                        ("user", "still there")]
        assert asked(ga, 1).count("response.create") == 1
    session.close()


def test_sound_that_was_lost_with_its_connection_is_reported(start, ga):
    session = talk(start(ga))
    events = session.read()
    events.next()
    say(session, b"ab" * 100, end=False)
    while "input_audio_buffer.append" not in asked(ga):
        pass
    ga.abort()
    failed = turn(events)[-1].failed
    assert failed.reason_code == common.AI_STREAM_BROKEN
    say(session, b"ab" * 200)
    assert text_of(turn(events)) == ECHO.format("400 bytes")
    session.close()


def test_a_binary_message_is_passed_over(start, ga):
    session = talk(start(ga))
    events = session.read()
    session.append("binary")
    assert text_of(turn(events)) == ECHO.format("binary")
    session.close()


# --- ends ----------------------------------------------------------------------------------------


def test_close_ends_the_connection_in_order(start, ga):
    session = talk(start(ga))
    session.append("slowly")
    events = session.read()
    events.until(lambda event: event.HasField("text_delta"))
    session.close()
    events.rest()
    assert events.code == grpc.StatusCode.OK and events.all[-1].HasField("completed")
    while not ga.closes:
        pass
    assert ga.closes == [1000]


def test_a_stop_cancels_readers_and_calls_that_open(start, ga):
    weir = start(ga)
    session = talk(weir)
    events = session.read()
    session.append("slowly")
    events.until(lambda event: event.HasField("text_delta"))
    client = nimi.Client(weir)
    head = nimi.head(model_id="local/realtime-never")
    opening = Session.over(client).OpenRealtimeSession.future(
        rt.OpenRealtimeSessionRequest(head=head), metadata=client.metadata()
    )
    while len(ga.headers) < 2:
        pass
    weir.signal(15)
    events.rest()
    assert events.code == grpc.StatusCode.CANCELLED and events.text == "runtime shutting down"
    assert set(kinds(events.all)) <= {"opened", "text_delta"}
    assert opening.code() == grpc.StatusCode.CANCELLED
    assert weir.wait() == 0


def test_a_reader_that_lags_holds_the_model_and_loses_nothing(start, ga):
    session = talk(start(ga), output_audio_format="pcm16")
    events = session.read()
    events.next()
    session.append("flood")
    sound = b"".join(e.audio_chunk.chunk for e in turn(events) if e.HasField("audio_chunk"))
    assert sound == b"\x05\x06" * 12000 * 400
    assert events.sequences == list(range(1, len(events.all) + 1))
    session.close()
