"""Who may come in: tokens of Converse, and the bearer token of the Runtime Contract."""
import base64
import hashlib
import hmac
import time

import crawbl
import grpc
import harness
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

pytestmark = pytest.mark.weir(script="test/e2e/scripts/contract.yaml")

OTHER_KEY = "another-signing-key-of-32-bytes!"
STRICT = pytest.mark.weir(config="tokens:\n  strict: true\n")

MISSING = "Request unauthenticated with bearer"
BAD = "Bad authorization string"
EMPTY = "empty bearer token"
INVALID = "invalid bearer token"


def b64(raw):
    return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


def signed(text, over=None, key=harness.SIGNING_KEY):
    """`text` with the MAC over itself, or over something else, behind a dot."""
    mac = hmac.new(key.encode(), (over or text).encode(), hashlib.sha256)
    return f"{text}.{mac.hexdigest()}"


def attempt(weir, *values):
    """Open Converse with these authorization headers: (code, message, events)."""
    with crawbl.open_stream(weir, metadata=[("authorization", v) for v in values]) as stream:
        stream.send("hello")
        stream.half_close()
        events = []
        try:
            for event in stream.call:
                events.append(event)
        except grpc.RpcError:
            pass
        return stream.call.code(), stream.call.details(), events


def accepted(weir, token):
    code, details, events = attempt(weir, "Bearer " + token)
    if code == grpc.StatusCode.OK:
        assert crawbl.Turn(events).error is None, events
        return True
    assert (code, details) == (grpc.StatusCode.UNAUTHENTICATED, INVALID)
    assert not events
    return False


# --- the header -----------------------------------------------------------------------

HEADERS = {
    "no header": ([], MISSING),
    "an empty header": ([""], None),
    "another scheme": (["Basic dXNlcjpwYXNz"], MISSING),
    "a token alone": (["{good}"], BAD),
    "the scheme alone": (["Bearer"], BAD),
    "two headers": (["Bearer {good}", "Bearer {good}"], None),
    "two headers, one wrong": (["Bearer {good}", "Bearer x.y"], None),
    "two spaces": (["Bearer  {good}"], None),
    "nonsense": (["Bearer nonsense"], INVALID),
    "a dot": (["Bearer ."], INVALID),
    "another token type": (["Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"], INVALID),
}


@pytest.mark.parametrize("what", HEADERS)
def test_a_call_is_unauthenticated_with(weir, what):
    """A1, 3.3: no message is read; the texts are upstream's"""
    values, message = HEADERS[what]
    code, details, events = attempt(weir, *(value.format(good=harness.token()) for value in values))
    assert code == grpc.StatusCode.UNAUTHENTICATED
    assert events == []
    assert details == message if message else details in (MISSING, BAD, EMPTY, INVALID)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_scheme_may_be_written_in_any_case(weir, scheme):
    """A1, 3.3"""
    code, _, events = attempt(weir, f"{scheme} {harness.token()}")
    assert code == grpc.StatusCode.OK and crawbl.Turn(events).error is None


# --- the token ------------------------------------------------------------------------


def test_tokens_count_within_five_minutes_of_now_both_ways(weir):
    """3.1: 300 passes, 301 fails; a margin is left for the test's own time"""
    now = int(time.time())
    for age in (-290, -60, 0, 60, 290):
        assert accepted(weir, harness.token(at=now + age)), age
    for age in (-86400, -310, 310, 86400):
        assert not accepted(weir, harness.token(at=now + age)), age


def test_a_token_of_another_key_is_refused(weir):
    """A2, A13"""
    assert not accepted(weir, harness.token(key=OTHER_KEY))


def test_no_altered_token_is_accepted(weir):
    """A2: every character changed, cut everywhere, extended"""
    good = harness.token()
    assert accepted(weir, good)
    altered = set()
    for place, was in enumerate(good):
        for now in "A.0":
            if now != was and not (was == "a" and now == "A"):
                altered.add(good[:place] + now + good[place + 1 :])
    altered |= {good[:size] for size in range(1, len(good))}
    altered |= {good + more for more in ("0", "00", ".", "=", "." + good)}
    altered |= {"." + good, good.replace(".", ".."), good.replace(".", "=.")}
    altered.discard(good)
    altered.discard(good.split(".")[0] + "." + good.split(".")[1].upper())

    channel = weir.channel()
    calls = []
    for bad in sorted(altered):
        method = channel.stream_stream(crawbl.METHOD)
        calls.append(method(iter(()), metadata=[("authorization", "Bearer " + bad)], timeout=20))
        if len(calls) >= 50:
            expect_refusals(calls)
    expect_refusals(calls)
    assert accepted(weir, good)


