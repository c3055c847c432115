"""weir orchestrate with runtimes in a cluster: against an API server that keeps to the published schemas.
WEIR_WITH_POSTGRES=1 scripts/e2e test/e2e/test_kubernetes.py."""
import concurrent.futures
import contextlib
import itertools
import os
import time

import far_runtime
import httpx
import kubernetes_api
import orchestrating
import postgres
import pytest
from test_tls import Authority

pytestmark = pytest.mark.skipif(not os.environ.get("WEIR_WITH_POSTGRES"),
                                reason="needs PostgreSQL: WEIR_WITH_POSTGRES=1")
COUNTER = itertools.count()
NAME = "agent-runtime-workspace-ws-1"


@pytest.fixture(scope="module")
def database():
    with postgres.Cluster() as cluster:
        yield cluster


@pytest.fixture
def api(tmp_path):
    api = kubernetes_api.Api(tmp_path / "token")
    yield api
    api.close()


@pytest.fixture
def runtime():
    with far_runtime.Runtime() as runtime:
        yield runtime


@pytest.fixture
def start(tmp_path, database, api, runtime):
    with contextlib.ExitStack() as running:

        def begin(serves=True, **more):
            number = next(COUNTER)
            database.sql(f"CREATE SCHEMA k{number}")
            folder = tmp_path / f"o{number}"
            folder.mkdir()
            options = {"driver": "kubernetes", "kubernetes_url": api.url, "kubernetes_namespace": "agents",
                       "kubernetes_token_file": api.token_file, "kubernetes_image": "weir:test",
                       "kubernetes_secret": "runtime-keys", "runtime_address": runtime.address, **more}
            options = {name: value for name, value in options.items() if value is not None}
            weir = orchestrating.Orchestrating(folder, database, schema=f"k{number}", **options)
            if serves:
                return running.enter_context(weir)
            weir.start()
            running.callback(weir.stop)
            return weir

        yield begin


def eventually(condition, what=""):
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError((what() if callable(what) else what) or "it never came true")


def good(message):
    assert message["status"] in ("delivered", "delegated"), message


def posts(api):
    return [path.rsplit("/", 1)[1] for method, path in api.asked if method == "POST"]


def test_a_workspace_gets_a_deployment_and_a_service(start, api):
    weir = start()
    good(weir.say("hello"))
    good(weir.say("hello again"))
    assert api.names() == api.names("services") == [NAME]
    assert posts(api) == ["services", "deployments"]
    made = api.items[("deployments", NAME)]
    pod = made["spec"]["template"]["spec"]
    assert made["metadata"]["annotations"]["weir.dev/workspace"] == "ws-1"
    assert pod["containers"][0]["args"] == ["--grpc-listen", ":42618", "--workspace-id", "ws-1", "--user-id", "user-1"]
    assert pod["volumes"][-1] == {"name": "secrets", "secret": {"secretName": "runtime-keys"}}
    assert api.items[("services", NAME)]["spec"]["ports"] == [{"name": "grpc", "port": 42618, "targetPort": 42618}]
    assert orchestrating.KEY not in str(api.items)


def test_many_turns_at_once_make_one(start, api):
    weir = start()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for message in list(pool.map(lambda n: weir.say(f"hello {n}"), range(8))):
            good(message)
    assert posts(api) == ["services", "deployments"]


def test_one_that_is_not_ready_is_said_to_start_and_serves_later(start, api):
    api.starts = False
    weir = start(runtime_start="300ms")
    refused = weir.post("hello")
    assert (refused.status_code, refused.json()["code"]) == (503, "RTM0001")
    eventually(api.names)
    api.ready(NAME)
    eventually(lambda: " serves at " in weir.log())
    good(weir.say("hello"))
    assert posts(api) == ["services", "deployments"]


def test_an_idle_one_ends_and_the_next_turn_makes_it_again(start, api):
    weir = start(runtime_idle="300ms")
    good(weir.say("hello"))
    eventually(lambda: not api.names() and not api.names("services"))
    good(weir.say("hello"))
    assert posts(api) == ["services", "deployments"] * 2


def test_those_of_an_earlier_process_are_taken_over_and_end(start, api):
    weir = start()
    good(weir.say("hello"))
    weir.kill()
    assert api.names() == [NAME]
    other = start()
    eventually(lambda: api.watching == 2)
    good(other.say("hello"))
    assert posts(api) == ["services", "deployments"], "it was there"
    other.kill()
    start(runtime_idle="300ms")
    eventually(lambda: not api.names() and not api.names("services"))


def test_what_exists_already_is_fine(start, api):
    weir = start()
    eventually(lambda: api.watching)
    api.refuse(409, "AlreadyExists", "services already exists", when="POST /api/v1/namespaces/agents/services")
    good(weir.say("hello"))


