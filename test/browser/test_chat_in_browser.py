"""Chat on bad lines, with impatient people and with long answers."""
import json
import time

import pytest
from conftest import OPEN, started
from noting_model import ENV, noting_model, said
from test_in_browser import begin, wait_for_state

BOX = ".say textarea"
WORDS = "lorem ipsum dolor sit amet, "
LONG = f"""script: 1
model: m
pace: {{every: 0ms, chunk: 0}}
agents: [{{slug: manager, description: d}}]
scenes:
  - match: at length
    reply: [{{repeat: {{text: "{(WORDS * 36)[:1000]}", times: 1000}}}}]
  - match: on and on
    reply: [{{repeat: {{text: "{(WORDS * 36)[:1000]}", times: 100000}}, pace: {{every: 5ms}}}}]
  - reply: ["{{input}}"]
"""


@pytest.fixture(scope="module")
def lengthy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lengthy")
    (folder / "long.yaml").write_text(LONG)
    yield from started(folder, script=str(folder / "long.yaml"), env=OPEN)


@pytest.fixture(scope="module")
def model():
    with noting_model() as one:
        yield one


@pytest.fixture(scope="module")
def noting(tmp_path_factory, model):
    yield from started(tmp_path_factory.mktemp("noting"), script=None, config=model.config(), env={**OPEN, **ENV})


def type_in(page, text):
    page.locator(BOX).fill(text)
    page.keyboard.press("Enter")


def say(page, text):
    """One turn, to its end."""
    before = page.locator(".turn").count()
    type_in(page, text)
    page.locator(f".turn[data-link=ended] >> nth={before}").wait_for()


def is_posted(route):
    return route.request.method == "POST"


def hold(page, address, fits=is_posted):
    """Keep such requests, once they are made, until they are let go with route.continue_()."""
    held = []
    page.route(address, lambda route: held.append(route) if fits(route) else route.continue_())
    return held


# What waits only for a time fails at once.
IMPATIENT = "() => { window.timeoutBefore = AbortSignal.timeout; AbortSignal.timeout = () => AbortSignal.abort(); }"
AS_BEFORE = "() => { AbortSignal.timeout = window.timeoutBefore; }"


