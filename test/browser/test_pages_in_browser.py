"""The pages of the console with many tabs, on bad lines, with strange addresses and a wrong clock."""
import json
import re

import harness
import pytest
from conftest import ASKS, TOKEN
from test_chat_in_browser import AS_BEFORE, IMPATIENT, hold, until
from test_in_browser import AXE, begin, events_of, events_shown, fact, state_is, wait_for_state

LIST = "**/weir/v1/runs?*"


def anything(route):
    return True


def settle(page, ms=300):
    page.evaluate("(ms) => new Promise((done) => setTimeout(done, ms))", ms)


# --- the connections of one browser -----------------------------------------------------------------------


def test_an_action_has_a_connection_however_many_tabs_watch(playing, visit):
    tab = visit(playing)
    runs = [begin(playing, "talk on and on", f"tab{i}") for i in range(7)]
    pages = [tab.context.new_page() for _ in runs]
    for page, run in zip(pages, runs):
        page.goto(f"{playing.url}/weir/#/run/{run}")
        page.locator("[aria-label=Timeline] .row", has_text="tick").wait_for()
    for page, run in zip(pages, runs):
        page.get_by_role("button", name="Cancel the run").click()
        wait_for_state(playing, run, "cancelled")
    for page, run in zip(pages, runs):
        state_is(page, "cancelled")  # each is told
        fact(page, "Connection", "ended")
        assert events_shown(page) == len(events_of(playing, run))


def test_a_hidden_tab_reads_nothing_and_goes_on_where_it_was(playing, visit):
    run = begin(playing, "talk on and on", "hidden")
    page = visit(playing).go(f"run/{run}", "[aria-label=Timeline] .row:nth-child(2)")
    hide = """(hidden) => { Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
                            document.dispatchEvent(new Event('visibilitychange')); }"""
    page.evaluate(hide, True)
    fact(page, "Connection", "paused")
    settle(page)
    seen = events_shown(page)
    settle(page, 500)
    assert events_shown(page) == seen
    page.evaluate(hide, False)
    fact(page, "Connection", "live")
    with playing.http() as http:
        http.post(f"/weir/v1/runs/{run}/cancel")
    state_is(page, "cancelled")
    fact(page, "Connection", "ended")
    assert events_shown(page) == len(events_of(playing, run))


def test_tabs_that_wait_for_a_token_hold_no_connection(secured, visit):
    with secured.http(headers={"authorization": f"Bearer {TOKEN}"}) as http:
        run = http.post("/weir/v1/runs", json={"input": "talk on and on", "session_id": "waiting"}).json()["id"]
    tab = visit(secured)
    for _ in range(6):
        page = tab.context.new_page()
        page.goto(f"{secured.url}/weir/#/run/{run}")
        page.get_by_role("dialog").wait_for()
    tab.page.add_init_script(f"sessionStorage.setItem('weir.token', {json.dumps(TOKEN)})")
    tab.page.goto(f"{secured.url}/weir/#/run/{run}")
    fact(tab.page, "Connection", "live")
    tab.page.get_by_role("button", name="Cancel the run").click()
    state_is(tab.page, "cancelled")


# --- two runs -------------------------------------------------------------------------------------------------


def test_runs_that_differ_only_far_into_a_text_differ(playing, visit):
    one, two = begin(playing, "x" * 250 + " yes, to Alice", "far1"), begin(playing, "x" * 250 + " no, to Mallory", "far2")
    for run in (one, two):
        wait_for_state(playing, run, "done")
    page = visit(playing).go(f"compare/{one}/{two}", ".pairs .row")
    page.get_by_text(re.compile(r"^\d of \d entries differ\.$")).wait_for()
    assert page.locator(".pairs .differs").count() >= 4


def test_nothing_is_said_of_runs_that_were_not_read(playing, visit):
    tab = visit(playing)
    page = tab.page
    page.goto(playing.url + "/weir/#/compare/98/99")
    page.get_by_text("They cannot be compared.").wait_for()
    assert page.get_by_role("alert").count() == 2
    run = begin(playing, "say it", "unread")
    wait_for_state(playing, run, "done")
    held = hold(page, "**/events", anything)
    page.goto(f"{playing.url}/weir/#/compare/{run}/{run}")
    page.get_by_text("Both runs are being read").wait_for()
    until(page, lambda: len(held) == 2)
    for route in held:
        route.continue_()
    page.get_by_text("What both say and do is the same.").wait_for()
    page.goto(f"{playing.url}/weir/#/compare/{run}")
    page.get_by_text("The address names two runs").wait_for()


