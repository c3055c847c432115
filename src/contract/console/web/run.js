// run: one run as a timeline of its journal, with the events as they came beside it.

import { follow, get, pause, post, slicer } from "./api.js";
import { answerForm } from "./approvals.js";
import { button, count, dismiss, dollars, facts, fill, h, problem, refresh, select, state, tell, took, when } from "./dom.js";
import { write } from "./exact.js";
import { Journal, kinds, offset, rawSummary, summary } from "./journal.js";
import { markdown } from "./markdown.js";
import { note } from "./router.js";
import { link } from "./runs.js";
import { VirtualList } from "./virtual.js";

const SHOWN_EVERY_MS = 250;

function timelineRow(journal, index) {
  const entry = journal.entries[index];
  const bar = h("span", { class: "bar" }); // of all the time, which the list knows
  bar.style.setProperty("--at", entry.atMs);
  bar.style.setProperty("--for", entry.untilMs - entry.atMs);
  return [h("span", { class: "at" }, offset(entry.atMs)),
    h("span", { class: "kind " + entry.kind }, kinds[entry.kind] || entry.kind),
    h("span", { class: "who" }, entry.agent), h("span", { class: "says" }, summary(entry)),
    h("span", { class: "bars", "aria-hidden": "true" }, bar)];
}

function rawRow(journal, index) {
  const event = journal.events[index];
  return [h("span", { class: "at" }, event.seq), h("span", { class: "kind " + event.type }, event.type),
    h("span", { class: "who" }, event.agent), h("span", { class: "says" }, rawSummary(event))];
}

/** Everything about one entry. */
function detail(entry) {
  const event = entry.event;
  const parts = [];
  if (entry.kind === "text") parts.push(markdown(entry.text));
  else if (entry.text) parts.push(h("pre", { tabindex: "0" }, entry.text));
  if (event.args !== undefined) parts.push(h("h3", null, "Arguments"), h("pre", { tabindex: "0" }, write(event.args, 2)));
  if (entry.result) parts.push(h("h3", null, entry.result.error ? "Error" : "Result"), h("pre", { tabindex: "0" }, write(entry.result.error ? entry.result.message : entry.result.result, 2)));
  return [h("h2", null, kinds[entry.kind] || entry.kind, " ", h("small", null, entry.agent, " ", offset(entry.atMs),
    entry.untilMs > entry.atMs && ", took " + took(entry.untilMs - entry.atMs))),
  parts, h("details", null, h("summary", null, "As it came"), h("pre", { tabindex: "0" }, write(entry.result ? [event, entry.result] : event, 2)))];
}

function totals(journal) {
  const { calls, prompt, completion, cost, unknown, unpriced } = journal.sums;
  const more = unknown ? "+" : "";
  return [["Model calls", count(calls)], ["Tokens in", count(prompt) + more], ["Tokens out", count(completion) + more],
    ["Cost", calls && unpriced === calls ? "unknown" : (unpriced ? "at least " : "") + dollars(cost)]];
}

function headFacts(id, journal, connection) {
  const begun = journal.started;
  if (!begun) return [facts([["Run", id], ["State", state(journal.state)], ["Connection", connection]])];
  const session = { session: begun.session, workspace: begun.workspace, user: begun.user };
  return [facts([["State", state(journal.state)], ["Agent", begun.agent], ["Wire", begun.contract],
    ["Session", h("a", { href: "#/sessions?" + new URLSearchParams(session) }, begun.session)],
    ["Workspace", begun.workspace], ["User", begun.user], ["Started", when(begun.unix_ms)],
    ["Took", took(journal.lastMs)], ...totals(journal), ["Events", count(journal.events.length)],
    begun.parent && ["Parent", link(begun.parent)], ["Connection", connection]])];
}

function missing(main, id, why) {
  fill(main, h("h1", null, "Run ", h("small", null, id)), h("p", { class: "problem", role: "alert" }, why),
    h("p", null, h("a", { href: "#/runs" }, "To the runs")));
}

