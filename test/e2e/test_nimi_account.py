"""RuntimeAccountService of nimi.runtime.v1: the account of this machine (checks.md K35, M3, M4)."""
import contextlib
import json
import threading
import time

import attack
import grpc
import nimi_client as nimi
import pytest
import test_nimi_identity as identity
from accounts import DONE, Holder, cursor_of, kinds, pb, reasons, take
from nimi.runtime.v1 import app_pb2, app_pb2_grpc
from nimi_client import common
from subscriptions import assert_stopped
from test_nimi_identity import issuer  # noqa: F401  a fixture

ANONYMOUS = pb.ACCOUNT_SESSION_STATE_ANONYMOUS
PENDING = pb.ACCOUNT_SESSION_STATE_LOGIN_PENDING
AUTHENTICATED = pb.ACCOUNT_SESSION_STATE_AUTHENTICATED
EXPIRED = pb.ACCOUNT_SESSION_STATE_EXPIRED
REAUTH = pb.ACCOUNT_SESSION_STATE_REAUTH_REQUIRED


@pytest.fixture
def key(issuer):  # noqa: F811
    key = issuer.key("k")
    issuer.keys = [key]
    key.of = lambda user, **claims: key.sign(issuer.url, user, **claims)
    return key


@pytest.fixture
def desk(start_weir, issuer, key):  # noqa: F811
    """A machine with an issuer; `desk.weir` is its daemon."""
    weir = start_weir(config=identity.configured(issuer))
    holder = Holder(nimi.Client(weir))
    holder.weir = weir
    wait_for_account(holder)
    return holder


def wait_for_account(holder):
    """Until the store was asked who is logged in: no login begins before that."""
    give_up = time.monotonic() + 30
    while holder.status().state == pb.ACCOUNT_SESSION_STATE_UNAVAILABLE:
        assert time.monotonic() < give_up, "the account stays unavailable"
        time.sleep(0.01)


def again(desk):
    """The same app after a restart of the daemon."""
    holder = Holder(nimi.Client(desk.weir), desk.app, desk.instance)
    holder.weir = desk.weir
    wait_for_account(holder)
    return holder


def test_a_login_right_after_the_start_waits_for_the_store(start_weir, issuer, key):  # noqa: F811
    weir = start_weir(config=identity.configured(issuer))
    for _ in range(5):
        holder = Holder(nimi.Client(weir))
        assert holder.begin_login().accepted  # the first call of all
        weir.restart()


# --- without issuers ----------------------------------------------------------------------------


def test_without_issuers_nobody_can_log_in(weir):
    desk = Holder(nimi.Client(weir))
    status = desk.status()
    assert (status.state, status.account_reason_code) == (ANONYMOUS, DONE)
    assert not status.HasField("account_projection") and not status.production_inert
    begun = desk.begin_login()
    assert not begun.accepted and not begun.state and not begun.nonce
    assert begun.account_reason_code == pb.ACCOUNT_REASON_CODE_LOGIN_EXCHANGE_UNAVAILABLE
    assert begun.reason_code == common.AUTH_TOKEN_INVALID
    bound = desk.bind()
    assert not bound.accepted
    assert bound.account_reason_code == pb.ACCOUNT_REASON_CODE_ACCOUNT_UNAVAILABLE
    token = desk.token()
    assert not token.accepted and not token.access_token
    assert desk.log_out().accepted  # it is so already
    events = desk.subscribe()
    snapshot = events.next()
    assert (snapshot.event_type, snapshot.state) == (1, ANONYMOUS)
    assert snapshot.sequence and snapshot.event_id and snapshot.emitted_at.seconds
    assert len(events.cancel()) == 1


