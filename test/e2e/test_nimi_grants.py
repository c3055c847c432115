"""RuntimeGrantService of nimi.runtime.v1: tokens that a user grants to others (checks.md M3, M4)."""
import time

import grpc
import nimi_client as nimi
import pytest
import test_nimi_identity as identity
from nimi.runtime.v1 import auth_pb2, auth_pb2_grpc, grant_pb2_grpc
from nimi.runtime.v1 import grant_pb2 as pb
from nimi_client import common
from test_nimi_identity import issuer  # noqa: F401  a fixture

CODE = grpc.StatusCode


class Grants:
    def __init__(self, client, app="app.desk", token=None, registers=True):
        self.client, self.app = client, app
        self.stub = grant_pb2_grpc.RuntimeGrantServiceStub(client.channel)
        self.metadata = client.metadata(app_id=app)
        if token:
            self.metadata.append(("authorization", f"Bearer {token}"))
        if registers:
            auth = auth_pb2_grpc.RuntimeAuthServiceStub(client.channel)
            client.ask(
                auth.RegisterApp, auth_pb2.RegisterAppRequest(app_id=app), metadata=self.metadata
            )

    def ask(self, name, request):
        return self.client.ask(getattr(self.stub, name), request, metadata=self.metadata)[0]

    def authorize(self, **changes):
        """As upstream's SDK asks for protected access."""
        request = pb.AuthorizeExternalPrincipalRequest(
            domain="app-auth",
            app_id=self.app,
            external_principal_id=self.app,
            external_principal_type=pb.EXTERNAL_PRINCIPAL_TYPE_APP,
            subject_user_id="anna",
            consent_id="runtime-protected-access",
            consent_version="v1",
            policy_version="p1",
            policy_mode=pb.POLICY_MODE_CUSTOM,
            scopes=["runtime.memory.read", "runtime.memory.write"],
            resource_selectors=pb.ResourceSelectors(),
            scope_catalog_version="sdk-v1",
            ttl_seconds=3600,
        )
        request.decision_at.FromSeconds(int(time.time()))
        for name, value in changes.items():
            request.ClearField(name)
            if value is not None:
                part = {name: value}
                request.MergeFrom(pb.AuthorizeExternalPrincipalRequest(**part))
        return self.ask("AuthorizeExternalPrincipal", request)

    def validate(self, token_id, **fields):
        request = pb.ValidateAppAccessTokenRequest(app_id=self.app, token_id=token_id, **fields)
        return self.ask("ValidateAppAccessToken", request)

    def delegate(self, parent, **fields):
        request = pb.IssueDelegatedAccessTokenRequest(
            app_id=self.app, parent_token_id=parent, **fields
        )
        return self.ask("IssueDelegatedAccessToken", request)

    def revoke(self, token_id):
        request = pb.RevokeAppAccessTokenRequest(app_id=self.app, token_id=token_id)
        return self.ask("RevokeAppAccessToken", request)

    def chain(self, root, **fields):
        request = pb.ListTokenChainRequest(app_id=self.app, root_token_id=root, **fields)
        return self.ask("ListTokenChain", request)


def refused(call, *args, **fields):
    with pytest.raises(nimi.Refused) as found:
        call(*args, **fields)
    return found.value.code, found.value.reason


