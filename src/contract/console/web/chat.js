// chat: turns of one session with any agent, read from the same events as everything else here.

import { follow, get, post } from "./api.js";
import { answerForm } from "./approvals.js";
import { button, field, fill, h, problem, select, tell } from "./dom.js";
import { TRANSFER } from "./journal.js";
import { markdown } from "./markdown.js";
import { go, note } from "./router.js";
import { link } from "./runs.js";

const TURNS_SHOWN = 20;

const pretty = (value) => h("pre", { tabindex: "0" }, typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** What one run says, as it says it. */
class Turn {
  constructor(id, acts) {
    this.id = id;
    this.user = h("div", { class: "said user" });
    this.body = h("div", { class: "said agent" });
    this.tools = h("div", { class: "tools small" }, link(id, "Run"), button("Fork here", () => acts.fork(this)));
    this.node = h("article", { class: "turn", "data-run": id }, this.user, this.body, this.tools);
    this.acts = acts;
    this.events = [];
    this.cut(0);
  }

  /** Events after `seq` were lost in a crash: say again what is left. */
  cut(seq) {
    const kept = this.events.filter((event) => event.seq <= seq);
    this.events = [];
    this.text = "";
    this.answer = "";
    this.block = null;
    this.calls = new Map();
    this.over = false;
    this.agent = "";
    fill(this.body);
    kept.forEach((event) => this.take(event));
  }

  /** The text so far becomes what it means. */
  #settle() {
    if (this.block?.kind === "text") {
      fill(this.block.node);
      markdown(this.block.node.data_text, this.block.node);
    }
    this.block = null;
  }

  #open(kind, agent) {
    if (this.block?.kind === kind && this.block.agent === agent) return this.block;
    this.#settle();
    if (agent && agent !== this.agent) {
      this.agent = agent;
      this.body.append(h("p", { class: "speaker" }, agent));
    }
    const text = document.createTextNode("");
    const node = kind === "text" ? h("div", { class: "markdown plain" }, text) : h("pre", { tabindex: "0" }, text);
    node.data_text = "";
    this.body.append(kind === "text" ? node : h("details", { class: "fold" }, h("summary", null, "Thinking"), node));
    this.block = { kind, agent, node, text };
    return this.block;
  }

  take(event) {
    this.events.push(event);
    switch (event.type) {
    case "started": fill(this.user, event.text); this.text = event.text; break;
    case "text": case "thinking": {
      const block = this.#open(event.type, event.agent);
      block.text.appendData(event.text);
      block.node.data_text += event.text;
      if (event.type === "text") this.answer += event.text;
      break;
    }
    case "tool_call": this.#call(event); break;
    case "tool_result": this.#result(event); break;
    case "approval": this.#ask(event); break;
    case "failed": this.#end(problem(new Error(event.message || event.reason))); break;
    case "cancelled": this.#end(h("p", { class: "empty" }, "Stopped: " + event.message)); break;
    case "done": this.#end(null); break;
    }
  }

  #call(event) {
    this.#settle();
    if (event.tool === TRANSFER) {
      this.body.append(h("p", { class: "handover" }, event.agent + " hands over to " + (event.args?.agent_name || "?")));
      return;
    }
    const name = h("summary", null, "Tool " + event.tool + " …"), fold = h("details", { class: "fold" }, name, pretty(event.args || {}));
    this.calls.set(event.call_id, { name, fold, tool: event.tool });
    this.body.append(fold);
  }

  #result(event) {
    const call = this.calls.get(event.call_id);
    this.question?.remove();
    this.question = null;
    if (!call) return;
    call.name.textContent = "Tool " + call.tool + (event.error ? ": error" : "");
    call.fold.append(pretty(event.error ? event.message || "" : event.result));
  }

  async #ask(event) {
    this.#settle();
    const place = this.question = h("div");
    this.body.append(place);
    try {
      const approval = await get("/approvals/" + this.id + "-" + event.seq);
      if (approval.state === "waiting") place.append(answerForm(approval, () => tell("Answered.")));
      if (this.acts.live(this)) place.scrollIntoView({ block: "end" });
    } catch (error) { place.append(problem(error)); }
  }

  #end(last) {
    this.#settle();
    this.question?.remove();
    if (last) this.body.append(last);
    this.over = true;
    this.acts.over(this);
  }
}