def test_a_refused_subscriber_gets_one_event_and_ok(weir):  # K35
    client = nimi.Client(weir)
    modes = {
        pb.ACCOUNT_CALLER_MODE_UNSPECIFIED: pb.ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED,
        pb.ACCOUNT_CALLER_MODE_DESKTOP_LAUNCHED_AVATAR: pb.ACCOUNT_REASON_CODE_AVATAR_BINDING_ONLY,
        pb.ACCOUNT_CALLER_MODE_MOD: pb.ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED,
        pb.ACCOUNT_CALLER_MODE_WEB_CLOUD: pb.ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED,
        pb.ACCOUNT_CALLER_MODE_EXTERNAL_PRINCIPAL: pb.ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED,
        77: pb.ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED,
    }
    for mode, reason in modes.items():
        holder = Holder(client, mode=mode)
        events = holder.subscribe()
        (event,) = events.rest()
        assert events.code == grpc.StatusCode.OK, events.text
        assert event.account_reason_code == reason, mode
        assert event.reason_code == common.PRINCIPAL_UNAUTHORIZED
        assert holder.status().account_reason_code == reason
        assert not holder.log_out().accepted
    mod = Holder(client, mode=pb.ACCOUNT_CALLER_MODE_MOD)
    assert mod.token().account_reason_code == pb.ACCOUNT_REASON_CODE_MOD_TOKEN_FORBIDDEN
    (event,) = Holder(client, instance="").subscribe().rest()
    assert event.account_reason_code == pb.ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED
    # Two apps at once are a mistake of the request, as everywhere.
    foreign = Holder(client, "app.desk")
    foreign.metadata = client.metadata(app_id="app.other")
    events = foreign.subscribe()
    assert events.rest() == [] and events.code == grpc.StatusCode.INVALID_ARGUMENT
    assert "PROTOCOL_DOMAIN_FIELD_CONFLICT" in events.text


# --- login --------------------------------------------------------------------------------------


def test_a_login_presents_a_token(desk, key):
    events = desk.subscribe()
    assert events.next().state == ANONYMOUS
    begun = desk.begin_login(callback_origin="http://desk")
    assert begun.accepted and begun.state and begun.nonce and begun.expires_at.seconds
    assert begun.callback_origin == "http://desk"
    assert desk.begin_login().login_attempt_id == begun.login_attempt_id  # the pending one
    assert desk.status().state == PENDING
    done = desk.complete_login(begun, key.of("anna"))
    assert (done.accepted, done.state) == (True, AUTHENTICATED)
    assert done.account_projection.account_id == "anna"
    got = take(events, 4)
    assert kinds(got) == ["LOGIN_STARTED", "ACCOUNT_STATUS", "LOGIN_COMPLETED", "ACCOUNT_STATUS"]
    assert [event.state for event in got] == [PENDING, PENDING, AUTHENTICATED, AUTHENTICATED]
    assert [event.account_projection.account_id for event in got] == ["", "", "anna", "anna"]
    assert [event.sequence for event in got] == list(
        range(events.all[0].sequence + 1, events.all[0].sequence + 5)
    )
    status = desk.status()
    assert (status.state, status.account_projection.account_id) == (AUTHENTICATED, "anna")
    # Nobody logs in beside.
    beside = Holder(desk.client, "app.other").begin_login()
    assert beside.account_reason_code == pb.ACCOUNT_REASON_CODE_ACCOUNT_UNAVAILABLE
    again = desk.complete_login(begun, key.of("anna"))
    assert again.account_reason_code == pb.ACCOUNT_REASON_CODE_PROOF_CONSUMED
    out = desk.log_out()
    assert (out.accepted, out.state) == (True, ANONYMOUS)
    assert kinds(take(events, 3)) == ["LOGOUT_STARTED", "LOGOUT_COMPLETED", "ACCOUNT_STATUS"]
    desk.log_in(key.of("ben"))
    switched = desk.switch()
    assert (switched.accepted, switched.state) == (True, ANONYMOUS)
    assert kinds(take(events, 7))[4:] == ["SWITCH_STARTED", "SWITCH_COMPLETED", "ACCOUNT_STATUS"]
    secrets = [begun.state, begun.nonce, key.of("anna")[:40]]
    assert not any(secret in str(event) for event in events.all for secret in secrets)
    events.cancel()