# --- the list of runs ------------------------------------------------------------------------------------------


def keys(page):
    return page.evaluate("[...document.querySelectorAll('tbody tr')].map((row) => row.dataset.key)")


def test_new_runs_move_no_older_one_off_the_list_and_old_ones_are_read_again(playing, visit):
    goes_on = begin(playing, "talk on and on", "list-old", workspace="list")
    runs = [begin(playing, f"bulk {i}", f"list{i % 7}", workspace="list") for i in range(110)]
    page = visit(playing).go("runs?workspace=list", "tbody tr")
    page.get_by_role("button", name="Older runs").click()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 100")
    page.get_by_role("button", name="Older runs").click()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 111")
    assert page.get_by_role("button", name="Older runs").count() == 0
    new = [begin(playing, f"fresh {i}", "list-new", workspace="list") for i in range(10)]
    page.get_by_role("link", name="fresh 9").wait_for()
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 121")
    assert keys(page) == [*reversed(new), *reversed(runs), goes_on]
    with playing.http() as http:
        http.post(f"/weir/v1/runs/{goes_on}/cancel")
    page.locator(f"tr[data-key='{goes_on}'] .state.cancelled").wait_for()
    page.get_by_role("button", name="Compare the two chosen").click()
    page.get_by_text("Choose two runs").wait_for()
    assert keys(page) == [*reversed(new), *reversed(runs), goes_on]


def test_the_list_comes_back_with_the_network(playing, visit):
    for i in range(60):
        begin(playing, f"net {i}", f"net{i % 7}", workspace="net")
    page = visit(playing).go("runs?workspace=net", "tbody tr")
    page.context.set_offline(True)
    page.get_by_role("alert").get_by_text("weir cannot be reached").wait_for()
    assert page.get_by_role("button", name="Older runs").count() == 1
    page.context.set_offline(False)
    page.get_by_role("alert").wait_for(state="detached")
    assert page.get_by_role("button", name="Older runs").count() == 1


def test_a_slow_daemon_is_asked_for_one_list_at_a_time(playing, visit):
    page = visit(playing).go("runs")
    held = hold(page, LIST, anything)
    until(page, lambda: held)
    settle(page, 4500)
    assert len(held) == 1
    held[0].continue_()
    until(page, lambda: len(held) == 2)  # it goes on
    held[1].continue_()


def test_a_page_that_is_asked_for_twice_is_shown_once(playing, visit):
    for i in range(60):
        begin(playing, f"twice {i}", f"twice{i % 7}", workspace="twice")
    tab = visit(playing)
    for where, name in [("runs?workspace=twice", "Older runs"), ("audit?workspace=twice", "Older records")]:
        page = tab.go(where, "tbody tr")
        page.get_by_role("button", name=name).wait_for()
        count = page.locator("tbody tr").count()
        page.evaluate("""(name) => { const button = [...document.querySelectorAll('button')].find((one) => one.textContent === name);
                                     button.click(); button.click(); }""", name)
        page.wait_for_function("(count) => document.querySelectorAll('tbody tr').length > count", arg=count)
        settle(page)
        rows = page.locator("tbody tr").evaluate_all("(rows) => rows.map((row) => row.textContent)")
        assert len(rows) == len(set(rows))
    page.reload()
    page.get_by_role("button", name="Older records").wait_for()
    page.context.set_offline(True)
    page.get_by_role("button", name="Older records").click()
    page.locator("#news", has_text="weir cannot be reached").wait_for()


# --- one run -----------------------------------------------------------------------------------------------------


def test_children_leave_the_question_where_it_is(playing, visit):
    run = begin(playing, "ask me", "children")
    page = visit(playing).go(f"run/{run}", "[data-approval]")
    page.get_by_role("button", name="Children").click()
    page.get_by_text("No run was begun while").wait_for()
    page.locator("[data-approval]").get_by_role("button", name="Approve").press("Enter")
    state_is(page, "done")
    page.locator("[data-approval]").wait_for(state="detached")
    assert page.evaluate("document.activeElement.tagName") != "BODY"