export async function chat(main, params, signal) {
  const { agents } = await get("/agents", {}, signal);
  const session = params.session || "console-" + Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
  const whose = { ...(params.workspace && { workspace: params.workspace }), ...(params.user && { user: params.user }) };
  const agent = select(agents.map((one) => [one.name, one.name + (one.model ? " · " + one.model : "")]),
    params.agent || agents.find((one) => one.default)?.name, { "aria-label": "Agent" });
  const input = h("textarea", { rows: "2", placeholder: "Say something", "aria-label": "Message" });
  const turns = h("div", { class: "turns", role: "log", "aria-label": "Conversation" }), said = h("div", { "aria-live": "polite" });
  let current = null, forked = null, all = [];

  const stop = button("Stop", async () => {
    try { await post(`/runs/${current.id}/cancel`); } catch (error) { tell(error.message); }
  }, { disabled: true });
  const retry = button("Retry", () => say(all.at(-1)?.text), { disabled: true });
  const busy = (yes) => { stop.disabled = !yes; retry.disabled = yes || !all.length; };
  const acts = { live: (turn) => turn === current, over: (turn) => { if (turn === current) { current = null; busy(false); } }, fork };

  /** A session of its own that begins with this conversation, up to and with `turn`. */
  function fork(turn) {
    const until = all.indexOf(turn) + 1;
    const told = all.slice(0, until).flatMap((one) => [{ role: "user", content: one.text }, ...(one.answer ? [{ role: "assistant", content: one.answer }] : [])]);
    sessionStorage.setItem("weir.fork", JSON.stringify(told));
    go("/chat", { agent: agent.value, ...whose, forked: "1", session: "fork-" + Date.now().toString(36) });
  }

  async function watch(id, live) {
    const turn = new Turn(id, acts);
    all.push(turn);
    turns.append(turn.node);
    if (live) { current = turn; busy(true); }
    const near = () => document.documentElement.scrollHeight - window.scrollY - window.innerHeight < 200;
    await follow(id, {
      event: (event) => { const stay = near(); turn.take(event); if (stay && live) window.scrollTo(0, document.documentElement.scrollHeight); },
      reset: (seq) => turn.cut(seq),
      link: (text) => { turn.node.dataset.link = text; },
    }, signal);
    if (turn === current) { current = null; busy(false); }
  }

  async function say(text) {
    if (!text?.trim() || current) return;
    fill(said);
    const body = { agent: agent.value, session_id: session, ...whose };
    if (forked) body.messages = [...forked, { role: "user", content: text }];
    else body.input = text;
    try {
      const run = await post("/runs", body);
      forked = null;
      input.value = "";
      note("/chat", { session, agent: agent.value, ...whose });
      watch(run.id, true).catch((error) => { if (!signal.aborted) fill(said, problem(error)); });
    } catch (error) { fill(said, problem(error)); }
  }

  const form = h("form", { class: "say", on: { submit: (event) => { event.preventDefault(); say(input.value); } } },
    field("Message", input), h("div", { class: "tools" }, h("button", { type: "submit", class: "good" }, "Send"), stop, retry,
      button("New session", () => { go("/chat", { agent: agent.value }); })));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });
  fill(main, h("h1", null, "Chat"), h("div", { class: "tools" }, field("Agent", agent), h("span", { class: "empty" }, "Session " + session)),
    turns, said, form);

  if (params.forked) {
    try { forked = JSON.parse(sessionStorage.getItem("weir.fork")); } catch { forked = null; }
    if (forked) turns.append(h("section", { class: "before", "aria-label": "Before the fork" }, forked.map((one) =>
      h("div", { class: "said " + (one.role === "user" ? "user" : "agent") }, one.role === "user" ? one.content : markdown(one.content)))));
  } else if (params.session) {
    const { runs } = await get("/runs", { session_id: session, ...whose }, signal);
    for (const run of runs.slice(-TURNS_SHOWN)) {
      const over = ["done", "failed", "cancelled"].includes(run.state);
      const done = watch(run.id, !over);
      if (over) await done;
      else done.catch((error) => fill(said, problem(error)));
    }
  }
  input.focus();
}
