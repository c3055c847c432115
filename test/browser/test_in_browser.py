"""The console as a person meets it (issue "A console in the box")."""
import base64
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import socket
import threading
import time

import crawbl
import harness
import pytest
from conftest import ASKS, OPEN, PATIENCE_MS, TOKEN
from payloads import PAYLOADS
from ports import free_port

AXE = pathlib.Path(os.environ["NODE_PATH"]) / "axe-core" / "axe.min.js"
PAGES = ["runs", "chat", "approvals", "sessions", "memories", "usage", "audit", "agents", "health", "settings"]


def begin(daemon, text, session="s", **more):
    """A turn, begun over HTTP; the id of its run."""
    with daemon.http() as http:
        answer = http.post("/weir/v1/runs", json={"input": text, "session_id": session, **more})
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]


def events_of(daemon, run, headers=None):
    """All events of a run, once it is over."""
    with daemon.http(headers=headers) as http:
        text = http.get(f"/weir/v1/runs/{run}/events").text
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]


def wait_for_state(daemon, run, *states):
    give_up = time.monotonic() + PATIENCE_MS / 1000
    with daemon.http() as http:
        while time.monotonic() < give_up:
            if (now := http.get(f"/weir/v1/runs/{run}").json())["state"] in states:
                return now
            time.sleep(0.02)
    raise AssertionError(f"run {run} does not become {states}: {now}")


def fact(page, name, value):
    """Wait until the fact of this name has this value."""
    page.wait_for_function(
        """([name, value]) => [...document.querySelectorAll('.facts > div')].some((pair) =>
             pair.querySelector('dt').textContent === name && pair.querySelector('dd').textContent === value)""",
        arg=[name, value])


def state_is(page, value):
    fact(page, "State", value)


def approve_as(card, text):
    """Approve the call of this card with these arguments."""
    card.locator("textarea").fill(text)
    card.get_by_role("button", name="Approve").click()


EVENTS = """Number([...document.querySelectorAll('.facts > div')].find((pair) =>
    pair.firstChild.textContent === 'Events')?.lastChild.textContent.replace(/\\D/g, '') || 0)"""


def events_shown(page):
    return page.evaluate(EVENTS)


def kinds(page, label="Timeline"):
    return page.locator(f"[role=listbox][aria-label='{label}'] .kind").all_text_contents()


# --- a first minute -------------------------------------------------------------------------


def test_the_first_minute(demo, visit):
    tab = visit(demo)
    page = tab.go("runs")
    page.get_by_text("No run fits").wait_for()
    page.get_by_role("link", name="Chat").click()
    page.get_by_label("Message").last.fill("plan two days in Kyoto")
    page.keyboard.press("Enter")
    page.wait_for_selector(".turn[data-link=ended]")
    said = page.locator(".turn").inner_text()
    assert "manager hands over to researcher" in said and "Tool web_search" in said
    assert "A weir stands across a stream" in said
    assert page.locator(".turn details[open]").count() == 0  # thinking and tools are folded in

    page.get_by_role("link", name="Runs").click()
    page.locator("table").get_by_role("link", name="plan two days in Kyoto").click()
    state_is(page, "done")
    page.locator("[aria-label=Timeline] .kind.done").wait_for()
    timeline = kinds(page)
    assert timeline[0] == "Asked" and timeline[-1] == "Done"
    assert {"Thinking", "Text", "Hand-over", "Tool", "Model call"} <= set(timeline)

    page.locator("[aria-label=Timeline] .row", has_text="web_search").click()
    assert "How a weir works" in page.locator(".detail").inner_text()
    assert "seq=" in page.url
    other = visit(demo).page  # the link opens the same place
    other.goto(page.url)
    other.locator(".detail h2", has_text="Tool").wait_for()
    assert other.locator("[aria-label=Timeline] [aria-selected=true]").inner_text().count("web_search") == 1
    other.locator("[aria-label='Events as they came'] [aria-selected=true]", has_text="web_search").wait_for()


