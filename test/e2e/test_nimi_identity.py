"""Callers of nimi.runtime.v1 with tokens: keys that turn, subjects that hide from each other.

The issuer is an HTTP server with a key set; its tokens are signed by openssl.
"""
import base64
import concurrent.futures
import contextlib
import http.server
import json
import subprocess
import threading
import time

import grpc
import nimi_client as nimi
import pytest
from nimi.runtime.v1 import app_pb2, app_pb2_grpc, audit_pb2
from nimi.runtime.v1 import auth_pb2, auth_pb2_grpc, connector_pb2, connector_pb2_grpc
from nimi.runtime.v1 import workflow_pb2 as wf
from nimi.runtime.v1 import workflow_pb2_grpc
from nimi_client import common, pb

AUDIENCE = "nimi"
QUICK = "test/e2e/scripts/quick.yaml"
SAID = "You said: hello. Grüße, and that was all."
RSA, EC = "RS256", "ES256"
MAKE = {
    RSA: ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    EC: ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*args, data=None):
    return subprocess.run(["openssl", *args], input=data, check=True, capture_output=True).stdout


def integers(der):
    """The two of a short DER SEQUENCE, as 32 bytes each."""
    at, found = 2, []
    for _ in range(2):
        length = der[at + 1]
        found.append(der[at + 2 : at + 2 + length].lstrip(b"\0").rjust(32, b"\0"))
        at += 2 + length
    return b"".join(found)


class Key:
    def __init__(self, folder, kid, algorithm):
        self.kid, self.algorithm = kid, algorithm
        self.file = str(folder / f"{kid}.pem")
        openssl("genpkey", *MAKE[algorithm], "-out", self.file)
        der = openssl("pkey", "-in", self.file, "-pubout", "-outform", "DER")
        self.jwk = {"kid": kid, "use": "sig"}
        if algorithm == EC:  # the last 64 bytes are the point
            self.jwk |= {"kty": "EC", "crv": "P-256", "x": b64(der[-64:-32]), "y": b64(der[-32:])}
        else:
            said = openssl("rsa", "-in", self.file, "-noout", "-modulus").decode()
            modulus = bytes.fromhex(said.strip().split("=")[1])
            self.jwk |= {"kty": "RSA", "n": b64(modulus), "e": "AQAB"}

    def sign(self, issuer, subject, kid=None, **claims):
        now = int(time.time())
        header = {"alg": self.algorithm, "kid": kid or self.kid}
        said = {"iss": issuer, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 600}
        parts = [b64(json.dumps(part).encode()) for part in (header, {**said, **claims})]
        text = ".".join(parts)
        signature = openssl("dgst", "-sha256", "-sign", self.file, data=text.encode())
        if self.algorithm == EC:
            signature = integers(signature)
        return f"{text}.{b64(signature)}"


class Issuer(http.server.ThreadingHTTPServer):
    """Says which keys are good now, and counts who asks."""

    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), KeySet)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.folder, self.keys, self.asked, self.status = folder, [], 0, 200
        self.answers = threading.Event()
        self.answers.set()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def key(self, kid, algorithm=EC):
        return Key(self.folder, kid, algorithm)

    def close(self):
        self.shutdown()
        self.server_close()


class KeySet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked += 1
        self.server.answers.wait(20)
        body = json.dumps({"keys": [key.jwk for key in self.server.keys]}).encode()
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def issuer(tmp_path):
    with contextlib.closing(Issuer(tmp_path)) as server:
        yield server


def configured(issuer, **nimi_settings):
    settings = json.dumps({"probe_interval": "0s", **nimi_settings})
    return f"""
nimi: {settings}
issuers:
  - {{issuer: "{issuer.url}", audience: {AUDIENCE}, jwks_url: "{issuer.url}/keys"}}
connectors:
  - {{id: everyones, provider: scripted}}
  - {{id: annas, provider: scripted, owner: anna}}
  - {{id: here, provider: scripted, local: true, models: [m]}}
"""