def test_a_token_is_granted_and_holds(weir):
    desk = Grants(nimi.Client(weir))
    made = desk.authorize()
    assert made.token_id and len(made.secret) == 43
    assert made.subject_user_id == "anna" and made.external_principal_id == "app.desk"
    assert list(made.effective_scopes) == ["runtime.memory.read", "runtime.memory.write"]
    assert made.consent_ref.consent_id == "runtime-protected-access"
    assert made.issued_scope_catalog_version == "sdk-v1" and made.policy_version == "p1"
    assert abs(made.expires_at.seconds - time.time() - 3600) < 60
    good = desk.validate(made.token_id, requested_scopes=["runtime.memory.read"])
    assert good.valid and good.reason_code == common.ACTION_EXECUTED
    assert list(good.effective_scopes) == list(made.effective_scopes)
    for fields, reason in (
        ({"requested_scopes": ["runtime.agent.read"]}, common.APP_SCOPE_FORBIDDEN),
        ({"subject_user_id": "ben"}, common.APP_GRANT_INVALID),
        (
            {"resource_selectors": pb.ResourceSelectors(conversation_ids=["c"])},
            common.APP_RESOURCE_OUT_OF_SCOPE,
        ),
    ):
        bad = desk.validate(made.token_id, **fields)
        assert (bad.valid, bad.reason_code) == (False, reason) and not bad.effective_scopes
    # Another app's token is as unknown as one that never was (M4).
    other = Grants(desk.client, "app.other")
    assert other.validate(made.token_id) == other.validate("never")
    assert other.revoke(made.token_id) == other.revoke("never")
    assert desk.validate(made.token_id).valid
    assert desk.revoke(made.token_id).ok
    assert desk.validate(made.token_id).reason_code == common.APP_TOKEN_REVOKED
    weir.restart()  # they live in memory
    desk = Grants(nimi.Client(weir))
    assert desk.validate(made.token_id).reason_code == common.APP_GRANT_INVALID