def test_a_turn_is_stopped_and_said_again_and_forked(playing, visit):
    page = visit(playing).go("chat", ".say textarea")
    page.locator(".say textarea").fill("say it slowly")
    page.keyboard.press("Enter")
    page.locator(".turn", has_text="one two").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.locator(".turn", has_text="Stopped:").wait_for()
    page.get_by_role("button", name="Retry").click()
    page.locator(".turn >> nth=1").get_by_text("twelve").wait_for()
    page.wait_for_selector(".turn >> nth=1 >> css=[href]")
    page.locator(".turn >> nth=1").get_by_role("button", name="Fork here").click()
    page.wait_for_selector(".before")
    page.locator(".say textarea").fill("and then?")
    page.keyboard.press("Enter")
    page.locator(".turn[data-link=ended]", has_text="and then?").wait_for()
    session = page.url.split("session=")[1].split("&")[0]
    with playing.http() as http:
        export = http.get(f"/weir/v1/sessions/{session}/export").text
    told = [base64.b64decode(event["bytes"]).decode() for event in map(lambda line: json.loads(line)["event"], export.splitlines())
            if event["type"] == "item"]
    assert "twelve" in "".join(told) and "and then?" in export


# --- live -----------------------------------------------------------------------------------


def test_a_turn_of_another_wire_is_watched_live_after_the_token_was_asked_for_once(secured, visit):
    tab = visit(secured)
    page = tab.page
    page.goto(secured.url + "/weir/")
    page.get_by_role("dialog").get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Use it").click()
    page.get_by_role("dialog").get_by_text("Invalid bearer token").wait_for()
    page.get_by_role("dialog").get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Use it").click()
    page.get_by_text("No run fits").wait_for()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        turn = pool.submit(crawbl.one_turn, secured, "talk on and on")
        page.locator("table").get_by_role("link", name="talk on and on").click()  # it appeared by itself
        state_is(page, "running")
        fact(page, "Wire", "crawbl")
        said = page.locator("[aria-label=Timeline] .row", has_text="tick")
        said.click()
        page.locator(".detail", has_text="tick").wait_for()
        count = events_shown(page)
        page.wait_for_function(f"(count) => {EVENTS} > count", arg=count)
        page.get_by_role("button", name="Cancel the run").click()
        state_is(page, "cancelled")
        fact(page, "Connection", "ended")
        assert turn.result().code == "CANCELLED"
    page.reload()
    state_is(page, "cancelled")  # and no dialog: this tab keeps the token
    assert page.get_by_role("dialog").count() == 0
    stored = page.evaluate("[Object.keys(localStorage).length, document.cookie, sessionStorage.getItem('weir.token')]")
    assert stored == [0, "", TOKEN]
    run = page.url.split("/run/")[1].split("?")[0]
    assert events_shown(page) == len(events_of(secured, run, {"authorization": f"Bearer {TOKEN}"}))


def test_an_approval_is_answered_with_other_arguments(playing, visit):
    run = begin(playing, "pay it", "payment")
    page = visit(playing).go("approvals", f"[data-approval^='{run}-']")
    card = page.locator(f"[data-approval^='{run}-']")
    args = card.locator("textarea")
    args.fill('{"eur": 5000}')
    card.get_by_role("button", name="Approve").click()
    card.get_by_role("alert").wait_for()  # more than the tool takes
    args.fill('{"eur": 7}')
    card.get_by_role("button", name="Approve").click()
    card.wait_for(state="detached")
    wait_for_state(playing, run, "done")
    results = [e["result"] for e in events_of(playing, run) if e["type"] == "tool_result"]
    assert {"paid": "7"} in results or {"paid": 7} in results


BIG = "90071992547409931234"  # JavaScript's own numbers end at 9007199254740992


def test_numbers_that_a_browser_would_round_are_shown_and_sent_as_they_are(playing, visit):
    run = begin(playing, "move all of it", "exact")
    tab = visit(playing)
    card = tab.go("approvals", f"[data-approval^='{run}-']").locator(f"[data-approval^='{run}-']")
    assert BIG in card.locator("textarea").input_value()
    approve_as(card, f'{{"account": {BIG[:-1]}7, "rate": 0.10000000000000000555, "note": "1e400 {BIG}"}}')
    card.wait_for(state="detached")
    wait_for_state(playing, run, "done")
    with playing.http() as http:
        sent = http.get(f"/weir/v1/runs/{run}/events").text
    assert f'"moved":"{BIG[:-1]}7 at 0.10000000000000000555"' in sent.replace(" ", "").replace("at", " at ")
    page = tab.go(f"run/{run}")
    page.locator("[aria-label=Timeline] .row", has=page.locator(".kind.tool_call")).click()
    assert f'"account": {BIG}' in page.locator(".detail pre").first.text_content()