def test_what_proves_nothing(desk, key):
    events = desk.subscribe()
    events.next()
    mismatched = pb.ACCOUNT_REASON_CODE_PROOF_MISMATCHED

    def refused(token, **fields):
        begun = desk.begin_login()
        answer = desk.complete_login(begun, token, **fields)
        assert not answer.accepted and not answer.HasField("account_projection")
        return answer.account_reason_code

    good = key.of("anna")
    # What does not reach the token costs the attempt nothing.
    assert refused(good, state="x") == mismatched
    assert refused(good, nonce="") == mismatched
    assert refused(good, login_attempt_id="01HV000000000000000000000X") == mismatched
    assert refused("") == mismatched
    sealed = refused(good, sealed_completion_ticket="t")
    assert sealed == pb.ACCOUNT_REASON_CODE_PROOF_UNSUPPORTED
    assert kinds(take(events, 2)) == ["LOGIN_STARTED", "ACCOUNT_STATUS"]
    # Another app's attempt is as unknown as one that never was (M4).
    begun = desk.begin_login()
    other = Holder(desk.client, "app.other").complete_login(begun, good)
    never = Holder(desk.client, "app.other").complete_login(begun, good, login_attempt_id="no")
    assert other == never and other.account_reason_code == mismatched
    # A token that is none uses the attempt up.
    for token, reason in (
        ("x", mismatched),
        (key.of("anna", aud="other"), mismatched),
        (key.of("anna", exp=int(time.time()) - 5), pb.ACCOUNT_REASON_CODE_PROOF_EXPIRED),
        (key.of("anna", exp=int(time.time()) - 900), pb.ACCOUNT_REASON_CODE_PROOF_EXPIRED),
    ):
        assert refused(token) == reason
        assert desk.status().state == ANONYMOUS
        assert kinds(take(events, 2)) == ["LOGIN_FAILED", "ACCOUNT_STATUS"]
        assert reasons(events.all[-1:]) == [pb.AccountReasonCode.Name(reason)[20:]]
        desk.begin_login()
        take(events, 2)
    desk.log_in(good)
    events.cancel()


def test_keys_that_cannot_be_had_leave_the_attempt(desk, key, issuer):  # noqa: F811
    issuer.status = 500
    begun = desk.begin_login()
    answer = desk.complete_login(begun, key.of("anna"))
    assert answer.account_reason_code == pb.ACCOUNT_REASON_CODE_LOGIN_EXCHANGE_UNAVAILABLE
    assert desk.status().state == PENDING
    assert desk.begin_login().login_attempt_id == begun.login_attempt_id


def test_an_attempt_times_out(desk, key):
    events = desk.subscribe()
    begun = desk.begin_login(ttl_seconds=1)
    assert kinds(take(events, 5))[3:] == ["LOGIN_TIMED_OUT", "ACCOUNT_STATUS"]
    assert desk.status().state == ANONYMOUS
    answer = desk.complete_login(begun, key.of("anna"))
    assert answer.account_reason_code == pb.ACCOUNT_REASON_CODE_PROOF_MISMATCHED
    events.cancel()


def test_the_account_expires_with_its_token_and_a_newer_one_refreshes_it(desk, key):
    events = desk.subscribe()
    desk.log_in(key.of("anna", exp=int(time.time()) + 3))
    bound = desk.bind()
    assert bound.accepted and bound.relation.state == pb.SCOPED_APP_BINDING_STATE_ACTIVE
    got = take(events, 9)
    assert kinds(got)[5:] == [
        "BINDING_ISSUED", "BINDING_ACTIVATED", "BINDING_SUSPENDED", "ACCOUNT_STATUS"
    ]
    assert reasons(got[-1:]) == ["PROOF_EXPIRED"] and got[-1].state == EXPIRED
    assert desk.status().state == EXPIRED
    assert not desk.bind().accepted
    nothing = desk.refresh(None)
    assert nothing.account_reason_code == pb.ACCOUNT_REASON_CODE_LOGIN_EXCHANGE_UNAVAILABLE
    other = desk.refresh(key.of("ben"))  # refused: another's account
    assert other.account_reason_code == pb.ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED
    fresh = desk.refresh(key.of("anna"))
    assert (fresh.accepted, fresh.state) == (True, AUTHENTICATED)
    assert kinds(take(events, 4)) == [
        "REFRESH_STARTED", "REFRESH_COMPLETED", "ACCOUNT_STATUS", "BINDING_ACTIVATED"
    ]
    assert desk.unbind(bound.binding_id).accepted
    events.cancel()


