"""The Debian package, the image of a container, and what is deployed with them.

Each takes seconds to make: WEIR_WITH_PACKAGES=1 (make check) runs them.
"""
import json
import os
import pathlib
import shutil
import subprocess

import harness
import httpx
import pytest
from packing import must, run, script
from ports import free_port

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
    return script("deb", COMPRESSION="gzip")


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
    assert script("deb", COMPRESSION="gzip").read_bytes() == before


# --- the image of a container -----------------------------------------------------------------


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """Its name, and the root of a container of it, in a storage of the test's own."""
    if not shutil.which("buildah"):
        pytest.skip("there is no buildah here")
    folder = tmp_path_factory.mktemp("storage")
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
    )
    own = {"CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"), "BUILDAH_ISOLATION": "chroot"}
    env = {**os.environ, **own}
    name = script("image", **own).name
    config = json.loads(must("buildah", "inspect", "--type", "image", name, env=env))
    container = must("buildah", "from", "--pull-never", name, env=env).strip()
    root = must("buildah", "mount", container, env=env).strip()
    yield config["Docker"]["config"], pathlib.Path(root)
    must("buildah", "rm", container, env=env)


def in_container(root, port, *command):
    """As a container runs it: another root, which is read-only; another user; its own /data."""
    words = ["bwrap", "--die-with-parent", "--ro-bind", root, "/", "--tmpfs", "/data", "--tmpfs", "/tmp", "--proc", "/proc"]
    words += ["--dev", "/dev", "--unshare-user", "--uid", "65532", "--gid", "65532", "--clearenv"]
    for name, value in (("HOME", "/tmp"), ("WEIR_DATA", "/data"), ("PORT", port),
                        ("WEIR_CONFIG", "/etc/weir/weir.yaml"), ("AGENT_AUTH_TOKEN", "t"),
                        ("WEIR_GRPC", "off")):
        words += ["--setenv", name, value]
    return [str(word) for word in [*words, *command]]


def test_the_image_serves_as_no_one_on_a_root_that_is_read_only(image):
    config, root = image
    assert config["User"] == "65532:65532" and config["Healthcheck"]["Test"][0] == "CMD"
    assert not [path for path in root.rglob("*") if path.name in ("sh", "bash", "apt", "dpkg")]
    assert os.stat(root / "data").st_uid == 65532
    port = free_port()
    health = in_container(root, port, *config["Healthcheck"]["Test"][1:])
    daemon = subprocess.Popen(in_container(root, port, *config["Entrypoint"], *config["Cmd"]))
    try:
        for _ in range(300):
            if run(*health).returncode == 0:
                break
            assert daemon.poll() is None
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
            assert http.post("/invoke", json={"input": "hi"}).status_code == 401
            answer = http.post("/invoke", json={"input": "hi"}, headers={"authorization": "Bearer t"})
            assert answer.status_code == 200 and answer.json()["output"]
    finally:
        daemon.terminate()  # bwrap, which takes the program with it
        daemon.wait(60)


@pytest.mark.parametrize("library", ["curl", "ssl", "pq", "nats", "wslay", "seccomp"])
def test_the_image_has_what_the_program_loads(library, image):
    """... with all that the library itself needs."""
    _, root = image
    found = [path for path in root.rglob(f"lib{library}.so.*")]
    assert found
    done = run("chroot", root, "/lib64/ld-linux-x86-64.so.2", "--list", "/" + str(found[0].relative_to(root)))
    assert done.returncode == 0 and "not found" not in done.stdout, done.stdout + done.stderr