def expect_refusals(calls):
    while calls:
        call = calls.pop()
        with pytest.raises(grpc.RpcError):
            list(call)
        assert call.code() == grpc.StatusCode.UNAUTHENTICATED


def test_a_signature_in_upper_case_or_in_base64url_counts_too(weir):
    """3.1"""
    text, mac = harness.token().split(".")
    assert accepted(weir, f"{text}.{mac.upper()}")
    raw = base64.urlsafe_b64encode(bytes.fromhex(mac)).decode().rstrip("=")
    assert accepted(weir, f"{text}.{raw}")


def test_payloads_that_name_nobody_are_refused_though_their_signature_is_good(weir):
    """3.1, K1: empty ids, no ids, a date that is none, padding, control characters"""
    now = int(time.time())
    bad = [f":ws-1:{now}", f"user-1::{now}", f"user-1:ws-1:{now}x", "user-1:ws-1:", "user-1", ""]
    bad += [f"us\ner:ws-1:{now}", f"user-1:w\x01s:{now}", f"user-1:ws-1:1:{now}"]
    for payload in bad:
        assert not accepted(weir, signed(b64(payload))), payload
    padded = base64.urlsafe_b64encode(f"user-1:ws-1:{now}0".encode()).decode()
    padded = padded if "=" in padded else b64("user-1:ws-1:1") + "="
    assert not accepted(weir, signed(padded))


def test_a_token_without_a_date_is_accepted(weir):
    """K1: the seeds to the letter"""
    assert accepted(weir, signed(b64("user-1:ws-1")))


def test_a_signature_over_the_raw_ids_is_accepted(weir):
    """K1: the seeds to the letter"""
    assert accepted(weir, signed(b64("user-1:ws-1"), over="user-1:ws-1"))


@STRICT
def test_a_strict_daemon_refuses_tokens_without_a_date_and_raw_signatures(weir):
    """K1, tokens.strict"""
    assert accepted(weir, harness.token())
    assert not accepted(weir, signed(b64("user-1:ws-1")))
    assert not accepted(weir, signed(b64("user-1:ws-1"), over="user-1:ws-1"))
    dated = f"user-1:ws-1:{int(time.time())}"
    assert not accepted(weir, signed(b64(dated), over=dated))


def test_an_old_signature_over_the_raw_payload_still_expires(weir):
    """3.1: the date is not only looked at in one form"""
    dated = f"user-1:ws-1:{int(time.time()) - 400}"
    assert not accepted(weir, signed(b64(dated), over=dated))


def test_ids_beyond_ascii_are_fine(weir):
    """3.2, vector 3"""
    token = harness.token("用户-1", "ws~2")
    with crawbl.open_stream(weir, metadata=[("authorization", "Bearer " + token)]) as stream:
        assert stream.ask("hello", user_id="用户-1", workspace_id="ws~2").error is None


@pytest.mark.weir(
    env={"CRAWBL_MCP_SIGNING_KEY": f"  {OTHER_KEY}\n", "CRAWBL_MCP_SIGNING_KEY_PREVIOUS": None}
)
def test_white_space_around_the_key_does_not_count(weir):
    """3.1: trim on both sides, warn"""
    assert accepted(weir, harness.token(key=OTHER_KEY))
    assert OTHER_KEY not in weir.said("CRAWBL_MCP_SIGNING_KEY")


# --- rotation, identity ---------------------------------------------------------------


def test_both_keys_count_during_a_rotation_and_the_old_one_no_longer_after_it(start_weir):
    """A10, A13"""
    script = "test/e2e/scripts/contract.yaml"
    both = {"CRAWBL_MCP_SIGNING_KEY": OTHER_KEY}
    both["CRAWBL_MCP_SIGNING_KEY_PREVIOUS"] = harness.SIGNING_KEY
    weir = start_weir(script=script, env=both)
    assert accepted(weir, harness.token(key=OTHER_KEY))
    assert accepted(weir, harness.token(key=harness.SIGNING_KEY))
    after = start_weir(script=script, env={"CRAWBL_MCP_SIGNING_KEY": OTHER_KEY})
    assert accepted(after, harness.token(key=OTHER_KEY))
    assert not accepted(after, harness.token(key=harness.SIGNING_KEY))
    for daemon in (weir, after):
        assert OTHER_KEY not in daemon.log() and harness.SIGNING_KEY not in daemon.log()