def test_the_token_goes_back_to_the_session_that_brought_it(desk, key):
    mine, other = desk.open_session(), Holder(desk.client, "app.other")
    token = key.of("anna", scope="read write")
    desk.log_in(token, metadata=mine)
    given = desk.token(metadata=mine, requested_scopes=["read"])
    assert (given.accepted, given.access_token) == (True, token) and given.expires_at.seconds
    unauthorized = pb.ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED
    for holder, headers, fields in (
        (desk, (), {}),
        (desk, desk.open_session(), {}),
        (desk, mine, {"requested_scopes": ["admin"]}),
        (other, other.open_session(), {}),
    ):
        answer = holder.token(metadata=headers, **fields)
        assert not answer.accepted and not answer.access_token
        assert answer.account_reason_code == unauthorized
    with pytest.raises(nimi.Refused) as found:
        desk.token(metadata=[mine[0], ("x-nimi-session-token", "guess")])
    assert found.value.code == grpc.StatusCode.UNAUTHENTICATED
    desk.log_out()
    assert not desk.token(metadata=mine).accepted
    # Neither the token nor a part of it is ever written down.
    desk.weir.restart()
    files = [*desk.weir.data.rglob("*"), desk.weir.log_file]
    held = b"".join(file.read_bytes() for file in files if file.is_file())
    assert token.split(".")[2].encode() not in held and mine[1][1].encode() not in held


# --- bindings -----------------------------------------------------------------------------------


def test_bindings_are_an_apps_own(desk, key):  # M3, M4
    other = Holder(desk.client, "app.other")
    twin = Holder(desk.client, "app.desk", "two")
    mine, theirs, twins = desk.subscribe(), other.subscribe(), twin.subscribe()
    desk.log_in(key.of("anna"))
    bound = desk.bind(scopes=["runtime.agent.turn.read"])
    foreign = other.bind(agent_id="agent-2")
    assert bound.accepted and bound.binding_id == bound.relation.binding_id
    assert bound.relation.expires_at.seconds - bound.relation.issued_at.seconds == 3600
    # What is another's is as unknown as what never was.
    unknown = other.unbind("01HV000000000000000000000X")
    assert unknown.account_reason_code == pb.ACCOUNT_REASON_CODE_BINDING_NOT_FOUND
    assert unknown.reason_code == common.APP_GRANT_INVALID
    assert other.unbind(bound.binding_id) == unknown == twin.unbind(bound.binding_id)
    again = desk.bind(scopes=["runtime.agent.state.read"])
    assert again.binding_id != bound.binding_id
    assert desk.unbind(bound.binding_id) == unknown  # it was superseded
    assert desk.unbind(again.binding_id).relation.state == pb.SCOPED_APP_BINDING_STATE_REVOKED
    desk.log_out()
    heard = {}
    for name, events in (("mine", mine), ("theirs", theirs), ("twins", twins)):
        events.until(lambda event: kinds([event]) == ["LOGOUT_COMPLETED"])
        heard[name] = [
            (kind[8:], event.binding_id)
            for event, kind in zip(events.all, kinds(events.all))
            if kind.startswith("BINDING_")
        ]
        assert events.sequences[1:] == sorted(set(events.sequences[1:]))
        events.cancel()
    assert heard["mine"] == [
        ("ISSUED", bound.binding_id), ("ACTIVATED", bound.binding_id),
        ("ISSUED", again.binding_id), ("SUPERSEDED", bound.binding_id),
        ("ACTIVATED", again.binding_id), ("REVOKED", again.binding_id),
    ]
    assert heard["theirs"] == [
        (kind, foreign.binding_id) for kind in ("ISSUED", "ACTIVATED", "REVOKED")
    ]
    assert heard["twins"] == []


