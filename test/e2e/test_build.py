"""A fresh checkout is built in any order of wishes, and by packagers in their own way."""
import json
import os
import shlex
import shutil
import subprocess

import harness
import pytest

# A machine without cmocka, as long as the file `hidden` is there.
HIDING = """
macro(find_path name)
    if(${name} STREQUAL CMOCKA_INCLUDE AND EXISTS "%(hidden)s")
        set(${name} ${name}-NOTFOUND CACHE PATH "" FORCE)
    else()
        _find_path(${name} ${ARGN})
    endif()
endmacro()
macro(find_library name)
    if(${name} STREQUAL CMOCKA_LIBRARY AND EXISTS "%(hidden)s")
        set(${name} ${name}-NOTFOUND CACHE FILEPATH "" FORCE)
    else()
        _find_library(${name} ${ARGN})
    endif()
endmacro()
"""
SMALL_TARGET = "llhttp"  # three files; the folder is what matters here


@pytest.fixture(scope="module", autouse=True)
def an_own_build():
    if harness.BINARY.parent != harness.BUILD:
        pytest.skip("once is enough: not for the sanitizer builds")


def build(folder, *options):
    subprocess.run(
        ["scripts/build", str(folder), SMALL_TARGET, *options],
        cwd=harness.ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "JOBS": "1"},
    )


def commands_of(folder, target):
    asked = ["ninja", "-C", str(folder), "-t", "commands", target]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def test_make_test_after_make_run_finds_the_library_that_came_between(tmp_path):
    hidden, hiding, folder = tmp_path / "hidden", tmp_path / "hiding.cmake", tmp_path / "build"
    hidden.touch()
    hiding.write_text(HIDING % {"hidden": hidden})
    build(folder, f"-DCMAKE_PROJECT_INCLUDE={hiding}")
    assert "cmocka" not in commands_of(folder, "test_base_str")
    hidden.unlink()
    build(folder)
    assert "cmocka" in commands_of(folder, "test_base_str")


def test_other_options_make_a_folder_anew_and_none_leave_it_alone(tmp_path):
    folder = tmp_path / "build"
    build(folder, "-DWEIR_WERROR=ON")
    assert "-Werror" in commands_of(folder, "test_base_str")
    build(folder)
    assert "-Werror" in commands_of(folder, "test_base_str")
    build(folder, "-DWEIR_SANITIZE=thread")
    commands = commands_of(folder, "test_base_str")
    assert "-Werror" not in commands and "-fsanitize=thread" in commands


def test_asserts_stay_in_the_build_types_of_packagers(tmp_path):
    build(tmp_path / "build", "-DCMAKE_BUILD_TYPE=Release")
    entries = json.loads((tmp_path / "build/compile_commands.json").read_text())
    ours = [entry for entry in entries if "/src/" in entry["file"] and entry["file"].endswith(".c")]
    assert len(ours) > 100
    for entry in ours:
        said = [word for word in shlex.split(entry["command"]) if "NDEBUG" in word]
        assert said[-1] == "-UNDEBUG", entry["file"]


def test_the_unit_is_one_that_debian_12_knows(tmp_path):
    """systemd 252: there is no notify-reload"""
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd here")
    unit = (harness.ROOT / "deploy/weir.service").read_text()
    (tmp_path / "weir.service").write_text(unit.replace("/usr/local/bin/weir", str(harness.BINARY)))
    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "weir.service")],
        capture_output=True,
        text=True,
        timeout=60,
    ).stderr
    assert [line for line in told.splitlines() if "weir.service" in line] == []
