// views: memories, agents, audit, health and settings: pages that show what one route says.

import { get, now as there, post, remove } from "./api.js";
import { button, bytes, count, facts, field, fill, h, line, patch, problem, table, took, when } from "./dom.js";
import { write } from "./exact.js";
import { go } from "./router.js";
import { link } from "./runs.js";

export async function memories(main, params, signal) {
  const search = h("input", { type: "search", value: params.q || "" }), workspace = h("input", { type: "search", value: params.workspace || "" });
  const key = h("input", { required: true }), content = h("textarea", { rows: "3", required: true }), category = h("input");
  const list = h("div"), said = h("div", { "aria-live": "polite" });
  const where = params.workspace ? { workspace: params.workspace } : {};
  const tried = (work) => work().then(() => { fill(said); return load(); }).catch((error) => fill(said, problem(error)));
  async function load() {
    const { memories: all, more } = await get("/memories", { ...params, limit: 100 }, signal);
    fill(list, all.length ? table("Memories", ["Key", "Content", "Category", "Changed", ""], all.map((one) => [one.key,
      h("div", { class: "long" }, one.content), one.category, when(one.updated_unix_ms),
      button("Delete", () => tried(() => remove("/memories/" + encodeURIComponent(one.key), where)), { class: "bad", "aria-label": "Delete " + line(one.key) })]))
      : h("p", { class: "empty" }, "Nothing is remembered."), more && h("p", null, "There are more; search for them."));
  }
  const add = (event) => {
    event.preventDefault();
    tried(() => fetchPut({ key: key.value, content: content.value, category: category.value }, where).then(() => { key.value = content.value = ""; }));
  };
  fill(main, h("h1", null, "Memories"), h("form", { class: "filters", on: { submit: (event) => { event.preventDefault(); go("/memories", { q: search.value, workspace: workspace.value }); } } },
    field("Words", search), field("Workspace", workspace), h("button", { type: "submit" }, "Search")), said, list,
  h("details", { class: "card" }, h("summary", null, "Remember something"), h("form", { on: { submit: add } },
    field("Key", key), field("Content", content), field("Category", category), h("button", { type: "submit" }, "Remember"))));
  await load();
}

const fetchPut = (entry, where) => post("/memories" + (where.workspace ? "?" + new URLSearchParams(where) : ""), entry);

export async function agents(main, params, signal) {
  const { agents: all } = await get("/agents", {}, signal);
  fill(main, h("h1", null, "Agents"), h("div", { class: "cards" }, all.map((agent) => h("article", { class: "card" },
    h("h2", null, agent.name, agent.default && h("small", null, " takes turns that name no agent")),
    agent.description && h("p", null, agent.description),
    facts([["Kind", agent.kind], ["Model", agent.model || "none"], ["May hand over to", agent.delegates.join(", ") || "none of its own"]]),
    agent.tools.length ? table("Tools of " + agent.name, ["Tool", "From", "Policy"], agent.tools.map((tool) => [tool.name,
      tool.from + (tool.server ? " " + tool.server : ""), tool.missing ? "missing" : tool.policy])) : h("p", { class: "empty" }, "No tools."),
    h("p", null, h("a", { class: "button", href: "#/chat?" + new URLSearchParams({ agent: agent.name }) }, "Chat"))))));
}

const KNOWN = new Set(["seq", "at", "domain", "operation", "workspace", "user", "outcome"]);

/** What else a record of the audit has. */
const more = (record) => h("span", { class: "long" }, Object.entries(record).filter(([name]) => !KNOWN.has(name)).map(([name, value]) =>
  h("span", { class: "pair" }, h("small", null, name), " ", name === "run" ? link(value) : typeof value === "string" ? value : write(value))));

