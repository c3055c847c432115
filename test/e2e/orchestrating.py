"""orchestrating: `weir orchestrate` on a PostgreSQL of its own, as a test sees it.

    with Orchestrating(folder, database, driver="fake") as weir:
        answer = weir.send("ws-1", weir.swarm("ws-1"), "hello")
"""
import contextlib
import subprocess
import time
from urllib.parse import quote

import harness
import httpx

KEY = harness.SIGNING_KEY


class Orchestrating(harness.Daemon):
    """A daemon whose tables were made before it starts.

    database  a postgres.Cluster that runs; options are flags by name: runtime_address="..."
    """

    def __init__(self, folder, database, schema="", env=None, migrate=True, **options):
        super().__init__(folder, env={"CRAWBL_MCP_SIGNING_KEY": None, **(env or {})})
        self.database = database
        self.options = options
        self._env["WEIR_ORCHESTRATOR_DATABASE"] = database.url
        self._env["WEIR_ORCHESTRATOR_KEY"] = KEY
        if schema:
            self._env["WEIR_ORCHESTRATOR_SCHEMA"] = schema
        if migrate:
            self.migrate()

    def command(self):
        command = [str(harness.BINARY), "orchestrate", "--listen", "127.0.0.1:0"]
        command += ["--data", str(self.data), "--ports-file", str(self.folder / "ports.json")]
        for name, value in self.options.items():
            flag = "--" + name.replace("_", "-")
            command += [flag] if value is True else [flag, str(value)]
        return command

    def migrate(self):
        done = subprocess.run(
            [str(harness.BINARY), "orchestrate", "--migrate"],
            env=harness.clean_environment(self._env), cwd=self.folder, capture_output=True,
            text=True, timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def __enter__(self):
        self.start()
        self.ready()
        return self

    def __exit__(self, kind, *_):
        if kind:
            with contextlib.suppress(AssertionError):
                self.stop()
        else:
            self.stop()

    # --- REST -------------------------------------------------------------------------------

    @property
    def base(self):
        return f"http://127.0.0.1:{self.ports['orchestrator']}"

    def ready(self):
        """Until it has found its tables."""
        give_up = time.monotonic() + harness.READY_SECONDS
        while httpx.get(self.base + "/health").status_code != 200:
            assert time.monotonic() < give_up, self.log()
            time.sleep(0.01)

    def http(self, user="user-1", workspace="ws-1"):
        token = harness.token(user, workspace)
        return httpx.Client(
            base_url=self.base, headers={"authorization": f"Bearer {token}"}, timeout=60
        )

    def conversations(self, workspace="ws-1", user="user-1"):
        with self.http(user, workspace) as http:
            answer = http.get(f"/v1/workspaces/{quote(workspace)}/conversations")
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def swarm(self, workspace="ws-1", user="user-1"):
        found = [c["id"] for c in self.conversations(workspace, user) if c["type"] == "swarm"]
        assert len(found) == 1
        return found[0]

    def agents(self, workspace="ws-1", user="user-1"):
        with self.http(user, workspace) as http:
            answer = http.get(f"/v1/workspaces/{quote(workspace)}/agents")
        return {agent["slug"]: agent for agent in answer.json()["data"]}

    def post(self, text, conversation=None, workspace="ws-1", user="user-1", **more):
        """The response to a message."""
        conversation = conversation or self.swarm(workspace, user)
        body = {"content": {"type": "text", "text": text}, **more}
        with self.http(user, workspace) as http:
            path = f"/v1/workspaces/{quote(workspace)}/conversations/{conversation}/messages"
            return http.post(path, json=body)

    def say(self, text, **where):
        """The answer to a message."""
        answer = self.post(text, **where)
        assert answer.status_code == 201, answer.text
        return answer.json()["data"]

    def messages(self, conversation=None, workspace="ws-1", user="user-1", **query):
        conversation = conversation or self.swarm(workspace, user)
        with self.http(user, workspace) as http:
            path = f"/v1/workspaces/{quote(workspace)}/conversations/{conversation}/messages"
            answer = http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()
