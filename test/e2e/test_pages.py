"""Without a token a web page is a peer of this machine like any other: what it may not do (K6),
and what changes with a token, a listed origin, a listed name or a sidecar."""
import httpx
import pytest

from harness import Daemon

EVIL = {"Origin": "http://evil.example"}
STUDIO = "https://studio.example"

# What a page would try: a turn, an answer to what waits, a look around, a deletion.
TRIES = [
    ("POST", "/invoke", {"input": "hi"}),
    ("POST", "/stream", {"input": "hi"}),
    ("POST", "/resume", {"thread_id": "s", "human_input": "yes"}),
    ("GET", "/weir/v1/approvals", None),
    ("POST", "/weir/v1/approvals/1", {"decision": "approve"}),
    ("GET", "/weir/v1/sessions", None),
    ("DELETE", "/weir/v1/sessions/s", None),
    ("GET", "/weir/v1/memories", None),
]
OPEN = ["/health", "/openapi.json", "/.well-known/agent.json"]


ASKS = "agents: [{slug: manager, tools: {pay: ask}}]\n"


def keyless(folder, config="", **env):
    env = {"CRAWBL_MCP_SIGNING_KEY": None, **env}
    return Daemon(folder, script="test/e2e/scripts/approvals.yaml", config=config, env=env)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """No key and no token: everybody on this machine is let in."""
    daemon = keyless(tmp_path_factory.mktemp("pages"), config=ASKS).start()
    yield daemon
    daemon.stop()


CLIENT = httpx.Client(timeout=30, trust_env=False, verify=False)


def ask(daemon, method, path, body=None, **headers):
    return CLIENT.request(method, daemon.url + path, json=body, headers=headers)


def status(daemon, method, path, body=None, **headers):
    return ask(daemon, method, path, body, **headers).status_code


@pytest.mark.parametrize("method,path,body", TRIES)
def test_a_foreign_page_gets_nothing(bare, method, path, body):
    for headers, setting in [
        (EVIL, "http.origins"),
        ({"Origin": "null"}, "http.origins"),
        ({"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, "http.origins"),
        ({"Sec-Fetch-Site": "cross-site"}, "http.origins"),
        ({"Host": "evil.example"}, "http.hosts"),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, "http.hosts"),
    ]:
        answer = ask(bare, method, path, body, **headers)
        assert answer.status_code == 403, headers
        assert setting in answer.json()["error"]["message"]
        assert "access-control-allow-origin" not in answer.headers
    assert status(bare, method, path, body) not in (401, 403, 405)


def test_what_tells_nothing_stays_open(bare):
    for path in OPEN:
        for headers in (EVIL, {"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert status(bare, "GET", path, **headers) == 200


def test_a_page_of_this_listener_and_a_program_may_ask(bare):
    port = bare.port("http")
    for host in ("localhost", "127.0.0.1", "[::1]", "weir.localhost"):
        name = f"{host}:{port}"
        headers = {"Host": name, "Origin": f"http://{name}", "Sec-Fetch-Site": "same-origin"}
        assert status(bare, "GET", "/weir/v1/sessions", **headers) == 200


def test_a_held_tool_is_not_approved_by_a_page(bare):
    """The way it went wrong: a simple request without a content type, from any open tab."""
    turn = ask(bare, "POST", "/invoke", {"input": "pay", "session_id": "held"}).json()
    assert turn["metadata"]["interrupted"]
    (held,) = ask(bare, "GET", "/weir/v1/approvals").json()["approvals"]
    where = f"{bare.url}/weir/v1/approvals/{held['id']}"
    untyped = b'{"decision":"approve"}'
    assert CLIENT.post(where, content=untyped, headers=EVIL).status_code == 403
    assert ask(bare, "GET", "/weir/v1/approvals").json()["approvals"][0]["id"] == held["id"]
    assert CLIENT.post(where, content=untyped).status_code == 200


def test_over_http2_the_authority_is_judged(bare):
    with httpx.Client(http1=False, http2=True, trust_env=False, verify=False) as client:
        for host, wanted in [("localhost:1", 200), ("evil.example", 403)]:
            request = client.build_request(
                "GET", bare.url + "/weir/v1/sessions", headers={"Host": host}
            )
            assert client.send(request).status_code == wanted


def test_with_a_token_nobody_is_asked_for_his_page(tmp_path):
    daemon = keyless(tmp_path, AGENT_AUTH_TOKEN="s3cret").start()
    try:
        headers = {"Authorization": "Bearer s3cret", "Host": "agent.example", **EVIL}
        assert status(daemon, "POST", "/invoke", {"input": "hi"}, **headers) == 200
        assert status(daemon, "GET", "/weir/v1/sessions", **headers) == 200
        assert status(daemon, "POST", "/invoke", {"input": "hi"}, **EVIL) == 401
    finally:
        daemon.stop()


def test_listed_pages_and_names_may_ask_and_cors_is_on_for_them(tmp_path):
    config = f"http:\n  origins: [{STUDIO}]\n  hosts: [agent.example]\n"
    daemon = keyless(tmp_path, config=config).start()
    try:
        headers = {"Origin": STUDIO, "Host": "agent.example", "Sec-Fetch-Site": "cross-site"}
        answer = ask(daemon, "POST", "/invoke", {"input": "hi"}, **headers)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == STUDIO
        wish = {"Access-Control-Request-Method": "POST", "Origin": STUDIO}
        answer = ask(daemon, "OPTIONS", "/stream", **wish)
        assert answer.status_code == 204
        assert answer.headers["access-control-allow-methods"] == "POST"
        assert status(daemon, "OPTIONS", "/stream", **{**wish, **EVIL}) == 403
        assert status(daemon, "POST", "/invoke", {"input": "hi"}, **EVIL) == 403
        assert status(daemon, "GET", "/weir/v1/sessions", Host="other.example") == 403
    finally:
        daemon.stop()


def test_a_sidecar_keeps_its_clients_host(tmp_path):
    daemon = keyless(tmp_path, AGENTBREEDER_SIDECAR_ACTIVE="1").start()
    try:
        headers = {"Host": "agent.example", "Origin": "https://agent.example"}
        assert status(daemon, "POST", "/invoke", {"input": "hi"}, **headers) == 200
        assert status(daemon, "POST", "/invoke", {"input": "hi"}, **EVIL) == 403
    finally:
        daemon.stop()
