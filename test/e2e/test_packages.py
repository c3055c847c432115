"""The Debian package, the image of a container, and what is deployed with them.

Each takes seconds to make: WEIR_WITH_PACKAGES=1 (make check) runs them.
"""
import os
import pathlib
import shutil

import harness
import pytest
from packing import must, run, script

UNIT = "lib/systemd/system/weir.service"
if not os.environ.get("WEIR_WITH_PACKAGES"):
    pytest.skip("packages are made by make check (WEIR_WITH_PACKAGES=1)", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def a_release_build():
    must(harness.ROOT / "scripts/build", harness.BUILD, "manuals", cwd=harness.ROOT)



@pytest.fixture(scope="module")
def package():
    if not (shutil.which("dpkg-deb") and shutil.which("dpkg-shlibdeps")):
        pytest.skip("there is no dpkg-dev here")
    return script("deb")


def files_below(folder):
    found = [path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]
    return {str(path) for path in found if not str(path).startswith("var/lib/dpkg/")}


def test_lintian_has_nothing_to_say_of_the_package(package):
    if not shutil.which("lintian"):
        pytest.skip("there is no lintian here")
    done = run("lintian", "--fail-on", "error,warning", "--allow-root", package)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_the_package_is_installed_keeps_data_when_removed_and_leaves_nothing_when_purged(
    package, tmp_path
):
    """In a root of its own: dpkg runs the package's scripts with DPKG_ROOT."""
    if os.geteuid() != 0:
        pytest.skip("dpkg installs for root only")
    root = tmp_path / "root"
    for name in ("updates", "info"):
        (root / "var/lib/dpkg" / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    dpkg = ["dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", "--log=/dev/null"]
    must(*dpkg, "-i", package)
    weir, settings = root / "usr/bin/weir", root / "etc/weir/weir.yaml"
    assert ": good; " in must(weir, "config", "check", settings, env={})
    wanted = root / "etc/systemd/system/multi-user.target.wants/weir.service"
    assert wanted.is_symlink() and os.readlink(wanted) == "/" + UNIT
    state = root / "var/lib/private/weir/weir.db"
    state.parent.mkdir(parents=True)
    state.touch()
    (root / "var/lib/weir").symlink_to("private/weir")
    must(*dpkg, "-r", "weir")
    assert not weir.exists() and settings.exists() and state.exists()
    must(*dpkg, "-P", "weir")
    assert files_below(root) == set()


def test_the_same_sources_make_the_same_package(package):
    before = pathlib.Path(package).read_bytes()
    assert script("deb").read_bytes() == before