def random_json(dice, depth=0):
    """A document as JSON.stringify writes it, but for the numbers, which may be of any form."""
    kind = dice.randrange(6 if depth < 4 else 3)
    if kind == 0:
        digits = "".join(dice.choices("0123456789", k=dice.choice([1, 3, 15, 16, 17, 40]))).lstrip("0") or "0"
        fraction = "." + str(dice.randrange(10**dice.choice([1, 5, 20]))) if dice.random() < 0.4 else ""
        power = dice.choice("eE") + dice.choice(["", "+", "-"]) + str(dice.randrange(500)) if dice.random() < 0.2 else ""
        return dice.choice(["", "-"]) + digits + fraction + power
    if kind == 1:
        return json.dumps("".join(dice.choices('ab"\\\n1234567890123456.e-{}[]:,ä ', k=dice.randrange(30))), ensure_ascii=False)
    if kind == 2:
        return dice.choice(["true", "false", "null", "[]", "{}"])
    inner = [random_json(dice, depth + 1) for _ in range(dice.randrange(5))]
    if kind == 3:
        return "{" + ",".join(f'"k{i}":{one}' for i, one in enumerate(inner)) + "}"
    return "[" + ",".join(inner) + "]"


def test_json_is_read_and_written_as_it_came_with_and_without_the_engines_help(demo, visit):
    page = visit(demo).go("runs")
    texts = ["1", "-0", "1.0", "1.50", "1e400", "-1E-400", BIG, f'[{BIG},1,"{BIG}",{{"{BIG}":"\\"{BIG}\\\\"}}]', "null",
             *(random_json(random.Random(seed)) for seed in range(500)), '{"a":{"b":[0.1,1e2]}}', '{"1e400":"\\"1e400\\"","x":9007199254740993}', '{"__proto__":12345678901234567890}']
    wrong = page.evaluate(
        """async (texts) => {
             const { parse, write } = await import('/weir/exact.js');
             return texts.flatMap((text) => [true, false].map((native) => [text, write(parse(text, native))]))
               .filter(([text, got]) => got !== text);
           }""", texts)
    assert wrong == []
    refused = page.evaluate(
        """async () => {
             const { parse } = await import('/weir/exact.js');
             return ['{"a":01234567890123456789}', '[1.]', '12345678901234567890 1', '"1e400'].map((text) =>
               [true, false].map((native) => { try { parse(text, native); return text; } catch (e) { return e.name; } }));
           }""")
    assert refused == [["SyntaxError", "SyntaxError"]] * 4


def test_a_refusal_from_the_run_itself(playing, visit):
    run = begin(playing, "ask me", "question")
    page = visit(playing).go(f"run/{run}", "[data-approval]")
    page.get_by_role("button", name="Refuse").click()
    state_is(page, "done")
    page.locator("[aria-label=Timeline] .row", has_text="Answered: no").wait_for()


def test_a_restart_while_watching_shows_no_gap_and_no_double(tmp_path, visit):
    config = ASKS + f"listen: {{http: '127.0.0.1:{free_port()}'}}\n"

    class Fixed(harness.Daemon):  # the browser comes back to the same port
        def command(self):
            command = super().command()
            at = command.index("--http")
            return command[:at] + command[at + 2:]

    daemon = Fixed(tmp_path, script="test/browser/play.yaml", config=config, env=OPEN).start()
    try:
        run = begin(daemon, "ask me", "restart")
        page = visit(daemon).go(f"run/{run}", "[data-approval]")
        daemon.restart()
        wait_for_state(daemon, run, "waiting")
        daemon.kill()  # and once more, without a goodbye
        fact(page, "Connection", "reconnecting")
        daemon.start()
        with daemon.http() as http:
            (waits,) = http.get("/weir/v1/approvals").json()["approvals"]
            assert http.post(f"/weir/v1/approvals/{waits['id']}", json={"answer": "yes"}).status_code == 200
        state_is(page, "done")
        fact(page, "Connection", "ended")
        expected = [str(event["seq"]) for event in events_of(daemon, run)]
        rows = page.locator("[aria-label='Events as they came'] .row")
        rows.filter(has=page.locator(".kind.done")).wait_for()  # it is drawn a frame after the facts
        assert rows.locator(".at").all_text_contents() == expected
    finally:
        daemon.stop()


# --- much, narrow, hostile --------------------------------------------------------------------


