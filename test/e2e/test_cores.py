"""R-7: what a crash leaves behind holds no secret."""
import pathlib
import resource
import signal
import subprocess
import sys
import time

import harness
import pytest

CANARIES = {
    "CRAWBL_MCP_SIGNING_KEY": "canary-of-the-signing-key-32-bytes",
    "AGENT_AUTH_TOKEN": "canary-of-the-bearer",
    "OPENAI_API_KEY": "canary-of-the-provider",
}


def let_cores_be():
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def crash(folder, command, env):
    """What is in the folder once the program was ended by SIGABRT, as an abort() would."""
    process = subprocess.Popen(
        command,
        env=harness.clean_environment(env),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=let_cores_be,
    )
    give_up = time.monotonic() + harness.READY_SECONDS
    while not (folder / "ready").exists():
        assert time.monotonic() < give_up and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGABRT)
    assert process.wait(timeout=30) == -signal.SIGABRT
    return [path for path in folder.iterdir() if path.name.startswith("core")]


@pytest.fixture
def cores_are_files(tmp_path):
    """Where this machine writes cores to the current folder, which another program shows."""
    if pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core":
        pytest.skip("cores of this machine go elsewhere")
    folder = tmp_path / "other"
    folder.mkdir()
    wait = "import pathlib, time; pathlib.Path('ready').touch(); time.sleep(60)"
    if not crash(folder, [sys.executable, "-c", wait], {}):
        pytest.skip("no program leaves a core here")


def test_a_crash_leaves_no_core(tmp_path, cores_are_files):
    command = [harness.BINARY, "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    command += ["--model", "openai/m", "--data", tmp_path / "data", "--ports-file", "ready"]
    assert crash(tmp_path, [str(word) for word in command], CANARIES) == []


def test_the_limit_of_cores_is_one_byte(tmp_path):
    """That also keeps the kernel from feeding a core to a program, which 0 does not."""
    started = subprocess.Popen(
        [str(harness.BINARY), "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--ports-file", "p"],
        env=harness.clean_environment({"HOME": tmp_path}),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        give_up = time.monotonic() + harness.READY_SECONDS
        while not (tmp_path / "p").exists():
            assert time.monotonic() < give_up and started.poll() is None
            time.sleep(0.01)
        soft, hard = resource.prlimit(started.pid, resource.RLIMIT_CORE)
        assert soft == (1 if hard else 0)
    finally:
        started.send_signal(signal.SIGTERM)
        assert started.wait(timeout=30) == 0
