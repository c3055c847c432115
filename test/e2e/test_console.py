"""The console's files and the routes that it is made of, as a program sees them. How it looks to a
person is in test/browser."""
import gzip
import json
import re

import consoles
import crawbl
import harness
import pytest

SECRET = "console-secret"
VISIT = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def daemon(folder, **options):
    one = harness.Daemon(folder, **options).start()
    yield one
    one.stop()


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """No key and no token: everybody on this machine is let in."""
    yield from daemon(tmp_path_factory.mktemp("console"), env={"CRAWBL_MCP_SIGNING_KEY": None})


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    config = "providers: [{name: p, kind: openai, base_url: 'http://127.0.0.1:9', key_env: P_KEY}]\n" \
             "budgets: [{workspace: ws-1, day: $5}, {workspace: other, day: 7 tokens}]\n" \
             f"http: {{workspace: {crawbl.WORKSPACE}}}\n"
    yield from daemon(tmp_path_factory.mktemp("console"), script="test/e2e/scripts/quick.yaml", config=config,
                      env={"AGENT_AUTH_TOKEN": SECRET, "P_KEY": "very-secret"})


def get(weir, path, token=None, **headers):
    if token:
        headers["authorization"] = "Bearer " + token
    with weir.http(headers=headers) as http:
        return http.get(path)


def files_of(weir):
    """Every file that the page and its files name, by name."""
    found, wanted = {}, {""}
    while wanted:
        name = wanted.pop()
        answer = get(weir, "/weir/" + name)
        assert answer.status_code == 200, (name, answer.text)
        found[name] = answer
        named = set(re.findall(r'(?:src|href)="([\w.-]+\.\w+)"|from "\./([\w-]+\.js)"', answer.text))
        wanted |= {a or b for a, b in named} - found.keys()
    return found


