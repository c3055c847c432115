"""What waits for a human: seen and answered on every wire, once, also after a restart."""
import concurrent.futures
import json
import subprocess
import time

import crawbl
import harness
import pytest

TOKEN = {"authorization": "Bearer s3cret"}
ASKS = "agents: [{slug: manager, tools: {pay: ask}}]\n"
OPTIONS = {
    "script": "test/e2e/scripts/approvals.yaml",
    "config": ASKS,
    "env": {"AGENT_AUTH_TOKEN": "s3cret"},
}
PATIENCE = 90

pytestmark = pytest.mark.weir(**OPTIONS)


def client(weir, headers=TOKEN):
    return weir.http(headers=headers)


def ask(http, text="pay", session="t"):
    """A turn that waits; the approval as the answer's metadata says it."""
    answer = http.post("/invoke", json={"input": text, "session_id": session})
    assert answer.status_code == 200, answer.text
    assert answer.json()["metadata"]["interrupted"] is True, answer.text
    return answer.json()["metadata"]["approval"]


def waiting(http, **params):
    answer = http.get("/weir/v1/approvals", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()["approvals"]


def decide(http, approval, **body):
    return http.post(f"/weir/v1/approvals/{approval}", json=body)


def run_ends(http, run):
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        answer = http.get(f"/weir/v1/runs/{run}").json()
        if answer["state"] in ("done", "failed", "cancelled"):
            return answer["state"]
        time.sleep(0.01)
    raise AssertionError(f"run {run} does not end: {answer}")


def results(http, run):
    """What the run's events say of its tools."""
    found = []
    for line in http.get(f"/weir/v1/runs/{run}/events").text.split("\n"):
        if line.startswith("data: ") and '"result"' in line:
            found.append(json.loads(line[6:])["result"])
    return found


# --- what waits -----------------------------------------------------------------------


def test_what_waits_is_listed_with_all_that_is_asked(weir):
    with client(weir) as http:
        assert waiting(http) == []
        named = ask(http)
        [approval] = waiting(http)
        assert approval["id"] == named["approval_id"]
        assert approval["id"].startswith(approval["run_id"] + "-")
        assert approval["state"] == "waiting" and approval["kind"] == "tool"
        assert approval["workspace"] == "default" and approval["user"] == "anonymous"
        assert approval["session_id"] == "t" and approval["agent"] == "manager"
        assert approval["tool"] == named["tool"] == "pay"
        assert approval["args"] == named["args"] == {"eur": 300}
        assert abs(approval["asked_unix_ms"] / 1000 - time.time()) < 60
        assert "deadline_unix_ms" not in approval
        assert http.get(f"/weir/v1/approvals/{approval['id']}").json() == approval
        ask(http, "ask", "u")
        assert [a["kind"] for a in waiting(http)] == ["tool", "question"]
        assert [a["session_id"] for a in waiting(http, session_id="u")] == ["u"]
        assert len(waiting(http, limit=1)) == 1
        assert waiting(http, user="nobody") == []


def test_a_filter_that_is_wrong_shows_nothing(weir):
    with client(weir) as http:
        ask(http)
        for params, status in (
            ({"limit": "-1"}, 422),
            ({"limit": "x"}, 400),
            ({"sesion_id": "t"}, 400),
            ({"workspace": "other"}, 403),
        ):
            assert http.get("/weir/v1/approvals", params=params).status_code == status
        assert len(waiting(http, limit=2**31 - 1)) == 1


def test_who_is_of_another_workspace_knows_of_nothing(weir):
    with client(weir) as http:
        named = ask(http)["approval_id"]
        stranger = {"authorization": "Bearer " + harness.token("user-1", "ws-1")}
        with client(weir, stranger) as other:
            assert waiting(other) == []
            assert other.get(f"/weir/v1/approvals/{named}").status_code == 404
            assert decide(other, named, decision="approve").status_code == 404
        neighbour = {"authorization": "Bearer " + harness.token("bob", "default")}
        with client(weir, neighbour) as other:
            assert waiting(other) == []
            assert decide(other, named, decision="approve").status_code == 404
        with client(weir, {}) as nobody:
            assert nobody.get("/weir/v1/approvals").status_code == 401
        assert [a["id"] for a in waiting(http)] == [named]


# --- answers --------------------------------------------------------------------------


def test_a_call_that_is_approved_is_made(weir):
    with client(weir) as http:
        named = ask(http)["approval_id"]
        answer = decide(http, named, decision="approve", args={}, reason="")
        assert answer.status_code == 200, answer.text
        run = answer.json()["run_id"]
        assert answer.json() == {"id": named, "run_id": run, "state": "running"}
        assert run_ends(http, run) == "done"
        allowed = {"decision": "approve", "tool": "pay", "args": {"eur": 300}}
        assert results(http, run) == [allowed, {"paid": "300"}]
        later = http.get(f"/weir/v1/approvals/{named}").json()
        assert later["state"] == "answered" and later["answer"] == allowed
        assert later["tool"] == "pay" and later["args"] == {"eur": 300}
        assert waiting(http) == []


def test_a_call_that_is_refused_is_not_made(weir):
    with client(weir) as http:
        named = ask(http)["approval_id"]
        run = decide(http, named, decision="refuse", reason="too much").json()["run_id"]
        assert run_ends(http, run) == "done"
        told, answered = results(http, run)
        call = {"tool": "pay", "args": {"eur": 300}}
        assert told == {"decision": "refuse", **call, "reason": "too much"}
        assert "too much" in answered["error"]


def test_a_call_is_edited_within_what_its_tool_takes(weir):
    with client(weir) as http:
        named = ask(http)["approval_id"]
        for args, place in (
            ({"eur": 5000}, "/eur"),
            ({"eur": "x"}, "/eur"),
            ({"euro": 1}, "euro"),
            ({}, "eur"),
        ):
            answer = decide(http, named, decision="edit", args=args)
            assert answer.status_code == 422, answer.text
            assert place in answer.json()["error"]["message"]
        assert [a["id"] for a in waiting(http)] == [named]
        run = decide(http, named, decision="edit", args={"eur": 5}).json()["run_id"]
        assert run_ends(http, run) == "done"
        edited = {"decision": "edit", "tool": "pay", "args": {"eur": 5}}
        assert results(http, run) == [edited, {"paid": "5"}]


@pytest.mark.parametrize(
    "body, status",
    [
        ({"decision": "maybe"}, 422),
        ({"decision": 1}, 422),
        ({"decision": "edit"}, 422),
        ({"decision": "edit", "args": [1]}, 422),
        ({"decision": "refuse", "reason": 7}, 422),
        ({"decision": "approve", "answer": "yes"}, 422),
        ({"decision": "approve", "arg": {"eur": 1}}, 400),
        ({"answer": "yes", "reson": "x"}, 400),
        ({"answer": {"n": 1}}, 422),
        ({}, 422),
        ([], 422),
    ],
    ids=repr,
)
def test_a_decision_that_is_none_leaves_it_waiting(weir, body, status):
    with client(weir) as http:
        named = ask(http)["approval_id"]
        assert http.post(f"/weir/v1/approvals/{named}", json=body).status_code == status
        assert [a["id"] for a in waiting(http)] == [named]


def test_a_body_that_is_no_json_is_refused(weir):
    with client(weir) as http:
        named = ask(http)["approval_id"]
        headers = {"content-type": "application/json"}
        url = f"/weir/v1/approvals/{named}"
        assert http.post(url, content=b'{"decision":', headers=headers).status_code == 400


@pytest.mark.parametrize("name", ["1-0", "0-1", "x", "1", "-", "999999-1", "1-1-1", "%20"])
def test_an_approval_that_nobody_asked_for_is_unknown(weir, name):
    with client(weir) as http:
        ask(http)
        assert http.get(f"/weir/v1/approvals/{name}").status_code == 404
        assert decide(http, name, decision="approve").status_code == 404


def test_an_event_that_asks_nothing_is_no_approval(weir):
    with client(weir) as http:
        run, _, seq = ask(http)["approval_id"].partition("-")
        for other in range(1, int(seq)):
            assert decide(http, f"{run}-{other}", decision="approve").status_code == 404


def test_a_question_takes_words_and_decisions_but_no_edit(weir):
    with client(weir) as http:
        for body, heard in (
            ({"answer": "the blue one"}, "the blue one"),
            ({"decision": "approve"}, "yes"),
            ({"decision": "refuse"}, "no"),
            ({"decision": "refuse", "reason": "not now"}, "not now"),
        ):
            named = ask(http, "ask")["approval_id"]
            assert decide(http, named, decision="edit", args={"a": 1}).status_code == 422
            run = decide(http, named, **body).json()["run_id"]
            assert run_ends(http, run) == "done"
            assert results(http, run) == [{"answer": heard}]


def test_of_many_answers_at_once_exactly_one_counts(weir):
    with client(weir) as http:
        for _ in range(10):
            named = ask(http)["approval_id"]

            def answer(i):
                with client(weir) as own:
                    return decide(own, named, decision="approve" if i % 2 else "refuse")

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(answer, range(8)))
            same, other = [a.status_code for a in answers[::2]], answers[1::2]
            if same[0] == 409:
                same, other = [a.status_code for a in other], answers[::2]
            assert same == 4 * [200]  # who decides the same is told the same (K28)
            for lost in other:
                assert lost.status_code == 409
                assert lost.json()["error"]["code"] == "ALREADY_ANSWERED"
            run = named.partition("-")[0]
            assert run_ends(http, run) == "done"
            assert len([r for r in results(http, run) if "decision" in r]) == 1


