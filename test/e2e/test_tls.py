"""TLS as clients meet it: Python's ssl, httpx, grpcio. Certificates are made by openssl."""
import re
import signal
import socket
import ssl
import subprocess
import time
import warnings

import crawbl
import grpc
import harness
import httpx
import pytest

PATIENCE = 90


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


class Authority:
    """A root of one test, and the certificates it signs for 127.0.0.1."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        self.new_key = [*curve, "-subj"]
        openssl(folder, "req", "-x509", *curve, "-days", "2", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.pem")  # fmt: skip
        self.pem = folder / f"{name}.pem"

    def sign(self, name):
        (self.folder / f"{name}.ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        openssl(self.folder, "req", *self.new_key, f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr")  # fmt: skip
        openssl(self.folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.pem",
                "-CAkey", f"{self.name}.key", "-CAcreateserial", "-days", "2",
                "-extfile", f"{name}.ext", "-out", f"{name}.pem")  # fmt: skip
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"


@pytest.fixture
def root(tmp_path):
    return Authority(tmp_path, "root")


@pytest.fixture
def secure(root, start_weir, tmp_path):
    """Start a daemon with TLS: secure(ca=..., config=...)."""
    cert, key = root.sign("server")

    def start(ca=None, **options):
        env = {"CRAWBL_TLS_CERT": cert, "CRAWBL_TLS_KEY": key, "CRAWBL_TLS_CA": ca}
        return start_weir(env=env, script="test/e2e/scripts/quick.yaml", **options)

    return start


def trusting(authority, alpn=("http/1.1",), **show):
    context = ssl.create_default_context(cafile=authority.pem)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    for cert, key in show.values():
        context.load_cert_chain(cert, key)
    return context


def dial(weir, context, listener="http"):
    plain = socket.create_connection(("127.0.0.1", weir.port(listener)), PATIENCE)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def client(weir, context, **options):
    url = f"https://127.0.0.1:{weir.port('http')}"
    return httpx.Client(base_url=url, verify=context, timeout=PATIENCE, trust_env=False, **options)


def channel(weir, authority, cert=None, key=None):
    credentials = grpc.ssl_channel_credentials(
        authority.pem.read_bytes(), key and key.read_bytes(), cert and cert.read_bytes()
    )
    return grpc.secure_channel(weir.target, credentials, [("grpc.enable_http_proxy", 0)])


def is_healthy(weir, context):
    with client(weir, context) as http:
        return http.get("/health").status_code == 200


def maps(weir):
    with open(f"/proc/{weir.pid}/maps") as file:
        return file.read()


def test_a_plain_daemon_never_maps_openssl(weir, secure, root):
    assert weir.http().get("/health").status_code == 200
    assert not re.search("libssl|libcrypto", maps(weir))
    assert re.search("libssl", maps(secure()))


def test_weir_health_asks_the_operators_listener_over_tls(secure, root, tmp_path):
    """Every listener has TLS, that one too."""
    def health(*args):
        words = ["--tls-cert", "server.pem", "--tls-key", "server.key", *args]
        done = subprocess.run([str(harness.BINARY), "health", *words], cwd=tmp_path, text=True, capture_output=True,
                              env=harness.clean_environment({"HOME": str(tmp_path)}), timeout=60)
        return done.returncode, done.stdout + done.stderr

    admin = f"127.0.0.1:{secure(args=('--admin', '127.0.0.1:0')).port('admin')}"
    assert health("--admin", admin, "--tls-trust", root.pem) == (0, "weir serves\n")
    code, text = health("--admin", admin)
    assert code == 1 and "its certificate is not trusted" in text


def test_http_1_and_2_are_chosen_by_alpn(secure, root):
    weir = secure()
    with client(weir, trusting(root)) as http:
        assert http.get("/health").http_version == "HTTP/1.1"
    with client(weir, trusting(root, alpn=()), http2=True) as http:
        answer = http.get("/health")
        assert (answer.status_code, answer.http_version) == (200, "HTTP/2")
    with dial(weir, trusting(root, alpn=())) as tls:  # a peer without ALPN
        assert tls.version() == "TLSv1.3"
        tls.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        with tls.makefile("rb") as file:
            assert read_answer(file)[0] == 200
            assert file.read() == b""  # and a proper end, or ssl would have raised


def test_a_peer_that_speaks_none_of_ours_is_told_so(secure, root):
    weir = secure()
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        dial(weir, trusting(root, alpn=("spdy/1",)))
    assert is_healthy(weir, trusting(root))


def test_converse_over_tls(secure, root):
    weir = secure()
    with channel(weir, root) as secured:
        stream = crawbl.Stream(secured, weir.metadata())
        for _ in range(3):
            assert stream.ask("hello").text
        stream.half_close()
        assert stream.status() == grpc.StatusCode.OK


def test_a_large_body_passes_both_ways(secure, root):
    weir = secure()
    body = {"input": "x" * (3 << 20)}
    with client(weir, trusting(root, alpn=("h2",)), http2=True) as http:
        answers = [http.post("/invoke", json=body).status_code for _ in range(2)]
    assert answers[0] == answers[1] and answers[0] in (200, 400, 422)
    with dial(weir, trusting(root)) as tls:
        tls.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n" * 500)
        with tls.makefile("rb") as file:
            answers = {read_answer(file) for _ in range(500)}
        assert len(answers) == 1 and answers.pop()[0] == 200


def read_answer(file):
    """One HTTP/1.1 answer with a length: its status and its body."""
    status = int(file.readline().split()[1])
    length = 0
    while (line := file.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return status, file.read(length)


def test_a_client_that_trusts_another_root_leaves_and_the_next_is_served(secure, root, tmp_path):
    weir = secure()
    other = Authority(tmp_path, "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        dial(weir, trusting(other))
    with channel(weir, other) as secured:
        with pytest.raises(grpc.RpcError) as failure:
            crawbl.Stream(secured, weir.metadata()).ask("hello")
        assert failure.value.code() == grpc.StatusCode.UNAVAILABLE
    assert is_healthy(weir, trusting(root))


def test_where_a_certificate_is_wanted_only_those_of_the_right_root_come_in(
    secure, root, tmp_path
):
    other = Authority(tmp_path, "other")
    weir = secure(ca=root.pem)
    friend, stranger = root.sign("friend"), other.sign("stranger")
    assert is_healthy(weir, trusting(root, show=friend))
    for show in ({}, {"show": stranger}):
        with pytest.raises((httpx.ReadError, httpx.ConnectError, httpx.RemoteProtocolError)):
            is_healthy(weir, trusting(root, **show))
    with channel(weir, root, *friend) as secured:
        assert crawbl.Stream(secured, weir.metadata()).ask("hello").text


def test_old_versions_are_refused(secure, root):
    weir = secure()
    context = trusting(root)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        dial(weir, context)
    context = trusting(root)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert dial(weir, context).version() == "TLSv1.2"


@pytest.mark.parametrize("listener", ["http", "grpc"])
def test_what_is_not_tls_is_closed(secure, root, listener):  # H9
    weir = secure()
    for garbage in (
        b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 9,
        b"\0" * 100,
        b"\x16\x03\x01\xff\xff" + b"\xff" * 100,
    ):
        with socket.create_connection(("127.0.0.1", weir.port(listener)), PATIENCE) as plain:
            plain.sendall(garbage)
            said = b""
            while part := receive(plain):
                said += part
            assert b"HTTP" not in said and len(said) < 10  # at most an alert
    assert is_healthy(weir, trusting(root))


def receive(plain):
    try:
        return plain.recv(4096)
    except ConnectionResetError:
        return b""


def test_a_handshake_that_is_cut_or_stands_still_costs_nothing(secure, root):
    weir = secure(config="limits:\n  header: 300ms\n")
    hello = first_flight(root)
    for cut in (1, 5, 6, len(hello) // 2, len(hello) - 1, len(hello)):
        with socket.create_connection(("127.0.0.1", weir.port("http")), PATIENCE) as plain:
            plain.sendall(hello[:cut])
            if cut % 2:
                plain.close()
                continue
            while receive(plain):  # the server closes it, because time is up
                pass
    assert is_healthy(weir, trusting(root))


def first_flight(root):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting(root).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_a_peer_that_leaves_without_a_word_is_fine(secure, root):
    weir = secure()
    for request in (b"", b"GET /hea", b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"):
        tls = dial(weir, trusting(root))
        tls.sendall(request)
        plain = tls.detach()  # no close_notify
        socket.close(plain)
    assert is_healthy(weir, trusting(root))


def test_sessions_resume(secure, root):
    weir = secure()
    context = trusting(root)
    with dial(weir, context) as tls:
        tls.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert tls.recv(1)  # the ticket came in front of it
        session = tls.session
    plain = socket.create_connection(("127.0.0.1", weir.port("http")), PATIENCE)
    with context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as again:
        assert again.session_reused


def serial(weir):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with dial(weir, context) as tls:
        return tls.getpeercert(binary_form=True)


def wait_for_log(weir, text, times=1):
    give_up = time.monotonic() + PATIENCE
    while weir.log().count(text) < times:
        assert time.monotonic() < give_up, weir.log()
        time.sleep(0.01)


def test_a_reload_shows_new_certificates_and_keeps_the_last_good_ones(secure, root, tmp_path):
    weir = secure()
    before = serial(weir)
    old = dial(weir, trusting(root))

    root.sign("server")  # into the same files
    weir.signal(signal.SIGHUP)
    wait_for_log(weir, "was read again")
    after = serial(weir)
    assert after != before

    (tmp_path / "server.pem").write_text("broken\n")
    weir.signal(signal.SIGHUP)
    wait_for_log(weir, "was not taken")
    assert "server.pem" in weir.log()
    assert serial(weir) == after and is_healthy(weir, trusting(root))

    old.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")  # what was open stays open
    assert old.recv(15).startswith(b"HTTP/1.1 200")
    old.close()


def test_bad_certificates_end_the_start_with_a_sentence(start_weir, tmp_path):
    for env, told in (
        ({"CRAWBL_TLS_CERT": tmp_path / "gone.pem", "CRAWBL_TLS_KEY": "k"}, "gone.pem"),
        ({"CRAWBL_TLS_KEY": "k"}, "set tls.cert"),
    ):
        with pytest.raises(AssertionError, match=told):
            start_weir(env=env)
