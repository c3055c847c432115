"""clients: the Python clients of the tests, for a proof that is started by hand.

Imported first, it starts the proof once more with the interpreter that has them (build/venv;
BUILD and CLIENTS as for scripts/e2e), and lets it import the modules of test/e2e and the stubs.
A test that imports a proof runs with them already.
"""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / os.environ.get("BUILD", "build")
PYTHON = ROOT / os.environ.get("CLIENTS", BUILD) / "venv" / "bin" / "python"

if pathlib.Path(sys.argv[0]).resolve().parent == HERE and not os.environ.get("WEIR_CLIENTS_FOUND"):
    os.execve(PYTHON, [str(PYTHON), *sys.argv], {**os.environ, "WEIR_CLIENTS_FOUND": "1"})

sys.path[:0] = [str(ROOT / "test/e2e"), str(BUILD / "stubs"), str(HERE)]
