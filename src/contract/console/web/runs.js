// runs: all runs, newest first, as they come and go.

import { get } from "./api.js";
import { button, field, fill, h, line, problem, select, state, table, took, when } from "./dom.js";
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

export async function runs(main, params, signal) {
  const marked = new Set(), list = h("div", { "aria-live": "off" }), more = h("div", { class: "tools" });
  const inputs = {};
  const filters = () => Object.fromEntries(FILTERS.map((name) => [name, inputs[name].value.trim()]));
  const apply = (event) => { event?.preventDefault(); go("/runs", filters()); };
  let older = [], next = null, shown = "";
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
        else fill(more, h("p", null, "Choose two runs in the list first."));
      })),
    list, more);

  async function load() {
    const page = await get("/runs", { ...params, limit: 50 }, signal);
    const text = JSON.stringify(page);
    if (text === shown) return;
    shown = text;
    const known = new Set(page.runs.map((run) => run.id));
    older = older.filter((run) => !known.has(run.id));
    if (!older.length) next = page.next || null;
    draw(page.runs);
  }

  let newest = [];
  function draw(page) {
    if (page) newest = page;
    const all = [...newest, ...older];
    const focused = document.activeElement?.getAttribute("href");
    fill(list, all.length ? table("Runs", HEADS, all.map((run) => row(run, marked)))
      : h("p", { class: "empty" }, "No run fits. A turn of any wire appears here as soon as it begins."));
    if (focused) [...list.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus();
    fill(more, next && button("Older runs", async () => {
      const page2 = await get("/runs", { ...params, limit: 50, before: next }, signal);
      older = [...older, ...page2.runs];
      next = page2.next || null;
      draw();
    }));
  }

  await load();
  const timer = setInterval(() => {
    if (document.visibilityState === "visible") load().catch((error) => { if (!signal.aborted) fill(more, problem(error)); });
  }, EVERY_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}
