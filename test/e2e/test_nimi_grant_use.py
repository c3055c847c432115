"""Calls of nimi.runtime.v1 that bring an access token of a grant (RuntimeGrantService)."""
import threading

import grpc
import nimi_client as nimi
import pytest
import test_nimi_identity as identity
from nimi.runtime.v1 import app_pb2, app_pb2_grpc, audit_pb2, memory_pb2
from nimi.runtime.v1 import grant_pb2 as pb
from nimi_client import pb as ai
from test_audit import eventually, records
from test_nimi_grants import Grants
from test_nimi_identity import issuer  # noqa: F401  a fixture
from test_nimi_memory import Memory, episode, place

DENIED = grpc.StatusCode.PERMISSION_DENIED
UNKNOWN = (DENIED, "PRINCIPAL_UNAUTHORIZED")
APP = "app.desk"


def shown(made, secret=None):
    """The metadata of a call that brings this token."""
    return [
        ("x-nimi-access-token-id", made.token_id),
        ("x-nimi-access-token-secret", secret or made.secret),
    ]


def remembering(weir, metadata, app=APP, token=None):
    memory = Memory(weir, app=app, token=token)
    memory.metadata = memory.metadata + metadata
    return memory


def outcome(call, *args, **fields):
    try:
        call(*args, **fields)
    except nimi.Refused as why:
        return why.code, why.reason
    except grpc.RpcError as why:
        refused = nimi.Refused(why)
        return refused.code, refused.reason
    return None


def read(memory):
    asked = memory_pb2.ListBanksRequest(context=memory.context)
    return memory.ask("ListBanks", asked)


def say(client, metadata, model="m", subject="", text="hello"):
    head = nimi.head(app_id=APP, model_id=f"local/{model}", subject_user_id=subject)
    asked = ai.StreamScenarioRequest(
        head=head,
        scenario_type=ai.SCENARIO_TYPE_TEXT_GENERATE,
        execution_mode=ai.EXECUTION_MODE_STREAM,
        spec=nimi.text_spec(text),
    )
    events = list(client.open(asked, metadata=client.metadata(app_id=APP) + metadata))
    assert events[-1].frame.done
    return events


def test_a_token_limits_its_call_to_its_scopes_and_its_subject(weir):
    desk = Grants(nimi.Client(weir), APP)
    reads = desk.authorize(scopes=["runtime.memory.read"])
    memory = remembering(weir, shown(reads))
    read(memory)
    assert outcome(memory.create) == (DENIED, "APP_SCOPE_FORBIDDEN")
    writes = remembering(weir, shown(desk.authorize(scopes=["runtime.memory.*"])))
    writes.create()
    read(writes)
    # Another subject than the one who consented; none at all is that one.
    memory.context.subject_user_id = "ben"
    assert outcome(read, memory) == UNKNOWN
    memory.context.subject_user_id = ""
    assert len(read(memory).banks) == 1
    # Without a token the caller is as free as before.
    free = remembering(weir, [])
    assert len(read(free).banks) == 1
    # A model needs no scope, but a token that is shown must be good all the same.
    assert say(desk.client, shown(reads))
    assert say(desk.client, shown(reads), subject="anna")
    assert outcome(say, desk.client, shown(reads), subject="ben") == UNKNOWN


def test_what_is_no_good_token_is_refused_and_says_nothing_of_others(weir):
    client = nimi.Client(weir)
    desk, other = Grants(client, APP), Grants(client, "app.other")
    made, foreign = desk.authorize(), other.authorize()
    good = shown(made)
    bad = [
        shown(made, secret=foreign.secret),  # another's secret
        shown(foreign),  # another app's token
        [("x-nimi-access-token-id", "0" * 26), good[1]],  # one that never was
        good[:1], good[1:],  # half of it
        good + good,  # two
        [("x-nimi-access-token-id", ""), ("x-nimi-access-token-secret", "")],
        [("x-nimi-access-token-id", "x" * 4000), good[1]],
    ]
    texts = set()
    for metadata in bad:
        memory = remembering(weir, metadata)
        with pytest.raises(nimi.Refused) as found:
            read(memory)
        assert (found.value.code, found.value.reason) == UNKNOWN, metadata
        texts.add(found.value.message["message"])
        assert outcome(say, client, metadata) == UNKNOWN
    assert len(texts) == 1  # they cannot be told apart (M4)
    read(remembering(weir, good))
    desk.revoke(made.token_id)
    assert outcome(read, remembering(weir, good)) == (DENIED, "APP_TOKEN_REVOKED")
    assert outcome(say, client, good) == (DENIED, "APP_TOKEN_REVOKED")
    # By another secret nobody learns that it was revoked.
    assert outcome(read, remembering(weir, bad[0])) == UNKNOWN
    # What was passed on goes with it, and so does a grant under an earlier policy.
    root = desk.authorize(can_delegate=True)
    child = desk.delegate(root.token_id, scopes=["runtime.memory.read"])
    read(remembering(weir, shown(child)))
    assert outcome(remembering(weir, shown(child)).create) == (DENIED, "APP_SCOPE_FORBIDDEN")
    desk.authorize(policy_version="p2")
    assert outcome(read, remembering(weir, shown(child))) == (DENIED, "APP_TOKEN_REVOKED")
    # An app asks for its next token, and whether it is well, with the last one in its headers.
    again = Grants(client, APP)
    again.metadata = again.metadata + good
    assert again.authorize(policy_version="p2").token_id
    health = audit_pb2.GetRuntimeHealthRequest()
    assert client.ask(
        client.audit.GetRuntimeHealth, health, metadata=client.metadata(app_id=APP) + good
    )