def busiest_task_ms(trace, path):
    """The longest time that one task of the page's main thread computed: what it takes on a machine that
    does nothing else."""
    events = trace["traceEvents"]
    (page,) = {e["pid"] for e in events if e["name"] == "CommitLoad" and path in e["args"]["data"]["url"]}
    (main,) = {e["tid"] for e in events if e["name"] == "thread_name" and e["pid"] == page
               and e["args"]["name"] == "CrRendererMain"}
    tasks = [e["tdur"] / 1000 for e in events if e["pid"] == page and e["tid"] == main
             and e["name"] == "ThreadControllerImpl::RunTask" and "tdur" in e]
    assert len(tasks) > 100, "the trace is not one of this page"
    return max(tasks)


def test_ten_thousand_events_are_few_rows_and_short_tasks(playing, visit, record_property):
    run = begin(playing, "ten thousand", "many")
    count = len(events_of(playing, run))
    assert count > 10_000
    tab = visit(playing)
    tab.context.browser.start_tracing(page=tab.page, categories=["toplevel", "devtools.timeline"])
    tab.page.add_init_script(
        """window.longest = 0;
           new PerformanceObserver((list) => { for (const e of list.getEntries()) window.longest = Math.max(window.longest, e.duration); })
             .observe({ type: 'longtask', buffered: true });""")
    page = tab.go(f"run/{run}")
    fact(page, "Events", f"{count:,}")
    state_is(page, "done")
    rows = "document.querySelectorAll('.row').length"
    assert 0 < page.evaluate(rows) <= 200
    raw = page.locator("[aria-label='Events as they came']")
    raw.focus()
    page.keyboard.press("Home")
    raw.locator("[aria-selected=true]", has_text="started").wait_for()
    page.keyboard.press("End")
    raw.locator("[aria-selected=true]", has_text="done").wait_for()
    raw.evaluate("(list) => { list.scrollTop = list.scrollHeight / 2; }")
    raw.locator(f".row[data-index='{count // 2}']").wait_for()
    assert page.evaluate(rows) <= 200
    longest = page.evaluate("window.longest")
    busiest = busiest_task_ms(json.loads(tab.context.browser.stop_tracing()), "/weir/")
    record_property("longest_task_ms", longest)
    record_property("busiest_task_ms", busiest)
    print(f"console: {count} events: {page.evaluate(rows)} rows; the longest task of the page's thread computed for "
          f"{busiest:.1f} ms; by the clock {longest or 'less than 50'} ms, with what else this machine does")


@pytest.mark.parametrize("width,scheme", [(360, "light"), (2560, "dark")])
def test_every_page_fits_its_window(playing, visit, width, scheme):
    run = begin(playing, "a" * 300 + " " + "word " * 60, "wide-" + "x" * 100)
    wait_for_state(playing, run, "done")
    tab = visit(playing, viewport={"width": width, "height": 800}, color_scheme=scheme)
    for where in PAGES + [f"run/{run}", f"compare/{run}/{run}"]:
        page = tab.go(where)
        beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert beyond <= 0, f"{where} is {beyond} px wider than {width}"


def test_no_payload_is_more_than_text(playing, visit):
    turns = [PAYLOADS[i::15] for i in range(15)]
    for texts in turns:
        run = begin(playing, "\n\n".join(texts), "hostile <img src=x onerror=pwned()>")
        wait_for_state(playing, run, "done", "failed")
    with playing.http() as http:
        for i, text in enumerate(PAYLOADS[:50]):
            http.post("/weir/v1/memories", json={"key": f"{i} {text}"[:200], "content": text, "category": "core"})
    tab = visit(playing)
    tab.page.add_init_script("window.pwned = () => { window.was = (window.was || 0) + 1; };")
    tab.page.on("dialog", lambda dialog: tab.wrong.append(dialog.message))
    session = "session=hostile%20%3Cimg%20src%3Dx%20onerror%3Dpwned()%3E"
    with playing.http() as http:
        newest = http.get("/weir/v1/runs?limit=1").json()["runs"][0]["id"]
    for where in ["runs", f"chat?{session}", f"run/{newest}?seq=2", "memories", "sessions", f"sessions?{session}"]:
        page = tab.go(where)
        if where.startswith("chat"):
            page.wait_for_function("() => document.querySelectorAll('.turn[data-link=ended]').length === 15")
            text = page.evaluate("[...document.querySelectorAll('.said.user')].map((e) => e.textContent).join('\\n')")
            missing = [one for one in PAYLOADS if one not in text]
            assert not missing, missing[:3]
        made = page.evaluate(
            """[...document.querySelectorAll('#main *')].filter((e) =>
                 /^(script|img|svg|iframe|object|embed|form|style|link|meta|base|video|math|template|x)$/i.test(e.tagName)
                   && !e.matches('form.filters, form.say, form.inline, .card form') ||
                 [...e.attributes].some((a) => a.name.startsWith('on') || (a.name === 'href' && !/^(#|https?:|mailto:)/.test(a.value))))
               .map((e) => e.outerHTML.slice(0, 200))""")
        assert not made, (where, made[:3])
        assert page.evaluate("window.was") is None, where


