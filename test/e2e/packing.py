"""Runs the scripts that pack what is built."""
import os
import subprocess

import harness


def run(*command, **options):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=300, **options
    )


def must(*command, **options):
    done = run(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def script(name, **env):
    """One of scripts/, in this build; returns the file that it made."""
    env = {**os.environ, "BUILD": str(harness.BUILD.relative_to(harness.ROOT)), **env}
    return harness.ROOT / must(harness.ROOT / "scripts" / name, cwd=harness.ROOT, env=env).strip()
