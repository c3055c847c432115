"""replicas: several daemons on one store in PostgreSQL, as tests see them."""
import itertools
import json
import os
import subprocess
import time

import harness
import pytest

import postgres

NEED_POSTGRES = pytest.mark.skipif(not os.environ.get("WEIR_WITH_POSTGRES"),
                                   reason="needs PostgreSQL: WEIR_WITH_POSTGRES=1")
HEADERS = {"Authorization": "Bearer secret"}
SCRIPT = "test/e2e/scripts/quick.yaml"


class Replica(harness.Daemon):
    """A daemon that shares its store."""


class Replicas:
    """They are named a, b, c ..., and share the schema `schema` of a server (postgres.Cluster)."""

    def __init__(self, folder, server, schema, lease="2s"):
        self.folder, self.server, self.schema = folder, server, schema
        self.env = {"WEIR_STORE_URL": server.url, "WEIR_STORE_SCHEMA": schema,
                    "WEIR_STORE_LEASE": lease, "AGENT_AUTH_TOKEN": "secret"}
        self.all = []
        self._names = itertools.count()
        done = subprocess.run([harness.BINARY, "migrate"], capture_output=True, text=True,
                              env={**harness.clean_environment({}), **self.env})
        assert done.returncode == 0, done.stderr

    def start(self, count=1, script=SCRIPT, config="", **more):
        """Start so many more; the last of them."""
        for _ in range(count):
            name = chr(ord("a") + next(self._names))
            folder = self.folder / name
            folder.mkdir()
            env = {**self.env, "WEIR_STORE_REPLICA": name, **more}
            replica = Replica(folder, script=script, config=config, env=env)
            replica.name, replica.schema = name, self.schema
            self.all.append(replica)
            replica.start()
        return self.all[-1]

    def sql(self, text):
        return self.server.sql(f"SET search_path = {self.schema}; {text}")

    def cut(self, replica=None):
        """End the connections of one replica to the server, or of all."""
        of = f"AND pid IN (SELECT pid FROM {self.schema}.replica WHERE name = '{replica.name}')" \
            if replica else ""
        self.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        f" WHERE application_name = 'weir' {of}")

    def close(self):
        failures = []
        for replica in self.all:
            try:
                replica.stop()
            except AssertionError as failure:
                failures.append(str(failure))
            if replica.sanitizer_log():
                failures.append(replica.sanitizer_log())
        assert not failures, "\n\n".join(failures)


def turn(replica, session, text="hello", key=None, timeout=60):
    headers = {**HEADERS, **({"Idempotency-Key": key} if key else {})}
    with replica.http(headers=headers, timeout=timeout) as http:
        return http.post("/invoke", json={"input": text, "session_id": session})


def exported(replica, session):
    """What the store has of a session."""
    with replica.http(headers=HEADERS) as http:
        answer = http.get(f"/weir/v1/sessions/{session}/export")
    answer.raise_for_status()
    return [json.loads(line) for line in answer.text.splitlines()]


def size(name, small):
    """A count of a test: `small`, or that of make proof."""
    return int(os.environ.get(name, small))


def eventually(holds, seconds=30):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


# --- fixtures, for a module to import ---------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with postgres.Cluster() as cluster:
        yield cluster


@pytest.fixture
def replicas(server, tmp_path, request):
    """Of a schema of the test's own."""
    schema = "r_" + "".join(c for c in request.node.name.lower() if c.isalnum())[:50]
    replicas = Replicas(tmp_path, server, schema)
    yield replicas
    replicas.close()