def test_every_file_has_its_type_and_the_policy(bare):
    types = {"": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    files = files_of(bare)
    assert len(files) > 10
    size = 0
    for name, answer in files.items():
        head = answer.headers
        assert head["content-type"].split(";")[0] == types[name.rpartition(".")[2]]
        policy = dict(part.strip().split(" ", 1) for part in head["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert head["x-content-type-options"] == "nosniff" and head["referrer-policy"] == "no-referrer"
        assert head["content-encoding"] == "gzip"
        size += int(head["content-length"])
    assert size < 200 * 1024
    page = files[""].text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page)  # nothing inline


def test_no_file_names_another_place(bare):
    """Every address in every file is one of this listener. That no request goes elsewhere is met in a
    browser: test/browser."""
    files = {name: answer.text for name, answer in files_of(bare).items()}
    served = {name for name in files if name}
    for name, text in files.items():
        hosts = set(re.findall(r"""(?:\w+:)?//[\w-]+(?:\.[\w-]+)+|\w+://[\w-]+""", text))
        assert hosts <= {"http://www.w3.org"}, (name, hosts)  # the name of SVG, which is not fetched
        kind = name.rpartition(".")[2]
        if kind in ("", "svg"):
            addresses = set(re.findall(r"""(?:src|href|action|srcset|data|poster)\s*=\s*["']?([^"'\s>]+)""", text))
            assert {one for one in addresses if not one.startswith("#")} <= served, (name, addresses)
        if kind == "css":
            assert not re.search(r"url\(|@import|image-set|@font-face", text), name
        if kind == "js":
            assert set(re.findall(r"""(?:from|import)\s*["']\./([^"']+)""", text)) <= served
            assert not re.search(r"""(?:from|import)\s*\(?\s*["'`](?!\./)|importScripts|new (?:WebSocket|EventSource)"""
                                 r"""|XMLHttpRequest|sendBeacon|new (?:Shared)?Worker""", text), name
            assert len(re.findall(r"\bfetch\(", text)) == text.count('fetch("/weir/v1" + path'), name


def test_what_is_there_already_is_not_sent_again(bare):
    with bare.http(headers={"accept-encoding": "identity"}) as http:
        whole = http.get("/weir/app.js")
        tag = whole.headers["etag"]
        assert "content-encoding" not in whole.headers and whole.text.startswith("// app:")
        assert whole.headers["vary"] == "accept-encoding"
        for given in (tag, "W/" + tag, f'"other", {tag}', "*"):
            answer = http.get("/weir/app.js", headers={"if-none-match": given})
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
        assert http.get("/weir/app.js", headers={"if-none-match": '"other"'}).status_code == 200
        for refused in ("gzip;q=0", "br", "gzip;q=0.000"):
            assert "content-encoding" not in http.get("/weir/app.js", headers={"accept-encoding": refused}).headers
        head = http.head("/weir/app.js")
        assert head.status_code == 200 and head.content == b""
        assert head.headers["content-length"] == str(len(whole.content))
        with http.stream("GET", "/weir/app.js", headers={"accept-encoding": "br, gzip;q=0.5"}) as zipped:
            assert gzip.decompress(b"".join(zipped.iter_raw())) == whole.content
        moved = http.get("/weir")
        assert (moved.status_code, moved.headers["location"]) == (308, "/weir/")
        assert http.get("/weir/nothing.js").status_code == 404
        assert http.get("/weir/..%2fsecrets").status_code == 404
        assert http.post("/weir/").status_code == 405


def test_a_foreign_page_gets_no_file_but_a_person_may_follow_its_link(bare):
    def status(path, **headers):
        return get(bare, path, **headers).status_code

    assert status("/weir/", **VISIT) == 200
    assert status("/weir/", **{**VISIT, "sec-fetch-dest": "iframe"}) == 403
    assert status("/weir/app.js", **VISIT) == 403
    assert status("/weir/app.js", **{"sec-fetch-site": "cross-site"}) == 403
    assert status("/weir/", origin="http://evil.example") == 403
    assert status("/weir/", host="evil.example", **VISIT) == 403
    assert status("/weir/v1/agents", **VISIT) == 403  # no page


def test_with_a_token_the_files_are_everyones_and_the_routes_are_not(secured):
    assert get(secured, "/weir/").status_code == 200
    assert get(secured, "/weir/app.js", host="weir.example").status_code == 200
    for path in ("agents", "health", "settings", "budgets", "runs", "audit/chain"):
        assert get(secured, "/weir/v1/" + path).status_code == 401, path
        assert get(secured, "/weir/v1/" + path, token="guess").status_code == 403, path
        assert get(secured, "/weir/v1/" + path, token=SECRET).status_code == 200, path


def test_the_daemon_is_shown_without_its_secrets_and_to_operators_alone(secured):
    settings = get(secured, "/weir/v1/settings", token=SECRET)
    health = get(secured, "/weir/v1/health", token=SECRET)
    assert settings.headers["cache-control"] == health.headers["cache-control"] == "no-store"
    for secret in (SECRET, "very-secret", harness.SIGNING_KEY):
        assert secret not in settings.text + health.text
    rows = {row["key"]: row for row in settings.json()["settings"]}
    assert rows["http.workspace"]["value"] == crawbl.WORKSPACE and rows["http.workspace"]["source"] == "file"
    now = health.json()
    assert {one["name"] for one in now["listeners"]} >= {"http", "grpc"}
    assert {one["name"]: one["port"] for one in now["listeners"]}["http"] == secured.port("http")
    assert now["providers"][0]["key_set"] is True and now["memory"]["counted_bytes"] >= 0
    budgets = get(secured, "/weir/v1/budgets", token=SECRET).json()["budgets"]
    assert budgets == [{"workspace": "ws-1", "period": "day", "cost_nano_usd": 5_000_000_000}]
    one_user = harness.token()
    assert get(secured, "/weir/v1/agents", token=one_user).status_code == 200
    for path in ("health", "settings", "audit/chain"):
        assert get(secured, "/weir/v1/" + path, token=one_user).status_code == 403, path


def test_runs_are_begun_for_oneself_and_listed_whatever_their_wire(secured):
    with secured.http(headers={"authorization": "Bearer " + harness.token()}) as http:
        misspelt = http.post("/weir/v1/runs", json={"input": "hello", "session_id": "own", "agnet": "eve"})
        assert misspelt.status_code == 400 and "no member 'agnet' here; did you mean 'agent'?" in misspelt.text
        begun = http.post("/weir/v1/runs", json={"input": "hello", "session_id": "own"})
        assert begun.status_code == 202
        assert {k: begun.json()[k] for k in ("workspace", "user", "session_id")} == {
            "workspace": crawbl.WORKSPACE, "user": crawbl.USER, "session_id": "own"}
        other = {"input": "hello", "session_id": "own", "user": "someone"}
        assert http.post("/weir/v1/runs", json=other).status_code == 403
        assert "event: done" in http.get(f"/weir/v1/runs/{begun.json()['id']}/events").text
        crawbl.one_turn(secured, "over Converse")
        listed = http.get("/weir/v1/runs").json()["runs"]
        assert [run["contract"] for run in listed[:2]] == ["crawbl", "weir"]
        assert listed[1]["id"] == begun.json()["id"] and listed[1]["text"] == "hello"
        assert http.get("/weir/v1/runs", params={"contract": "crawbl"}).json()["runs"][0]["id"] == listed[0]["id"]
        assert len(http.get("/weir/v1/runs", params={"limit": 1}).json()["runs"]) == 1
        assert http.get("/weir/v1/runs", params={"user": "someone"}).status_code == 403
    with secured.http(headers={"authorization": "Bearer " + harness.token(user="another")}) as http:
        assert http.get("/weir/v1/runs").json() == {"runs": [], "more": False}


def test_a_long_text_is_cut_in_the_list_between_two_characters(bare):
    with bare.http() as http:
        run = http.post("/weir/v1/runs", json={"input": "ä" * 1000, "session_id": "long"}).json()["id"]
        with http.stream("GET", f"/weir/v1/runs/{run}/events") as events:
            next(events.iter_lines())  # it has begun: before that it is queued, and says nothing
        (listed,) = http.get("/weir/v1/runs", params={"session": "long"}).json()["runs"]
        assert listed["id"] == run and listed["text_cut"] is True and set(listed["text"]) == {"ä"}
        assert json.dumps(listed)
        http.post(f"/weir/v1/runs/{run}/cancel")


PIECES = 500
PACED = f"""script: 1
model: paced
agents: [{{slug: manager, description: Talks.}}]
scenes:
  - reply:
      - repeat: {{text: "piece ", times: {PIECES}}}
        pace: {{every: 4ms}}
"""


def test_a_hundred_consoles_and_one_that_reads_nothing_take_nothing_from_the_caller(tmp_path):
    """Content alone; test/proof/observers.py measures when it comes and what it costs."""
    (tmp_path / "paced.yaml").write_text(PACED)
    for weir in daemon(tmp_path, script=tmp_path / "paced.yaml", env={"CRAWBL_MCP_SIGNING_KEY": None}):
        with crawbl.open_stream(weir) as stream:
            stream.send("go", session_id="watched")
            first = stream.next()
            turn = crawbl.in_background(stream.turn)
            run = get(weir, "/weir/v1/runs?session=watched").json()["runs"][0]["id"]
            with consoles.Consoles(weir.port("http"), run, 100, stalled=1) as watching:
                assert first.chunk.text + turn().text == "piece " * PIECES
                heard = watching.heard()
        assert len(heard) == 100 and all(events == heard[0] for events in heard)
        assert [event["seq"] for event in heard[0]] == list(range(1, len(heard[0]) + 1))
        assert "".join(e["text"] for e in heard[0] if e["type"] == "text") == "piece " * PIECES
        assert heard[0][-1]["type"] == "done"