def test_a_key_may_come_from_a_file(start_weir, tmp_path):
    """docs/config.md"""
    key = tmp_path / "key"
    key.write_text(OTHER_KEY + "\n")
    env = {"CRAWBL_MCP_SIGNING_KEY": None, "CRAWBL_MCP_SIGNING_KEY_FILE": key}
    weir = start_weir(script="test/e2e/scripts/contract.yaml", env=env)
    assert accepted(weir, harness.token(key=OTHER_KEY))
    assert not accepted(weir, harness.token())


def test_a_request_that_names_somebody_else_is_denied_and_the_stream_goes_on(weir):
    """K8, A5"""
    with crawbl.open_stream(weir) as stream:
        for user, workspace in (("user-2", "ws-1"), ("user-1", "ws-2"), ("user-2", "ws-2")):
            turn = stream.ask("hello", user_id=user, workspace_id=workspace)
            assert turn.code == "PERMISSION_DENIED"
        assert stream.ask("hello", user_id="user-1", workspace_id="ws-1").error is None


def test_a_stream_lives_on_when_its_token_has_expired(start_weir):
    """3.3: checked once for each call, not for each message"""
    weir = start_weir(
        script="test/e2e/scripts/contract.yaml", config="limits:\n  token_window: 1s\n"
    )
    metadata = weir.metadata(at=int(time.time()))
    with crawbl.open_stream(weir, metadata=metadata) as stream:
        assert stream.ask("hello").error is None
        time.sleep(2.1)
        assert stream.ask("hello").error is None
        code, _, _ = attempt(weir, metadata[0][1])
        assert code == grpc.StatusCode.UNAUTHENTICATED


def test_a_token_may_be_used_twice_within_its_time(weir):
    """A13: stateless by contract"""
    token = harness.token()
    assert accepted(weir, token) and accepted(weir, token)


@pytest.mark.weir(env={"CRAWBL_MCP_SIGNING_KEY": None})
def test_without_a_key_callers_are_who_they_say_they_are(weir):
    """K23: the ids of the stream's first request"""
    with crawbl.open_stream(weir, metadata=[]) as stream:
        assert stream.ask("hello", user_id="u9", workspace_id="w9").error is None
        assert stream.ask("hello").error is None
        assert stream.ask("hello", user_id="u10").code == "PERMISSION_DENIED"


# --- what needs no token --------------------------------------------------------------


def test_health_needs_no_token(weir):
    """3.3"""
    stub = health_pb2_grpc.HealthStub(weir.channel())
    request = health_pb2.HealthCheckRequest()
    assert stub.Check(request, timeout=5).status == health_pb2.HealthCheckResponse.SERVING
    watch = stub.Watch(request, timeout=5)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    watch.cancel()


@pytest.mark.parametrize(
    "method",
    [
        "/crawbl.agentruntime.v1.AgentRuntime/Nothing",
        "/crawbl.agentruntime.v1.Nobody/Converse",
        "/nothing",
    ],
)
def test_an_unknown_method_is_unimplemented_before_anybody_asks_for_a_token(weir, method):
    """3.3"""
    for metadata in ([], [("authorization", "Bearer x.y")], weir.metadata()):
        with pytest.raises(grpc.RpcError) as failure:
            weir.channel().unary_unary(method)(b"", metadata=metadata, timeout=5)
        assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_refused_token_is_not_in_the_log(weir):
    """A10, O6"""
    token = harness.token(key=OTHER_KEY)
    assert not accepted(weir, token)
    assert token not in weir.log() and token.split(".")[1] not in weir.log()


# --- the Runtime Contract's token -----------------------------------------------------

PROTECTED = pytest.mark.weir(env={"AGENT_AUTH_TOKEN": "s3cret"})
UNAUTHORIZED = {
    "detail": "Missing bearer token",
    "error": {"code": "UNAUTHORIZED", "message": "Missing bearer token"},
}
FORBIDDEN = {
    "detail": "Invalid bearer token",
    "error": {"code": "FORBIDDEN", "message": "Invalid bearer token"},
}


@PROTECTED
@pytest.mark.parametrize("path", ["/invoke", "/stream"])
def test_without_a_token_this_path_is_unauthorized(weir, path):
    """A6, HTTP sheet 1.4"""
    with weir.http() as http:
        for headers in ({}, {"Authorization": "Basic czNjcmV0"}, {"Authorization": "s3cret"}):
            answer = http.post(path, json={"input": "hello"}, headers=headers)
            assert answer.status_code == 401 and answer.json() == UNAUTHORIZED, headers
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert answer.headers["X-Runtime-Contract-Version"] == "1"
            assert answer.headers["Content-Type"] == "application/json"


