"""harness: one daemon of ours, as a test sees it.

A Daemon starts $WEIR_BINARY with free ports and a data folder of its own, waits until it is
ready, and is ended by its own process id. Ending it is a check too: exit status 0, and
nothing from a sanitizer when the binary was built with one.
"""
import base64
import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import signal
import ssl
import subprocess
import time

import grpc
import httpx

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
BINARY = pathlib.Path(os.environ.get("WEIR_BINARY", BUILD / "weir"))
SIGNING_KEY = "test-signing-key-32bytes-long!!!"
READY_SECONDS = 60  # generous: a sanitizer build on a busy machine
STOP_SECONDS = 60

# What verifies no certificate, as no test but those of TLS meets one. A client of httpx would read
# those of the whole web each time that it is made: 40 ms of a core.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

# For a daemon that ends at once by a second signal: nobody waits for its threads then.
NO_JOINS = {"TSAN_OPTIONS": "report_thread_leaks=0"}

# What a test's daemon must not inherit from whoever runs the tests.
FOREIGN = ("WEIR_", "CRAWBL_", "NIMI_", "AGENT", "OPENAI_", "ANTHROPIC_", "GEMINI_", "XDG_")
FOREIGN += ("GOOGLE_", "OPENROUTER_", "OLLAMA_", "CREDENTIALS_")
FOREIGN_NAMES = {"SECRETS_DIR", "PORT", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID"}


collecting = False  # conftest.py sets it while pytest reads the tests


def token(user="user-1", workspace="ws-1", at=None, key=SIGNING_KEY):
    """A token as an orchestrator mints it: base64url(user:workspace:time) . hex HMAC-SHA256.

    It is good for five minutes, so a test mints its own: one that a module keeps has expired
    where the tests take longer."""
    assert not collecting, "mint it in the test: it would be old when the test runs"
    payload = f"{user}:{workspace}:{int(time.time()) if at is None else at}"
    text = base64.urlsafe_b64encode(payload.encode()).decode().rstrip("=")
    return text + "." + hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def bearer(user="user-1", workspace="ws-1"):
    """The header of a request with a new token."""
    return {"authorization": "Bearer " + token(user, workspace)}


def clean_environment(extra):
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(FOREIGN) and name not in FOREIGN_NAMES
    }
    return {**kept, **{k: str(v) for k, v in extra.items() if v is not None}}


class Daemon:
    """`weir serve` in its own folder.

    script   a script file for the offline provider, relative to the repository's root
    config   more lines of weir.yaml
    env      more environment; a value of None removes a default
    args     more arguments
    output   a descriptor for all that it says, instead of its log file
    """

    def __init__(self, folder, script=None, config="", env=None, args=(), output=None):
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "data"
        self.log_file = self.folder / "weir.log"
        self.ports = {}
        self.process = None
        self._channels = []
        self._output = output
        self._args = list(args)
        self._config = self._write_config(script, config)
        self._env = {"CRAWBL_MCP_SIGNING_KEY": SIGNING_KEY, **(env or {})}
        sanitizer = f"log_path={self.folder}/sanitizer:exitcode=97"
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            self._env.setdefault(name, sanitizer + ":print_stacktrace=1")

    def _write_config(self, script, config):
        if not script and not config:
            return None
        lines = f"script: {ROOT / script}\n" if script else ""
        path = self.folder / "weir.yaml"
        path.write_text(lines + config)
        return path

    # --- life -------------------------------------------------------------------------

    def command(self):
        command = [str(BINARY), "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
        command += ["--nimi-grpc", "127.0.0.1:0", "--nimi-http", "127.0.0.1:0"]
        command += ["--data", str(self.data), "--ports-file", str(self.folder / "ports.json")]
        if self._config:
            command += ["-c", str(self._config)]
        return command + [str(argument) for argument in self._args]

    def start(self):
        assert self.process is None, "this daemon runs already"
        ports_file = self.folder / "ports.json"
        ports_file.unlink(missing_ok=True)
        self.process = self.spawn()
        self.ports = self._wait_for(ports_file)
        return self

    def spawn(self, **env):
        """The process alone, which nobody waits for, with this environment besides."""
        with open(self.log_file, "ab") as log:
            return subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=self._output or log,
                stderr=self._output or log,
                env=clean_environment({**self._env, **env}),
                cwd=self.folder,
            )

    def _wait_for(self, ports_file):
        give_up = time.monotonic() + READY_SECONDS
        while time.monotonic() < give_up:
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                return json.loads(ports_file.read_text())
            if self.process.poll() is not None:
                status, self.process = self.process.returncode, None
                raise AssertionError(f"weir ended with {status} before it was ready\n{self.log()}")
            time.sleep(0.002)
        self.kill()
        raise AssertionError(f"weir was not ready after {READY_SECONDS} s\n{self.log()}")

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """The exit status, once it has ended by itself."""
        status = self.process.wait(timeout=STOP_SECONDS)
        self.process = None
        return status

    def stop(self):
        """SIGTERM; it must leave in order."""
        if self.process is None:
            return
        self._close_channels()
        self.signal(signal.SIGTERM)
        try:
            status = self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"weir did not stop in {STOP_SECONDS} s\n{self.log()}") from None
        assert status == 0, f"weir ended with {status}\n{self.log()}\n{self.sanitizer_log()}"

    def kill(self):
        """SIGKILL, as a power cut would: nothing gets a chance to be tidied up."""
        self._close_channels()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def restart(self):
        """Stop (unless it was killed) and start again on the same data; ports change."""
        self.stop()
        return self.start()

    # --- what it says -----------------------------------------------------------------

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def said(self, text, times=1):
        """The log, once this stands in it: lines leave by a thread of their own."""
        give_up = time.monotonic() + READY_SECONDS
        while self.log().count(text) < times:
            assert time.monotonic() < give_up, f"no '{text}' in the log:\n{self.log()}"
            time.sleep(0.005)
        return self.log()

    def sanitizer_log(self):
        return "\n".join(
            path.read_text(errors="replace") for path in sorted(self.folder.glob("sanitizer*"))
        )

    @property
    def pid(self):
        return self.process.pid

    # --- how to reach it --------------------------------------------------------------

    def port(self, listener):
        """The port of a listener: the ports file holds numbers or host:port."""
        return int(str(self.ports[listener]).rsplit(":", 1)[-1])

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port('http')}"

    @property
    def target(self):
        return f"127.0.0.1:{self.port('grpc')}"

    def http(self, **options):
        """An httpx client of the HTTP listener; close it, or use it in a `with`."""
        settings = {"base_url": self.url, "timeout": 90, "trust_env": False, "verify": NO_TLS}
        return httpx.Client(**{**settings, **options})

    def channel(self, **options):
        """A gRPC channel to the gRPC listener, closed when the daemon stops."""
        settings = [("grpc.enable_http_proxy", 0), *options.items()]
        channel = grpc.insecure_channel(self.target, options=settings)
        self._channels.append(channel)
        return channel

    def _close_channels(self):
        while self._channels:
            self._channels.pop().close()

    @staticmethod
    def metadata(user="user-1", workspace="ws-1", **claims):
        """Call metadata that authenticates as this user of this workspace."""
        return (("authorization", "Bearer " + token(user, workspace, **claims)),)