def test_one_that_somebody_deletes_is_made_again(start, api):
    weir = start()
    good(weir.say("hello"))
    api.remove(NAME)
    eventually(lambda: not api.names())
    good(weir.say("hello"))
    assert api.names() == [NAME]


@pytest.mark.parametrize("early", [True, False], ids=["status", "event"])
def test_a_watch_goes_on_after_an_end_and_lists_after_410(start, api, early):
    api.starts, api.early_gone = False, early
    weir = start()
    eventually(lambda: api.watching)
    api.cut()
    eventually(lambda: api.watching == 2)
    lists = lambda: len([1 for m, p in api.asked if m == "GET" and "deployments" in p and "limit=" in p])
    assert lists() == 1
    api.compact()
    api.cut()
    eventually(lambda: lists() >= 2)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        turn = pool.submit(weir.say, "hello")
        eventually(api.names)
        api.ready(NAME)
        good(turn.result(30))


def test_a_watch_that_ends_at_once_is_not_asked_in_a_circle(start, api):
    """Pauses grow; the least that they can take together is known."""
    weir = start()
    eventually(lambda: api.watching)
    begun, api.closed = time.monotonic(), True
    eventually(lambda: api.watching >= 5)
    assert time.monotonic() - begun > 0.6, "100, 200 and 400 ms at least"
    api.closed = False
    good(weir.say("hello"))


def test_a_token_that_is_rotated_is_read_again(start, api):
    weir = start()
    eventually(lambda: api.watching)
    api.rotate("token-2")
    good(weir.say("hello"))


@pytest.mark.parametrize("code, reason, said, logged", [
    (403, "Forbidden", "cannot create resource", "grant the service account"),
    (403, "Forbidden", "exceeded quota: agents", "raise the quota of the namespace"),
    (422, "Invalid", "spec.x: wrong", "correct orchestrator.kubernetes"),
    (404, "NotFound", 'namespaces "agents" not found', "is the namespace there?"),
], ids=["rights", "quota", "invalid", "namespace"])
def test_a_refusal_is_for_operators_and_its_turn_fails_readably(start, api, code, reason, said, logged):
    weir = start()
    api.refuse(code, reason, said)
    refused = weir.post("hello")
    assert (refused.status_code, refused.json()["code"]) == (503, "RTM0001")
    eventually(lambda: logged in weir.log() and said.split('"')[0] in weir.log(), weir.log)
    good(weir.say("hello"))


@pytest.mark.parametrize("passes", [True, False], ids=["busy", "for good"])
def test_a_service_whose_deployment_is_refused_does_not_stay(start, api, passes):
    weir = start()
    api.refuse(403, "Forbidden", "exceeded quota: agents", when="POST /apis/apps/v1")
    api.refuse(500, "InternalError", "later", when="DELETE /api/v1", times=2 if passes else 0)
    assert weir.post("hello").json()["code"] == "RTM0001"
    eventually(lambda: posts(api) == ["services", "deployments"] and not api.names("services"))
    good(weir.say("hello"))  # also while it is deleted
    assert api.names() == api.names("services") == [NAME]


def test_a_service_whose_deployment_somebody_deletes_goes_too(start, api):
    weir = start()
    good(weir.say("hello"))
    api.remove(NAME)
    eventually(lambda: not api.names("services"))
    good(weir.say("hello"))
    assert api.names() == api.names("services") == [NAME]


def test_services_that_a_killed_process_left_are_swept_at_the_start(start, api):
    """Of three pages; one has a Deployment, one is young, one is not ours."""
    weir = start()
    api.age = 3600
    for name in ("a", "b", "c"):
        good(weir.say("hello", workspace=f"ws-{name}", user=f"user-{name}"))
    api.age = 0
    good(weir.say("hello"))
    weir.kill()
    foreign = dict(api.items[("services", NAME)], metadata={
        "name": "foreign", "labels": {}, "creationTimestamp": "2020-01-01T00:00:00Z"})
    with api.lock:
        api.items[("services", "foreign")] = foreign
        for name in ("agent-runtime-workspace-ws-a", "agent-runtime-workspace-ws-b", NAME):
            del api.items[("deployments", name)]
    api.page = 2
    api.refuse(503, "ServiceUnavailable", "later", when="GET /api/v1/namespaces/agents/services")
    other = start()
    left = ["agent-runtime-workspace-ws-c", NAME, "foreign"]
    eventually(lambda: api.names("services") == sorted(left), lambda: api.names("services"))
    assert other.log().count("has no deployment and is deleted") == 2
    good(other.say("hello", workspace="ws-a", user="user-a"))
    assert api.names() == ["agent-runtime-workspace-ws-a", "agent-runtime-workspace-ws-c"]


