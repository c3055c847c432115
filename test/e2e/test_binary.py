"""What the linker and the compiler were asked for is in the binary (OpenSSF's list)."""
import subprocess

import harness
import pytest


def readelf(*options):
    command = ["readelf", "-W", *options, str(harness.BINARY)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module", autouse=True)
def a_release_binary():
    if "__asan_init" in readelf("--syms") or "__tsan_init" in readelf("--syms"):
        pytest.skip("a sanitizer build is hardened otherwise")


def test_the_binary_runs_anywhere_in_memory():
    assert "DYN (Position-Independent Executable file)" in readelf("-h")


def test_relocations_are_read_only_and_bound_at_the_start():
    assert "GNU_RELRO" in readelf("-l")
    assert "BIND_NOW" in readelf("-d") or "NOW" in readelf("-d")


def test_no_part_of_memory_is_both_written_and_run():
    headers = [line.split() for line in readelf("-l").splitlines()]
    stack = [fields for fields in headers if fields and fields[0] == "GNU_STACK"]
    assert stack and "E" not in stack[0][-2]
    for fields in headers:
        if fields and fields[0] == "LOAD":
            flags = "".join(fields[6:-1])
            assert not ("W" in flags and "E" in flags), fields


def test_stack_and_copies_are_guarded():
    symbols = readelf("--dyn-syms")
    assert "__stack_chk_fail" in symbols
    assert "_chk@" in symbols.replace("__stack_chk_fail@", "")


def test_our_own_functions_are_landing_pads():
    """The mark of the whole file is lost where a library of the system was built without it."""
    command = ["objdump", "-d", "--disassemble=cli_main", str(harness.BINARY)]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "endbr64" in code
