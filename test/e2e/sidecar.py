"""sidecar: one `weir sidecar` of ours, as a test sees it."""
import json

import harness
import httpx

TOKEN = "side-token"


class Sidecar(harness.Daemon):
    """agent   the URL behind it
    settings   of its YAML file
    env        more environment
    """

    def __init__(self, folder, agent, settings=None, env=None, token=TOKEN):
        base = {"AGENT_NAME": "behind", "AGENTBREEDER_SIDECAR_AGENT_URL": agent}
        base |= {"AGENT_AUTH_TOKEN": token} if token else {"AGENTBREEDER_SIDECAR_ALLOW_NO_AUTH": "1"}
        for name in ("INBOUND", "A2A", "MCP", "COST"):
            base[f"AGENTBREEDER_SIDECAR_{name}_ADDR"] = "127.0.0.1:0"
        super().__init__(folder, env={**base, **(env or {})})
        self.settings = self.folder / "sidecar.yaml"
        self.settings.write_text(json.dumps(settings or {}))
        self.token = token

    def command(self):
        ports = str(self.folder / "ports.json")
        return [str(harness.BINARY), "sidecar", "-c", str(self.settings), "--ports-file", ports]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port('inbound')}"

    def http(self, **options):
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        return super().http(**{"headers": headers, **options})

    def helper(self, name="cost"):
        url = f"http://127.0.0.1:{self.port(name)}"
        return httpx.Client(base_url=url, timeout=30, trust_env=False, verify=harness.NO_TLS)

    def counts(self):
        with self.helper() as helper:
            health = helper.get("/health").json()
        return {**health["counts"], **health["guardrail_matches"]}


def events(text):
    """The frames of a stream: (event, data); data as JSON where it is."""
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        name = next((line[7:] for line in lines if line.startswith("event: ")), None)
        data = "\n".join(line[6:] for line in lines if line.startswith("data: "))
        found.append((name, data if data == "[DONE]" else json.loads(data)))
    return found


def deltas(found):
    return "".join(data["delta"] for name, data in found if name is None and data != "[DONE]")