export async function run(main, params, signal, [id]) {
  if (!/^\d+$/.test(id)) { // it becomes part of the paths that the buttons post to
    missing(main, id, "There is no such run: its id is a number.");
    return;
  }
  let journal = new Journal(), connection = "opening", whole = null, playing = null;
  const head = h("div"), extra = h("div"), inside = h("div"), panel = h("section", { class: "detail", "aria-label": "The chosen entry" },
    h("p", { class: "empty" }, "Choose an entry to see all of it."));
  const timeline = new VirtualList({
    label: "Timeline", render: (i) => timelineRow(journal, i), version: (i) => journal.entries[i].lastSeq,
    chosen: (i) => choose(journal.entries[i].seq, timeline),
  });
  const raw = new VirtualList({
    label: "Events as they came", render: (i) => rawRow(journal, i),
    chosen: (i) => choose(journal.events[i].seq, raw),
  });
  signal.addEventListener("abort", () => { timeline.close(); raw.close(); clearInterval(timer); playing?.abort(); });

  /** Show an event in both lists and below; `by` is the list that it was chosen in. */
  function choose(seq, by) {
    const at = journal.entryOf(seq);
    if (at < 0) return;
    note("/run/" + id, { seq });
    fill(panel, detail(journal.entries[at]));
    if (by !== raw) raw.choose(journal.events.findIndex((event) => event.seq === seq), true);
    if (by !== timeline) timeline.choose(at, true);
  }

  const anew = () => { timeline.reset(); raw.reset(); dirty = true; };
  let dirty = true, asked = "", wanted = Number(params.seq) || 0;
  function draw() {
    if (!dirty) return;
    dirty = false;
    timeline.node.style.setProperty("--all", Math.max(journal.lastMs, 1));
    timeline.update(journal.entries.length);
    raw.update(journal.events.length);
    refresh(head, headFacts(id, journal, connection));
    if (wanted && journal.events.at(-1)?.seq >= wanted) { choose(wanted, null); wanted = 0; }
    const over = ["done", "failed", "cancelled"].includes((whole || journal).state);
    stop.disabled = over;
    again.disabled = !over;
    const waits = journal.state === "waiting" && !playing;
    const key = waits ? "" + journal.events.at(-1).seq : "";
    if (key !== asked) { asked = key; if (waits) question(key); else dismiss([...extra.childNodes], timeline.node); }
  }
  const timer = setInterval(draw, SHOWN_EVERY_MS);

  async function question(seq) {
    try {
      const approval = await get("/approvals/" + id + "-" + seq, {}, signal);
      if (asked === seq && approval.state === "waiting") fill(extra, answerForm(approval, () => tell("Answered.")));
    } catch (error) { if (!signal.aborted) fill(extra, problem(error)); }
  }

  /** A run that this one's recordings answer, beside it. */
  async function replay() {
    try {
      const begun = await post(`/runs/${id}/replay?pace=real`, undefined, { patient: true });
      if (!signal.aborted) location.hash = `#/compare/${id}/${begun.id}`;
    } catch (error) { if (!signal.aborted) fill(extra, problem(error)); }
  }

  /** This run's own events again, as fast as they are wanted. */
  async function playBack(speed) {
    playing?.abort();
    const leave = playing = new AbortController();
    whole ||= journal;
    const events = whole.events;
    journal = new Journal();
    anew();
    const began = performance.now(), slice = slicer();
    for (const event of events) {
      await slice();
      while (!leave.signal.aborted && (performance.now() - began) * speed < event.at_ms)
        await new Promise((resolve) => setTimeout(resolve, 20));
      if (leave.signal.aborted || signal.aborted) return;
      journal.add(event);
      dirty = true;
    }
    journal = whole;
    whole = playing = null;
    anew();
    tell("That was all of it.");
  }

  const speed = select([["1", "as it was"], ["4", "4 times"], ["16", "16 times"]], "4", { "aria-label": "Speed of the playback" });
  const stop = button("Cancel the run", async () => {
    try { await post(`/runs/${id}/cancel`); tell("It was asked to stop."); } catch (error) { tell(error.message); }
  }), again = button("Replay from recordings", replay);
  const other = h("input", { "aria-label": "Number of another run", placeholder: "another run's number", size: "20" });
  fill(main, h("h1", null, "Run ", h("small", null, id)), head,
    h("div", { class: "tools" },
      stop,
      button("Play back", () => { playBack(Number(speed.value)); }), speed,
      again,
      h("form", { class: "inline", on: { submit: (event) => { event.preventDefault(); location.hash = "#/compare/" + id + "/" + encodeURIComponent(other.value.trim()); } } },
        other, h("button", { type: "submit" }, "Compare")),
      button("Children", () => children(id, journal, inside, signal))),
    extra, inside,
    h("div", { class: "panes" }, h("section", { "aria-label": "Timeline" }, h("h2", null, "Timeline"), timeline.node),
      h("section", { "aria-label": "Events" }, h("h2", null, "Events"), raw.node)), panel);
  draw();
  try {
    await follow(id, {
      event: (event) => { (whole || journal).add(event); dirty = true; },
      reset: (seq) => { (whole || journal).cut(seq); anew(); },
      link: (text) => { connection = text; dirty = true; },
    }, signal);
  } catch (error) {
    if (error.status !== 404 || journal.started || signal.aborted) throw error;
    clearInterval(timer);
    missing(main, id, error.message[0].toUpperCase() + error.message.slice(1) + ".");
    return;
  }
  await pause();
  draw();
}

async function children(id, journal, into, signal) {
  const begun = journal.started;
  if (!begun) return;
  const page = await get("/runs", { session: begun.session, workspace: begun.workspace, user: begun.user, limit: 200 }, signal);
  const found = page.runs.filter((one) => one.parent === id);
  fill(into, h("h2", null, "Children"), found.length
    ? h("ul", null, found.map((one) => h("li", null, link(one.id, one.text || one.id), " ", state(one.state))))
    : h("p", { class: "empty" }, "No run was begun while this one waited for a tool."));
}