def bearer(token, **changes):
    return [*nimi.Client.metadata(**changes), ("authorization", f"Bearer {token}")]


def connectors(client, metadata=None, **fields):
    stub = connector_pb2_grpc.RuntimeConnectorServiceStub(client.channel)
    request = connector_pb2.ListConnectorsRequest(**fields)
    reply, _ = client.ask(stub.ListConnectors, request, metadata)
    return [connector.connector_id for connector in reply.connectors]


def wait_for(look):
    until = time.monotonic() + 20
    while not look():
        assert time.monotonic() < until
        time.sleep(0.01)


def refusal(call, *args, **kwargs):
    with pytest.raises(nimi.Refused) as refused:
        call(*args, **kwargs)
    return refused.value.code, refused.value.reason


UNAUTHENTICATED = (grpc.StatusCode.UNAUTHENTICATED, "AUTH_TOKEN_INVALID")
FORBIDDEN = (grpc.StatusCode.PERMISSION_DENIED, "APP_SCOPE_FORBIDDEN")


def test_the_token_says_who_calls(start_weir, issuer):
    rsa, ec = issuer.key("r", RSA), issuer.key("e", EC)
    issuer.keys = [rsa, ec]
    client = nimi.Client(start_weir(script=QUICK, config=configured(issuer)))
    anna, ben = rsa.sign(issuer.url, "anna"), ec.sign(issuer.url, "ben")
    assert connectors(client, bearer(anna)) == ["everyones", "annas", "here"]
    assert connectors(client, bearer(ben)) == ["everyones", "here"]
    assert connectors(client, owner_id="anna") == ["everyones", "here"]  # nobody said it is anna
    wrong = refusal(connectors, client, bearer(ben), owner_id="anna")
    assert wrong == (grpc.StatusCode.PERMISSION_DENIED, "PRINCIPAL_UNAUTHORIZED")

    cloud = {"route_policy": common.ROUTE_POLICY_CLOUD, "connector_id": "annas"}
    answer = client.stream("hello", metadata=bearer(anna), **cloud)
    assert answer.text == SAID and answer.last.HasField("completed")
    for metadata, subject, reason in (
        (bearer(ben), "", "AI_CONNECTOR_NOT_FOUND"),
        (bearer(ben), "anna", "PRINCIPAL_UNAUTHORIZED"),
        (None, "anna", "AUTH_TOKEN_INVALID"),
    ):
        answer = client.stream("hello", metadata=metadata, subject_user_id=subject, **cloud)
        assert not answer.events and answer.error.reason == reason
    local = client.stream("hello", model_id="m", subject_user_id="anna")  # as before, anonymous
    assert local.text == SAID
    assert issuer.asked == 1


def test_what_is_no_token_of_the_issuer_is_refused_before_any_event(start_weir, issuer):
    good, other = issuer.key("good"), issuer.key("other")
    issuer.keys = [good]
    client = nimi.Client(start_weir(script=QUICK, config=configured(issuer)))
    now = int(time.time())
    head, claims, signature = good.sign(issuer.url, "anna").split(".")
    none = b64(json.dumps({"alg": "none", "kid": "good"}).encode())
    tokens = [
        "",
        "x.y.z",
        f"{none}.{claims}.",
        f"{head}.{claims}.{signature[:-4]}AAAA",
        other.sign(issuer.url, "anna", kid="good"),
        good.sign(issuer.url + "/", "anna"),
        good.sign(issuer.url, "anna", aud="elsewhere"),
        good.sign(issuer.url, "anna", exp=now - 120),
        good.sign(issuer.url, "anna", nbf=now + 120),
        good.sign(issuer.url, ""),
    ]
    for token in tokens:
        answer = client.stream("hello", metadata=bearer(token))
        assert not answer.events
        assert (answer.error.code, answer.error.reason) == UNAUTHENTICATED, token
    two = [*bearer(good.sign(issuer.url, "anna")), ("authorization", "Bearer x")]
    assert client.stream("hello", metadata=two).error.reason == "AUTH_TOKEN_INVALID"


