"""A private PostgreSQL server for tests: in a temporary folder, on a free loopback port.

    python3 test/e2e/postgres.py COMMAND...

runs a command with WEIR_TEST_POSTGRES set to the server's address, and ends the server after it.
The C tests of postgres/ and of the store need it; without that variable they skip themselves.

PostgreSQL refuses to run as root, so for root the server is another user's.
"""
import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from ports import free_port

USERS = ("postgres", "nobody")  # whose server it is when root tests


def programs():
    """The folder of the newest PostgreSQL's programs, or None."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    newest = max(found, key=lambda path: int(path.split("/")[4]), default=None)
    return newest and os.path.dirname(newest)


class Cluster:
    """One server. `settings` are options of postgres, such as max_connections="20"."""

    def __init__(self, **settings):
        self.bin = programs()
        if not self.bin:
            raise RuntimeError("no PostgreSQL here: install the package postgresql")
        self.folder = tempfile.mkdtemp(prefix="weir-postgres-")
        self.port = free_port()
        self.settings = {"fsync": "off", "listen_addresses": "127.0.0.1",
                         "unix_socket_directories": self.folder, **settings}
        self.process = None
        self.user = self._other_user() if os.getuid() == 0 else None
        if self.user:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self._run("initdb", "--pgdata", self.data, "--username", "weir", "--auth", "trust",
                  "--no-sync", "--encoding", "UTF8", "--locale", "C")

    @staticmethod
    def _other_user():
        for name in USERS:
            with contextlib.suppress(KeyError):
                return pwd.getpwnam(name)
        raise RuntimeError(f"none of the users {USERS} is here")

    @property
    def data(self):
        return os.path.join(self.folder, "data")

    @property
    def url(self):
        return f"postgres://weir@127.0.0.1:{self.port}/postgres"

    def _as_user(self):
        if not self.user:
            return {"cwd": self.folder}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": [],
                "cwd": self.folder}

    def _run(self, program, *args):
        subprocess.run([os.path.join(self.bin, program), *args], check=True,
                       stdout=subprocess.DEVNULL, **self._as_user())

    def start(self):
        """Start it, and wait until it answers."""
        command = [os.path.join(self.bin, "postgres"), "-D", self.data, "-p", str(self.port)]
        for name, value in self.settings.items():
            command += ["-c", f"{name}={value}"]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **self._as_user())
        until = time.monotonic() + 60
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL did not start: {self.log()}")
            time.sleep(0.05)
        return self

    def _answers(self):
        """This one, and not another server on the port: its own file says so."""
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(self.data, "postmaster.pid")) as file:
                return "ready" in file.read().split()
        return False

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as log:
            return log.read()

    def sql(self, text):
        """Run SQL, and return what psql prints: a line for each row, '|' between values."""
        command = [os.path.join(self.bin, "psql"), "-X", "-q", "-t", "-A",
                   "-v", "ON_ERROR_STOP=1", "-d", self.url, "-c", text]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def session(self, text):
        """Run SQL in a session that stays, with its locks, until it is closed."""
        return Session([os.path.join(self.bin, "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.url], text)

    def end(self, number=signal.SIGINT):
        """End it: SIGINT in order, SIGQUIT at once without saving anything."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)
        self.process = None

    def close(self):
        self.end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        """Another server may have taken the port that was free."""
        for _ in range(4):
            with contextlib.suppress(RuntimeError):
                return self.start()
            self.port = free_port()
        return self.start()

    def __exit__(self, *_):
        self.close()


class Session:
    """A psql that is given more and more SQL."""

    def __init__(self, command, text):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.run(text)

    def run(self, text):
        """Run SQL and wait until it is done. What fails ends the session."""
        said = []
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{text};\n\\echo done\n")
            self.process.stdin.flush()
        for line in self.process.stdout:
            if line == "done\n":
                return
            said.append(line)
        raise RuntimeError(f"psql ended with {self.process.wait(60)} at: {text}\n{''.join(said)}")

    def close(self):
        """Its locks are let go. Harmless when it has ended."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main(command):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with Cluster() as cluster:
        environment = {**os.environ, "WEIR_TEST_POSTGRES": cluster.url}
        return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: postgres.py COMMAND...")
    sys.exit(main(sys.argv[1:]))
