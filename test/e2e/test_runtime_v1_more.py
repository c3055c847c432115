"""The Runtime Contract v1, what stands beside /invoke and /stream: /resume, the documents about
it, and clients that look for the gaps between them."""
import concurrent.futures
import copy
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import crawbl
import harness
import pytest
import yaml
from replicas import eventually
from test_runtime_v1 import BODY, VERSION, invoke, post, raw, states, stream

pytestmark = pytest.mark.weir(script="test/e2e/scripts/human.yaml")

RUN_ID = "x-weir-run-id"
SCHEMA = harness.ROOT / "engine/schema"
DOCUMENT = SCHEMA / "runtime-contract-v1.openapi.yaml"
BASELINE = SCHEMA / "runtime-contract-v1.baseline.txt"


def resume(weir, thread, human_input, **headers):
    body = {"thread_id": thread, "human_input": human_input}
    with weir.http() as http:
        return http.post("/resume", json=body, headers=headers)


def ask(weir, thread, text="ask", wrapped=False, **fields):
    """A turn that waits for a person."""
    body = {"input": {"message": text} if wrapped else text, "session_id": thread, **fields}
    answer = invoke(weir, body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["metadata"]["interrupted"] is True
    return answer


# --- resume ---------------------------------------------------------------------------

WORDS = [
    ("yes", "yes"),
    ("", ""),
    (" two words ", " two words "),
    ('a "quoted" \\ word', 'a "quoted" \\ word'),
    ("a\0b", "a\0b"),
    (None, "null"),
    (True, "true"),
    (12345678901234567890, "12345678901234567890"),
    ({"ok": True, "why": ["a", 1]}, '{"ok":true,"why":["a",1]}'),
    ([], "[]"),
]


@pytest.mark.parametrize("words, heard", WORDS, ids=repr)
def test_a_turn_goes_on_with_what_a_person_said(weir, words, heard):
    """1.9, 3.2: a string as it is, all else as JSON"""
    ask(weir, "t")
    answer = resume(weir, "t", words)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    assert answer.headers[VERSION] == "1"
    body = answer.json()
    assert body["output"] == f"Answered: {heard}"
    assert body["session_id"] == body["thread_id"] == "t"
    assert body["metadata"] == {"interrupted": False} and body["history"] == []


def test_numbers_in_an_answer_stay_as_they_were_written(weir):
    """1.14"""
    ask(weir, "t")
    body = b'{"thread_id":"t","human_input":{"n" : 1.50e+2, "m":[ 1e999, 0.10 ]}}'
    with weir.http() as http:
        answer = http.post("/resume", content=body, headers={"content-type": "application/json"})
    assert answer.json()["output"] == 'Answered: {"n":1.50e+2,"m":[1e999,0.10]}'


def test_a_turn_that_was_streamed_is_resumed_the_same(weir):
    """3.2"""
    result = stream(weir, {"input": "ask", "session_id": "t"}).of("result")[0]
    assert result["metadata"]["interrupted"] is True
    assert resume(weir, "t", "yes").json()["output"] == "Answered: yes"


def test_a_resumed_turn_may_wait_again(weir):
    """3.2"""
    ask(weir, "t", "ask twice")
    second = resume(weir, "t", "one").json()
    approval = second["metadata"].pop("approval")
    assert second["metadata"] == {"interrupted": True, "awaiting": ["pay"]}
    assert approval.pop("approval_id").partition("-")[1] == "-"
    assert approval == {"question": "The second?", "tool": "pay", "args": {"eur": 300}}
    assert second["output"] == "The second?" and second["thread_id"] == "t"
    assert resume(weir, "t", {"n": 2}).json()["output"] == 'Both were answered, at last: {"n":2}'
    ask(weir, "u", "ask twice", wrapped=True)
    second = resume(weir, "u", {"n": 1}).json()
    assert second["output"]["status"] == "interrupted"
    assert second["output"]["thread_id"] == "u" and second["output"]["awaiting"] == ["pay"]


def test_a_resumed_turn_lists_the_tools_since_then(weir):
    """1.7"""
    first = ask(weir, "t", "ask and look").json()["history"]
    assert [entry["args"] for entry in first] == [{"what": "before"}]
    then = resume(weir, "t", "yes").json()
    assert [entry["args"] for entry in then["history"]] == [{"what": "after"}]
    year = time.gmtime().tm_year
    assert then["history"][0]["started_at"].startswith(str(year))


def test_a_resumed_turn_that_fails_has_the_error_envelope(weir):
    """1.12"""
    ask(weir, "t", "ask and fail")
    answer = resume(weir, "t", "yes")
    assert answer.status_code == 500 and answer.json()["error"]["code"] == "INTERNAL_ERROR"
    assert resume(weir, "t", "yes").text == answer.text  # K28: the same outcome again


def test_a_session_goes_on_after_it_was_resumed(weir):
    """design: the lease is free"""
    ask(weir, "t")
    assert invoke(weir, {"input": "hello", "session_id": "t"}).status_code == 409
    assert resume(weir, "t", "yes").status_code == 200
    answer = invoke(weir, {"input": "hello", "session_id": "t"})
    assert answer.json()["output"] == "heard: hello"


@pytest.mark.parametrize("thread", ["nobody", "", "done", "t" * 70_000])
def test_a_thread_that_does_not_wait_is_not_found(weir, thread):
    """1.9, 3.2, RSME-01"""
    assert invoke(weir, {"input": "hello", "session_id": "done"}).status_code == 200
    answer = resume(weir, thread, "yes")
    assert answer.status_code == 404 and answer.headers[VERSION] == "1"
    assert answer.json()["error"]["code"] == "THREAD_NOT_FOUND"


BAD_RESUMES = [
    (b"", 400),
    (b"{", 400),
    (b'{"thread_id":"t","human_input":1} x', 400),
    (b"{}", 422),
    (b"[]", 422),
    (b'{"human_input":"x"}', 422),
    (b'{"thread_id":"t"}', 422),
    (b'{"thread_id":5,"human_input":"x"}', 422),
    (b'{"thread_id":null,"human_input":"x"}', 422),
]


@pytest.mark.parametrize("content, status", BAD_RESUMES, ids=repr)
def test_an_answer_that_is_none_leaves_the_turn_waiting(weir, content, status):
    """1.9"""
    ask(weir, "t")
    with weir.http() as http:
        headers = {"Content-Type": "application/json"}
        answer = http.post("/resume", content=content, headers=headers)
    assert answer.status_code == status and answer.json()["error"]["code"] == "INVALID_INPUT"
    assert resume(weir, "t", "yes").json()["output"] == "Answered: yes"


def test_of_many_who_resume_one_thread_exactly_one_wins(weir):
    """3.2"""
    for round_ in range(10):
        thread = f"t-{round_}"
        ask(weir, thread)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda n: resume(weir, thread, f"from {n}"), range(8)))
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses == [200] + [409] * 7  # K28: another decision than the one that counts
        winner = next(n for n, answer in enumerate(answers) if answer.status_code == 200)
        assert answers[winner].json()["output"] == f"Answered: from {winner}"


