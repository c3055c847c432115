"""docs/recipes: the code of each is a file, the page shows that file, and the file runs."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import grpc
import harness
import httpx
import pytest

PAGES = sorted((harness.ROOT / "docs/recipes").glob("*.md"))
RECIPES = harness.ROOT / "examples/recipes"
LINK = re.compile(r"\]\((\.\./\.\./examples/[^)#]+)\)")


def run(*command, cwd=harness.ROOT, **env):
    """With the program in the PATH as `weir`."""
    folder = pathlib.Path(env.get("HOME", cwd))
    (folder / "bin").mkdir(exist_ok=True)
    if not (folder / "bin/weir").exists():
        (folder / "bin/weir").symlink_to(harness.BINARY)
    env = harness.clean_environment({"HOME": str(folder), **env})
    env["PATH"] = f"{folder / 'bin'}:{env['PATH']}"
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_stands_in_the_file_that_it_names(page):
    text, linked = page.read_text(), []
    for piece in re.split(r"(^```\w*\n.*?^```$)", text, flags=re.M | re.S):
        if not piece.startswith("```"):
            linked += LINK.findall(piece)
            continue
        shown = piece.split("\n", 1)[1].rsplit("\n", 1)[0]
        if shown.startswith("python3 examples/"):
            continue  # how a file is run
        assert any(shown in (page.parent / link).read_text() for link in linked), shown


def test_connect_reads_a_stream_to_its_end(weir, tmp_path):
    out = run(sys.executable, RECIPES / "connect.py", weir.url, "two days in Kyoto", HOME=str(tmp_path))
    assert "[web_search {'query': 'two days in Kyoto'}]" in out
    with pytest.raises(AssertionError, match="refused"):
        run(sys.executable, RECIPES / "connect.py", "http://127.0.0.1:1", HOME=str(tmp_path))


def test_a_tool_of_ones_own_is_called(tmp_path):
    for path in (harness.ROOT / "examples/tools").iterdir():
        shutil.copy(path, tmp_path)
    out = run("sh", "-e", RECIPES / "tool.sh", cwd=tmp_path)
    assert "weir.yaml: good; 1 agent, 3 tools" in out and '"words":6' in out
    assert out.endswith("\nThree words.\n")


def test_code_of_ones_own_is_an_agent(tmp_path):
    assert "That makes 6." in run("sh", "-e", RECIPES / "code.sh", HOME=str(tmp_path))


@pytest.mark.weir(args=("--admin", "127.0.0.1:0"), env={"AGENT_AUTH_TOKEN": "t"})
def test_a_run_is_watched_from_outside(weir, tmp_path):
    where = {"WEIR_URL": f"127.0.0.1:{weir.port('http')}", "WEIR_ADMIN": f"127.0.0.1:{weir.port('admin')}"}
    out = run("sh", "-e", RECIPES / "watch.sh", cwd=tmp_path, AGENT_AUTH_TOKEN="t", **where)
    assert '"state":"done"' in out and "event: started" in out and "event: done" in out
    assert re.search(r"^weir_turns_ended_total\{.*\} 1$", out, re.M)


def test_a_deployment_goes_through_its_life(tmp_path):
    out = run("sh", "-e", RECIPES / "deploy.sh", cwd=tmp_path)
    assert out.splitlines()[-3:] == ["weir serves", "401", "200"], out


@pytest.fixture
def nginx(weir, tmp_path):
    """nginx with the recipe's file, at free ports."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if not program:
        pytest.skip("there is no nginx here")
    sockets = [tmp_path / "http.sock", tmp_path / "grpc.sock"]
    text = (RECIPES / "nginx.conf").read_text()
    for old, new in (
        ("127.0.0.1:8080", f"127.0.0.1:{weir.port('http')}"),
        ("127.0.0.1:42618", f"127.0.0.1:{weir.port('grpc')}"),
        ("127.0.0.1:8088", f"unix:{sockets[0]}"),
        ("127.0.0.1:8089", f"unix:{sockets[1]}"),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "nginx.conf").write_text(text)
    process = subprocess.Popen(
        [program, "-p", str(tmp_path), "-c", "nginx.conf", "-e", "stderr"], stderr=subprocess.PIPE
    )
    while not all(path.exists() for path in sockets):
        assert process.poll() is None, process.stderr.read()
    yield sockets
    process.terminate()
    process.wait(60)


@pytest.mark.weir(env={"AGENT_AUTH_TOKEN": "t"})
def test_a_proxy_passes_streams_on_as_they_come(weir, nginx):
    transport = httpx.HTTPTransport(uds=str(nginx[0]))
    headers = {"authorization": "Bearer t", "host": "agent.example"}
    with httpx.Client(transport=transport, base_url="http://agent.example", headers=headers) as http:
        with http.stream("POST", "/stream", json={"input": "two days in Kyoto"}) as answer:
            pieces = list(answer.iter_raw())
        assert len(pieces) > 3 and b"".join(pieces).endswith(b"data: [DONE]\n\n")
        assert http.post("/invoke", json={"input": "hi"}).status_code == 200
    with grpc.insecure_channel(f"unix:{nginx[1]}") as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert check(b"", timeout=60) == b"\x08\x01"  # SERVING
