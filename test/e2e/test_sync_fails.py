"""A disk that cannot sync (T2): what was acknowledged is there, what was refused is not, and who
was told that nobody knows finds out with the same key. No restart is needed in between."""
import subprocess
import time

import harness
import pytest
from test_idempotency import invoke, runs_of

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* While the file is there every sync fails; one named "once" goes with the first. */
static int fails(void) {
    if (unlink(getenv("SYNC_FAILS_ONCE")) == 0) return 1;
    return access(getenv("SYNC_FAILS"), F_OK) == 0;
}

static int sync_by(const char *name, int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    if (!fails()) return real(file);
    errno = EIO;
    return -1;
}

int fdatasync(int file) { return sync_by("fdatasync", file); }
int fsync(int file) { return sync_by("fsync", file); }
"""


class Disk:
    def __init__(self, folder):
        self.all, self.once = folder / "all", folder / "once"
        self.shim = folder / "shim.so"
        source = folder / "shim.c"
        source.write_text(SHIM)
        command = ["cc", "-shared", "-fPIC", "-o", str(self.shim), str(source), "-ldl"]
        subprocess.run(command, check=True)

    def env(self):
        names = {"SYNC_FAILS": self.all, "SYNC_FAILS_ONCE": self.once, "LD_PRELOAD": self.shim}
        return {name: str(path) for name, path in names.items()}


@pytest.fixture
def disk(tmp_path):
    binary = harness.BINARY.read_bytes()
    if b"__asan_init" in binary or b"__tsan_init" in binary or b"ld-linux" not in binary:
        pytest.skip("nothing can be loaded before this binary's own libraries")
    folder = tmp_path / "disk"
    folder.mkdir()
    return Disk(folder)


@pytest.fixture
def daemon(start_weir, disk):
    return start_weir(script="test/e2e/scripts/money.yaml", env=disk.env())


def turn(weir, nth):
    return invoke(weir, key=f"k-{nth}", input=f"hello {nth}")


def assert_there_once(weir, kept, gone=()):
    runs = runs_of(weir)
    done = [run["id"] for run in runs if run["state"] == "done"]
    assert sorted(done) == sorted(set(done)) and set(kept) <= set(done)
    assert not set(gone) & set(done)


def test_one_sync_that_fails_is_mended_without_a_restart(daemon, disk):
    kept, gone = [], []
    for nth in range(12):
        if nth % 4 == 1:
            disk.once.touch()
        answer = turn(daemon, nth)
        assert answer.status_code in (200, 503), answer.text
        (kept if answer.status_code == 200 else gone).append(answer.headers["x-weir-run-id"])
    assert not disk.once.exists() and len(gone) <= 3
    daemon.kill()
    daemon.start()
    assert_there_once(daemon, kept, gone)


def test_while_no_sync_succeeds_nothing_is_acknowledged(daemon, disk):
    kept = [turn(daemon, 0).headers["x-weir-run-id"]]
    disk.all.touch()
    doubted = turn(daemon, 1)
    assert doubted.status_code == 503 and "same idempotency key" in doubted.text
    refused = turn(daemon, 2)
    assert refused.status_code == 503
    disk.all.unlink()
    deadline = time.monotonic() + 20
    while (answer := turn(daemon, 1)).status_code == 503:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert answer.status_code == 200
    kept.append(answer.headers["x-weir-run-id"])
    kept.append(turn(daemon, 2).headers["x-weir-run-id"])
    daemon.kill()
    daemon.start()
    assert_there_once(daemon, kept)
    assert len(set(kept)) == 3
    assert sum(run["state"] == "done" for run in runs_of(daemon)) == 3