def test_a_thread_is_found_by_its_id_alone_unless_two_users_have_it(weir):
    """1.9; which of two is meant is not guessed (test_repeats.py names one)"""
    ask(weir, "t", config={"configurable": {"user_id": "ann"}})
    assert resume(weir, "t", "one").status_code == 200
    ask(weir, "t", config={"configurable": {"user_id": "ann"}})
    ask(weir, "t", config={"configurable": {"user_id": "bob"}})
    answer = resume(weir, "t", "two")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "AMBIGUOUS_THREAD"


@pytest.mark.weir(config="http:\n  workspace: ws-1\n")
def test_a_turn_that_converse_began_is_resumed_over_http(weir):
    """design: one run on every wire"""
    with crawbl.open_stream(weir) as orchestrator:
        assert orchestrator.ask("ask", session_id="shared").error is None
        assert resume(weir, "shared", "yes").json()["output"] == "Answered: yes"
        assert orchestrator.ask("hello", session_id="shared").text == "heard: hello"


def test_a_turn_of_another_workspace_is_not_found(weir):
    """K23"""
    with crawbl.open_stream(weir) as orchestrator:
        orchestrator.ask("ask", session_id="theirs")
        assert resume(weir, "theirs", "yes").status_code == 404
        assert orchestrator.ask("mine", session_id="theirs").text == "Answered: mine"


