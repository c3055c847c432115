"""The Node clients (test/e2e/node/*.test.js), each file as one test against a daemon."""
import os
import pathlib
import re
import shutil
import subprocess

import harness
import pytest

FOLDER = pathlib.Path(__file__).parent / "node"


# What a file's daemon has beside the quick script.
OPTIONS = {
    "a2a.test.js": {
        "script": "test/e2e/scripts/a2a.yaml",
        "config": "agents: [{slug: manager, tools: {pay: ask, look: allow}}, {slug: clerk}]\n"
        "a2a: {webhooks: any}\n",
    },
    "nimi_apps.test.js": {
        "script": "test/e2e/scripts/nimi.yaml",
        "env": {"HOUSE_KEY": "key"},
        "config": """
nimi: {probe_interval: 0s}
providers:
  - {name: far, kind: openai, base_url: "https://far.example/v1", key_env: NO_SUCH_KEY}
  - {name: near, kind: openai, base_url: "http://127.0.0.1:9/v1", key_env: HOUSE_KEY}
connectors:
  - {id: near, provider: near, local: true, models: [m]}
  - {id: voice, provider: builtin}
  - {id: mine, provider: scripted, owner: anna}
  - {id: off, provider: scripted, enabled: false}
  - {id: far, provider: far, models: [gpt-x]}
""",
    },
    "nimi_jobs.test.js": {"script": "test/e2e/scripts/nimi.yaml"},
    "openai.test.js": {
        "script": "test/e2e/scripts/openai.yaml",
        "config": "agents: [{slug: manager, tools: {pay: ask, look_up: allow}}, {slug: writer}]\n",
    },
    "nimi.test.js": {
        "script": "test/e2e/scripts/nimi.yaml",
        "env": {"HOUSE_KEY": "key"},
        # Its providers are not there, and that is not what is looked at.
        "config": """
nimi: {probe_interval: 0s}
providers:
  - {name: far, kind: openai, base_url: "https://far.example/v1", key_env: NO_SUCH_KEY}
  - {name: near, kind: openai, base_url: "http://127.0.0.1:9/v1", key_env: HOUSE_KEY}
connectors:
  - {id: mine, provider: scripted, owner: anna}
  - {id: off, provider: scripted, enabled: false}
  - {id: near, provider: scripted, local: true, models: [m]}
  - {id: keyless, provider: far}
  - {id: plain, provider: near}
""",
    },
}


def case(script):
    options = {"script": "test/e2e/scripts/quick.yaml", **OPTIONS.get(script, {})}
    return pytest.param(script, marks=pytest.mark.weir(**options))


@pytest.mark.parametrize("script", [case(p.name) for p in sorted(FOLDER.glob("*.test.js"))])
def test_a_node_client_agrees(weir, mint, script):
    said = run(weir, script, WEIR_TOKEN=mint())
    jobs = re.findall(r"JOB (\w{26})", said)
    if jobs:  # its second half
        weir.restart()
        run(weir, script, WEIR_TOKEN=mint(), WEIR_JOB=jobs[0])


def run(weir, script, **more):
    """What it said; it must find nothing wrong."""
    environment = {
        **os.environ,
        "WEIR_TARGET": weir.target,
        "WEIR_URL": weir.url,
        "WEIR_NIMI": f"127.0.0.1:{weir.ports['nimi_grpc']}",
        "WEIR_PROTO": str(harness.ROOT / "proto"),
        **more,
    }
    # The packages are under build/, the tests are not: NODE_PATH (scripts/e2e) joins them.
    node = subprocess.run(
        [shutil.which("node"), str(FOLDER / script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert node.returncode == 0, node.stdout + node.stderr
    return node.stdout + node.stderr