@PROTECTED
@pytest.mark.parametrize("path", ["/invoke", "/stream"])
def test_with_a_wrong_token_this_path_is_forbidden(weir, path):
    """A6, HTTP sheet 1.4"""
    with weir.http() as http:
        for wrong in ("s3cre", "s3crets", "S3CRET", "x", "s3cret s3cret"):
            headers = {"Authorization": f"Bearer {wrong}"}
            answer = http.post(path, json={"input": "hello"}, headers=headers)
            assert answer.status_code == 403 and answer.json() == FORBIDDEN, wrong
            assert answer.headers["X-Runtime-Contract-Version"] == "1"


@PROTECTED
@pytest.mark.parametrize("value", ["Bearer s3cret", "bearer s3cret", "BEARER s3cret"])
def test_the_right_token_is_let_in(weir, value):
    """A6: any case of the scheme word"""
    with weir.http(headers={"Authorization": value}) as http:
        assert http.post("/invoke", json={"input": "hello"}).status_code == 200
        assert http.post("/stream", json={"input": "hello"}).text.endswith("data: [DONE]\n\n")


@PROTECTED
def test_health_is_open_and_unknown_paths_and_methods_are_told_apart_before_the_token(weir):
    """A6, HTTP sheet 1.13"""
    with weir.http() as http:
        assert http.get("/health").status_code == 200
        assert http.get("/nothing").status_code == 404
        assert http.get("/invoke").status_code == 405
        assert http.post("/invoke", content=b"{").status_code == 401


@pytest.mark.weir(env={"AGENT_AUTH_TOKEN": "  s3cret \n"})
def test_white_space_around_the_bearer_token_does_not_count(weir):
    """HTTP sheet 1.4"""
    with weir.http(headers={"Authorization": "Bearer s3cret"}) as http:
        assert http.post("/invoke", json={"input": "hello"}).status_code == 200


def test_a_bearer_token_of_white_space_is_refused_at_the_start(start_weir):
    """HTTP sheet 1.4: neither silently open nor unusable"""
    with pytest.raises(AssertionError, match="AGENT_AUTH_TOKEN"):
        start_weir(env={"AGENT_AUTH_TOKEN": "  "})


@pytest.mark.weir(env={"AGENT_AUTH_TOKEN": ""})
def test_an_empty_bearer_token_means_open(weir):
    """HTTP sheet 1.4"""
    with weir.http() as http:
        assert http.post("/invoke", json={"input": "hello"}).status_code == 200


@pytest.mark.weir(config="converse:\n  workspace: ws-1\n  user: user-1\n")
def test_a_daemon_of_one_workspace_and_user_serves_no_others(weir):
    """3.3: a shared key does not open every pod"""
    assert crawbl.one_turn(weir, "hello").error is None
    for user, workspace in (("user-2", "ws-1"), ("user-1", "ws-2")):
        metadata = weir.metadata(user, workspace)
        with crawbl.open_stream(weir, metadata=metadata) as stream:
            stream.send("hello", user_id=user, workspace_id=workspace)
            stream.half_close()
            try:
                refused = stream.turn().code in ("PERMISSION_DENIED", "UNAUTHENTICATED")
            except grpc.RpcError as failure:
                refused = failure.code() in (
                    grpc.StatusCode.PERMISSION_DENIED,
                    grpc.StatusCode.UNAUTHENTICATED,
                )
            assert refused


def test_a_public_address_without_a_token_serves_and_warns_once_with_the_fix(start_weir):
    """K6, A7"""
    public = start_weir(args=["--http", "0.0.0.0:0"], config="log:\n  form: json\n")
    with public.http() as http:
        assert http.post("/invoke", json={"input": "hello"}).status_code == 200
    warnings = [line for line in public.said("AGENT_AUTH_TOKEN").splitlines() if "AGENT_AUTH_TOKEN" in line]
    assert len(warnings) == 1 and "warning" in warnings[0], public.log()
    loopback = start_weir(config="log:\n  form: json\n")
    assert "AGENT_AUTH_TOKEN" not in loopback.log()


def test_reflection_needs_no_token_and_names_the_services(weir):
    """3.3, K17"""
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
        ProtoReflectionDescriptorDatabase,
    )

    services = ProtoReflectionDescriptorDatabase(weir.channel()).get_services()
    assert "crawbl.agentruntime.v1.AgentRuntime" in services


@pytest.mark.parametrize("value", ["Bearer ", "Bearer {good} "])
def test_a_header_that_ends_in_a_space_is_unauthenticated(weir, value):
    """A1"""
    code, _, events = attempt(weir, value.format(good=harness.token()))
    assert code == grpc.StatusCode.UNAUTHENTICATED and events == []