def test_what_cannot_be_bound(desk, key):
    desk.log_in(key.of("anna"))
    stale, unauthorized = (
        pb.ACCOUNT_REASON_CODE_BINDING_STALE, pb.ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED
    )
    avatar = pb.SCOPED_APP_BINDING_PURPOSE_AVATAR_INTERACTION_CONSUME
    for fields, reason in (
        ({"agent_id": ""}, stale),
        ({"runtime_app_id": ""}, stale),
        ({"runtime_app_id": "app.other"}, unauthorized),
        ({"app_instance_id": "two"}, unauthorized),
        ({"purpose": avatar}, stale),
        ({"purpose": avatar, "avatar_instance_id": "a", "window_id": "w"}, stale),
    ):
        answer = desk.bind(**fields)
        assert (answer.accepted, answer.account_reason_code) == (False, reason), fields
    whole = {"avatar_instance_id": "a", "window_id": "w", "conversation_anchor_id": "c"}
    assert desk.bind(purpose=avatar, **whole).accepted
    with pytest.raises(nimi.Refused) as found:
        desk.bind(world_id="w" * 9000)
    assert found.value.reason == "PROTOCOL_ENVELOPE_INVALID"
    for i in range(63):
        assert desk.bind(agent_id=f"agent-{i}").accepted
    with pytest.raises(nimi.Refused) as found:
        desk.bind(agent_id="one too many")
    assert found.value.code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert Holder(desk.client, "app.desk", "two").bind().accepted


def test_a_binding_expires(desk, key):
    desk.log_in(key.of("anna"))
    events = desk.subscribe()
    bound = desk.bind(ttl=1)
    got = events.until(lambda event: kinds([event]) == ["BINDING_EXPIRED"])
    assert got.binding_id == bound.binding_id
    assert not desk.unbind(bound.binding_id).accepted
    events.cancel()


def test_an_attached_binding_must_be_in_force(desk, key):
    desk.log_in(key.of("anna"))
    events = desk.subscribe()
    bound = desk.bind()
    app = app_pb2_grpc.RuntimeAppServiceStub(desk.client.channel)
    bearer = ("authorization", f"Bearer {key.of('anna')}")

    def send(**changes):
        whole = {
            "binding_id": bound.binding_id, "runtime_app_id": desk.app,
            "app_instance_id": desk.instance, "agent_id": "agent-1",
        }
        attached = common.ScopedRuntimeBindingAttachment(**{**whole, **changes})
        request = app_pb2.SendAppMessageRequest(
            from_app_id=desk.app, to_app_id="app.other", scoped_binding=attached
        )
        return desk.client.ask(app.SendAppMessage, request, metadata=[*desk.metadata, bearer])[0]

    def refused(**changes):
        with pytest.raises(nimi.Refused) as found:
            send(**changes)
        return found.value.code, found.value.reason

    denied = (grpc.StatusCode.PERMISSION_DENIED, "APP_GRANT_INVALID")
    assert send().accepted
    assert refused(binding_id="01HV000000000000000000000X") == denied
    # One that is shown for another part of the app has been copied: it ends.
    assert refused(agent_id="agent-2") == denied
    replayed = events.until(lambda event: kinds([event]) == ["BINDING_REPLAY_DETECTED"])
    assert replayed.binding_id == bound.binding_id
    assert refused() == denied
    events.cancel()