def test_keys_turn_and_a_flood_of_unknown_ones_is_no_flood_of_requests(start_weir, issuer):
    first, second = issuer.key("first"), issuer.key("second")
    issuer.keys = [first]
    client = nimi.Client(start_weir(script=QUICK, config=configured(issuer, keys_pause="100ms")))
    old, new = first.sign(issuer.url, "anna"), second.sign(issuer.url, "anna")
    assert "annas" in connectors(client, bearer(old))
    issuer.keys = [second]
    time.sleep(0.15)  # the pause is over, so the unknown key is asked for at once
    assert "annas" in connectors(client, bearer(new))
    assert refusal(connectors, client, bearer(old)) == UNAUTHENTICATED  # it was taken back

    issuer.status = 500
    began, before = time.monotonic(), issuer.asked
    for number in range(12):
        unknown = second.sign(issuer.url, "anna", kid=f"k{number % 3}")
        assert refusal(connectors, client, bearer(unknown)) == UNAUTHENTICATED
    assert issuer.asked - before <= (time.monotonic() - began) / 0.1 + 1
    assert "annas" in connectors(client, bearer(new))  # the keys that are known stay


def test_callers_on_every_loop_wait_for_one_fetch(start_weir, issuer):
    key = issuer.key("k")
    issuer.keys = [key]
    weir = start_weir(script=QUICK, config=configured(issuer))
    token = key.sign(issuer.url, "anna")
    forged = issuer.key("f").sign(issuer.url, "anna", kid="k")
    # A channel each, so that the connections are spread over the loops.
    clients = [
        nimi.Client(weir, options=[("grpc.use_local_subchannel_pool", 1)]) for _ in range(8)
    ]
    issuer.answers.clear()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        good = [pool.submit(connectors, client, bearer(token)) for client in clients]
        bad = [pool.submit(refusal, connectors, client, bearer(forged)) for client in clients]
        wait_for(lambda: issuer.asked)
        gone = clients[0].ai.StreamScenario(nimi.request(), metadata=bearer(token))
        gone.cancel()
        issuer.answers.set()
        assert all("annas" in future.result() for future in good)
        assert all(future.result() == UNAUTHENTICATED for future in bad)
    assert issuer.asked == 1


def test_without_its_keys_an_issuers_token_is_unavailable(start_weir, issuer):
    key = issuer.key("k")
    issuer.keys, issuer.status = [key], 503
    client = nimi.Client(start_weir(script=QUICK, config=configured(issuer, keys_pause="100ms")))
    token = key.sign(issuer.url, "anna")
    code, reason = refusal(connectors, client, bearer(token))
    assert (code, reason) == (grpc.StatusCode.UNAVAILABLE, "AUTH_TOKEN_INVALID")
    issuer.status = 200
    time.sleep(0.15)
    assert "annas" in connectors(client, bearer(token))


def test_a_job_is_its_subjects(start_weir, issuer):
    key = issuer.key("k")
    issuer.keys = [key]
    client = nimi.Client(start_weir(script=QUICK, config=configured(issuer)))
    anna, ben = (bearer(key.sign(issuer.url, name)) for name in ("anna", "ben"))

    def submit(metadata):
        asked = nimi.request(
            "hello", pb.SubmitScenarioJobRequest, mode=pb.EXECUTION_MODE_ASYNC_JOB, model_id="m"
        )
        return client.ask(client.ai.SubmitScenarioJob, asked, metadata)[0].job

    def get(job_id, metadata=None):
        request = pb.GetScenarioJobRequest(job_id=job_id)
        return client.ask(client.ai.GetScenarioJob, request, metadata)[0].job

    mine, nobodys = submit(anna), submit(None)
    assert mine.head.subject_user_id == "anna" and nobodys.head.subject_user_id == ""
    assert get(mine.job_id, anna).job_id == mine.job_id
    assert get(nobodys.job_id).job_id == nobodys.job_id
    # The real SDK submits a local job without its token, and does all the rest with it.
    assert get(nobodys.job_id, anna).job_id == nobodys.job_id
    for job, metadata in ((mine, ben), (mine, None)):
        assert refusal(get, job.job_id, metadata) == FORBIDDEN
    cancel = pb.CancelScenarioJobRequest(job_id=mine.job_id)
    assert refusal(client.ask, client.ai.CancelScenarioJob, cancel, ben) == FORBIDDEN


