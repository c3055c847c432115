"""Pictures of each page of the console, of the demo: screenshots.py FOLDER."""
import pathlib
import sys
import tempfile

import conftest

conftest.make_stubs()
from test_in_browser import PAGES, begin, wait_for_state  # noqa: E402


def picture(tab, where, path):
    page = tab.go(where)
    page.mouse.move(0, 0)
    page.screenshot(path=path, animations="disabled")


def take(browser, daemon, folder):
    done = begin(daemon, "plan two days in Kyoto", "kyoto")
    wait_for_state(daemon, done, "done")
    waits = begin(daemon, "book the trip to Kyoto", "trip")
    wait_for_state(daemon, waits, "waiting")
    with daemon.http() as http:
        http.post("/weir/v1/memories", json={"key": "airline", "content": "window seat", "category": "core"})
    run, two = f"run/{done}?seq=27", f"compare/{done}/{waits}"
    tab = conftest.Visit(browser, daemon, viewport={"width": 1100, "height": 720})
    for where in [*PAGES, run, two, "chat?session=kyoto"]:
        picture(tab, where, folder / (where.split("/")[0].split("?")[0] + ".png"))
    tab.close()
    narrow = conftest.Visit(browser, daemon, viewport={"width": 360, "height": 740}, color_scheme="dark")
    picture(narrow, run, folder / "run-narrow.png")
    narrow.close()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, conftest.chromium() as browser:
        daemon = conftest.harness.Daemon(home, env=conftest.OPEN).start()
        try:
            take(browser, daemon, folder)
        finally:
            daemon.stop()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
