"""Decisions, not words (K29): only what is plainly a yes lets a guarded call be made."""
import json
import subprocess

import crawbl
import harness
import pytest
import vendor as vendors
from test_leaving import http_of, reader

SCRIPT = "test/e2e/scripts/approvals.yaml"
ASKS = "agents: [{slug: manager, tools: {pay: ask}}]\n"
OWN_WORDS = ASKS + "approvals: {yes: ['ja, gerne', sí], no: [lieber nicht]}\n"

pytestmark = pytest.mark.weir(script=SCRIPT, config=ASKS)

# What a newcomer typed (findings, B1), and more of the kind.
UNDECIDED = [
    "what would this do?",
    "What happens if I say yes?",
    "Ok, how much does it cost?",
    "I would rather you go home",
    "what would this do exactly?",
    "yes?",
    "not sure",
    "yes, but only 5",
    "do",
    "go",
    "ja, gerne",
    "sí",
    "",
]
YES = ["yes", " YES! ", "ok, go ahead", "👍", "👍🏽", "Go ahead.", "yes, please"]
NO = ["no", "No!", "stop", "👎", "don’t", "no, thanks"]


def post(weir, path, body, **headers):
    with http_of(weir, **headers) as http:
        return http.post(path, json=body)


def ask(weir, text="pay", session="t"):
    answer = post(weir, "/invoke", {"input": text, "session_id": session}).json()
    assert answer["metadata"]["interrupted"] is True
    return answer


def resume(weir, words, thread="t"):
    return post(weir, "/resume", {"thread_id": thread, "human_input": words})


def waiting(weir):
    with reader(weir) as http:
        return [a["id"] for a in http.get("/weir/v1/approvals").json()["approvals"]]


# --- /resume --------------------------------------------------------------------------


def test_words_that_decide_nothing_ask_the_same_question_again(weir):
    asked = ask(weir)
    named = asked["metadata"]["approval"]["approval_id"]
    others = [None, 1, [True], {"approved": None}, {"approve": True}, {"decision": "maybe"}]
    for words in UNDECIDED + others:
        again = resume(weir, words)
        assert again.status_code == 200, again.text
        assert again.json()["metadata"] == asked["metadata"], words
        assert waiting(weir) == [named]
    assert resume(weir, UNDECIDED[0]).json()["output"] == asked["output"]
    assert '{"paid":"300"}' in resume(weir, "yes").json()["output"]


@pytest.mark.parametrize("words", YES + NO, ids=repr)
def test_a_plain_yes_or_no_decides_on_resume(weir, words):
    ask(weir)
    answer = resume(weir, words).json()
    assert answer["metadata"] == {"interrupted": False}
    assert ('{"paid":"300"}' in answer["output"]) == (words in YES)


@pytest.mark.weir(config=OWN_WORDS)
def test_an_operator_adds_words_of_his_language(weir):
    for words, paid in (("Ja, gerne!", True), ("¡Sí!", True), ("Lieber nicht.", False)):
        ask(weir)
        assert ("paid" in resume(weir, words).json()["output"]) == paid


