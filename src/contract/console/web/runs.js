// runs: all runs, newest first, as they come and go.

import { get } from "./api.js";
import { button, field, fill, h, line, patch, problem, refreshTable, select, state, table, took, when } from "./dom.js";
import { go } from "./router.js";

const EVERY_MS = 2000;
const FILTERS = ["agent", "session", "workspace", "user", "contract", "state"];
const STATES = ["", "queued", "running", "waiting", "done", "failed", "cancelled"];

export const link = (run, text) => h("a", { href: "#/run/" + encodeURIComponent(run) }, text || run);

function row(run, marked) {
  const mark = h("input", {
    type: "checkbox", "aria-label": "Compare run " + run.id, checked: marked.has(run.id),
    on: { change: () => (mark.checked ? marked.add(run.id) : marked.delete(run.id)) },
  });
  return [link(run.id, line(run.text, 80) || "(no text)"), state(run.state), run.agent, run.contract,
    h("a", { href: "#/sessions?" + new URLSearchParams({ session: run.session_id, workspace: run.workspace, user: run.user }) }, line(run.session_id, 40)),
    run.workspace, when(run.started_unix_ms),
    run.ended_unix_ms ? took(run.ended_unix_ms - run.started_unix_ms) : "", mark];
}

const HEADS = ["Asked", "State", "Agent", "Wire", "Session", "Workspace", "Started", "Took", "Compare"];

/** Ids are numbers of any length: below 0 where `a` is the older one. */
const byAge = (a, b) => a.length - b.length || (a < b ? -1 : Number(a > b));

/** The rows that are known, kept as the daemon has them: a page says all about the runs of its range. */
class Rows {
  constructor() { this.all = new Map(); }

  /** `page`: what was answered for the runs before `before` (null: the newest). */
  merge(page, before) {
    const { next } = page, now = new Set(page.runs.map((run) => run.id));
    for (const id of this.all.keys()) {
      const within = (!before || byAge(id, before) < 0) && (!next || byAge(id, next) >= 0);
      if (within && !now.has(id)) this.all.delete(id);
    }
    page.runs.forEach((run) => this.all.set(run.id, run));
  }

  /** Forget the runs below `floor`. */
  keepFrom(floor) {
    for (const id of floor ? this.all.keys() : []) if (byAge(id, floor) < 0) this.all.delete(id);
  }

  newestFirst() { return [...this.all.values()].sort((a, b) => byAge(b.id, a.id)); }
}

export async function runs(main, params, signal) {
  const marked = new Set(), list = h("div", { "aria-live": "off" }), more = h("div", { class: "tools" });
  const said = h("div", { "aria-live": "polite" }), broken = h("div"), inputs = {};
  const filters = () => Object.fromEntries(FILTERS.map((name) => [name, inputs[name].value.trim()]));
  const apply = (event) => { event?.preventDefault(); go("/runs", filters()); };
  for (const name of FILTERS) {
    inputs[name] = name === "state"
      ? select(STATES.map((s) => [s, s || "any"]), params.state || "", { on: { change: apply } })
      : h("input", { type: "search", value: params[name] || "", autocomplete: "off", spellcheck: "false" });
  }
  fill(main, h("h1", null, "Runs"),
    h("form", { class: "filters", on: { submit: apply } },
      FILTERS.map((name) => field({ contract: "Wire" }[name] || name[0].toUpperCase() + name.slice(1), inputs[name])),
      h("button", { type: "submit" }, "Filter"),
      button("Compare the two chosen", () => {
        if (marked.size === 2) go("/compare/" + [...marked].map(encodeURIComponent).join("/"));
        else fill(said, h("p", null, "Choose two runs in the list first."));
      })),
    said, broken, list, more);

  const rows = new Rows();
  let floor = null; // `next` of the oldest page that is shown; null: there is nothing below
  let again = null; // of the older pages one is read again each time: where the next one begins
  let older = false; // there are such pages
  let busy = false;

  async function read(before) {
    const page = await get("/runs", { ...params, limit: 50, before }, signal);
    rows.merge(page, before);
    return page.next || null;
  }

  async function load() {
    if (busy) return;
    busy = true;
    try {
      const next = await read(null);
      if (!older) rows.keepFrom(floor = next);
      else if (again && (!floor || byAge(again, floor) > 0)) again = await read(again);
      else again = next;
      draw();
    } finally { busy = false; }
  }

  let shown = "";
  function draw() {
    const all = rows.newestFirst(), text = JSON.stringify([all, floor]);
    fill(broken);
    if (text === shown) return;
    shown = text;
    refreshTable(list, all.length ? table("Runs", HEADS, all.map((run) => row(run, marked)), all.map((run) => run.id))
      : h("p", { class: "empty" }, "No run fits. A turn of any wire appears here as soon as it begins."));
    patch(more, floor && button("Older runs", async () => {
      const next = await read(floor);
      older = true;
      floor = next;
      draw();
    }, { "data-key": floor }));
  }

  await load();
  const timer = setInterval(() => {
    if (document.visibilityState === "visible") load().catch((error) => { if (!signal.aborted) fill(broken, problem(error)); });
  }, EVERY_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}