def invoke_when_it_may(weir, session):
    """One more turn, as soon as the session does not wait for a human."""
    while (answer := invoke(weir, {"input": "hello", "session_id": session})).status_code == 409:
        pass
    return answer


def test_who_resumes_a_turn_and_leaves_cancels_it_where_he_says_so(weir):
    """S6, 2.3; K28: it would go on"""
    ask(weir, "t", "ask and linger")
    peer = socket.create_connection(("127.0.0.1", weir.port("http")), 10)
    leaves = "X-Weir-On-Disconnect: cancel"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        behind = pool.submit(invoke_when_it_may, weir, "t")
        peer.sendall(post("/resume", {"thread_id": "t", "human_input": "yes"}, "1.1", leaves))
        # The session is the answered turn's at once; a turn that comes then waits behind it.
        eventually(lambda: behind.done() or "queued" in states(weir, "t"))
        assert not behind.done(), "the resumed turn holds its session"
        peer.close()
        assert behind.result(timeout=60).json()["output"] == "heard: hello"
    assert states(weir, "t") == ["cancelled", "done"]


def test_who_answers_on_converse_and_leaves_cancels_the_turn(weir):
    """S6 for the other wire"""
    with crawbl.open_stream(weir) as orchestrator:
        orchestrator.ask("ask and linger", session_id="t")
        orchestrator.send("yes", session_id="t")
        while orchestrator.next().WhichOneof("event") != "chunk":
            pass
        orchestrator.call.cancel()
    answer = crawbl.one_turn(weir, "hello", session_id="t")
    assert answer.text == "heard: hello"


@pytest.mark.weir(env={"AGENT_AUTH_TOKEN": "s3cret"})
def test_resume_asks_for_the_token_before_it_looks_at_the_body(weir):
    """AUTH-02, 1.13"""
    for token, status in ((None, 401), ("Bearer x", 403), ("Bearer s3cret", 422)):
        headers = {"Authorization": token} if token else {}
        with weir.http() as http:
            assert http.post("/resume", json={}, headers=headers).status_code == status


# --- the run's id ---------------------------------------------------------------------


def test_an_answer_names_its_run(weir):
    """conventions: X-Weir-Run-Id"""
    first = ask(weir, "t").headers[RUN_ID]
    assert first.isdecimal() and 0 < int(first) < 1 << 64
    assert resume(weir, "t", "yes").headers[RUN_ID] == first
    second = invoke(weir, {"input": "hello", "session_id": "t"}).headers[RUN_ID]
    assert second != first
    with weir.http() as http, http.stream("POST", "/stream", json=BODY) as answer:
        assert int(answer.headers[RUN_ID]) not in (int(first), int(second))
        answer.read()
    assert RUN_ID in invoke(weir, {"input": "ask and fail"}).headers
    assert RUN_ID not in invoke(weir, {"input": 5}).headers


# --- the documents --------------------------------------------------------------------


def served(weir, path="/openapi.json"):
    with weir.http() as http:
        answer = http.get(path)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    assert answer.headers[VERSION] == "1"
    return answer.json()


def test_the_document_that_is_served_is_the_committed_one(weir):
    """1.10, OAPI-01 to 03"""
    document = served(weir)
    assert document == yaml.safe_load(DOCUMENT.read_text())
    assert document["openapi"].startswith("3.1.")
    assert document["info"]["x-agentbreeder-runtime-contract"] == "1"
    assert {"/health", "/invoke", "/stream", "/resume"} <= set(document["paths"])
    assert document["security"] == [{"bearerAuth": []}]
    for path, item in document["paths"].items():
        is_open = path in ("/health", "/openapi.json", "/.well-known/agent.json")
        assert all((o.get("security") == []) == is_open for o in item.values()), path