def test_words_that_cannot_decide_are_no_setting(tmp_path):
    for config, place in (
        ("approvals: {yes: ['']}", "approvals.yes"),
        ("approvals: {yes: ['ja. nein.']}", "approvals.yes"),
        ("approvals: {no: [[x]]}", "approvals.no"),
        ("approvals: {no: ['a;b']}", "approvals.no"),
    ):
        (tmp_path / "weir.yaml").write_text(config + "\n")
        done = subprocess.run(
            [harness.BINARY, "config", "check", "-c", "weir.yaml"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=harness.clean_environment({"HOME": str(tmp_path)}),
        )
        assert done.returncode != 0 and place in done.stdout + done.stderr, config


# --- /invoke and /stream --------------------------------------------------------------


@pytest.mark.parametrize("path", ["/invoke", "/stream"])
@pytest.mark.parametrize("words", ["yes", "👍", "No.", '{"decision":"edit","args":{"eur":7}}'])
def test_a_decision_typed_into_the_chat_settles_the_question(weir, path, words):
    ask(weir)
    answer = post(weir, path, {"input": words, "session_id": "t"})
    assert answer.status_code == 200, answer.text
    text = answer.text.replace('\\"', '"').replace('\\"', '"')
    paid = {"No.": None}.get(words, "7" if "eur" in words else "300")
    if paid:
        assert f'"paid":"{paid}"' in text, answer.text
    else:
        assert "refused" in text
    assert waiting(weir) == []
    if path == "/stream":
        assert text.count("event: result") == 1 and text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("path", ["/invoke", "/stream"])
@pytest.mark.parametrize("words", UNDECIDED[:6] + ["what is the weather?"])
def test_other_words_are_a_conflict_that_names_the_question_and_what_it_takes(weir, path, words):
    named = ask(weir)["metadata"]["approval"]["approval_id"]
    answer = post(weir, path, {"input": words, "session_id": "t"})
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["code"] == "SESSION_WAITING"
    assert "May 'manager' use the tool 'pay'" in error["message"]
    [question] = error["details"]["questions"]
    assert question["approval_id"] == named and question["args"] == {"eur": 300}
    assert "yes" in error["details"]["yes"] and "no" in error["details"]["no"]
    assert waiting(weir) == [named]


def test_an_edit_that_does_not_fit_leaves_the_question_open(weir):
    named = ask(weir)["metadata"]["approval"]["approval_id"]
    edit = json.dumps({"decision": "edit", "args": {"eur": 5000}})
    answer = post(weir, "/invoke", {"input": edit, "session_id": "t"})
    assert answer.status_code == 422 and "/eur" in answer.json()["error"]["message"]
    assert waiting(weir) == [named]


@pytest.mark.parametrize("edit", ['{"eur": 7, "eur": 8}', '{"eur": 7, "e\\u0075r": 8}', '{"eur": 7}, "args": {"eur": 8}'])
def test_an_edit_that_says_a_thing_twice_leaves_the_question_open(weir, edit):
    """A reader takes the first or the last: a person may have meant the other."""
    named = ask(weir)["metadata"]["approval"]["approval_id"]
    answer = '{"thread_id": "t", "human_input": {"approved": true, "args": %s}}' % edit
    with weir.http(headers={"content-type": "application/json"}) as http:
        refused = http.post("/resume", content=answer)
    assert refused.status_code == 422 and "stands twice" in refused.json()["error"]["message"], refused.text
    assert waiting(weir) == [named]


def test_a_plain_question_takes_any_words_on_resume_and_a_yes_in_the_chat(weir):
    ask(weir, "ask")
    answer = post(weir, "/invoke", {"input": "the blue one", "session_id": "t"})
    assert answer.status_code == 409
    assert answer.json()["error"]["details"]["questions"][0]["question"] == "Shall I?"
    answer = post(weir, "/invoke", {"input": "yes", "session_id": "t"})
    assert answer.json()["output"] == "Answered: yes"
    ask(weir, "ask")
    assert resume(weir, "the blue one?").json()["output"] == "Answered: the blue one?"


# --- the other doors ------------------------------------------------------------------


def test_converse_asks_again_and_takes_a_plain_yes(weir):
    with crawbl.open_stream(weir) as stream:
        asked = stream.ask("pay", session_id="c")
        for words in UNDECIDED[:-1]:
            again = stream.ask(words, session_id="c")
            assert again.text == asked.text and not again.error, words
            assert "paid" not in again.text
        assert '{"paid":"300"}' in stream.ask("Yes, please!", session_id="c").text


def test_converse_asks_again_after_a_restart_too(weir):
    with crawbl.open_stream(weir) as stream:
        asked = stream.ask("pay", session_id="c")
        assert stream.ask("why?", session_id="c").text == asked.text
    weir.kill()
    weir.start()
    with crawbl.open_stream(weir) as stream:
        assert stream.ask("and why that?", session_id="c").text == asked.text
        assert '{"paid":"300"}' in stream.ask("ok", session_id="c").text


def test_an_approval_is_answered_by_a_decision_alone(weir):
    named = ask(weir)["metadata"]["approval"]["approval_id"]
    with reader(weir) as http:
        url = f"/weir/v1/approvals/{named}"
        for words in UNDECIDED:
            answer = http.post(url, json={"answer": words})
            assert answer.status_code == 422, answer.text
        assert "approve" in answer.json()["error"]["message"]
        assert waiting(weir) == [named]
        assert http.post(url, json={"answer": "yes"}).status_code == 200


def test_what_was_said_meanwhile_stands_in_the_run(weir):
    """The model reads it once the call is answered; here it is on disk, in its place."""
    run = ask(weir)["metadata"]["approval"]["approval_id"].partition("-")[0]
    resume(weir, "what would this do?")
    ask(weir, session="behind it")  # what is acknowledged now is on disk, and so is that
    weir.kill()
    weir.start()
    resume(weir, "and how much is it?")
    resume(weir, "yes")
    with reader(weir) as http:
        lines = http.get(f"/weir/v1/runs/{run}/events").text.split("\n")
    items = [json.loads(line[6:]) for line in lines if '"application/vnd.weir.aside"' in line]
    assert len(items) == 2, lines


def test_the_same_words_without_a_key_are_said_each_time(weir):
    run = ask(weir)["metadata"]["approval"]["approval_id"].partition("-")[0]
    for _ in range(2):
        resume(weir, "what would this do?")
    resume(weir, "yes")
    with reader(weir) as http:
        lines = http.get(f"/weir/v1/runs/{run}/events").text.split("\n")
    assert len([line for line in lines if '"application/vnd.weir.aside"' in line]) == 2


def test_words_said_meanwhile_reach_the_model_after_the_answer(start_weir):
    with vendors.Vendor() as vendor:
        config = vendor.config().replace("[web_search_tool]", "{web_search_tool: ask}")
        weir = start_weir(config=config, env={"HOUSE_KEY": vendors.KEY})
        ask(weir, "find it with a search")
        assert resume(weir, "how many will you show me?").json()["metadata"]["interrupted"]
        assert len(vendor.asked) == 1 and vendor.searches == []
        assert resume(weir, "yes").status_code == 200
        assert len(vendor.searches) == 1
        *_, result, aside = vendor.asked[-1]["messages"]
        assert result["role"] == "tool"
        assert aside["role"] == "user"
        assert vendors.text_of(aside) == "how many will you show me?"