def test_two_calls_of_one_reply_are_asked_about_one_after_the_other(weir):
    with client(weir) as http:
        first = ask(http, "pay twice")["approval_id"]
        run = decide(http, first, decision="approve").json()["run_id"]
        give_up = time.monotonic() + PATIENCE
        while not (found := waiting(http)) and time.monotonic() < give_up:
            time.sleep(0.01)
        [second] = found
        assert second["id"] != first and second["run_id"] == run
        assert second["args"] == {"eur": 2}
        assert decide(http, first, decision="approve").status_code == 200  # the same again
        assert decide(http, first, decision="refuse").status_code == 409
        assert [a["id"] for a in waiting(http)] == [second["id"]]
        assert decide(http, second["id"], decision="refuse").status_code == 200
        assert run_ends(http, run) == "done"


# --- the other wires ------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, paid",
    [
        ({"decision": "approve"}, "300"),
        ({"decision": "edit", "args": {"eur": 7}}, "7"),
        ({"approved": True}, "300"),
        (True, "300"),
        ("yes", "300"),
        ("ok, go ahead", "300"),
        (json.dumps({"decision": "approve"}), "300"),
        (False, None),
        ("no", None),
        ({"approved": False}, None),
        ({"decision": "refuse", "reason": "no"}, None),
    ],
    ids=repr,
)
def test_resume_decides_about_a_call(weir, words, paid):
    with client(weir) as http:
        ask(http)
        answer = http.post("/resume", json={"thread_id": "t", "human_input": words})
        assert answer.status_code == 200, answer.text
        assert answer.json()["metadata"] == {"interrupted": False}
        output = answer.json()["output"]
        assert f'{{"paid":"{paid}"}}' in output if paid else "refused" in output, output


