"""nimi_client: a client of nimi.runtime.v1, as the tests play it.

    client = nimi_client.Client(weir)
    answer = client.stream("hello")
    assert answer.text == "You said: hello"

Every call carries the headers that the protocol's own SDK sends. An Answer is the events of one
stream and the status it ended with.
"""
import json

import grpc
from nimi.runtime.v1 import ai_pb2 as pb
from nimi.runtime.v1 import ai_pb2_grpc, audit_pb2, audit_pb2_grpc
from nimi.runtime.v1 import common_pb2 as common

APP = "demo.app"
PATIENCE = 90
HEADERS = {
    "x-nimi-protocol-version": "1.0.0",
    "x-nimi-participant-protocol-version": "1.0.0",
    "x-nimi-participant-id": APP,
    "x-nimi-domain": "runtime.rpc",
    "x-nimi-caller-kind": "third-party-app",
    "x-nimi-caller-id": APP,
    "x-nimi-app-id": APP,
}


def head(**fields):
    whole = {"app_id": APP, "model_id": "local/m", "route_policy": common.ROUTE_POLICY_LOCAL}
    return pb.ScenarioRequestHead(**{**whole, **fields})


def text_spec(message, **fields):
    words = [pb.ChatMessage(role="user", content=message)] if message is not None else []
    return pb.ScenarioSpec(text_generate=pb.TextGenerateScenarioSpec(input=words, **fields))


def request(message="hello", kind=pb.StreamScenarioRequest, spec=None, mode=None, **fields):
    default = pb.EXECUTION_MODE_STREAM
    if kind is pb.ExecuteScenarioRequest:
        default = pb.EXECUTION_MODE_SYNC
    return kind(
        head=head(**fields),
        scenario_type=pb.SCENARIO_TYPE_TEXT_GENERATE,
        execution_mode=default if mode is None else mode,
        spec=spec or text_spec(message),
    )


class Refused(Exception):
    """A call that ended with a status: what each carrier says of it."""

    def __init__(self, error):
        super().__init__(error.details())
        self.code = error.code()
        self.text = error.details()
        self.headers = dict(error.initial_metadata() or ())
        self.trailers = dict(error.trailing_metadata() or ())

    @property
    def message(self):
        return json.loads(self.text)

    @property
    def reason(self):
        """The same in the message and in the details, or this fails."""
        details = self.trailers["grpc-status-details-bin"]
        name = self.message["reasonCode"]
        assert name.encode() in details and b"nimi.runtime.v1" in details
        assert b"type.googleapis.com/google.rpc.ErrorInfo" in details
        return name


class Answer:
    """What came on one stream."""

    def __init__(self, call):
        self.events = []
        self.error = None
        try:
            for event in call:
                self.events.append(event)
        except grpc.RpcError as error:
            self.error = Refused(error)
        self.code = call.code()
        self.headers = dict(call.initial_metadata() or ())
        self.trailers = dict(call.trailing_metadata() or ())

    @property
    def kinds(self):
        return [e.WhichOneof("payload") for e in self.events]

    @property
    def deltas(self):
        return [e.delta.text.text for e in self.events if e.HasField("delta")]

    @property
    def text(self):
        return "".join(self.deltas)

    @property
    def last(self):
        """The one frame that says done; the last of all."""
        done = [e for e in self.events if e.HasField("frame") and e.frame.done]
        assert len(done) == 1 and done[0] is self.events[-1], self.kinds
        return done[0]


class Client:
    def __init__(self, weir, target=None, options=None):
        self.channel = grpc.insecure_channel(
            target or f"127.0.0.1:{weir.ports['nimi_grpc']}", options=options
        )
        weir._channels.append(self.channel)
        self.ai = ai_pb2_grpc.RuntimeAiServiceStub(self.channel)
        self.audit = audit_pb2_grpc.RuntimeAuditServiceStub(self.channel)

    @staticmethod
    def metadata(**changes):
        """The headers; a keyword with underscores changes one, None leaves it out."""
        named = {"x-nimi-" + k.replace("_", "-"): v for k, v in changes.items()}
        return [(k, v) for k, v in {**HEADERS, **named}.items() if v is not None]

    def open(self, asked, timeout=PATIENCE, metadata=None):
        return self.ai.StreamScenario(
            asked, metadata=metadata or self.metadata(), timeout=timeout
        )

    def stream(self, message="hello", metadata=None, asked=None, **fields):
        return Answer(self.open(asked or request(message, **fields), metadata=metadata))

    def ask(self, method, asked, metadata=None):
        """One unary call: its reply and its headers, or Refused."""
        try:
            reply, call = method.with_call(
                asked, metadata=metadata or self.metadata(), timeout=PATIENCE
            )
        except grpc.RpcError as error:
            raise Refused(error) from None
        return reply, dict(call.initial_metadata())

    def execute(self, message="hello", metadata=None, **fields):
        asked = request(message, kind=pb.ExecuteScenarioRequest, **fields)
        return self.ask(self.ai.ExecuteScenario, asked, metadata)[0]

    def health(self):
        return self.ask(self.audit.GetRuntimeHealth, audit_pb2.GetRuntimeHealthRequest())