def test_a_replay_that_begins_late_takes_nobody_away_from_another_page(recording, visit):
    run = begin(recording, "say hello", "left")
    wait_for_state(recording, run, "done")
    page = visit(recording).go(f"run/{run}")
    state_is(page, "done")
    held = hold(page, "**/replay*")
    page.evaluate(IMPATIENT)  # a replay may wait for others as long as it takes
    page.get_by_role("button", name="Replay from recordings").click()
    until(page, lambda: held)
    page.evaluate(AS_BEFORE)
    page.get_by_role("link", name="Agents").click()
    page.locator(".page-agents[data-shown]").wait_for()
    with page.expect_response("**/replay*"):
        held[0].continue_()
    settle(page)
    assert page.url.endswith("#/agents")


@pytest.mark.parametrize("where,words", [
    ("constructor", "There is no such page"), ("__proto__", "There is no such page"), ("toString", "There is no such page"),
    ("run/99", "There is no such run"), ("run/abc", "its id is a number"), ("run", "its id is a number"),
])
def test_an_address_that_means_nothing_says_so(playing, visit, where, words):
    page = visit(playing).page
    page.goto(f"{playing.url}/weir/#/{where}")
    page.get_by_text(words).wait_for()
    assert page.locator("h1").count() == 1
    assert page.locator(".state").count() == 0  # of what is not there


# --- the time and the token -----------------------------------------------------------------------------------------


def test_days_and_durations_are_the_daemons(playing, visit):
    wait_for_state(playing, begin(playing, "say it", "clock"), "done")
    with playing.http() as http:
        now = http.get("/weir/v1/usage").json()
    tab = visit(playing)
    tab.page.clock.set_fixed_time("2020-02-03T04:05:06Z")
    page = tab.go("usage", "figure")
    assert page.get_by_label("To", exact=True).input_value() >= now["to"][:8]
    assert page.locator(".chart rect[height]:not([height='0'])").count() == 1
    page = tab.go("health", ".facts")
    up = page.evaluate("[...document.querySelectorAll('.facts > div')].find((one) => one.firstChild.textContent === 'Up for').lastChild.textContent")
    assert "-" not in up


def test_the_chart_of_many_years_shows_what_was_used(playing, visit):
    wait_for_state(playing, begin(playing, "say it", "years"), "done")
    page = visit(playing).go("usage?from=2015-01-01", "figure")
    bars = page.locator(".chart rect").evaluate_all("(bars) => bars.map((bar) => Number(bar.getAttribute('height')))")
    assert 300 < len(bars) <= 366 and [bar > 0 for bar in bars].count(True) == 1 and bars[-1] > 0
    assert "each 1" in page.locator("figcaption").inner_text()


@pytest.mark.parametrize("given,character", [("to\u200bken", "U+200B"), ("a\u2013b", "U+2013"), ("a b", "U+0020"), ("\U0001f600", "U+1F600")])
def test_a_token_with_a_character_that_none_has_is_not_taken(secured, visit, given, character):
    page = visit(secured).page
    page.goto(secured.url + "/weir/")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(given)
    page.get_by_role("button", name="Use it").click()
    dialog.get_by_role("alert").get_by_text(character).wait_for()
    dialog.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Use it").click()
    page.locator(".page-runs[data-shown]").wait_for()


def test_a_session_is_the_callers_where_its_address_names_no_one(tmp_path, visit):
    daemon = harness.Daemon(tmp_path, script="test/browser/play.yaml", config=ASKS).start()
    try:
        token = harness.token("ada", "ws-1")
        with daemon.http(headers={"authorization": "Bearer " + token}) as http:
            assert http.post("/weir/v1/runs", json={"input": "say mine", "session_id": "mine"}).status_code == 202
        page = visit(daemon).page
        page.add_init_script(f"sessionStorage.setItem('weir.token', {json.dumps(token)})")
        page.goto(f"{daemon.url}/weir/#/sessions?session=mine")
        page.locator("table").get_by_role("link", name="say mine").wait_for()
        page.get_by_role("link", name="Read and go on").click()
        page.locator(".turn[data-link=ended]", has_text="say mine").wait_for()
    finally:
        daemon.stop()


# --- a dialog, a text, and barriers -------------------------------------------------------------------------------------