MISFITS = [
    ({"decision": "edit", "args": {"eur": 5000}}, "/eur"),
    ({"decision": "approve", "args": {"euro": 1}}, "euro"),
    ({"approved": True, "args": {}}, "'eur' is missing"),
    ({"decision": "edit"}, "needs args"),
]


@pytest.mark.parametrize("words, place", MISFITS, ids=repr)
def test_resume_with_args_that_do_not_fit_leaves_the_question_open(weir, words, place):
    with client(weir) as http:
        named = ask(http)["approval_id"]
        for said in (words, json.dumps(words)):
            answer = http.post("/resume", json={"thread_id": "t", "human_input": said})
            assert answer.status_code == 422, answer.text
            error = answer.json()["error"]
            assert error["code"] == "INVALID_INPUT" and place in error["message"]
            assert "stays open" in error["message"]
        answer = http.post(f"/weir/v1/approvals/{named}", json={"answer": json.dumps(words)})
        assert answer.status_code == 422 and place in answer.json()["error"]["message"]
        assert [a["id"] for a in waiting(http)] == [named]
        answer = http.post("/resume", json={"thread_id": "t", "human_input": "yes"})
        assert '{"paid":"300"}' in answer.json()["output"]


def test_converse_with_args_that_do_not_fit_leaves_the_question_open(weir):
    with crawbl.open_stream(weir) as stream:
        stream.ask("pay", session_id="c")
        for words, place in MISFITS:
            turn = stream.ask(json.dumps(words), session_id="c")
            assert turn.error.startswith("INVALID_ARGUMENT") and place in turn.error
        fits = json.dumps({"decision": "edit", "args": {"eur": 7}})
        assert '{"paid":"7"}' in stream.ask(fits, session_id="c").text


