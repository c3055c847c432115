"""An idle daemon lets the pages of its program go, once for a rest, and answers as before."""
import time

import crawbl
import pytest

KIB = 1024
LOOK = 15  # seconds from one look to the next; the first ones are sooner
pytestmark = pytest.mark.skipif(crawbl.is_sanitized(), reason="a sanitizer's own pages are most of it")


def mapped(weir):
    """Bytes of files, which is the program, in this process."""
    status = open(f"/proc/{weir.pid}/status").read().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("RssFile")) * KIB


def faults(weir):
    return int(open(f"/proc/{weir.pid}/stat").read().rsplit(")", 1)[1].split()[7])


def use(http):
    assert http.get("/health").status_code == 200
    assert http.post("/invoke", json={"input": "hello"}).status_code == 200


def wait_for_rest(weir, http):
    """Until less than half of what it has while it is used is there, and stays so: what the start needed
    goes sooner, but then the store still works. How much the system maps around a page that is touched
    depends on the file system: a quarter was seen, and all of it without a rest."""
    use(http)
    used = mapped(weir)
    began = since = time.monotonic()
    while time.monotonic() < since + 5:
        time.sleep(0.1)
        if mapped(weir) > used / 2:
            since = time.monotonic()
        assert since < began + 6 * LOOK, (used, mapped(weir))
    return used


def test_at_rest_the_program_leaves_memory_and_comes_back(start_weir):
    weir = start_weir()
    with weir.http() as http:
        used = wait_for_rest(weir, http)
        for _ in range(3):
            use(http)
        assert mapped(weir) > used / 2


def test_a_request_each_second_does_not_map_the_program_each_time(start_weir):
    weir = start_weir()
    with weir.http() as http:
        wait_for_rest(weir, http)
        assert http.get("/health").status_code == 200
        last, first, gone = mapped(weir), faults(weir), 0
        end = time.monotonic() + 2 * LOOK + 2
        while time.monotonic() < end:
            assert http.get("/health").status_code == 200
            now = mapped(weir)
            gone += now < last - 256 * KIB
            last = now
            time.sleep(1)
        assert gone <= 1  # the rest after the start
        assert faults(weir) - first < 400  # the looks' own; to map it for each request takes 900