def test_what_is_not_granted(weir):
    client = nimi.Client(weir)
    stranger = Grants(client, "app.stranger", registers=False)
    assert refused(stranger.authorize) == (CODE.UNAUTHENTICATED, "APP_NOT_REGISTERED")
    desk = Grants(client)
    custom, preset = pb.POLICY_MODE_CUSTOM, pb.POLICY_MODE_PRESET
    for changes, code, reason in (
        ({"external_principal_id": None}, CODE.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID"),
        ({"subject_user_id": None}, CODE.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID"),
        ({"consent_id": None}, CODE.FAILED_PRECONDITION, "APP_CONSENT_MISSING"),
        ({"decision_at": None}, CODE.INVALID_ARGUMENT, "APP_CONSENT_INVALID"),
        ({"policy_mode": None}, CODE.INVALID_ARGUMENT, "APP_GRANT_INVALID"),
        ({"policy_mode": preset}, CODE.INVALID_ARGUMENT, "APP_GRANT_INVALID"),
        ({"policy_mode": preset, "scopes": None}, CODE.INVALID_ARGUMENT, "APP_GRANT_INVALID"),
        ({"policy_mode": custom, "scopes": None}, CODE.INVALID_ARGUMENT, "APP_GRANT_INVALID"),
        ({"resource_selectors": None}, CODE.INVALID_ARGUMENT, "APP_GRANT_INVALID"),
        ({"scopes": ["realm.x"]}, CODE.PERMISSION_DENIED, "APP_SCOPE_FORBIDDEN"),
        ({"scopes": ["*"]}, CODE.PERMISSION_DENIED, "APP_SCOPE_FORBIDDEN"),
        (
            {"scope_catalog_version": None},
            CODE.FAILED_PRECONDITION,
            "APP_SCOPE_CATALOG_UNPUBLISHED",
        ),
        ({"ttl_seconds": 59}, CODE.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID"),
        ({"ttl_seconds": 86401}, CODE.INVALID_ARGUMENT, "PROTOCOL_ENVELOPE_INVALID"),
        ({"consent_id": "c" * 200000}, CODE.RESOURCE_EXHAUSTED, "APP_AUTHORIZATION_DENIED"),
    ):
        assert refused(desk.authorize, **changes) == (code, reason), changes
    given = desk.authorize(policy_mode=preset, scopes=None, preset=pb.AUTHORIZATION_PRESET_FULL)
    assert list(given.effective_scopes) == ["read:*", "write:*"] and not given.can_delegate


def test_tokens_are_passed_on_to_their_depth(weir):
    desk = Grants(nimi.Client(weir))
    root = desk.authorize(
        can_delegate=True, max_delegation_depth=2, scopes=["read:*", "write:notes"],
        resource_selectors=pb.ResourceSelectors(conversation_ids=["c1", "c2"]),
    )
    child = desk.delegate(root.token_id, scopes=["read:notes"], ttl_seconds=60)
    assert child.parent_token_id == root.token_id and child.secret != root.secret
    assert list(child.effective_scopes) == ["read:notes"]
    last = desk.delegate(
        child.token_id, resource_selectors=pb.ResourceSelectors(conversation_ids=["c1"])
    )
    assert last.expires_at.seconds <= child.expires_at.seconds
    denied = CODE.PERMISSION_DENIED
    assert refused(desk.delegate, last.token_id) == (denied, "APP_DELEGATION_FORBIDDEN")
    for fields, reason in (
        ({"scopes": ["write:other"]}, "APP_SCOPE_FORBIDDEN"),
        ({"scopes": ["realm.x"]}, "APP_SCOPE_FORBIDDEN"),
        (
            {"resource_selectors": pb.ResourceSelectors(conversation_ids=["c3"])},
            "APP_RESOURCE_OUT_OF_SCOPE",
        ),
    ):
        assert refused(desk.delegate, root.token_id, **fields) == (denied, reason)
    unknown = (CODE.NOT_FOUND, "APP_GRANT_INVALID")
    other = Grants(desk.client, "app.other")
    assert refused(other.delegate, root.token_id) == refused(other.delegate, "x") == unknown
    # The chain, newest first, a page at a time.
    first = desk.chain(root.token_id, page_size=2)
    rest = desk.chain(root.token_id, page_size=2, page_token=first.next_page_token)
    assert first.has_more and not rest.has_more and not rest.next_page_token
    entries = [*first.entries, *rest.entries]
    assert [entry.token_id for entry in entries] == [last.token_id, child.token_id, root.token_id]
    assert [entry.delegation_depth for entry in entries] == [2, 1, 0]
    assert [entry.parent_token_id for entry in entries] == [child.token_id, root.token_id, ""]
    assert not any(made.secret in str(entries) for made in (root, child, last))
    assert refused(desk.chain, root.token_id, page_token="x")[1] == "PAGE_TOKEN_INVALID"
    assert refused(desk.chain, "") == (CODE.INVALID_ARGUMENT, "GRANT_TOKEN_CHAIN_ROOT_REQUIRED")
    missing = (CODE.NOT_FOUND, "GRANT_TOKEN_CHAIN_ROOT_NOT_FOUND")
    assert refused(other.chain, root.token_id) == refused(other.chain, "x") == missing
    # A revocation takes along what was passed on, and a new policy all of the old one.
    assert desk.revoke(child.token_id).ok
    assert desk.validate(last.token_id).reason_code == common.APP_TOKEN_REVOKED
    assert desk.validate(root.token_id).valid
    assert refused(desk.delegate, child.token_id)[1] == "APP_TOKEN_REVOKED"
    assert [e.token_id for e in desk.chain(root.token_id).entries] == [root.token_id]
    assert len(desk.chain(root.token_id, include_revoked=True).entries) == 3
    newer = desk.authorize(policy_version="p2")
    assert desk.validate(root.token_id).reason_code == common.APP_TOKEN_REVOKED
    assert desk.validate(newer.token_id).valid


def test_with_issuers_a_user_grants_only_for_itself(start_weir, issuer):  # noqa: F811
    key = issuer.key("k")
    issuer.keys = [key]
    client = nimi.Client(start_weir(config=identity.configured(issuer)))
    anna = Grants(client, token=key.sign(issuer.url, "anna"))
    ben = Grants(client, token=key.sign(issuer.url, "ben"))
    nobody = Grants(client)
    made = anna.authorize(can_delegate=True)
    denied = (CODE.PERMISSION_DENIED, "PRINCIPAL_UNAUTHORIZED")
    assert refused(ben.authorize, subject_user_id="anna") == denied
    assert refused(nobody.authorize) == (CODE.UNAUTHENTICATED, "AUTH_TOKEN_INVALID")
    assert refused(ben.delegate, made.token_id) == refused(ben.delegate, "never")
    assert refused(ben.chain, made.token_id) == refused(ben.chain, "never")
    assert ben.revoke(made.token_id) == ben.revoke("never")
    assert anna.validate(made.token_id).valid
    assert anna.delegate(made.token_id).token_id