def test_a_stream_shows_the_approval_as_a_step_before_its_result(weir):
    with client(weir) as http:
        body = {"input": "pay", "session_id": "t"}
        text = http.post("/stream", json=body).text
        events = [block.split("\n") for block in text.strip().split("\n\n")]
        assert [e[0] for e in events][-3:] == ["event: step", "event: result", "data: [DONE]"]
        step, result = (json.loads(e[1].removeprefix("data: ")) for e in events[-3:-1])
        [approval] = waiting(http)
        assert step["description"] == "approval" and step["agent"] == "manager"
        assert step["result"] == result["metadata"]["approval"]
        assert step["result"]["approval_id"] == approval["id"]
        assert step["result"]["args"] == {"eur": 300}


def test_a_turn_of_converse_is_answered_by_its_next_message_or_here(weir):
    headers = {"authorization": "Bearer " + harness.token()}
    with crawbl.open_stream(weir) as stream, client(weir, headers) as http:
        turn = stream.ask("pay", session_id="c")
        assert "May 'manager' use the tool 'pay'" in turn.text
        assert [a["session_id"] for a in waiting(http)] == ["c"]
        assert "paid" in stream.ask("yes", session_id="c").text
        stream.ask("pay", session_id="c")
        [approval] = waiting(http)
        run = decide(http, approval["id"], decision="refuse").json()["run_id"]
        assert run_ends(http, run) == "done"
        assert stream.ask("hello", session_id="c").text == "heard: hello"


# --- restarts and deadlines -----------------------------------------------------------


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_waits_waits_on_after_a_restart_under_the_same_name(weir, end):
    with client(weir) as http:
        before = [ask(http), ask(http, "ask", "u")]
        listed = waiting(http)
    for _ in range(2):
        getattr(weir, end)()
        weir.start()
        with client(weir) as http:
            after = waiting(http)  # at once: who takes requests has taken up what waits
        assert after == listed
    with client(weir) as http:
        first, second = (a["approval_id"] for a in before)
        assert decide(http, first, decision="edit", args={"eur": 5000}).status_code == 422
        assert decide(http, first, decision="edit", args={"eur": 9}).status_code == 200
        assert decide(http, second, answer="at last").status_code == 200
        assert run_ends(http, first.partition("-")[0]) == "done"
        assert results(http, first.partition("-")[0])[-1] == {"paid": "9"}
        assert run_ends(http, second.partition("-")[0]) == "done"
    weir.restart()
    with client(weir) as http:
        assert waiting(http) == []
        assert decide(http, first, decision="approve").status_code == 409
        assert http.get(f"/weir/v1/approvals/{first}").json()["answer"]["args"] == {"eur": 9}


