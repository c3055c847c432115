"""Fixtures of the end-to-end tests: `weir` is a running daemon, `start_weir` starts more.

    @pytest.mark.weir(script="test/e2e/scripts/two_agents.yaml", env={"AGENT_AUTH_TOKEN": "s"})
    def test_a_turn_ends_with_exactly_one_done(weir): ...

The marker's arguments are those of harness.Daemon. The Python stubs of our .proto files are
generated once per session into build/stubs, where `import agentruntime.v1.runtime_pb2` finds
them.
"""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness  # noqa: E402

STUBS = harness.BUILD / "stubs"
KINDS = ("anthropic", "gemini", "openai", "openai-responses")  # of providers
WIRES = ("converse", "invoke", "stream")  # as wires.py has them
sys.path.insert(0, str(STUBS))


def generate_stubs():
    from grpc_tools import protoc

    root = harness.ROOT / "proto"
    files = sorted(root.rglob("*.proto"))
    stamp = STUBS / ".stamp"
    if stamp.exists() and all(f.stat().st_mtime <= stamp.stat().st_mtime for f in files):
        return
    STUBS.mkdir(parents=True, exist_ok=True)
    include = pathlib.Path(protoc.__file__).parent / "_proto"
    command = ["protoc", f"-I{root}", f"-I{include}"]
    command += [f"--python_out={STUBS}", f"--grpc_python_out={STUBS}"]
    if protoc.main(command + [str(f) for f in files]) != 0:
        raise pytest.UsageError("the .proto files do not compile")
    stamp.touch()


def pytest_configure(config):
    config.addinivalue_line("markers", "weir(**options): how the daemon of this test is started")
    if not hasattr(config, "workerinput"):  # once, also when xdist runs several workers
        generate_stubs()


def pytest_collection(session):
    harness.collecting = True


def pytest_collection_finish(session):
    harness.collecting = False


@pytest.fixture
def start_weir(tmp_path):
    """Start daemons: start_weir(script=..., config=..., env=..., args=...)."""
    daemons = []

    def start(**options):
        folder = tmp_path / f"weir{len(daemons)}"
        folder.mkdir()
        daemons.append(harness.Daemon(folder, **options))
        return daemons[-1].start()

    yield start

    failures = []
    for daemon in daemons:
        try:
            daemon.stop()
        except AssertionError as failure:
            failures.append(str(failure))
        if daemon.sanitizer_log():
            failures.append(daemon.sanitizer_log())
    assert not failures, "\n\n".join(failures)


@pytest.fixture
def weir(request, start_weir):
    """A running daemon; @pytest.mark.weir(...) says how it differs from the plain one."""
    options = {}
    for marker in reversed(list(request.node.iter_markers("weir"))):
        options.update(marker.kwargs)
    return start_weir(**options)


@pytest.fixture(scope="session")
def aimock():
    """The process that plays all vendors' models; `models` makes it forget."""
    import vendors

    mock = vendors.Aimock()
    yield mock
    mock.stop()


@pytest.fixture
def models(aimock):
    """Vendors of models that have said and heard nothing yet (vendors.py)."""
    import vendors

    fresh = vendors.Vendors(aimock)
    yield fresh
    fresh.relay.close()


def _is_thinned_out(item):
    """Whether other pairs of a provider's kind and a wire stand for this one."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    kind, wire = params.get("kind"), params.get("wire")
    if kind not in KINDS or wire not in WIRES or kind == "openai":
        return False
    return WIRES.index(wire) != KINDS.index(kind) % len(WIRES)


def pytest_collection_modifyitems(config, items):
    """Every kind once and every wire once; all their pairs with WEIR_ALL_PAIRS=1 (make proof)."""
    if os.environ.get("WEIR_ALL_PAIRS"):
        return
    thinned = [item for item in items if _is_thinned_out(item)]
    if thinned:
        config.hook.pytest_deselected(items=thinned)
        items[:] = [item for item in items if not _is_thinned_out(item)]


@pytest.fixture(params=KINDS)
def kind(request):
    """The kind of provider; a test for one or two of them overrides it by parametrize."""
    return request.param


@pytest.fixture
def house(start_weir, models, kind):
    """Start a daemon whose provider `house` is of this kind, with the canary as its key.

        weir = house([{"tools": ["calculator"]}], limits={"turn": "2s"})

    agents    what differs from a plain manager, who asks house.model
    provider  more keys of the provider
    others    keys of weir.yaml
    """
    import vendors

    model = vendors.KINDS[kind][1]

    def start(agents=({},), provider=None, env=None, **others):
        plain = {"slug": "manager", "instructions": "You lead.", "model": f"house/{model}"}
        text = vendors.settings(
            models.provider(kind, **(provider or {})), [{**plain, **a} for a in agents], **others
        )
        return start_weir(config=text, env={"HOUSE_KEY": vendors.KEY, **(env or {})})

    start.model = model
    return start


@pytest.fixture
def mint():
    """Mint tokens: mint(user, workspace, at=unix seconds, key=...)."""
    return harness.token