def test_a_workflow_is_its_subjects(start_weir, issuer):
    key = issuer.key("k")
    issuer.keys = [key]
    client = nimi.Client(start_weir(script=QUICK, config=configured(issuer)))
    stub = workflow_pb2_grpc.RuntimeWorkflowServiceStub(client.channel)
    anna, ben = (bearer(key.sign(issuer.url, name)) for name in ("anna", "ben"))
    node = wf.WorkflowNode(
        node_id="n",
        node_type=wf.WORKFLOW_NODE_TRANSFORM_TEMPLATE,
        template_config=wf.TemplateNodeConfig(template="hello"),
    )

    def submit(metadata, subject):
        definition = wf.WorkflowDefinition(workflow_type="t", nodes=[node])
        asked = wf.SubmitWorkflowRequest(
            app_id=nimi.APP, subject_user_id=subject, definition=definition
        )
        return client.ask(stub.SubmitWorkflow, asked, metadata)[0].task_id

    def get(task, metadata=None):
        return client.ask(stub.GetWorkflow, wf.GetWorkflowRequest(task_id=task), metadata)[0]

    def events(task, metadata=None):
        asked = wf.SubscribeWorkflowEventsRequest(task_id=task)
        try:
            return list(stub.SubscribeWorkflowEvents(asked, metadata=metadata or client.metadata()))
        except grpc.RpcError as error:
            raise nimi.Refused(error) from None

    mine, nobodys = submit(anna, "anna"), submit(None, "anna")
    assert get(mine, anna).task_id == mine
    assert get(nobodys).task_id == nobodys
    assert get(nobodys, anna).task_id == nobodys
    assert events(mine, anna)[-1].event_type == wf.WORKFLOW_EVENT_COMPLETED
    for task, metadata in ((mine, ben), (mine, None)):
        assert refusal(get, task, metadata) == FORBIDDEN
        assert refusal(events, task, metadata) == FORBIDDEN
        cancel = wf.CancelWorkflowRequest(task_id=task)
        assert refusal(client.ask, stub.CancelWorkflow, cancel, metadata) == FORBIDDEN


def test_every_caller_may_have_to_have_a_token(start_weir, issuer):
    key = issuer.key("k")
    issuer.keys = [key]
    client = nimi.Client(start_weir(script=QUICK, config=configured(issuer, require_token=True)))
    assert client.health()  # is anyone there?
    assert client.stream("hello", model_id="m").error.reason == "AUTH_TOKEN_INVALID"
    anna = bearer(key.sign(issuer.url, "anna"))
    assert client.stream("hello", metadata=anna, model_id="m").text == SAID
    auth = auth_pb2_grpc.RuntimeAuthServiceStub(client.channel)
    app = client.ask(auth.RegisterApp, auth_pb2.RegisterAppRequest(app_id=nimi.APP))[0]
    opened = auth_pb2.OpenSessionRequest(app_id=nimi.APP, app_instance_id=app.app_instance_id)
    assert refusal(client.ask, auth.OpenSession, opened) == UNAUTHENTICATED
    session, _ = client.ask(auth.OpenSession, opened, anna)
    refresh = auth_pb2.RefreshSessionRequest(session_id=session.session_id)
    ben = bearer(key.sign(issuer.url, "ben"))
    assert refusal(client.ask, auth.RefreshSession, refresh, ben)[1] == "APP_NOT_REGISTERED"
    assert client.ask(auth.RefreshSession, refresh, anna)[0].session_token


