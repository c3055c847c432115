// sessions: conversations, to read, take along and delete.

import { get, raw, remove } from "./api.js";
import { button, field, fill, focusOn, h, line, problem, state, table, tell, when } from "./dom.js";
import { link } from "./runs.js";
import { go } from "./router.js";

/** As far as it is named: the daemon knows whose it is by the token. */
const whose = (session) => Object.fromEntries(["workspace", "user"].filter((name) => session[name]).map((name) => [name, session[name]]));

async function takeAlong(session) {
  const response = await raw(`/sessions/${encodeURIComponent(session.session_id)}/export`, whose(session));
  const address = URL.createObjectURL(await response.blob());
  h("a", { href: address, download: "session.jsonl" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Ask before something that cannot be undone. */
function sure(question) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "of-page", "aria-label": "Are you sure?" }, h("p", null, question),
      h("div", { class: "tools" }, button("Delete", () => dialog.close("yes"), { class: "bad" }), button("Keep", () => dialog.close("no"))));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "yes"); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

async function one(main, params, signal) {
  const session = { session_id: params.session, workspace: params.workspace, user: params.user };
  const { runs } = await get("/runs", { session_id: params.session, ...whose(session) }, signal);
  fill(main, h("h1", null, "Session ", h("small", null, params.session)), h("div", { class: "tools" },
    h("a", { class: "button", href: "#/chat?" + new URLSearchParams({ session: params.session, ...whose(session), ...(runs.length && { agent: runs.at(-1).agent }) }) }, "Read and go on"),
    button("Export", () => takeAlong(session).catch((error) => tell(error.message)))),
  runs.length ? table("Turns", ["Asked", "State", "Agent", "Wire", "Tokens", "Started"], runs.map((run) => [
    link(run.id, line(run.text, 80) || run.id), state(run.state), run.agent, run.contract,
    run.usage.total_tokens ?? "unknown", when(run.started_unix_ms)])) : h("p", { class: "empty" }, "There is no turn."));
}

export async function sessions(main, params, signal) {
  if (params.session) return one(main, params, signal);
  const list = h("div"), said = h("div", { "aria-live": "polite" });
  const user = h("input", { type: "search", value: params.user || "" });
  const workspace = h("input", { type: "search", value: params.workspace || "" });
  let all = [], next = null;
  fill(main, h("h1", null, "Sessions"), h("form", { class: "filters", on: { submit: (event) => { event.preventDefault(); go("/sessions", { user: user.value.trim(), workspace: workspace.value.trim() }); } } },
    field("Workspace", workspace), field("User", user), h("button", { type: "submit" }, "Filter")), said, list);
  async function erase(session) {
    if (!await sure(`Delete the session '${line(session.session_id, 80)}' with all its turns? It cannot be brought back.`)) return;
    try {
      const { deleted_runs: count } = await remove("/sessions/" + encodeURIComponent(session.session_id), whose(session));
      all = all.filter((other) => other !== session);
      draw();
      fill(said, h("p", null, `Deleted, with ${count} turns.`));
      focusOn(said); // its button is gone
    } catch (error) { fill(said, problem(error)); }
  }
  function draw() {
    fill(list, all.length ? table("Sessions", ["Session", "State", "Workspace", "User", "Newest turn", ""], all.map((session) => [
      h("a", { href: "#/sessions?" + new URLSearchParams({ session: session.session_id, ...whose(session) }) }, line(session.session_id, 60)),
      state(session.state), session.workspace, session.user, when(session.started_unix_ms),
      h("div", { class: "tools" }, button("Export", () => takeAlong(session).catch((error) => fill(said, problem(error))), { "aria-label": "Export " + line(session.session_id) }),
        button("Delete", () => erase(session), { class: "bad", "aria-label": "Delete " + line(session.session_id) }))]))
      : h("p", { class: "empty" }, "There is no session."), next && button("More", load));
  }
  async function load() {
    const page = await get("/sessions", { ...params, limit: 100, after: next }, signal);
    all = [...all, ...page.sessions];
    next = page.next || null;
    draw();
  }
  await load();
}
