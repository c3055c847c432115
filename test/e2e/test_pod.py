"""In place of the pod of a Crawbl workspace: the webhook's own arguments, a user who owns nothing,
no settings file. contracts/crawbl.md 4 has the flags and the variables."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import crawbl
import grpc
import harness
import pytest
from ports import free_port
from vendor import Vendor

from orchestrator import Orchestrator, agent

NOBODY = 65532
ROOT = os.geteuid() == 0


@pytest.fixture
def orchestrator():
    with Orchestrator() as double:
        double.agents[crawbl.WORKSPACE] = [
            agent("manager", role="manager", prompt="You manage.", tools=["web_search_tool"])
        ]
        yield double


@pytest.fixture
def vendor():
    with Vendor() as double:
        yield double


@pytest.fixture
def secrets():
    """What a pod has below /mnt/secrets; anybody may read it here."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-secrets-"))
    folder.chmod(0o755)
    (folder / "CRAWBL_MCP_SIGNING_KEY").write_text(harness.SIGNING_KEY + "\n")
    (folder / "OPENAI_API_KEY").write_text("sk-mounted\n")
    yield folder
    shutil.rmtree(folder)


class Pod:
    def __init__(self, tmp_path, orchestrator, vendor, secrets, env=None, args=()):
        self.address = f"127.0.0.1:{free_port()}"
        self.log_file = tmp_path / "log"
        command = [harness.BINARY, "--grpc-listen", self.address]
        command += ["--workspace-id", crawbl.WORKSPACE, "--user-id", crawbl.USER]
        command += ["--orchestrator-endpoint", "orchestrator.backend:7171"]
        command += ["--mcp-endpoint", orchestrator.endpoint]
        command += ["--redis-addr", "redis:6379", "--redis-session-ttl=24h"]
        command += ["--searxng-endpoint", vendor.url, "--openai-base-url", vendor.url + "/v1", *args]
        pod_env = {"HOME": "/nonexistent", "SECRETS_DIR": secrets, "CRAWBL_REDIS_PASSWORD": "hush"}
        pod_env |= {"CRAWBL_OTEL_ENABLED": "true", **(env or {})}
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                env=harness.clean_environment(pod_env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                **({"user": NOBODY, "group": NOBODY, "extra_groups": []} if ROOT else {}),
            )

    def log(self):
        return self.log_file.read_text()

    def wait(self):
        give_up = time.monotonic() + harness.READY_SECONDS
        while " serves" not in self.log():
            assert time.monotonic() < give_up and self.process.poll() is None, self.log()
            time.sleep(0.01)
        return self

    def ask(self, message):
        bearer = harness.token(crawbl.USER, crawbl.WORKSPACE)
        with grpc.insecure_channel(self.address) as channel:
            metadata = [("authorization", f"Bearer {bearer}")]
            with crawbl.Stream(channel, metadata) as stream:
                return stream.ask(message)

    def listeners(self):
        """How many sockets of the process listen."""
        own = set()
        for fd in pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
                own.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
        rows = []
        for table in ("tcp", "tcp6"):
            rows += [line.split() for line in open(f"/proc/net/{table}").readlines()[1:]]
        return sum(1 for row in rows if row[3] == "0A" and row[9] in own)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=harness.STOP_SECONDS) == 0, self.log()


@pytest.fixture
def start(tmp_path, orchestrator, vendor, secrets):
    pods = []

    def start_pod(**options):
        pods.append(Pod(tmp_path, orchestrator, vendor, secrets, **options))
        return pods[-1].wait()

    yield start_pod
    for pod in pods:
        pod.stop()


def test_it_serves_the_workspace_as_the_webhook_starts_it(start, vendor):
    pod = start()
    turn = pod.ask("hello with a search")
    assert turn.error is None and "You said: hello with a search" in turn.text
    assert vendor.searches == ["hello with a search"]  # the tool of the endpoint that is given
    assert vendor.asked[0]["model"] == "gpt-5-mini"  # as upstream's default has it
    assert pod.listeners() == 1
    assert "token    " not in pod.log() and "hush" not in pod.log()


def test_one_warning_names_all_that_is_not_used_and_one_says_where_data_goes(start):
    pod = start()
    data = pathlib.Path(f"/dev/shm/weir-{pod.process.pid}")
    warnings = [line for line in pod.log().splitlines() if '"warning"' in line]
    unused = [line for line in warnings if "nothing reads" in line]
    assert len(unused) == 1
    for name in ("--redis-addr", "--redis-session-ttl", "CRAWBL_REDIS_PASSWORD"):
        assert name in unused[0]
    assert "CRAWBL_OTEL_ENABLED" in unused[0]
    assert "--searxng-endpoint" not in unused[0]
    if not pathlib.Path("/cache").exists():
        assert len([line for line in warnings if "NOTHING IS KEPT" in line]) == 1
        assert data.is_dir()
        pod.stop()
        assert not data.exists()


def test_what_is_told_listens_too(start):
    assert start(args=["--http", "127.0.0.1:0"]).listeners() == 2


def test_a_key_that_was_rotated_in_its_mount_is_taken_at_a_reload(start, secrets):
    pod = start()
    assert pod.ask("hello").error is None
    (secrets / "CRAWBL_MCP_SIGNING_KEY").write_text("another-key-of-32-bytes-in-length")
    pod.process.send_signal(signal.SIGHUP)
    give_up = time.monotonic() + 20
    while "was read again" not in pod.log():
        assert time.monotonic() < give_up
        time.sleep(0.01)
    with pytest.raises(grpc.RpcError) as refused:
        pod.ask("hello")
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_secrets_come_from_the_variable_then_the_mount_then_the_named_file(tmp_path, secrets):
    named = tmp_path / "named"
    named.write_text("from-the-file-that-is-named-32-b")
    asked = harness.token(key="from-the-file-that-is-named-32-b")
    mounted = harness.token()
    direct = harness.token(key="from-the-variable-itself-of-32-b")
    env = {"SECRETS_DIR": secrets, "CRAWBL_MCP_SIGNING_KEY_FILE": named}
    variable = {"CRAWBL_MCP_SIGNING_KEY": "from-the-variable-itself-of-32-b"}

    def good(token, **env):
        command = [str(harness.BINARY), "token", "check", token]
        env = harness.clean_environment({"HOME": tmp_path, **env})
        return subprocess.run(command, env=env, capture_output=True).returncode == 0

    assert good(direct, **env, **variable) and not good(mounted, **env, **variable)
    assert good(mounted, **env) and not good(asked, **env)
    (secrets / "CRAWBL_MCP_SIGNING_KEY").unlink()
    assert good(asked, **env)


# --- reasoning ----------------------------------------------------------------------------

THINKS = "test/e2e/scripts/contract.yaml"


@pytest.mark.parametrize(
    "env, said, shown",
    [
        ({}, None, False),
        ({"CRAWBL_THINKING": "true"}, None, True),
        ({}, True, True),
        ({"CRAWBL_THINKING": "true"}, False, False),
    ],
    ids=["nobody says", "the variable", "the blueprint", "the blueprint counts"],
)
def test_a_variable_or_a_blueprint_shows_reasoning(start_weir, orchestrator, env, said, shown):
    """K13"""
    manager = agent("manager", role="manager")
    if said is not None:
        manager["thinking"] = said
    orchestrator.agents[crawbl.WORKSPACE] = [manager]
    weir = start_weir(script=THINKS, env={**orchestrator.env, **env})
    assert bool(crawbl.one_turn(weir, "think aloud").of("thinking")) == shown
