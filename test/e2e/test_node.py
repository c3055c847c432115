"""The Node clients (test/e2e/node/*.test.js), each file as one test against a daemon."""
import os
import pathlib
import shutil
import subprocess

import harness
import pytest

FOLDER = pathlib.Path(__file__).parent / "node"


@pytest.mark.weir(script="test/e2e/scripts/quick.yaml")
@pytest.mark.parametrize("script", sorted(p.name for p in FOLDER.glob("*.test.js")))
def test_a_node_client_agrees(weir, mint, script):
    environment = {
        **os.environ,
        "WEIR_TARGET": weir.target,
        "WEIR_URL": weir.url,
        "WEIR_TOKEN": mint(),
        "WEIR_PROTO": str(harness.ROOT / "proto"),
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