def test_a_question_goes_with_its_page_and_the_keyboard_has_a_place_after_it(playing, visit):
    wait_for_state(playing, begin(playing, "say it", "doomed"), "done")
    tab = visit(playing)
    page = tab.go("sessions", "tbody tr")
    page.get_by_role("button", name="Delete doomed", exact=True).click()
    page.get_by_role("dialog").wait_for()
    page.evaluate("location.hash = '#/agents'")
    page.locator(".page-agents[data-shown]").wait_for()
    assert page.get_by_role("dialog").count() == 0
    with playing.http() as http:
        assert http.get("/weir/v1/sessions/doomed/export").status_code == 200
    page = tab.go("sessions", "tbody tr")
    page.get_by_role("button", name="Delete doomed", exact=True).press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Delete").press("Enter")
    page.get_by_text("Deleted, with 1 turns.").wait_for()
    assert page.evaluate("document.activeElement.tagName") != "BODY"


FOLLOW_AND_LEAVE = """async (run) => {
  const { follow } = await import('/weir/api.js');
  const leave = new AbortController(), request = navigator.locks.request.bind(navigator.locks);
  navigator.locks.request = (name, options, work) => request(name, options, (lock) => { leave.abort(); return work(lock); });
  await follow(run, { event() {}, reset() {}, link() {} }, leave.signal);
  navigator.locks.request = request;
}"""


def test_who_leaves_just_before_it_is_their_turn_to_read_reads_nothing(playing, visit):
    run = begin(playing, "on and on", "leaves")
    tab = visit(playing)
    page = tab.go("agents")
    page.evaluate(FOLLOW_AND_LEAVE, run)
    assert not [url for url in tab.asked if url.endswith("/events")]
    with playing.http() as http:
        http.post(f"/weir/v1/runs/{run}/cancel")


MARKDOWN = [
    ("1. a\n\n2. b", "<ol start=\"1\"><li>a</li><li>b</li></ol>"),
    ("7. x\n8. y", "<ol start=\"7\"><li>x</li><li>y</li></ol>"),
    ("- a\n\n- b\n\nc", "<ul><li>a</li><li>b</li></ul><p>c</p>"),
    ("1. a\n\n   more\n2. b", "<ol start=\"1\"><li><p>a</p><p>more</p></li><li>b</li></ol>"),
    ("[w](https://en.example/Foo_(bar))!", "<p><a href=\"https://en.example/Foo_(bar)\" *>w</a>!</p>"),
    ("[a https://x.example b](https://y.example)", "<p><a href=\"https://y.example\" *>a https://x.example b</a></p>"),
    ("[**a** b](https://y.example)", "<p><a href=\"https://y.example\" *><strong>a</strong> b</a></p>"),
    ("|a|b|\n|-|-|\n|x \\| y|z|", "*<th scope=\"col\">a</th><th scope=\"col\">b</th>*<td>x | y</td><td>z</td>*"),
]


def test_markdown_keeps_numbers_parentheses_bars_and_single_links(playing, visit):
    page = visit(playing).go("agents")
    for text, wanted in MARKDOWN:
        got = page.evaluate("async (text) => (await import('/weir/markdown.js')).markdown(text).innerHTML", text)
        assert re.fullmatch(".*".join(map(re.escape, wanted.split("*" if wanted.startswith("*") else " *"))), got, re.DOTALL), (text, got)
    hard = ["1. \n\n" * 20_000, "[" * 60_000, "[a](" * 15_000, "(" * 60_000, "[a](" + "(" * 60_000, "|" + "\\|" * 30_000 + "\n|-|\n" + "|\\" * 30_000]
    for text in hard:  # each of them ends, and nests no links
        assert page.evaluate("async (text) => (await import('/weir/markdown.js')).markdown(text).querySelectorAll('a a').length", text) == 0


def test_axe_finds_nothing_at_all_in_what_is_compared_or_missing(playing, visit):
    run = begin(playing, "say **it**", "axe")
    wait_for_state(playing, run, "done")
    tab = visit(playing, bypass_csp=True)
    for where in (f"compare/{run}/{run}", "run/abc", "run/99"):
        page = tab.page
        page.goto(f"{playing.url}/weir/#/{where}")
        page.locator(".page[data-shown]").wait_for()
        page.evaluate(AXE.read_text())
        result = page.evaluate("() => axe.run(document, { resultTypes: ['violations'], rules: { 'scrollable-region-focusable': { enabled: true } } })")
        assert not [(v["id"], v["nodes"][0]["html"][:200]) for v in result["violations"]], where