def until(page, condition):
    """Wait, while the page goes on."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        page.wait_for_timeout(20)


def asked(daemon, session):
    with daemon.http() as http:
        return [run["text"] for run in http.get("/weir/v1/runs", params={"session_id": session}).json()["runs"]]


# --- what cannot be sent, and what is sent once ---------------------------------------------------


def test_a_turn_that_cannot_be_followed_says_why_and_the_next_one_can_be_sent(playing, visit):
    page = visit(playing).go("chat?session=unfollowed", BOX)
    refusal = json.dumps({"error": {"code": "RUN_NOT_FOUND", "message": "there is no such run"}})
    page.route("**/events", lambda route: route.fulfill(status=404, content_type="application/json", body=refusal))
    type_in(page, "say this")
    page.locator(".turn").get_by_role("alert").get_by_text("there is no such run").wait_for()
    assert page.get_by_role("button", name="Stop").is_disabled()
    page.unroute("**/events")
    type_in(page, "say that")
    page.locator(".turn[data-link=ended]", has_text="say that").wait_for()


def test_what_is_not_sent_stays_and_says_why(playing, visit):
    page = visit(playing).go("chat?session=busy", BOX)
    type_in(page, "on and on")
    page.locator(".turn", has_text="tick").wait_for()
    type_in(page, "and this?")
    page.get_by_text("The turn goes on. Stop it, or wait for its end.").wait_for()
    assert page.locator(BOX).input_value() == "and this?"
    page.get_by_role("button", name="Stop").click()
    page.locator(".turn", has_text="Stopped:").wait_for()
    page.locator(BOX).press("Enter")
    page.locator(".turn[data-link=ended]", has_text="and this?").wait_for()


def test_a_message_is_sent_once_however_often_enter_is_pressed(playing, visit):
    page = visit(playing).go("chat?session=once", BOX)
    held = hold(page, "**/weir/v1/runs")
    type_in(page, "order one pizza")
    until(page, lambda: held)
    page.keyboard.press("Enter")
    type_in(page, "and a salad")
    page.get_by_text("still on its way").wait_for()
    for route in held:
        route.continue_()
    page.locator(".turn[data-link=ended]").wait_for()
    assert asked(playing, "once") == ["order one pizza"]
    assert page.locator(BOX).input_value() == "and a salad"


def test_a_message_whose_answer_was_lost_is_no_second_one(playing, visit):
    page = visit(playing).go("chat?session=lost", BOX)
    held = hold(page, "**/weir/v1/runs")
    type_in(page, "order one pizza")
    until(page, lambda: held)
    held[0].fetch()
    held[0].abort("connectionreset")
    page.get_by_role("alert").get_by_text("weir cannot be reached").wait_for()
    assert page.locator(BOX).input_value() == "order one pizza"
    page.unroute("**/weir/v1/runs")
    page.locator(BOX).press("Enter")
    page.locator(".turn[data-link=ended]").wait_for()
    assert asked(playing, "lost") == ["order one pizza"]
    say(page, "order one pizza")  # this is another one
    assert asked(playing, "lost") == ["order one pizza"] * 2


def test_an_answer_that_comes_late_does_not_change_another_page(playing, visit):
    page = visit(playing).go("chat?session=late", BOX)
    held = hold(page, "**/weir/v1/runs")
    type_in(page, "say hello")
    until(page, lambda: held)
    page.get_by_role("link", name="Agents").click()
    page.locator(".page-agents[data-shown]").wait_for()
    with page.expect_response("**/weir/v1/runs"):
        held[0].continue_()
    page.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert page.url.endswith("#/agents")
    assert asked(playing, "late") == ["say hello"]


# --- a session that is opened again -----------------------------------------------------------------


def test_turns_stand_in_their_order_on_a_slow_line_and_the_newest_is_said_again(playing, visit):
    for text in ("one", "two", "three"):
        wait_for_state(playing, begin(playing, text, "order"), "done")
    tab = visit(playing)
    held = hold(tab.page, "**/events", lambda route: not tab.released)
    tab.released = False
    tab.page.goto(f"{playing.url}/weir/#/chat?session=order")
    until(tab.page, lambda: held)
    tab.released = True
    type_in(tab.page, "FOUR")
    tab.page.locator(".turn[data-link=ended]", has_text="FOUR").wait_for()
    held[0].continue_()
    tab.page.locator(".turn[data-link=ended] >> nth=3").wait_for()
    assert tab.page.locator(".turn .said.user").all_text_contents() == ["one", "two", "three", "FOUR"]
    tab.page.get_by_role("button", name="Retry").click()
    tab.page.locator(".turn[data-link=ended] >> nth=4").wait_for()
    assert asked(playing, "order")[-1] == "FOUR"


def test_a_session_that_is_opened_again_goes_on_with_its_agent_and_can_be_said_again(playing, visit):
    wait_for_state(playing, begin(playing, "say it", "again", agent="writer"), "done")
    tab = visit(playing)
    page = tab.go("sessions?session=again", ".page-sessions table")
    page.get_by_role("link", name="Read and go on").click()
    page.locator(".turn[data-link=ended]").wait_for()
    assert page.get_by_label("Agent").input_value() == "writer"
    page = tab.go("chat?session=again")
    assert page.get_by_label("Agent").input_value() == "writer"
    page.get_by_role("button", name="Retry").click()
    page.locator(".turn[data-link=ended] >> nth=1").wait_for()
    assert asked(playing, "again") == ["say it", "say it"]


# --- forks ----------------------------------------------------------------------------------------------


def fork(page, turn=-1):
    before = page.url
    page.locator(f".turn >> nth={turn}").get_by_role("button", name="Fork here").click()
    page.wait_for_url(lambda url: "session=fork-" in url and url != before)
    page.locator(".page-chat[data-shown] .turn").first.wait_for()


def test_a_fork_of_a_fork_has_everything_and_shows_it(noting, model, visit):
    page = visit(noting).go("chat?session=bob", BOX)
    say(page, "I am Bob")
    fork(page)
    say(page, "I live in Oslo")
    fork(page)
    say(page, "who am I?")
    assert model.shown[-1] == [*said("I am Bob", "I live in Oslo"), ("user", "who am I?")]
    assert page.locator(".said.user").all_text_contents()[0] == "I am Bob"
    assert "re: I live in Oslo" in page.locator(".turns").inner_text()


def test_a_fork_has_the_turns_that_are_not_on_the_page_and_what_a_caller_began_with(noting, model, visit):
    with noting.http() as http:
        messages = [{"role": "user", "content": "I am Eve"}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "hello"}]
        run = http.post("/weir/v1/runs", json={"session_id": "eve", "messages": messages}).json()["id"]
    wait_for_state(noting, run, "done")
    for i in range(24):
        wait_for_state(noting, begin(noting, f"fact {i}", "eve"), "done")
    page = visit(noting).go("chat?session=eve")
    page.get_by_text("5 turns before these").wait_for()
    fork(page)
    say(page, "who am I?")
    shown = model.shown[-1]
    assert shown[:4] == [("user", "I am Eve"), ("assistant", "ok"), *said("hello")]
    assert shown[4:] == [*said(*(f"fact {i}" for i in range(24))), ("user", "who am I?")]


def test_a_forks_address_is_that_fork_for_ever(noting, model, visit):
    page = visit(noting).go("chat?session=zA", BOX)
    say(page, "A: my PIN is 1234")
    fork(page)
    address = page.url
    page.goto(noting.url + "/weir/#/chat?session=zB")
    page.locator(".page-chat[data-shown]", has_text="Session zB").wait_for()
    say(page, "B: hello")
    fork(page)
    other = visit(noting).page  # also in another tab
    other.goto(address)
    other.get_by_text("A: my PIN is 1234").first.wait_for()
    say(other, "what did I say?")
    assert model.shown[-1] == [*said("A: my PIN is 1234"), ("user", "what did I say?")]


def test_a_fork_whose_answer_was_lost_is_no_second_one_and_it_may_take_any_time(noting, visit):
    page = visit(noting).go("chat?session=lost-fork", BOX)
    say(page, "I am Bob")
    held = hold(page, "**/fork*")
    page.evaluate(IMPATIENT)
    page.get_by_role("button", name="Fork").click()
    until(page, lambda: held)
    page.evaluate(AS_BEFORE)
    made = held[0].fetch().json()["session_id"]
    held[0].abort("connectionreset")
    page.get_by_role("alert").get_by_text("weir cannot be reached").wait_for()
    page.unroute("**/fork*")
    page.get_by_role("button", name="Fork").click()
    page.wait_for_url(f"**session={made}*")
    page.locator(".turn", has_text="I am Bob").wait_for()


def test_a_forks_refused_first_turn_is_said_again_with_all_that_was_before(noting, model, visit):
    page = visit(noting).go("chat?session=refused", BOX)
    say(page, "I am Bob")
    fork(page)
    model.refuses = "FAIL"
    say(page, "FAIL: who am I?")
    page.get_by_role("button", name="Retry").click()
    page.locator(".turn[data-link=ended] >> nth=2").wait_for()
    assert model.shown[-1][:2] == said("I am Bob")


# --- long answers ---------------------------------------------------------------------------------------

LONGEST = """(() => {
  const texts = document.createTreeWalker(document.querySelector('.turns'), NodeFilter.SHOW_TEXT);
  let longest = 0;
  while (texts.nextNode()) longest = Math.max(longest, texts.currentNode.length);
  return longest;
})()"""


def test_a_long_answer_is_many_short_texts_while_it_comes_and_after(lengthy, visit):
    run = begin(lengthy, "at length", "long")
    wait_for_state(lengthy, run, "done")
    page = visit(lengthy).go("chat?session=long", ".turn[data-link=ended]")
    assert page.evaluate(LONGEST) <= 17_000
    assert page.locator(".said.agent").text_content().replace("manager", "", 1) == (WORDS * 36)[:1000] * 1000
    type_in(page, "on and on")
    page.wait_for_function("() => document.querySelector('.turn:last-child .said.agent').textContent.length > 100000")
    assert page.evaluate(LONGEST) <= 17_000
    # The page grows with each frame, and a pointer is not sent to what moves.
    page.get_by_role("button", name="Stop").press("Enter")
    page.locator(".turn", has_text="Stopped:").wait_for()


def test_a_turn_that_is_over_is_not_drawn_word_by_word(playing, visit):
    wait_for_state(playing, begin(playing, "ten thousand", "thousands"), "done")
    tab = visit(playing)
    tab.page.add_init_script("""window.changes = 0;
        new MutationObserver((list) => { window.changes += list.length; }).observe(document, { subtree: true, childList: true, characterData: true });""")
    page = tab.go("chat?session=thousands", ".turn[data-link=ended]")
    assert page.locator(".said.agent").text_content().count("word") == 10_000
    assert page.evaluate("window.changes") < 500


# --- the keyboard -----------------------------------------------------------------------------------------


def test_a_draft_outlives_a_look_at_the_token(playing, visit):
    page = visit(playing).go("chat?session=draft", BOX)
    page.locator(BOX).fill("a long draft")
    page.locator("#token-change").click()
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    page.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert page.locator(BOX).input_value() == "a long draft"


def test_the_keyboard_is_at_the_box_once_a_question_is_answered(playing, visit):
    page = visit(playing).go("chat?session=focus", BOX)
    type_in(page, "ask me")
    page.locator("[data-approval]").get_by_role("button", name="Approve").press("Enter")
    page.locator(".turn[data-link=ended]", has_text="Answered:").wait_for()
    assert page.evaluate("document.activeElement.matches('.say textarea')")