@pytest.mark.weir(env={"AGENT_NAME": "tiny", "AGENT_VERSION": "2.3.4", "AGENT_FRAMEWORK": "own"})
def test_the_card_says_what_health_says_and_where_to_go(weir):
    """1.11, CARD-01, CARD-02"""
    card, health = served(weir, "/.well-known/agent.json"), served(weir, "/health")
    for name, other in (("name", "agent_name"), ("version", "version"), ("framework",) * 2):
        assert card[name] == health[other]
    assert card["protocol"] == "a2a-v1"
    with weir.http() as http:
        for name, path in card["endpoints"].items():
            method = "GET" if name == "health" else "POST"
            assert http.request(method, path, json={}).status_code in (200, 400, 422)
    assert {"invoke", "stream", "health"} <= set(card["endpoints"])


@pytest.mark.weir(env={"AGENT_AUTH_TOKEN": "s3cret"})
@pytest.mark.parametrize("path", ["/openapi.json", "/.well-known/agent.json"])
def test_the_documents_are_open_and_know_their_version(weir, path):
    """A6, 1.4, 1.5"""
    with weir.http() as http:
        whole = http.get(path, headers={"Authorization": "Bearer wrong"})
        head = http.head(path)
        assert whole.status_code == head.status_code == 200 and head.content == b""
        assert head.headers["content-length"] == str(len(whole.content))
        answer = http.get(path, headers={VERSION: "2"})
        assert answer.status_code == 400
        assert answer.json()["error"]["details"] == {"supported": ["1"], "requested": "2"}
        answer = http.post(path, json={})
        assert answer.status_code == 405 and answer.headers["allow"] == "GET, HEAD"


