"""RuntimeAiRealtimeService: a conversation with a model that stays open (sheet 6.7, K35)."""
import contextlib
import http.server
import io
import json
import threading
import wave

import grpc
import nimi_client as nimi
import pytest
from nimi.runtime.v1 import ai_pb2, audit_pb2, realtime_pb2_grpc
from nimi.runtime.v1 import realtime_pb2 as rt
from nimi_client import common
from subscriptions import Events, assert_stopped

QUICK = pytest.mark.weir(script="test/e2e/scripts/quick.yaml")
NIMI = pytest.mark.weir(script="test/e2e/scripts/nimi.yaml")


class Session:
    """One realtime session; each of its calls may go over a connection of its own."""

    def __init__(self, client, head=None, **fields):
        self.client, self.stub = client, self.over(client)
        request = rt.OpenRealtimeSessionRequest(head=nimi.head(**(head or {})), **fields)
        self.opened = client.ask(self.stub.OpenRealtimeSession, request)[0]
        self.id = self.opened.session_id

    @staticmethod
    def over(client):
        return realtime_pb2_grpc.RuntimeAiRealtimeServiceStub(client.channel)

    def append(self, *texts, client=None, metadata=None):
        items = [
            rt.RealtimeInputItem(message=ai_pb2.ChatMessage(role="user", content=text))
            for text in texts
        ]
        request = rt.AppendRealtimeInputRequest(session_id=self.id, items=items)
        client = client or self.client
        return client.ask(self.over(client).AppendRealtimeInput, request, metadata)[0]

    def read(self, after=0, client=None, metadata=None):
        client = client or self.client
        request = rt.ReadRealtimeEventsRequest(session_id=self.id, after_sequence=after)
        return Events(
            self.over(client).ReadRealtimeEvents(
                request, metadata=metadata or client.metadata(), timeout=nimi.PATIENCE
            )
        )

    def close(self, client=None, metadata=None):
        client = client or self.client
        request = rt.CloseRealtimeSessionRequest(session_id=self.id)
        return client.ask(self.over(client).CloseRealtimeSession, request, metadata)[0]


def kinds(events):
    return [event.WhichOneof("payload") for event in events]


def text_of(events):
    return "".join(event.text_delta.text for event in events)


def turn(events):
    """All events up to the end of a turn."""
    begun = len(events.all)
    events.until(lambda event: event.WhichOneof("payload") in ("completed", "failed"))
    return events.all[begun:]


# --- a conversation ------------------------------------------------------------------------------


@NIMI
def test_a_conversation_offline(weir):
    client = nimi.Client(weir)
    session = Session(client, system_prompt="Be brief.")
    assert session.id.startswith("rt_") and len(session.id) == 29
    assert session.opened.model_resolved == "m"
    assert session.opened.route_decision == common.ROUTE_POLICY_LOCAL
    events = session.read()
    opened = events.next()
    assert opened.event_type == rt.REALTIME_EVENT_OPENED and opened.sequence == 1
    assert opened.opened.session_id == session.id
    assert opened.trace_id == session.opened.trace_id

    said = session.append("hello")
    assert said.ack.ok and said.ack.reason_code == common.ACTION_EXECUTED
    first = turn(events)
    assert text_of(first) == "You said: hello. Grüße 🌊, and that was all."
    assert {event.trace_id for event in first} == {said.trace_id}
    completed = first[-1].completed
    assert completed.finish_reason == common.FINISH_REASON_STOP
    assert (completed.usage.input_tokens, completed.usage.output_tokens) == (7, 11)
    assert all(len(e.text_delta.text.encode()) >= 32 for e in first[:-2])

    # A turn that fails is an event; the session goes on.
    session.append("fail")
    failed = turn(events)[-1]
    assert failed.event_type == rt.REALTIME_EVENT_FAILED
    assert failed.failed.reason_code == common.AI_PROVIDER_UNAVAILABLE
    assert failed.failed.action_hint.startswith("AI_PROVIDER_UNAVAILABLE: ")
    session.append("still there?")
    assert "still there?" in text_of(turn(events))

    assert session.close().ack.ok
    last = events.rest()[-1]
    assert last.event_type == rt.REALTIME_EVENT_COMPLETED
    assert not last.completed.HasField("usage")  # the session, not a turn
    assert events.code == grpc.StatusCode.OK
    assert events.sequences == list(range(1, len(events.all) + 1))
    for method in (session.append, session.close):
        with pytest.raises(nimi.Refused) as refused:
            method()
        assert refused.value.reason == "AI_REALTIME_SESSION_NOT_FOUND"
        assert refused.value.code == grpc.StatusCode.NOT_FOUND


