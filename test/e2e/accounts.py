"""accounts: RuntimeAccountService of nimi.runtime.v1, as an app on this machine uses it.

    anna = Holder(client, "app.desk")
    anna.log_in(token)
    events = anna.subscribe()
    assert events.next().event_type == pb.ACCOUNT_EVENT_TYPE_ACCOUNT_STATUS
"""
import nimi_client as nimi
from nimi.runtime.v1 import account_pb2 as pb
from nimi.runtime.v1 import account_pb2_grpc, auth_pb2, auth_pb2_grpc
from subscriptions import Events

DONE = pb.ACCOUNT_REASON_CODE_ACTION_EXECUTED


class Holder:
    """One instance of an app."""

    def __init__(self, client, app="app.desk", instance="one", token=None, mode=None):
        self.client, self.app, self.instance = client, app, instance
        self.stub = account_pb2_grpc.RuntimeAccountServiceStub(client.channel)
        self.metadata = client.metadata(app_id=app, participant_id=app, caller_id=app)
        self.mode = pb.ACCOUNT_CALLER_MODE_LOCAL_FIRST_PARTY_APP if mode is None else mode
        if token:
            self.metadata.append(("authorization", f"Bearer {token}"))

    @property
    def caller(self):
        return pb.AccountCaller(app_id=self.app, app_instance_id=self.instance, mode=self.mode)

    def ask(self, name, kind, metadata=(), **fields):
        request = kind(caller=self.caller, **fields)
        method = getattr(self.stub, name)
        return self.client.ask(method, request, metadata=[*self.metadata, *metadata])[0]

    def status(self):
        return self.ask("GetAccountSessionStatus", pb.GetAccountSessionStatusRequest)

    def subscribe(self, after=0):
        request = pb.SubscribeAccountSessionEventsRequest(
            caller=self.caller, after_sequence=after
        )
        call = self.stub.SubscribeAccountSessionEvents(
            request, metadata=self.metadata, timeout=nimi.PATIENCE
        )
        return Events(call)

    def begin_login(self, **fields):
        return self.ask("BeginLogin", pb.BeginLoginRequest, **fields)

    def complete_login(self, begun, token, metadata=(), **fields):
        proof = {
            "login_attempt_id": begun.login_attempt_id,
            "state": begun.state,
            "nonce": begun.nonce,
            "code": token,
        }
        return self.ask(
            "CompleteLogin", pb.CompleteLoginRequest, metadata=metadata, **{**proof, **fields}
        )

    def log_in(self, token, metadata=()):
        begun = self.begin_login()
        assert begun.accepted, begun
        done = self.complete_login(begun, token, metadata=metadata)
        assert done.accepted, done
        return done

    def refresh(self, token, metadata=()):
        bearer = ("authorization", f"Bearer {token}")
        return self.ask(
            "RefreshAccountSession",
            pb.RefreshAccountSessionRequest,
            metadata=[bearer, *metadata] if token else metadata,
        )

    def log_out(self):
        return self.ask("Logout", pb.LogoutRequest)

    def switch(self):
        return self.ask("SwitchAccount", pb.SwitchAccountRequest)

    def token(self, metadata=(), **fields):
        return self.ask("GetAccessToken", pb.GetAccessTokenRequest, metadata=metadata, **fields)

    def relation(self, **fields):
        whole = {
            "runtime_app_id": self.app,
            "app_instance_id": self.instance,
            "agent_id": "agent-1",
            "purpose": pb.SCOPED_APP_BINDING_PURPOSE_APP_SCOPED_RUNTIME,
        }
        return pb.ScopedAppBindingRelation(**{**whole, **fields})

    def bind(self, ttl=0, **fields):
        return self.ask(
            "IssueScopedAppBinding",
            pb.IssueScopedAppBindingRequest,
            relation=self.relation(**fields),
            ttl_seconds=ttl,
        )

    def unbind(self, binding_id):
        return self.ask(
            "RevokeScopedAppBinding", pb.RevokeScopedAppBindingRequest, binding_id=binding_id
        )

    def open_session(self):
        """The headers of a session of this app."""
        auth = auth_pb2_grpc.RuntimeAuthServiceStub(self.client.channel)
        self.client.ask(
            auth.RegisterApp,
            auth_pb2.RegisterAppRequest(app_id=self.app, app_instance_id=self.instance),
            metadata=self.metadata,
        )
        opened = self.client.ask(
            auth.OpenSession,
            auth_pb2.OpenSessionRequest(app_id=self.app, app_instance_id=self.instance),
            metadata=self.metadata,
        )[0]
        return [
            ("x-nimi-session-id", opened.session_id),
            ("x-nimi-session-token", opened.session_token),
        ]


def kinds(events):
    prefix = len("ACCOUNT_EVENT_TYPE_")
    return [pb.AccountEventType.Name(event.event_type)[prefix:] for event in events]


def reasons(events):
    prefix = len("ACCOUNT_REASON_CODE_")
    return [pb.AccountReasonCode.Name(event.account_reason_code)[prefix:] for event in events]


def take(events, count):
    return [events.next() for _ in range(count)]


def cursor_of(events):
    """The number of the newest event that is not the snapshot, or of the snapshot alone."""
    return max(events.sequences[1:] or events.sequences)