@pytest.mark.parametrize("expires", ["refuse", "approve"])
def test_silence_is_an_answer_at_the_deadline(start_weir, expires):
    config = ASKS + f"approvals: {{deadline: 300ms, expires: {expires}}}\n"
    weir = start_weir(**{**OPTIONS, "config": config})
    with client(weir) as http:
        named = ask(http)["approval_id"]
        run = named.partition("-")[0]
        asked = waiting(http)  # may be over already on a slow machine
        assert all(a["deadline_unix_ms"] - a["asked_unix_ms"] == 300 for a in asked)
        assert run_ends(http, run) == "done"
        made = results(http, run)[-1]
        assert ("paid" in made) == (expires == "approve")
        other = {"refuse": "approve", "approve": "refuse"}[expires]
        assert decide(http, named, decision=other).status_code == 409


# --- the command line -----------------------------------------------------------------


def weir_approvals(weir, *args, token="s3cret"):
    address = f"127.0.0.1:{weir.port('http')}"
    env = {"WEIR_HTTP": address, "AGENT_AUTH_TOKEN": token, "http_proxy": "http://127.0.0.1:9"}
    return subprocess.run(
        [harness.BINARY, "approvals", *args],
        capture_output=True,
        text=True,
        env=harness.clean_environment(env),
        cwd=weir.folder,
        timeout=PATIENCE,
    )


def test_the_command_lists_and_decides(weir):
    assert weir_approvals(weir).stdout == "nothing waits for a human\n"
    with client(weir) as http:
        named = ask(http)["approval_id"]
        listed = weir_approvals(weir, "list")
        assert listed.returncode == 0
        assert named in listed.stdout and "May 'manager' use the tool 'pay'" in listed.stdout
        [approval] = json.loads(weir_approvals(weir, "--json").stdout)["approvals"]
        assert approval["id"] == named
        wrong = weir_approvals(weir, "approve", named, "--args", '{"eur":5000}')
        assert wrong.returncode == 1 and "/eur" in wrong.stderr
        done = weir_approvals(weir, "approve", named, "--args", '{"eur":4}')
        assert (done.returncode, done.stdout) == (0, "approved\n"), done.stderr
        assert run_ends(http, named.partition("-")[0]) == "done"
        assert results(http, named.partition("-")[0])[-1] == {"paid": "4"}
        late = weir_approvals(weir, "refuse", named)
        assert late.returncode == 1 and "409" in late.stderr
        named = ask(http)["approval_id"]
        done = weir_approvals(weir, "refuse", named, "--reason", "not today", "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["id"] == named
        assert run_ends(http, named.partition("-")[0]) == "done"
        assert results(http, named.partition("-")[0])[0]["reason"] == "not today"


def test_the_command_says_what_is_wrong(weir):
    for args in (
        ["approve"],
        ["aprove", "1-1"],
        ["list", "x"],
        ["refuse", "1-1", "--args", "{}"],
        ["approve", "1-1", "--args", "[1]"],
        ["approve", "1-1", "--args"],
    ):
        assert weir_approvals(weir, *args).returncode == 2, args
    assert "404" in weir_approvals(weir, "approve", "1-1").stderr
    refused = weir_approvals(weir, token="other")
    assert refused.returncode == 1 and "AGENT_AUTH_TOKEN" in refused.stderr
    port = weir.port("http")
    weir.stop()
    weir.ports = {"http": port}
    gone = weir_approvals(weir)
    assert gone.returncode == 1 and "is it running" in gone.stderr


def test_a_person_at_the_terminal_is_asked_again_when_his_edit_does_not_fit(tmp_path):
    (tmp_path / "weir.yaml").write_text(f"script: {harness.ROOT / OPTIONS['script']}\n{ASKS}")
    answer = subprocess.run(
        [harness.BINARY, "run", "pay", "-c", "weir.yaml"],
        input='{"decision":"edit","args":{"eur":5000}}\n{"decision":"edit","args":{"eur":7}}\n',
        capture_output=True,
        text=True,
        env=harness.clean_environment({"HOME": str(tmp_path)}),
        cwd=tmp_path,
        timeout=PATIENCE,
    )
    assert answer.returncode == 0, answer.stderr
    assert "args do not fit the tool 'pay': /eur" in answer.stderr
    assert '{"paid":"7"}' in answer.stdout
