"""What `make install` and `make tarball` bring, used as it stands."""
import os
import re
import shutil
import tarfile

import harness
import pytest
from packing import must, run, script

UNIT = "lib/systemd/system/weir.service"


@pytest.fixture(scope="module", autouse=True)
def a_release_build():
    if harness.BINARY.parent != harness.BUILD:
        pytest.skip("once is enough: not for the sanitizer builds")
    must(harness.ROOT / "scripts/build", harness.BUILD, "manuals", cwd=harness.ROOT)


@pytest.fixture(scope="module")
def installed(tmp_path_factory, a_release_build):
    """DESTDIR, with the prefix /usr in it."""
    folder = tmp_path_factory.mktemp("installed")
    command = ["cmake", "--install", harness.BUILD, "--prefix", "/usr", "--strip"]
    must(*command, "--component", "program", env={**os.environ, "DESTDIR": str(folder)})
    return folder / "usr"


def commands(weir):
    words = must(weir, "help", "--words").splitlines()
    return [line.split("\t")[0] for line in words if not line.startswith("-")]


# --- make install -----------------------------------------------------------------------------


def test_each_command_has_a_page_that_a_reader_of_manuals_accepts(installed):
    pages = sorted((installed / "share/man").rglob("*.[15]"))
    names = {page.name for page in pages}
    assert names == {"weir.1", "weir.yaml.5"} | {
        f"weir-{name}.1" for name in commands(installed / "bin/weir")
    }
    if shutil.which("man"):
        some = [page for page in pages if page.name in ("weir.1", "weir.yaml.5", "weir-validate.1")]
        told = run("man", "--warnings", "-l", *some, env={**os.environ, "MANWIDTH": "100", "PAGER": "cat"})
        assert (told.returncode, told.stderr) == (0, "")
        assert re.search(r"^ +listen\.http\n +the HTTP listener", told.stdout, re.M)


def test_the_unit_starts_the_installed_program(installed):
    unit = (installed / UNIT).read_text()
    assert re.findall(r"^Exec\w+=(\S+)", unit, re.M) == ["/usr/bin/weir", "/usr/bin/weir", "/bin/kill"]
    if shutil.which("systemd-analyze"):
        told = run("systemd-analyze", "security", "--offline=true", "--threshold=20", installed / UNIT)
        assert told.returncode == 0, told.stdout


def test_examples_and_header_are_there_without_what_a_test_left(installed):
    examples = installed / "share/doc/weir/examples"
    assert must(installed / "bin/weir", "config", "check", examples / "agents.yaml", env={})
    assert (installed / "include/weir/agent.h").exists()
    assert [path for path in installed.rglob("*") if path.name in ("__pycache__", "node_modules")] == []


LINES = (  # what is typed, and what must be offered, and what must not
    (["weir", "ap"], ["approvals"], ["serve"]),
    (["weir", "token", ""], ["new", "check", "--user", "--http"], ["serve"]),
    (["weir", "approvals", "approve", "--ar"], ["--args"], ["list", "--json"]),
    (["weir", "serve", "--nimi-"], ["--nimi-grpc", "--nimi-http"], ["--grpc"]),
)

SHELLS = {
    "bash": ("share/bash-completion/completions/weir", """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_weir
printf '%s\\n' "${COMPREPLY[@]}"
"""),
    "fish": ("share/fish/vendor_completions.d/weir.fish", """
source $argv[1]
complete -C "$argv[2..]" | string replace -r '\\t.*' ''
true
"""),
    "zsh": ("share/zsh/site-functions/_weir", """
compdef() { : }
_describe() { print -l -- ${(P)3} | grep -e "^$words[CURRENT]" | sed 's/:.*//' }
source $1; shift
words=("$@") CURRENT=$#
_weir
"""),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_what_the_program_knows(shell, installed, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    file, text = SHELLS[shell]
    program = tmp_path / f"try.{shell}"
    program.write_text(text)
    env = {**os.environ, "PATH": f"{installed / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    for typed, offered, hidden in LINES:
        found = must(shell, program, installed / file, *typed, env=env).splitlines()
        assert set(offered) <= set(found), (typed, found)
        assert not set(hidden) & set(found), (typed, found)


# --- make tarball -----------------------------------------------------------------------------


def bare_root(folder, tree):
    """A root with libc and what `tree` holds, and nothing else."""
    for line in must("ldd", tree / "bin/weir").splitlines():
        for path in re.findall(r"(/\S+)", line):
            target = folder / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    shutil.copytree(tree, folder / "weir")
    for name in ("proc", "dev", "tmp"):
        (folder / name).mkdir()
    return folder


def shut_in(root, *command, env=()):
    words = ["bwrap", "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    words += ["--clearenv", "--setenv", "HOME", "/tmp", "--unshare-all"]
    for name, value in env:
        words += ["--setenv", name, value]
    return run(*words, "/weir/bin/weir", *command)


def test_the_tarball_runs_where_there_is_only_libc(tmp_path):
    """... and says which library is missing where one is needed."""
    if not shutil.which("bwrap"):
        pytest.skip("there is no bubblewrap here")
    with tarfile.open(script("tarball")) as tar:
        assert {(member.uid, member.gid) for member in tar} == {(0, 0)}
        tar.extractall(tmp_path / "tree")
    (tree,) = (tmp_path / "tree").iterdir()
    assert "ExecStart=/usr/local/bin/weir serve" in (tree / UNIT).read_text()
    root = bare_root(tmp_path / "root", tree)
    assert shut_in(root, "version").stdout.startswith("weir ")
    done = shut_in(root, "run", "plan two days in Kyoto")
    assert done.returncode == 0 and "Kyoto" in done.stdout, done.stderr
    done = shut_in(root, "migrate", env=[("WEIR_STORE_URL", "postgres://127.0.0.1:1/weir")])
    assert done.returncode == 1 and "libpq.so.5" in done.stderr, done.stderr