def test_a_token_may_be_for_one_model_and_for_messages_to_others(weir):
    desk = Grants(nimi.Client(weir), APP)
    selects = pb.ResourceSelectors(labels={"model": "local/m", "colour": "red"})
    one = shown(desk.authorize(resource_selectors=selects))
    assert say(desk.client, one)
    outside = (DENIED, "APP_RESOURCE_OUT_OF_SCOPE")
    assert outcome(say, desk.client, one, model="other") == outside
    # A token that is passed on is for that model too, whatever else it selects.
    root = desk.authorize(resource_selectors=selects, can_delegate=True, max_delegation_depth=3)
    for asked in (pb.ResourceSelectors(), pb.ResourceSelectors(labels={"colour": "red"}), None):
        child = desk.delegate(root.token_id, resource_selectors=asked)
        last = desk.delegate(child.token_id, resource_selectors=pb.ResourceSelectors())
        for made in (child, last):
            assert say(desk.client, shown(made))
            assert outcome(say, desk.client, shown(made), model="other") == outside
    other = Grants(desk.client, "app.other")
    assert other
    stub = app_pb2_grpc.RuntimeAppServiceStub(desk.client.channel)

    def send(to, metadata):
        request = app_pb2.SendAppMessageRequest(
            from_app_id=APP, to_app_id=to, message_type="t", subject_user_id="anna"
        )
        metadata = desk.client.metadata(app_id=APP) + metadata
        return desk.client.ask(stub.SendAppMessage, request, metadata=metadata)

    assert send(APP, one)
    assert outcome(send, "app.other", one) == (DENIED, "APP_SCOPE_FORBIDDEN")
    crosses = shown(desk.authorize(scopes=["runtime.app.send.cross_app"]))
    assert send("app.other", crosses)


def test_a_stream_ends_when_its_token_is_revoked(weir):
    desk = Grants(nimi.Client(weir), APP)
    made, kept = desk.authorize(), desk.authorize()
    request = memory_pb2.SubscribeMemoryEventsRequest(
        context=memory_pb2.MemoryRequestContext(app_id=APP, subject_user_id="anna")
    )

    def subscribe(token):
        memory = remembering(weir, shown(token))
        call = memory.stub.SubscribeMemoryEvents(request, metadata=memory.metadata, timeout=60)
        call.initial_metadata()
        return call

    mine, others = [subscribe(made) for _ in range(3)], subscribe(kept)
    writer = remembering(weir, [])
    writer.create()
    for call in (*mine, others):
        assert next(call).HasField("bank_created")
    # While others write: each stream is cut between two events, and none ends otherwise.
    stop = threading.Event()

    def write():
        while not stop.is_set():
            asked = memory_pb2.RetainRequest(
                context=writer.context, bank=place(), records=[episode("more")]
            )
            writer.ask("Retain", asked)

    thread = threading.Thread(target=write)
    thread.start()
    desk.revoke(made.token_id)
    for call in mine:
        sequences = []
        with pytest.raises(grpc.RpcError) as ended:
            sequences.extend(event.sequence for event in call)
        refused = nimi.Refused(ended.value)
        assert (refused.code, refused.reason) == (DENIED, "APP_TOKEN_REVOKED")
    stop.set()
    thread.join()
    assert others.is_active() and next(others).HasField("record_retained")
    others.cancel()
    assert outcome(subscribe(made).__next__) == (DENIED, "APP_TOKEN_REVOKED")


def test_with_issuers_a_token_adds_nothing(start_weir, issuer):  # noqa: F811
    key = issuer.key("k")
    issuer.keys = [key]
    weir = start_weir(config=identity.configured(issuer))
    both = "runtime.memory.read runtime.memory.write"
    anna = key.sign(issuer.url, "anna", scope=both)
    made = Grants(nimi.Client(weir), APP, token=anna).authorize(scopes=["runtime.memory.read"])
    mine = remembering(weir, shown(made), token=anna)
    read(mine)
    assert outcome(mine.create) == (DENIED, "APP_SCOPE_FORBIDDEN")
    # It is no token of an issuer, and not another subject's.
    nobody = remembering(weir, shown(made))
    assert outcome(read, nobody) == (grpc.StatusCode.UNAUTHENTICATED, "AUTH_TOKEN_INVALID")
    ben = remembering(weir, shown(made), token=key.sign(issuer.url, "ben", scope=both))
    ben.context.subject_user_id = "ben"
    assert outcome(read, ben) == UNKNOWN
    narrow = remembering(weir, shown(made), token=key.sign(issuer.url, "anna", scope="x"))
    assert outcome(read, narrow) == (DENIED, "APP_SCOPE_FORBIDDEN")


def test_the_audit_log_names_the_token(weir):
    desk = Grants(nimi.Client(weir), APP)
    made = desk.authorize()
    memory = remembering(weir, shown(made))
    memory.create()
    keyed = desk.client.metadata(app_id=APP, idempotency_key="k") + shown(made)
    desk.client.execute("hi", metadata=keyed, app_id=APP)
    desk.revoke(made.token_id)
    assert outcome(memory.create) == (DENIED, "APP_TOKEN_REVOKED")

    def written():
        found = [r for r in records(weir) if r.get("detail") == made.token_id]
        return found if len(found) > 1 else None

    found = eventually(written)
    assert sorted(r["operation"] for r in found) == ["CreateBank", "ExecuteScenario"]