@NIMI
def test_the_same_key_does_the_same_once(weir):
    """As the protocol's own SDK asks: every write has a key."""
    client = nimi.Client(weir)
    stub = Session.over(client)
    opening = rt.OpenRealtimeSessionRequest(head=nimi.head())
    key = client.metadata(idempotency_key="open-1")
    first = client.ask(stub.OpenRealtimeSession, opening, key)[0]
    assert client.ask(stub.OpenRealtimeSession, opening, key)[0] == first
    session = Session(client)
    assert session.id != first.session_id
    events = session.read()
    said = [session.append("hello", metadata=client.metadata(idempotency_key="a")) for _ in range(3)]
    assert said[0] == said[1] == said[2]
    turn(events)
    closed = [session.close(metadata=client.metadata(idempotency_key="c")) for _ in range(2)]
    assert closed[0] == closed[1]
    assert kinds(events.rest()).count("completed") == 2  # the turn, and the session


class Vendor(http.server.ThreadingHTTPServer):
    """A server of the OpenAI dialect that keeps what it was asked."""

    def __init__(self):
        self.asked = []
        super().__init__(("127.0.0.1", 0), Answerer)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Answerer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(asked)
        said = f"answer {len(self.server.asked)}"
        chunks = [
            {"choices": [{"index": 0, "delta": {"content": said}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


def test_the_model_is_shown_the_whole_conversation(start_weir):
    with contextlib.closing(Vendor()) as vendor:
        config = f"""
nimi: {{probe_interval: 0, allow_loopback_provider_endpoint: true}}
providers:
  - {{name: house, kind: openai, base_url: "http://127.0.0.1:{vendor.server_port}/v1"}}
connectors:
  - {{id: home, provider: house, local: true}}
"""
        client = nimi.Client(start_weir(config=config))
        session = Session(client, system_prompt="You are terse.")
        events = session.read()
        session.append("My name is Ada.")
        assert text_of(turn(events)) == "answer 1"
        session.append("I said:", "And my name?")
        assert text_of(turn(events)) == "answer 2"
        shown = [(m["role"], m["content"]) for m in vendor.asked[1]["messages"]]
        assert shown[0] == ("system", "You are terse.")
        assert shown[1:3] == [("user", "My name is Ada."), ("assistant", "answer 1")]
        assert "I said:" in str(shown[3:]) and "And my name?" in shown[-1][1]
        session.close()


@NIMI
def test_every_call_may_come_over_another_connection(weir):
    """Connections are spread over the loops, and a session is known on each."""
    clients = [nimi.Client(weir, options=[("grpc.use_local_subchannel_pool", 1)]) for _ in range(8)]
    for round_, client in enumerate(clients):
        session = Session(client)
        events = session.read(client=clients[(round_ + 1) % 8])
        events.next()
        for other in range(3):
            session.append(f"number {other}", client=clients[(round_ + 2 + other) % 8])
        for other in range(3):
            assert f"number {other}" in text_of(turn(events))
        session.close(client=clients[(round_ + 5) % 8])
        events.rest()
        assert events.code == grpc.StatusCode.OK
        assert events.sequences == list(range(1, len(events.all) + 1))


@QUICK
def test_the_answer_is_spoken(weir):
    session = Session(nimi.Client(weir), output_audio_format="wav")
    events = session.read()
    session.append("Good morning to all of you.")
    heard = turn(events)
    assert heard[-1].completed.usage is not None
    chunks = [event.audio_chunk for event in heard if event.HasField("audio_chunk")]
    assert chunks and [chunk.eof for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(0 < len(chunk.chunk) <= 24 * 1024 for chunk in chunks)
    assert {chunk.mime_type for chunk in chunks} == {"audio/wav"}
    with wave.open(io.BytesIO(b"".join(chunk.chunk for chunk in chunks))) as sound:
        assert sound.getnframes() / sound.getframerate() > 0.5
        assert {chunk.sample_rate_hz for chunk in chunks} == {sound.getframerate()}
    order = kinds(heard)
    assert order.index("audio_chunk") > order.index("text_delta")
    session.close()
    assert events.rest() and events.code == grpc.StatusCode.OK


# --- who may, and what is bounded ----------------------------------------------------------------


@NIMI
def test_a_session_is_its_apps(weir):
    client = nimi.Client(weir)
    session = Session(client)
    theirs = client.metadata(app_id="other.app")
    mine, never = session.id, "rt_" + "0" * 26
    said = []
    for session.id in (mine, never):  # M4: the same code and text as for one that never was
        for method in (session.append, session.close):
            with pytest.raises(nimi.Refused) as refused:
                method(metadata=theirs)
            assert refused.value.reason == "AI_REALTIME_SESSION_NOT_FOUND"
            assert refused.value.code == grpc.StatusCode.NOT_FOUND
            said.append(json.loads(refused.value.text))
        events = session.read(metadata=theirs)
        assert not events.rest() and events.code == grpc.StatusCode.NOT_FOUND
        said.append(json.loads(events.text))
    for words in said:
        words.pop("traceId", None)
    assert all(words == said[0] for words in said)
    session.id = mine
    session.append("it is still there")


@NIMI
def test_one_reader_and_it_may_come_back(weir):
    client = nimi.Client(weir)
    session = Session(client)
    events = session.read()
    events.next()
    second = session.read()
    assert not second.rest() and second.code == grpc.StatusCode.FAILED_PRECONDITION
    assert json.loads(second.text)["reasonCode"] == "AI_REALTIME_SESSION_CLOSED"
    events.cancel()
    session.append("while nobody reads")
    while True:  # until the daemon has seen that the first one left
        back = session.read(after=1)
        with contextlib.suppress(AssertionError):
            back.next()
            break
    assert back.all[0].sequence == 2
    turn(back) if not back.all[0].HasField("completed") else None
    assert "while nobody reads" in text_of(back.all)
    session.close()


@NIMI
def test_sessions_of_an_app_are_bounded(weir):
    client = nimi.Client(weir)
    sessions = [Session(client) for _ in range(16)]
    with pytest.raises(nimi.Refused) as refused:
        Session(client)
    assert refused.value.code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused.value.reason == "AI_PROVIDER_RATE_LIMITED"
    sessions[0].close()
    Session(client)


def test_an_idle_session_ends_with_plain_words(start_weir):
    weir = start_weir(
        script="test/e2e/scripts/nimi.yaml", config="nimi: {realtime_idle: 300ms}\n"
    )
    session = Session(nimi.Client(weir))
    events = session.read()
    session.append("hello")
    turn(events)
    events.rest()
    assert events.code == grpc.StatusCode.CANCELLED
    assert events.text == "the realtime session was idle for too long"
    with pytest.raises(nimi.Refused) as refused:
        session.append("anyone?")
    assert refused.value.reason == "AI_REALTIME_SESSION_NOT_FOUND"


@NIMI
def test_a_stop_cancels_readers_and_invents_nothing(weir):
    client = nimi.Client(weir)
    sessions = [Session(client) for _ in range(16)]
    readers = [session.read() for session in sessions]
    for session, events in zip(sessions, readers):
        events.next()
        session.append("for ever")
    readers[0].next()  # one of them is in the middle of its words
    weir.signal(15)
    for events in readers:
        assert_stopped(events)
        assert set(kinds(events.all)) <= {"opened", "text_delta"}
        assert events.sequences == list(range(1, len(events.all) + 1))
    assert weir.wait() == 0
    weir.start()
    with pytest.raises(nimi.Refused) as refused:
        again = nimi.Client(weir)
        sessions[0].close(client=again)
    assert refused.value.reason == "AI_REALTIME_SESSION_NOT_FOUND"


@NIMI
def test_turns_are_counted_as_usage(weir):
    client = nimi.Client(weir)
    session = Session(client)
    events = session.read()
    session.append("hello")
    turn(events)
    session.close()
    request = audit_pb2.ListUsageStatsRequest(
        window=audit_pb2.USAGE_WINDOW_DAY, capability="TEXT_GENERATE"
    )
    while not (sums := client.ask(client.audit.ListUsageStats, request)[0].records):
        pass  # records are written soon after
    assert [(s.app_id, s.model_id, s.success_count) for s in sums] == [(nimi.APP, "m", 1)]
    assert (sums[0].input_tokens, sums[0].output_tokens) == (7, 11)