export async function audit(main, params, signal) {
  const list = h("div"), filters = {}, chain = h("div");
  for (const name of ["domain", "operation", "workspace", "user"]) filters[name] = h("input", { type: "search", value: params[name] || "" });
  let all = [], next = null;
  fill(main, h("h1", null, "Audit"), chain, h("form", { class: "filters", on: { submit: (event) => { event.preventDefault(); go("/audit", Object.fromEntries(Object.entries(filters).map(([name, input]) => [name, input.value.trim()]))); } } },
    Object.entries(filters).map(([name, input]) => field(name[0].toUpperCase() + name.slice(1), input)), h("button", { type: "submit" }, "Filter")), list);
  async function load() {
    const page = await get("/audit", { ...params, limit: 100, before: next }, signal); // told where it fails
    all = [...all, ...page.records];
    next = page.more ? page.next : null;
    fill(list, all.length ? table("Records", ["Number", "When", "What", "Workspace", "User", "Outcome", "More"], all.map((record) => [
      String(record.seq), when(Date.parse(record.at)), record.domain + " " + record.operation, record.workspace || "", record.user || "", record.outcome || "",
      more(record)]))
      : h("p", { class: "empty" }, "No record fits."), next && button("Older records", load));
  }
  get("/audit/chain", {}, signal).then((state) => fill(chain, chainFacts(state)),
    (error) => { if (error.status !== 403) fill(chain, problem(error)); });
  await load();
}

function chainFacts(state) {
  const words = state.verified === null ? "too long to look at here: weir audit verify does"
    : state.verified ? "whole" : "NOT whole";
  return [facts([["Chain", h("span", { class: "state " + (state.verified === false ? "failed" : "done") }, words)],
    ["Records", state.first ? `${count(state.first)} to ${count(state.last)}` : "none"], ["Hash of the newest", h("code", { class: "hash" }, state.hash)]]),
  state.faults.length > 0 && h("ul", { class: "problem" }, state.faults.map((fault) => h("li", null, `${fault.seq}: ${fault.text}`)))];
}

export async function health(main, params, signal) {
  const body = h("div");
  fill(main, h("h1", null, "Health"), body);
  async function load() {
    const now = await get("/health", {}, signal);
    const full = now.memory.ceiling_bytes;
    patch(body, facts([["Status", now.status], ["Version", now.version], ["Up for", took(Math.max(0, there() - now.started_unix_ms))],
      ["Memory that counts", bytes(now.memory.counted_bytes) + (full ? " of " + bytes(full) : ", no ceiling")],
      ["Store", now.store.kind + (now.store.shared ? ", shared" : "")], ["Starts of the store", count(now.store.epoch)],
      ["Connections", count(now.server.connections)], ["Requests open", count(now.server.requests_open)],
      ["Requests so far", count(now.server.requests)], ["Slow readers cut", count(now.server.slow_readers_cut)],
      ["Runs that wait outside memory", count(now.runs_asleep)]]),
    full > 0 && h("meter", { min: "0", max: full, high: full / 2, value: now.memory.counted_bytes, "aria-label": "Memory" }),
    h("h2", null, "Listeners"), table("Listeners", ["Name", "Address", "Port", "TLS"], now.listeners.map((one) => [one.name, one.address, String(one.port), one.tls ? "yes" : "no"])),
    h("h2", null, "Providers"), now.providers.length ? table("Providers", ["Name", "Kind", "Used", "Key"], now.providers.map((one) => [one.name, one.kind, one.used ? "yes" : "no", one.key_set ? "set" : "not set"]))
      : h("p", { class: "empty" }, "No provider is configured: the script answers."));
  }
  await load();
  const timer = setInterval(() => { if (document.visibilityState === "visible") load().catch((error) => { if (!signal.aborted) fill(body, problem(error)); }); }, 3000);
  signal.addEventListener("abort", () => clearInterval(timer));
}

export async function settings(main, params, signal) {
  const { settings: all, lists } = await get("/settings", {}, signal);
  const find = h("input", { type: "search", value: params.q || "" }), body = h("div");
  const draw = () => {
    const fits = (one) => (one.key + " " + one.value).toLowerCase().includes(find.value.toLowerCase());
    fill(body, table("Settings", ["Setting", "Value", "From"], all.filter(fits).map((one) => [one.key, one.value, [one.source, one.name].filter(Boolean).join(" ")])),
      lists.some(fits) && [h("h2", null, "Lists"), table("Lists", ["Entry", "Value"], lists.filter(fits).map((one) => [one.key, one.value]))]);
  };
  find.addEventListener("input", draw);
  fill(main, h("h1", null, "Settings"), h("p", null, "As ", h("code", null, "weir config print"), " shows them. They are changed in the settings file, the environment or the flags."),
    h("div", { class: "filters" }, field("Find", find)), body);
  draw();
}