def test_a_token_shows_only_its_own_subjects_account(desk, key):  # M3
    anna = Holder(desk.client, token=key.of("anna"))
    ben = Holder(desk.client, token=key.of("ben"))
    hears = ben.subscribe()
    assert hears.next().state == ANONYMOUS
    desk.log_in(key.of("anna"))
    bound = anna.bind()
    unauthorized = pb.ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED
    status = ben.status()
    assert status.account_reason_code == unauthorized and not status.state
    assert not status.HasField("account_projection")
    (event,) = ben.subscribe().rest()
    assert event.account_reason_code == unauthorized and not event.HasField("account_projection")
    assert ben.bind().account_reason_code == unauthorized
    assert ben.unbind(bound.binding_id) == anna.unbind("no such")  # M4
    assert ben.log_out().account_reason_code == unauthorized
    assert anna.status().account_projection.account_id == "anna"
    anna.log_out()
    later = ben.subscribe(after=1)  # all that is kept, but for anna's
    hears.until(lambda event: kinds([event]) == ["LOGOUT_COMPLETED"])
    later.until(lambda event: kinds([event]) == ["LOGOUT_COMPLETED"])
    for events in (hears, later):
        assert not any("anna" in str(event) or event.binding_id for event in events.cancel())


def test_where_tokens_are_required_the_account_needs_one(start_weir, issuer, key):  # noqa: F811
    weir = start_weir(config=identity.configured(issuer, require_token=True))
    desk = Holder(nimi.Client(weir))
    desk.log_in(key.of("anna"))  # the proof is the request's own
    with pytest.raises(nimi.Refused) as found:
        desk.status()
    assert found.value.code == grpc.StatusCode.UNAUTHENTICATED
    events = desk.subscribe()
    assert events.rest() == [] and events.code == grpc.StatusCode.UNAUTHENTICATED
    assert Holder(desk.client, token=key.of("anna")).status().state == AUTHENTICATED


# --- cursors ------------------------------------------------------------------------------------


def test_a_cursor_replays_what_came_after_it(desk, key):
    first = desk.subscribe()
    first.next()
    desk.log_in(key.of("anna"))
    take(first, 4)
    for i in range(3):
        desk.bind(agent_id=f"agent-{i}")
    take(first, 6)
    middle = first.sequences[4]
    second = desk.subscribe(after=middle)
    got = take(second, 7)
    assert kinds(got[:1]) == ["ACCOUNT_STATUS"] and not got[0].replay_truncated
    assert got[0].sequence > max(first.sequences)  # a number of its own
    assert got[1:] == first.all[5:]
    # With 0, all that is kept; with the newest, nothing.
    assert take(desk.subscribe(), 11)[1:] == first.all[1:]
    newest = desk.subscribe(after=first.sequences[-1])
    assert not newest.next().replay_truncated
    bound = desk.bind(agent_id="last")
    for events in (first, second, newest):
        assert events.next().binding_id == bound.binding_id
        assert events.cancel()[-1].sequence > got[0].sequence


def test_what_is_kept_no_longer_is_truncated(desk, key):
    desk.log_in(key.of("anna"))
    events = desk.subscribe()
    take(events, 5)
    for i in range(70):  # two events, then three each
        assert desk.bind().accepted
    take(events, 2 + 69 * 3)
    lost = desk.subscribe(after=events.sequences[1])
    got = take(lost, 129)
    assert got[0].replay_truncated and got[1:] == events.all[-128:]
    held = desk.subscribe(after=got[1].sequence)
    got = take(held, 128)
    assert not got[0].replay_truncated and got[1:] == events.all[-127:]
    unknown = desk.subscribe(after=2**63)  # was never reached
    assert unknown.next().replay_truncated
    # It is the same after a restart.
    desk.weir.restart()
    desk = again(desk)
    late = desk.subscribe(after=events.sequences[1])
    assert late.next().replay_truncated
    late.cancel()


