// approvals: what waits for a human, and the answer.

import { get, post } from "./api.js";
import { button, dismiss, facts, field, fill, h, problem, tell, when } from "./dom.js";
import { parse, write } from "./exact.js";
import { link } from "./runs.js";

const EVERY_MS = 3000;

/** The form that answers one question; answered() is called once it was taken. */
export function answerForm(approval, answered) {
  const said = h("div", { "aria-live": "polite" });
  const guards = approval.kind === "tool";
  const given = write(approval.args, 2);
  const args = h("textarea", { rows: "6", spellcheck: "false", value: given });
  const words = h("input", { type: "text", autocomplete: "off" });
  const send = async (body) => {
    try {
      await post("/approvals/" + approval.id, body);
      fill(said, h("p", null, "Answered."));
      answered();
    } catch (error) { fill(said, problem(error)); }
  };
  const approve = () => {
    if (!guards || args.value === given) return send({ decision: "approve" });
    let changed;
    try { changed = parse(args.value); } catch (error) {
      return fill(said, problem(new Error("The arguments are no JSON: " + error.message)));
    }
    return send({ decision: "edit", args: changed });
  };
  const refuse = () => send({ decision: "refuse", ...(words.value && { reason: words.value }) });
  return h("article", { class: "card", "data-approval": approval.id },
    h("h2", null, guards ? "May " + approval.tool + " be called?" : "A question"),
    approval.question && h("p", { class: "question" }, approval.question),
    facts([["Agent", approval.agent], ["Run", link(approval.run_id)], ["Session", approval.session_id], ["Workspace", approval.workspace], ["User", approval.user],
      ["Asked", when(approval.asked_unix_ms)], approval.deadline_unix_ms && ["Until", when(approval.deadline_unix_ms)]]),
    guards && field("Arguments; change them to approve others", args),
    field(guards ? "Reason, for a refusal" : "Answer in words, or choose below", words),
    h("div", { class: "tools" }, button("Approve", approve, { class: "good" }), button("Refuse", refuse, { class: "bad" }),
      !guards && button("Send the answer", () => send({ answer: words.value }))), said);
}

export async function approvals(main, params, signal) {
  const list = h("div", { class: "cards" }), note = h("div");
  const shown = new Map();
  fill(main, h("h1", null, "Approvals"), note, list);
  async function load() {
    const { approvals: open, more } = await get("/approvals", params, signal);
    const ids = new Set(open.map((one) => one.id));
    const over = [...shown].filter(([id]) => !ids.has(id));
    over.forEach(([id]) => shown.delete(id));
    const [next] = shown.values();
    dismiss(over.map(([, card]) => card), next?.querySelector("textarea, input") || note);
    for (const one of open) {
      if (shown.has(one.id)) continue;
      const card = answerForm(one, () => { tell("Answered."); setTimeout(() => load().catch(() => {}), 300); });
      shown.set(one.id, card);
      list.append(card);
    }
    fill(note, !open.length && h("p", { class: "empty" }, "Nothing waits for a human."), more && h("p", null, "More wait than are shown."));
  }
  await load();
  const timer = setInterval(() => {
    if (document.visibilityState === "visible") load().catch((error) => { if (!signal.aborted) fill(note, problem(error)); });
  }, EVERY_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}