def test_markdown_is_shown_as_what_it_is(playing, visit):
    text = "# Title\n\nSome **bold**, *soft* and `code` at https://example.org/x.\n\n- one\n- two\n\n1. first\n\n" \
           "> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```c\nint x = 1 < 2;\n```\n\n[here](https://example.org)"
    run = begin(playing, text, "markdown")
    wait_for_state(playing, run, "done")
    page = visit(playing).go("chat?session=markdown", ".turn[data-link=ended]")
    body = page.locator(".said.agent")
    for selector in ["p.heading", "strong", "em", "p code", "ul > li", "ol > li", "blockquote p", "td", "pre code",
                     "a[href='https://example.org'][rel~=noopener]", "a[href='https://example.org/x.']"]:
        assert body.locator(selector).count() > 0, selector
    assert body.locator("pre code").text_content() == "int x = 1 < 2;"


class Elsewhere:
    """A server of another origin that notes what is asked of it."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        self.visitors = []  
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self):
        with contextlib.suppress(OSError):
            while True:
                with self.socket.accept()[0] as one:
                    asked = one.recv(100).split(b"\r")[0].decode(errors="replace")
                    self.visitors += [asked] if asked else []  # chromium may guess, and connect to say nothing


def test_no_request_leaves_the_origin(playing, visit):
    """Neither by itself, which every tab of these tests watches (Visit), nor when something in the page
    tries: the policy stops it before it leaves."""
    other = Elsewhere()
    run = begin(playing, f"![x]({other.url}/a.png) <img src='{other.url}/b.png'> [link]({other.url}/c) {other.url}/d", "away")
    wait_for_state(playing, run, "done")
    tab = visit(playing)
    for where in PAGES + [f"run/{run}?seq=2", f"compare/{run}/{run}", "chat?session=away", "sessions?session=away"]:
        page = tab.go(where)
    assert {url.split("?")[0].rpartition("/")[2] for url in tab.asked} >= {"app.js", "style.css", "icon.svg", "settings", "agents"}
    page.evaluate(
        """async (url) => {
             const refused = (work) => work.then(() => { throw new Error('it went'); }, () => {});
             await refused(fetch(url + '/fetch', { mode: 'no-cors' }));
             for (const [tag, name] of [['img', 'src'], ['iframe', 'src'], ['link', 'href'], ['video', 'src'], ['object', 'data']]) {
               const node = document.createElement(tag);
               if (tag === 'link') node.rel = 'stylesheet';
               const over = new Promise((done) => { node.onerror = node.onload = done; setTimeout(done, 500); });
               try { node.setAttribute(name, url + '/' + tag); } catch { continue; }
               document.body.append(node);
               await over;
             }
             navigator.sendBeacon?.(url + '/beacon', 'x');
             try { new WebSocket(url.replace('http', 'ws')); } catch { }
             try { new EventSource(url + '/events'); } catch { }
           }""", other.url)
    page.evaluate("fetch('/weir/')")
    assert other.visitors == []
    import urllib.request
    with contextlib.suppress(OSError):
        urllib.request.urlopen(other.url)  # it does note it
    assert len(other.visitors) == 1
    tab.wrong.clear()  # the attempts, which the browser names as violations of the policy


# --- for everyone -----------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(playing, visit, scheme):
    done = begin(playing, "say **something**", "barriers")
    wait_for_state(playing, done, "done")
    waits = begin(playing, "pay it", f"barriers-{scheme}")
    wait_for_state(playing, waits, "waiting")
    tab = visit(playing, color_scheme=scheme, bypass_csp=True)
    found = []
    views = PAGES + ["chat?session=barriers", f"run/{done}?seq=2", f"run/{waits}", f"compare/{done}/{waits}"]
    only = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
    if scheme == "dark":  # other colours, and nothing else
        only = {"type": "rule", "values": ["color-contrast"]}
        views = ["chat?session=barriers", "approvals", "usage", "audit", f"run/{done}?seq=2"]
    for where in views:
        page = tab.go(where, "[data-approval]" if where.endswith(waits) and "run/" in where else None)
        page.evaluate(AXE.read_text())
        result = page.evaluate("(only) => axe.run(document, { resultTypes: ['violations'], runOnly: only })", only)
        found += [(where, v["id"], v["impact"], v["nodes"][0]["html"][:160]) for v in result["violations"]
                  if v["impact"] in ("serious", "critical")]
    assert not found, "\n".join(map(str, found))
    with playing.http() as http:
        http.post(f"/weir/v1/runs/{waits}/cancel")


def test_the_keyboard_is_enough(playing, visit):
    run = begin(playing, "say it once", "keys")
    wait_for_state(playing, run, "done")
    page = visit(playing).go("runs", "table")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    while page.evaluate("document.activeElement.textContent") != "say it once":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    state_is(page, "done")
    page.locator("[role=listbox][aria-label=Timeline]").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.locator(".detail h2", has_text="Text").wait_for()
    assert page.locator("[role=listbox][aria-label=Timeline]").get_attribute("aria-activedescendant")


def test_two_runs_are_compared_and_one_is_played_back(playing, visit):
    one, two = begin(playing, "say this", "c1"), begin(playing, "say that", "c2")
    for run in (one, two):
        wait_for_state(playing, run, "done")
    page = visit(playing).go(f"compare/{one}/{two}", ".pairs .row")
    assert page.locator(".pairs .differs").count() >= 2
    assert page.locator(".pairs .same").count() >= 2
    page = visit(playing).go(f"run/{one}")
    state_is(page, "done")
    page.get_by_role("button", name="Play back").click()
    page.get_by_text("That was all of it.").wait_for()
    page.get_by_role("button", name="Replay from recordings").click()
    page.get_by_role("alert").get_by_text("this weir records nothing").wait_for()
    state_is(page, "done")


def test_the_keyboards_place_stays_while_runs_come(playing, visit):
    wait_for_state(playing, begin(playing, "say where I am", "place"), "done")
    page = visit(playing).go("runs?session=place", "table")
    page.get_by_role("link", name="say where I am").focus()
    page.get_by_role("checkbox").check()
    page.get_by_role("checkbox").focus()
    begin(playing, "say more", "place")
    page.get_by_role("link", name="say more").wait_for()
    page.locator("tr", has_text="say more").locator(".state.done").wait_for()
    assert page.evaluate("document.activeElement.type") == "checkbox"
    assert page.get_by_role("checkbox", checked=True).count() == 1


def test_a_run_is_replayed_from_its_recordings_live_and_beside_the_original(recording, visit):
    run = begin(recording, "say it slowly", "recorded")
    wait_for_state(recording, run, "done")
    tab = visit(recording)
    page = tab.go(f"run/{run}")
    state_is(page, "done")
    page.get_by_role("button", name="Replay from recordings").click()
    page.locator("table", has_text="running").wait_for()  # at its own pace
    again = page.url.rpartition("/")[2]
    page.get_by_text("What both say and do is the same.").wait_for()
    assert page.locator(".pairs .same").count() >= 6 and page.locator(".pairs .differs").count() == 0
    replayed = [(e["type"], e.get("text")) for e in events_of(recording, again) if e["type"] in ("text", "thinking")]
    said = [(e["type"], e.get("text")) for e in events_of(recording, run) if e["type"] in ("text", "thinking")]
    assert "".join(text for _, text in replayed) == "".join(text for _, text in said)
    page = tab.go(f"run/{again}")
    fact(page, "Wire", "replay")
    page.get_by_role("button", name="Replay from recordings").click()
    page.get_by_role("alert").get_by_text("no call of this run was recorded").wait_for()


def test_sessions_are_read_exported_and_deleted(playing, visit):
    wait_for_state(playing, begin(playing, "say goodbye", "going"), "done")
    page = visit(playing).go("sessions", "table")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export going", exact=True).click()
    assert "say goodbye" in pathlib.Path(download.value.path()).read_text()
    page.get_by_role("button", name="Delete going", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("Deleted, with 1 turns.").wait_for()
    with playing.http() as http:
        assert http.get("/weir/v1/sessions/going/export").status_code == 404