def test_who_subscribes_while_things_happen_misses_nothing(desk, key):
    """Each begins at a number that it knows, on a connection of its own, while others are written."""
    desk.log_in(key.of("anna"))
    reference = desk.subscribe()
    take(reference, 5)
    bound = []

    def write():
        bound.extend(desk.bind().accepted for _ in range(40))  # three events each

    writer = threading.Thread(target=write)
    writer.start()
    others = []
    for _ in range(30):
        cursor = reference.next().sequence
        client = nimi.Client(desk.weir, options=[("grpc.use_local_subchannel_pool", 1)])
        others.append((cursor, Holder(client, desk.app).subscribe(after=cursor)))
    writer.join()
    assert all(bound) and desk.log_out().accepted
    for _, events in (0, reference), *others:
        events.until(lambda event: kinds([event]) == ["LOGOUT_COMPLETED"])
    for cursor, events in others:
        assert not events.all[0].replay_truncated
        expected = [event for event in reference.all if event.sequence > cursor]
        assert events.all[1:] == expected
        events.cancel()
    reference.cancel()


def stall(weir, holder):
    """A subscription whose client never reads nor grants a window."""
    request = pb.SubscribeAccountSessionEventsRequest(caller=holder.caller)
    body = request.SerializeToString()
    names = {name.replace("-", "_"): value for name, value in nimi.HEADERS.items()}
    path = "/nimi.runtime.v1.RuntimeAccountService/SubscribeAccountSessionEvents"
    fields = {**names, **attack.GRPC, "x_nimi_app_id": holder.app, "path": path}
    peer = attack.dial(weir.port("nimi_grpc"))
    peer.settimeout(attack.PATIENCE)
    asked = attack.frame(attack.HEADERS, attack.END_HEADERS, 1, attack.request(**fields))
    asked += attack.frame(
        attack.DATA, attack.END_STREAM, 1, b"\0" + len(body).to_bytes(4, "big") + body
    )
    peer.sendall(attack.START + asked)
    return peer


def test_a_slow_subscriber_is_ended_and_costs_nobody(start_weir, issuer, key):  # noqa: F811  B2
    config = identity.configured(issuer) + "limits: {write_stall: 4s}\n"
    weir = start_weir(config=config)
    desk = Holder(nimi.Client(weir))
    desk.log_in(key.of("anna"))
    healthy = desk.subscribe()
    take(healthy, 5)
    with stall(weir, desk) as peer:
        for i in range(64):  # 3.5 KiB each, twice: many times its window
            assert desk.bind(world_id=f"{i}" + "w" * 3500).accepted
        take(healthy, 2 * 64)
        ending = attack.Ending()
        peer.settimeout(0.1)
        give_up = time.monotonic() + attack.PATIENCE
        while ending.count(attack.RESET) == 0 and time.monotonic() < give_up:
            with contextlib.suppress(TimeoutError):
                ending.received += peer.recv(262144)
        reset = [payload for kind, _, _, payload in ending.frames if kind == attack.RESET]
        # What gRPC clients show as RESOURCE_EXHAUSTED; trailers could not pass the full window.
        assert reset == [attack.ENHANCE_YOUR_CALM.to_bytes(4, "big")]
    assert healthy.sequences[1:] == sorted(set(healthy.sequences[1:]))
    healthy.cancel()


# --- restarts -----------------------------------------------------------------------------------


