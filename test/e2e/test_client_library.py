"""libweir-client as a program finds it after `make install`: header, both libraries, pkg-config."""
import os
import re
import shutil
import subprocess
import sys

import harness
import pytest

EXAMPLES = harness.ROOT / "examples/client"
PUBLIC = re.compile(r"^WEIR_API .*?\b(weir_\w+)\(", re.M)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The prefix. The library is never built with a sanitizer: its programs are not ours."""
    folder = tmp_path_factory.mktemp("installed")
    if harness.BINARY.parent != harness.BUILD:
        pytest.skip("once is enough: not for the sanitizer builds")
    subprocess.run(
        ["scripts/build", str(harness.BUILD), "client_library"],
        cwd=harness.ROOT, check=True, stdout=subprocess.DEVNULL,
    )
    command = ["cmake", "--install", str(harness.BUILD), "--prefix", str(folder), "--strip"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def pkg_config(prefix, *flags):
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    if not shutil.which("pkg-config"):
        return None
    asked = ["pkg-config", *flags, "weir-client"]
    return subprocess.run(asked, env=env, check=True, capture_output=True, text=True).stdout.split()


def compile_example(prefix, target, libraries):
    flags = ["-std=c17", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include"]
    command = ["cc", *flags, str(EXAMPLES / "ask.c"), "-o", str(target), *libraries]
    subprocess.run(command, check=True)
    return target


def ask(program, weir, **env):
    return subprocess.run(
        [str(program), f"127.0.0.1:{weir.port('nimi_grpc')}"],
        env=harness.clean_environment(env), capture_output=True, text=True, timeout=60,
    )


def check_answer(answer):
    assert answer.returncode == 0, answer.stderr
    assert "plan two days in Kyoto" in answer.stdout
    assert answer.stdout.endswith("\n-- completed: the stream has arrived whole\n")
    assert answer.stderr == ""


def test_the_c_example_has_at_most_forty_lines_and_runs_with_the_shared_library(
    installed, weir, tmp_path
):
    assert len((EXAMPLES / "ask.c").read_text().splitlines()) <= 40
    libraries = pkg_config(installed, "--cflags", "--libs")
    libraries = libraries or [f"-L{installed}/lib", "-lweir-client"]
    program = compile_example(installed, tmp_path / "ask", libraries)
    check_answer(ask(program, weir, LD_LIBRARY_PATH=str(installed / "lib")))
    assert ask(program, weir, LD_LIBRARY_PATH="").returncode == 127  # it is the installed one


def test_it_runs_with_the_static_library_too(installed, weir, tmp_path):
    archive = str(installed / "lib/libweir-client.a")
    others = ["-luv", "-lnghttp2", "-lz", "-pthread", "-ldl", "-lm"]
    program = compile_example(installed, tmp_path / "ask", [archive, *others])
    check_answer(ask(program, weir))
    wrong = subprocess.run([str(program), "no port here"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "is no address" in wrong.stderr


def test_the_python_example_needs_only_the_shared_library(installed, weir):
    def run(*args):
        port = weir.port("nimi_grpc")
        command = [sys.executable, str(EXAMPLES / "watch.py"), f"127.0.0.1:{port}", *args]
        env = {"WEIR_CLIENT_LIBRARY": str(installed / "lib/libweir-client.so.1")}
        return subprocess.run(
            command, env=harness.clean_environment(env), capture_output=True, text=True, timeout=60
        )

    done = run("SubscribeRuntimeHealthEvents", "{}", "2")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[-1].startswith("-- cancelled: ") and len(lines) >= 3
    assert "'status': 'RUNTIME_HEALTH_STATUS_READY'" in lines[0]
    done = run("StreamScenario", '{"hed": {}}')
    assert done.returncode == 1 and "did you mean 'head'?" in done.stderr


def names_of(*command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in out.splitlines() if re.search(r" [A-TV-Z] ", line)}


def test_only_the_functions_of_the_header_can_be_seen(installed):
    header = (installed / "include/weir/client.h").read_text()
    public = set(PUBLIC.findall(header)) | set(re.findall(r"^\s+.*\b(weir_stream_open)\(", header, re.M))
    shared = installed / "lib/libweir-client.so.1"
    assert names_of("nm", "-D", "--defined-only", str(shared)) == public
    archive = names_of("nm", "--defined-only", "--extern-only", str(installed / "lib/libweir-client.a"))
    assert archive == public
    dynamic = subprocess.run(["readelf", "-d", shared], check=True, capture_output=True, text=True)
    assert "Library soname: [libweir-client.so.1]" in dynamic.stdout


def test_what_is_installed_names_no_folder_of_the_build(installed):
    for name in ("lib/libweir-client.so.1", "lib/libweir-client.a", "lib/pkgconfig/weir-client.pc"):
        assert str(harness.ROOT).encode() not in (installed / name).read_bytes(), name


def test_the_header_can_be_included_by_cxx_and_beside_the_agents(installed, tmp_path):
    both = tmp_path / "both.c"
    both.write_text("#include <weir/agent.h>\n#include <weir/client.h>\nint main(void) { return 0; }\n")
    for compiler, language in (("cc", "c"), ("c++", "c++")):
        if not shutil.which(compiler):
            continue
        command = [compiler, "-x", language, "-Wall", "-Werror", "-fsyntax-only"]
        subprocess.run([*command, f"-I{installed}/include", str(both)], check=True)