SERVICE = f"/api/v1/namespaces/agents/services/{NAME}"


def left_service(start, api):
    """An old Service without a Deployment, as a killed process leaves it; and a process that needs it."""
    taker = start()
    api.age = 3600
    good(taker.say("hello"))
    api.age = 0
    api.remove(NAME)
    eventually(lambda: not api.names("services"))
    with api.lock:
        service = next(item for _, what, kind, item in api.events if (what, kind) == ("ADDED", "services"))
        api.items["services", NAME] = service
        api.change("ADDED", "services", service)
    return taker


def is_whole(api):
    return api.names() == api.names("services") == [NAME]


@pytest.mark.parametrize("taken", [True, False], ids=["taken first", "deleted first"])
def test_a_left_service_is_either_taken_or_deleted(start, api, taken):
    """One process sweeps it while another takes it: the second to come knows, and the runtime is whole."""
    taker = left_service(start, api)
    deletion, adoption = api.hold("DELETE " + SERVICE), api.hold("PATCH " + SERVICE)
    sweeper = start()
    assert deletion.reached.wait(30)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        said = pool.submit(taker.say, "hello")
        assert adoption.reached.wait(30)
        first, second = (adoption, deletion) if taken else (deletion, adoption)
        first.open.set()
        eventually(lambda: is_whole(api) if taken else not api.names("services"))
        second.open.set()
        good(said.result())
    eventually(lambda: is_whole(api))
    if taken:
        eventually(lambda: "another process has taken it" in sweeper.log(), sweeper.log)
    good(sweeper.say("hello"))
    assert is_whole(api)


def test_a_service_that_was_just_taken_is_not_swept(start, api):
    taker = left_service(start, api)
    deployment = api.hold("POST /apis/apps/v1")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        said = pool.submit(taker.say, "hello")
        assert deployment.reached.wait(30)
        asked = len(api.asked)
        start()
        eventually(lambda: any("/services?" in path for _, path in api.asked[asked:]))
        good_while = time.monotonic() + 0.5
        eventually(lambda: time.monotonic() > good_while)
        deployment.open.set()
        good(said.result())
    assert is_whole(api)
    assert ("DELETE", SERVICE) not in api.asked[asked:]


@pytest.mark.parametrize("code, reason, headers", [
    (429, "TooManyRequests", [("retry-after", "1")]),
    (500, "InternalError", []),
    (409, "Conflict", []),
], ids=["429", "500", "conflict"])
def test_what_passes_is_tried_again(start, api, code, reason, headers):
    weir = start()
    api.refuse(code, reason, "later", times=2, headers=headers)
    good(weir.say("hello"))
    assert api.take_refusal("POST", "") is None, "not all of them were met"


def test_a_list_comes_in_pages(start, api):
    weir = start()
    for user in ("a", "b", "c"):
        good(weir.say("hello", workspace=f"ws-{user}", user=f"user-{user}"))
    weir.kill()
    api.page = 1
    other = start(runtime_idle="500ms")
    eventually(lambda: not api.names())
    assert other.log().count("is idle and ends") == 3


@pytest.mark.parametrize("wrong, said", [
    ({"kubernetes_image": None}, "needs orchestrator.kubernetes.image"),
    ({"kubernetes_url": None}, "set orchestrator.kubernetes.url"),
    ({"kubernetes_namespace": None}, "set orchestrator.kubernetes.namespace"),
], ids=["image", "server", "namespace"])
def test_a_cluster_that_cannot_be_asked_is_said_at_start(start, wrong, said):
    weir = start(serves=False, **wrong)
    eventually(lambda: said in weir.log(), said)
    assert httpx.get(weir.base + "/health").status_code == 503


def test_the_server_is_who_its_certificate_says(start, tmp_path):
    root, other = Authority(tmp_path, "root"), Authority(tmp_path, "other")
    secure = kubernetes_api.Api(tmp_path / "secure", secure=root.sign("cluster"))
    with contextlib.closing(secure):
        where = {"kubernetes_url": secure.url, "kubernetes_token_file": secure.token_file}
        good(start(kubernetes_ca_file=root.pem, **where).say("hello"))
        asked = len(secure.asked)
        doubting = start(kubernetes_ca_file=other.pem, runtime_start="300ms", **where)
        eventually(lambda: "certificate" in doubting.log())
        refused = doubting.post("hello")
        assert (refused.status_code, refused.json()["code"]) == (503, "RTM0001")
        assert posts(secure) == ["services", "deployments"] and len(secure.asked) == asked