def lint(document, baseline, folder):
    path = folder / "document.json"
    path.write_text(json.dumps(document))
    command = [sys.executable, harness.ROOT / "scripts/lint_openapi", baseline, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stderr


def schema(document, name):
    return document["components"]["schemas"][name]


BREAKS = {
    "a path": lambda d: d["paths"].pop("/resume"),
    "a method": lambda d: d["paths"]["/health"].pop("head"),
    "a field": lambda d: schema(d, "InvokeResponse")["properties"].pop("history"),
    "a schema": lambda d: d["components"]["schemas"].pop("AgentCard"),
    "a type": lambda d: schema(d, "InvokeResponse")["properties"].update(output={"type": "string"}),
    "an enum": lambda d: schema(d, "HealthResponse")["properties"]["status"].update(enum=["ok"]),
    "a reply's promise": lambda d: schema(d, "InvokeResponse")["required"].remove("output"),
    "a new demand": lambda d: schema(d, "InvokeRequest")["required"].append("session_id"),
    "a new field that is needed": lambda d: (
        schema(d, "ResumeRequest")["properties"].update(who={"type": "string"}),
        schema(d, "ResumeRequest")["required"].append("who"),
    ),
    "a status": lambda d: d["paths"]["/resume"]["post"]["responses"].pop("404"),
    "a header": lambda d: d["paths"]["/stream"]["post"]["responses"]["200"]["headers"].pop(
        "cache-control"
    ),
    "an open door": lambda d: d["paths"]["/health"]["get"].pop("security"),
    "the version": lambda d: d["info"].update({"x-agentbreeder-runtime-contract": "2"}),
    "a parameter that is needed": lambda d: d["paths"]["/invoke"]["post"]["parameters"].append(
        {"name": "x-new", "in": "header", "required": True, "schema": {"type": "string"}}
    ),
}


@pytest.mark.parametrize("what", BREAKS)
def test_the_baseline_refuses_a_document_that_broke(what, tmp_path):
    """K22"""
    document = yaml.safe_load(DOCUMENT.read_text())
    BREAKS[what](document)
    status, words = lint(document, BASELINE, tmp_path)
    assert status == 1 and ("gone or changed" in words or "asks for more" in words)


def test_the_baseline_lets_a_document_grow(tmp_path):
    """K22: additions pass"""
    document = yaml.safe_load(DOCUMENT.read_text())
    assert lint(document, BASELINE, tmp_path) == (0, "")
    grown = copy.deepcopy(document)
    grown["paths"]["/new"] = copy.deepcopy(grown["paths"]["/health"])
    schema(grown, "InvokeRequest")["properties"]["more"] = {"type": "string"}
    schema(grown, "InvokeResponse")["properties"]["more"] = {"type": "string"}
    schema(grown, "InvokeResponse")["required"].append("more")
    assert lint(grown, BASELINE, tmp_path) == (0, "")


# --- bodies that are JSON, and that are not -------------------------------------------

JSON_YES = r"""
[]  {}  ""  0  -0  1  12  -1  0.5  1e5  1E+5  1e-5  -1.25e+10  123456789012345678901234567890
1e999  true  false  null  "a"  "\u0041"  "\ud83d\ude00"  "\"\\\/\b\f\n\r\t"  "é"  "😀"  "\u0000"
[1]  [1,2]  [[]]  [{}]  {"a":1}  {"a":{"b":[]}}  {"a":1,"a":2}  {"":0}  "\u2028"  "/"  [null]
"""

JSON_NO = r"""
[  ]  {  }  "  'a'  a  tru  TRUE  nul  None  NaN  Infinity  -Infinity  +1  01  -01  1.  .5  -  1e
1e+  0x10  1_000  1,  [,]  [1,]  [,1]  [1  1]  [1,,2]  {,}  {"a"}  {"a":}  {"a":1,}  {a:1}  {'a':1}
{1:1}  {"a":1  "a  "\x"  "\u12"  "\ud800"  "\ud800\u0041"  "\udc00"  [1}  {]  //  /**/1  [1]#  {}{}
"""

JSON_NO_BYTES = [
    b'"\t"', b'"\n"', b'"\x00"', b'"\x1f"', b"\xef\xbb\xbf[]", b'"\xff"', b'"\xc0\x80"',
    b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xc3"', b"[]\x00", b"\x0c[]", b"\xc2\xa0[]",
]  # fmt: skip


def test_every_json_value_is_taken_as_part_of_an_input(weir):
    """I1: must accept"""
    with weir.http() as http:
        for text in JSON_YES.split():
            content = b'{"input":[' + text.encode() + b' \t\r\n ],"unknown":' + text.encode() + b"}"
            answer = http.post(
                "/invoke", content=content, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 200, (text, answer.text)


def test_what_is_no_json_value_is_malformed(weir):
    """I1: must reject"""
    cases = [text.encode() for text in JSON_NO.split()] + JSON_NO_BYTES
    with weir.http() as http:
        for text in cases:
            for path in ("/invoke", "/resume"):
                content = b'{"input":"x","thread_id":"t","human_input":' + text + b"}"
                answer = http.post(path, content=content, headers={"content-type": "application/json"})
                assert answer.status_code == 400, (text, answer.text)
                assert answer.json()["error"]["code"] == "INVALID_INPUT"


def test_deep_and_endless_bodies_are_refused_and_the_next_one_is_taken(weir):
    """I2"""
    deep = [b"[" * 1_000_000, b'{"a":' * (8 * 1024 * 1024 // 5), b'{"input":' + b"[" * 64 + b"]" * 64]
    with weir.http() as http:
        for content in deep:
            headers = {"content-type": "application/json"}
            assert http.post("/invoke", content=content, headers=headers).status_code == 400
            assert http.post("/invoke", json=BODY).status_code == 200


# --- a client made of the document alone ----------------------------------------------

@pytest.mark.timeout(0 if "WEIR_FUZZ_EXAMPLES" in os.environ else 300)
@pytest.mark.weir(env={"AGENT_AUTH_TOKEN": "s3cret"})
def test_a_fuzzer_that_knows_the_document_finds_nothing(weir, tmp_path):
    """OpenAPI: every answer is one that the document names; bad requests are refused"""
    examples = os.environ.get("WEIR_FUZZ_EXAMPLES", "15")
    fuzzer = pathlib.Path(sys.executable).with_name("schemathesis")
    command = [fuzzer, "run", f"{weir.url}/openapi.json"]
    command += ["-H", "Authorization: Bearer s3cret", "--max-examples", examples, "--no-color"]
    if "WEIR_FUZZ_EXAMPLES" not in os.environ:
        command += ["--generation-deterministic"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


# --- the head -------------------------------------------------------------------------


def test_an_upgrade_of_the_version_is_refused_on_http_1_0_too(weir):
    """1.5"""
    answer = raw(weir, post("/resume", {}, "1.0", f"{VERSION}: 2"))
    assert answer.split(b" ")[1] == b"400" and b'"requested":"2"' in answer