def test_a_subscription_goes_on_after_a_restart(desk, key):
    """The daemon stops; the subscriber is disconnected, waits for READY, and subscribes again with
    its cursor. Nothing is missing, nothing comes twice, and the state is that of before."""
    events = desk.subscribe()
    events.next()
    desk.log_in(key.of("anna"))
    bound = desk.bind()
    take(events, 6)
    behind = desk.subscribe(after=events.sequences[2])  # has seen less
    take(behind, 1)
    seen, cursor = list(events.all), cursor_of(events)
    desk.weir.signal(15)
    for one in (events, behind):
        assert_stopped(one)  # CANCELLED in plain words: the SDK says runtime.disconnected
    assert events.all == seen  # and no last event was invented
    assert desk.weir.wait() == 0
    desk.weir.start()
    desk = again(desk)
    assert desk.client.health()[0].status == 3  # READY
    status = desk.status()
    assert (status.state, status.account_projection.account_id) == (AUTHENTICATED, "anna")
    back = desk.subscribe(after=cursor)
    snapshot = back.next()
    assert (snapshot.state, snapshot.account_projection.account_id) == (AUTHENTICATED, "anna")
    assert not snapshot.replay_truncated
    # Bindings do not survive, and their holders hear it before the account is back.
    got = take(back, 3)
    assert kinds(got) == ["BINDING_REVOKED", "CUSTODY_RECOVERED", "ACCOUNT_STATUS"]
    assert got[0].binding_id == bound.binding_id
    assert reasons(got[:1]) == ["BINDING_STALE"]
    assert min(event.sequence for event in back.all) > max(event.sequence for event in seen)
    assert not desk.unbind(bound.binding_id).accepted
    # The one that was behind gets what it missed of the process before, then the same.
    late = desk.subscribe(after=seen[2].sequence)
    assert take(late, 1 + len(seen) - 3 + 3)[1:] == seen[3:] + got
    # The token was in memory only.
    assert desk.token().account_reason_code == pb.ACCOUNT_REASON_CODE_CUSTODY_UNAVAILABLE
    again_bound = desk.bind()
    for one in (back, late):
        assert take(one, 2)[1].binding_id == again_bound.binding_id
        ours = [event.sequence for event in one.all[1:]]
        assert ours == sorted(set(ours))
        one.cancel()


def test_numbers_rise_over_every_end_of_the_process(desk, key):
    highest = 0
    for end in ("restart", "kill", "kill", "restart"):
        events = desk.subscribe(after=highest)
        assert not events.next().replay_truncated
        if desk.status().state == ANONYMOUS:
            desk.log_in(key.of("anna"))
        bound = desk.bind()
        events.until(
            lambda event: kinds([event]) == ["BINDING_ACTIVATED"]
            and event.binding_id == bound.binding_id
        )
        assert min(events.sequences[1:]) > highest
        events.cancel()
        highest = max(events.sequences)
        if end == "kill":
            desk.weir.kill()
            desk.weir.start()
        else:
            desk.weir.restart()
        desk = again(desk)
    assert desk.status().state == AUTHENTICATED


def test_an_account_that_expired_meanwhile_is_expired(desk, key):
    expires = int(time.time()) + 2
    desk.log_in(key.of("anna", exp=expires))
    desk.weir.kill()
    identity.wait_for(lambda: time.time() > expires)
    desk.weir.start()
    desk = again(desk)
    status = desk.status()
    assert (status.state, status.account_projection.account_id) == (EXPIRED, "anna")
    assert status.account_reason_code == pb.ACCOUNT_REASON_CODE_PROOF_EXPIRED
    desk.log_in(key.of("ben"))
    assert desk.status().account_projection.account_id == "ben"


def test_an_issuer_that_is_not_trusted_any_more_asks_for_a_login(start_weir, issuer, key):  # noqa: F811
    weir = start_weir(config=identity.configured(issuer))
    desk = Holder(nimi.Client(weir))
    desk.log_in(key.of("anna"))
    weir.stop()
    settings = weir.folder / "weir.yaml"
    ours = settings.read_text()
    other = json.dumps(issuer.url + "/other")
    settings.write_text(ours.replace(json.dumps(issuer.url), other, 1))
    weir.start()
    desk = Holder(nimi.Client(weir))
    assert desk.status().state == REAUTH
    events = desk.subscribe(after=1)
    assert kinds([events.next()]) == ["ACCOUNT_STATUS"]
    desk.begin_login(ttl_seconds=1)
    events.until(lambda event: kinds([event]) == ["LOGIN_TIMED_OUT"])
    assert events.next().state == REAUTH
    events.cancel()
    assert desk.log_out().accepted and desk.status().state == ANONYMOUS
    weir.stop()
    settings.write_text(ours.split("issuers:")[0])  # and none at all
    weir.start()
    assert Holder(nimi.Client(weir)).status().state == ANONYMOUS


def test_a_logout_is_for_good(desk, key):
    desk.log_in(key.of("anna"))
    desk.log_out()
    desk.weir.kill()
    desk.weir.start()
    assert again(desk).status().state == ANONYMOUS
