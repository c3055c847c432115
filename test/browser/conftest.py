"""The console in a real browser: Debian's chromium, without a window, on pages of this machine."""
import contextlib
import importlib.util
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
E2E = HERE.parent / "e2e"
sys.path[:0] = [str(HERE), str(E2E)]

import harness  # noqa: E402

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PATIENCE_MS = 60_000  # generous; nothing should ever come near it
TOKEN = "console-secret"


def make_stubs():
    """Those of Converse, as the other tests make them."""
    spec = importlib.util.spec_from_file_location("e2e_conftest", E2E / "conftest.py")
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    other.generate_stubs()


def pytest_configure():
    make_stubs()


@contextlib.contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root, chromium starts only without its sandbox.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        with playwright.chromium.launch(executable_path=CHROMIUM, args=flags) as browser:
            yield browser


@pytest.fixture(scope="session")
def browser():
    with chromium() as browser:
        yield browser


class Visit:
    """A tab of its own, with all that went wrong in it."""

    def __init__(self, browser, daemon, **options):
        self.daemon = daemon
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.wrong = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._note)
        self.asked = []  # every address that was asked for
        self.context.on("request", self._ask)

    def _ask(self, request):
        self.asked.append(request.url)
        if not request.url.startswith((self.daemon.url + "/weir", "blob:" + self.daemon.url)):
            self.wrong.append("it asked elsewhere: " + request.url)

    def _note(self, message):
        text = message.text
        if message.type == "error" and "Failed to load resource" not in text and "ERR_" not in text:
            self.wrong.append(text)

    def go(self, where, ready=None):
        """Show the view; `where` is a fragment as a person would see it in the address."""
        self.page.goto(f"{self.daemon.url}/weir/#/{where}")
        name = where.split("?")[0].split("/")[0]
        self.page.wait_for_selector(f".page-{name} h1")
        whole = ".virtual .row" if name in ("run", "compare") else f".page-{name}[data-shown]"
        self.page.wait_for_selector(ready or whole)
        return self.page

    def close(self):
        self.context.close()
        assert not self.wrong, self.wrong


@pytest.fixture
def visit(browser):
    """visit(daemon, **options of the browser's context): a new tab."""
    visits = []

    def new(daemon, **options):
        visits.append(Visit(browser, daemon, **options))
        return visits[-1]

    yield new
    for one in visits:
        one.close()


def started(folder, **options):
    daemon = harness.Daemon(folder, **options).start()
    yield daemon
    daemon.stop()
    assert not daemon.sanitizer_log(), daemon.sanitizer_log()


OPEN = {"CRAWBL_MCP_SIGNING_KEY": None}  # no key and no token: this machine alone
ASKS = "agents: [{slug: manager, tools: {pay: ask, move: ask}, delegates: [writer]}, {slug: writer}]\n"


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """What someone has who has just started it."""
    yield from started(tmp_path_factory.mktemp("demo"), env=OPEN)


@pytest.fixture(scope="session")
def playing(tmp_path_factory):
    yield from started(tmp_path_factory.mktemp("playing"), script="test/browser/play.yaml", config=ASKS, env=OPEN)


@pytest.fixture(scope="session")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    yield from started(folder, script="test/browser/play.yaml", config=ASKS, env=OPEN, args=["--record", folder / "calls"])


@pytest.fixture(scope="session")
def secured(tmp_path_factory):
    import crawbl

    config = ASKS + f"http: {{workspace: {crawbl.WORKSPACE}}}\n"
    yield from started(tmp_path_factory.mktemp("secured"), script="test/browser/play.yaml", config=config,
                       env={"AGENT_AUTH_TOKEN": TOKEN})