def test_a_capability_is_a_word_in_the_scope(start_weir, issuer):
    key = issuer.key("k")
    issuer.keys = [key]
    client = nimi.Client(start_weir(script=QUICK, config=configured(issuer)))

    def export(metadata=None):
        metadata = metadata or client.metadata()
        call = client.audit.ExportAuditEvents(
            audit_pb2.ExportAuditEventsRequest(app_id=nimi.APP), metadata=metadata, timeout=20
        )
        try:
            return list(call)
        except grpc.RpcError as error:
            raise nimi.Refused(error) from None

    assert refusal(export) == UNAUTHENTICATED
    plain = key.sign(issuer.url, "anna", scope="runtime.audit openid")
    assert refusal(export, bearer(plain)) == FORBIDDEN
    allowed = key.sign(issuer.url, "anna", scope="openid runtime.audit.export")
    assert [chunk.eof for chunk in export(bearer(allowed))][-1]


def test_a_session_that_is_named_must_be_valid(weir):
    client = nimi.Client(weir)
    auth = auth_pb2_grpc.RuntimeAuthServiceStub(client.channel)
    apps = app_pb2_grpc.RuntimeAppServiceStub(client.channel)
    app = client.ask(auth.RegisterApp, auth_pb2.RegisterAppRequest(app_id=nimi.APP))[0]
    opened = auth_pb2.OpenSessionRequest(app_id=nimi.APP, app_instance_id=app.app_instance_id)
    session = client.ask(auth.OpenSession, opened)[0]

    def send(session_id, token):
        message = app_pb2.SendAppMessageRequest(
            from_app_id=nimi.APP, to_app_id=nimi.APP, message_type="greeting"
        )
        metadata = client.metadata(session_id=session_id, session_token=token)
        return client.ask(apps.SendAppMessage, message, metadata)[0]

    unknown = (grpc.StatusCode.UNAUTHENTICATED, "APP_NOT_REGISTERED")
    assert refusal(send, session.session_id, "x" * 43) == unknown
    assert refusal(send, "0" * 26, session.session_token) == unknown
    assert send(session.session_id, session.session_token).accepted
    assert send(None, None).accepted


def test_a_subject_reads_its_own_audit_records_and_a_capability_all_of_the_app(start_weir, issuer):
    key = issuer.key("k")
    issuer.keys = [key]
    client = nimi.Client(start_weir(script=QUICK, config=configured(issuer)))
    anna, ben = key.sign(issuer.url, "anna"), key.sign(issuer.url, "ben")
    auditor = key.sign(issuer.url, "eve", scope="runtime.audit.export runtime.memory.read")
    for token in (anna, ben, ben):
        assert client.stream("hello", metadata=bearer(token), model_id="m").text == SAID
    listed = audit_pb2.ListAuditEventsRequest

    def owners(token, **fields):
        reply, _ = client.ask(client.audit.ListAuditEvents, listed(**fields), bearer(token))
        found = [e.subject_user_id for e in reply.events if e.operation == "StreamScenario"]
        return sorted(found)

    def exported(token):
        call = client.audit.ExportAuditEvents(
            audit_pb2.ExportAuditEventsRequest(), metadata=bearer(token), timeout=10
        )
        lines = b"".join(chunk.chunk for chunk in call).splitlines()
        return {json.loads(line).get("subject_user_id") for line in lines}

    deadline = time.monotonic() + 10
    while owners(ben) != ["ben", "ben"]:  # records come within a fraction of a second
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert owners(anna) == ["anna"]
    wrong = refusal(client.ask, client.audit.ListAuditEvents, listed(subject_user_id="ben"),
                    bearer(anna))
    assert wrong == (grpc.StatusCode.PERMISSION_DENIED, "PRINCIPAL_UNAUTHORIZED")
    code, _ = refusal(client.ask, client.audit.ListAuditEvents, listed())
    assert code == grpc.StatusCode.UNAUTHENTICATED
    with pytest.raises(grpc.RpcError) as refused:
        exported(anna)
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert {"anna", "ben"} <= exported(auditor)
