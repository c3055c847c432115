"""Models behind https:, as servers of other makes speak it: Node, uvicorn, nginx, and Go where it is.

Each answers what its caller's last word asks for:

    hello     three pieces with a pause between them: "hello from ", and the caller's port
    long N    N pieces of 1,000 bytes, as fast as they are read
    take ...  how many characters the caller sent
    cut       one piece, and then the connection is gone
"""
import asyncio
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import threading
import time

import crawbl
import pytest
import uvicorn
from ports import free_port
from test_tls import Authority

HERE = pathlib.Path(__file__).parent
PATIENCE = 90
KINDS = ["node", "uvicorn", "nginx", "go"]


# --- the servers ---------------------------------------------------------------------------


class Cut(Exception):
    """What uvicorn breaks a connection for."""


async def model(scope, receive, send):
    """The model as an ASGI application; nginx says in a header which port its caller had."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    said = json.loads(body)["messages"][-1]["content"]
    word, _, rest = said.partition(" ")
    port = dict(scope["headers"]).get(b"x-port", str(scope["client"][1]).encode()).decode()
    pieces = {"long": lambda: ["x" * 1000] * int(rest), "take": lambda: [str(len(said))]}
    pieces = pieces.get(word, lambda: ["hello ", "from ", port])()

    async def say(text, more=True):
        await send({"type": "http.response.body", "body": text.encode(), "more_body": more})

    head = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    for piece in pieces:
        await say(chunk({"content": piece}))
        if word == "cut":
            raise Cut
        if len(pieces) < 10:
            await asyncio.sleep(0.005)
    await say(chunk({}, "stop") + "data: [DONE]\n\n", more=False)


def chunk(delta, reason=None):
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return f"data: {json.dumps({'choices': [choice]})}\n\n"


@contextlib.contextmanager
def uvicorn_serves(**tls):
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(model, lifespan="off", log_level="critical", timeout_keep_alive=60, **tls)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    server.should_exit = server.force_exit = True
    thread.join(PATIENCE)
    assert not thread.is_alive()
    listener.close()


@contextlib.contextmanager
def process_serves(*command):
    """One that prints its port, and ends with its input."""
    process = subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    yield int(process.stdout.readline())
    process.stdin.close()
    process.wait(PATIENCE)
    process.stdout.close()


NGINX = """
daemon off; master_process off; pid nginx.pid; error_log error.log crit;
events {{ worker_connections 64; }}
http {{
    access_log off; client_max_body_size 0; client_body_temp_path body; proxy_temp_path proxy;
    fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {{
        listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key {key};
        location / {{
            proxy_pass http://127.0.0.1:{behind}; proxy_http_version 1.1; proxy_buffering off;
            proxy_set_header Connection ""; proxy_set_header X-Port $remote_port;
        }}
    }}
}}
"""


@contextlib.contextmanager
def nginx_serves(folder, cert, key):
    with uvicorn_serves() as behind:
        port = free_port()
        (folder / "nginx.conf").write_text(NGINX.format(port=port, cert=cert, key=key, behind=behind))
        command = [shutil.which("nginx") or "/usr/sbin/nginx", "-p", folder, "-c", "nginx.conf"]
        process = subprocess.Popen([str(word) for word in command], stderr=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.01)
        yield port
        process.terminate()
        process.wait(PATIENCE)


def go_model():
    """The Go server's program, or None: test/proof/go/build.sh builds it, where Go is."""
    program = crawbl.harness.BUILD / "go" / "https_model"
    return program if program.exists() else None


# --- a daemon that asks them all -------------------------------------------------------------


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("https")
    (folder / "weir").mkdir()
    root = Authority(folder, "root")
    cert, key = root.sign("server")
    with contextlib.ExitStack() as stack:
        ports = {
            "node": stack.enter_context(
                process_serves("node", HERE / "node" / "https_model.js", cert, key)
            ),
            "uvicorn": stack.enter_context(uvicorn_serves(ssl_certfile=cert, ssl_keyfile=key)),
            "nginx": stack.enter_context(nginx_serves(folder, cert, key)),
        }
        if program := go_model():
            ports["go"] = stack.enter_context(process_serves(program, cert, key))
        urls = {kind: f"https://localhost:{port}/v1" for kind, port in ports.items()}
        urls["misnamed"] = f"https://[::ffff:127.0.0.1]:{ports['node']}/v1"
        config = "providers:\n" + "".join(
            f"  - {{name: {kind}, kind: openai, base_url: '{url}', key_env: MODEL_KEY, retries: 0}}\n"
            for kind, url in urls.items()
        )
        config += "agents:\n" + "".join(f"  - {{slug: {kind}, model: {kind}/m}}\n" for kind in urls)
        env = {"MODEL_KEY": "k", "SSL_CERT_FILE": key}  # which nobody reads
        weir = crawbl.harness.Daemon(folder / "weir", config=config, env=env, args=["--threads", "1", "--tls-trust", root.pem]).start()
        weir.kinds = set(urls)
        yield weir
        weir.stop()
        assert not weir.sanitizer_log()


@pytest.fixture(params=KINDS)
def ask(daemon, request):
    if request.param not in daemon.kinds:
        pytest.skip("test/proof/go/build.sh has not built it")

    def ask(message, **fields):
        return crawbl.one_turn(daemon, message, agent_id=request.param, **fields)

    return ask


def test_pieces_come_one_by_one_and_the_connection_stays(ask):
    first, second = ask("hello"), ask("hello")
    assert first.error is None and first.text.startswith("hello from ")
    assert len(first.of("chunk")) >= 3
    assert first.text == second.text, "the same port: the same connection"


def test_much_comes_whole_both_ways(ask):
    answer = ask("long 2000")
    assert answer.error is None and answer.text == "x" * 2_000_000
    words = "take " + "w" * 700_000
    assert ask(words).text == str(len(words))


def test_a_cut_is_a_failure(ask):
    turn = ask("cut")
    assert turn.error and turn.text == "hello "
    assert ask("hello").text.startswith("hello from "), "and the next call goes on"


def test_another_name_is_refused_and_the_log_says_why(daemon):
    turn = crawbl.one_turn(daemon, "hello", agent_id="misnamed")
    assert turn.error.startswith("UNAVAILABLE: the model's provider cannot be reached")
    log = daemon.said("its certificate is not for the address in the URL but for")
    assert "subjectAltName" in log
