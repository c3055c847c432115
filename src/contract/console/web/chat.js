// chat: turns of one session with any agent, read from the same events as everything else here.

import { follow, fresh, get, post } from "./api.js";
import { answerForm } from "./approvals.js";
import { button, field, fill, h, problem, select, tell } from "./dom.js";
import { parse, write } from "./exact.js";
import { TRANSFER } from "./journal.js";
import { markdown } from "./markdown.js";
import { Pieces } from "./pieces.js";
import { go, note } from "./router.js";
import { link } from "./runs.js";

const TURNS_SHOWN = 20;

/** Whoever is at the end of the page stays there; looked at once a frame, as it makes the browser lay the
 * page out. */
let staying = 0;
function stayAtEnd() {
  const page = document.documentElement;
  if (staying) return;
  const near = page.scrollHeight - window.scrollY - window.innerHeight < 200;
  staying = requestAnimationFrame(() => { staying = 0; if (near) window.scrollTo(0, page.scrollHeight); });
}

const pretty = (value) => h("pre", { tabindex: "0" }, typeof value === "string" ? value : write(value, 2));

const ENDS = ["done", "failed", "cancelled"];
const BROUGHT = "application/vnd.weir.messages+json"; // an item: messages that a turn was begun with

/** The messages of such an item; none where it is another. */
function broughtBy(event) {
  if (!event.content_type?.startsWith(BROUGHT)) return [];
  try {
    return parse(new TextDecoder().decode(Uint8Array.from(atob(event.bytes), (c) => c.charCodeAt(0))));
  } catch { return []; }
}

function broughtNode({ role, text = "", tool = "" }) {
  if (role === "user") return h("div", { class: "said user" }, text);
  if (role === "agent") return h("div", { class: "said agent" }, markdown(text));
  if (role === "tool_call") return h("details", { class: "fold" }, h("summary", null, "Tool " + tool), pretty(text));
  if (role === "tool_result") return h("details", { class: "fold" }, h("summary", null, "Result"), pretty(text));
  return null;
}

/** What one run says, as it says it. One that is over is drawn block by block, not word by word. */
class Turn {
  constructor(id, acts, { text = "", live = false }) {
    this.id = id;
    this.live = live;
    this.asked = text; // until its first event says it
    this.before = h("section", { class: "before", "aria-label": "Before this turn", hidden: true });
    this.user = h("div", { class: "said user" });
    this.body = h("div", { class: "said agent" });
    this.tools = h("div", { class: "tools small" }, link(id, "Run"), button("Fork here", () => acts.fork(this)));
    this.node = h("article", { class: "turn", "data-run": id }, this.before, this.user, this.body, this.tools);
    this.acts = acts;
    this.events = [];
    this.cut(0);
  }

  /** Events after `seq` were lost in a crash: say again what is left. */
  cut(seq) {
    const kept = this.events.filter((event) => event.seq <= seq);
    this.events = [];
    this.text = this.asked;
    this.block = null;
    this.calls = new Map();
    this.over = false;
    this.agent = "";
    this.copied = false;
    fill(this.user, this.text);
    fill(this.body);
    kept.forEach((event) => this.take(event));
  }

  /** The text so far becomes what it means. */
  #settle() {
    const block = this.block;
    this.block = null;
    if (block?.kind === "text") {
      fill(block.node).classList.remove("plain");
      markdown(block.said.join(""), block.node);
    } else if (block && !this.live) block.pieces.add(block.said.join(""));
  }

  #open(kind, agent) {
    if (this.block?.kind === kind && this.block.agent === agent) return this.block;
    this.#settle();
    if (agent && agent !== this.agent) {
      this.agent = agent;
      this.body.append(h("p", { class: "speaker" }, agent));
    }
    const node = kind === "text" ? h("div", { class: "markdown plain" }) : h("pre", { tabindex: "0" });
    this.body.append(kind === "text" ? node : h("details", { class: "fold" }, h("summary", null, "Thinking"), node));
    this.block = { kind, agent, node, said: [], pieces: new Pieces(node) };
    return this.block;
  }

  take(event) {
    this.events.push(event);
    switch (event.type) {
    case "started":
      fill(this.user, event.text);
      this.text = event.text;
      this.copied = event.contract === "fork";
      break;
    case "text": case "thinking": {
      const block = this.#open(event.type, event.agent);
      block.said.push(event.text);
      if (this.live) block.pieces.add(event.text);
      break;
    }
    case "item": this.#bring(broughtBy(event)); break;
    case "tool_call": this.#call(event); break;
    case "tool_result": this.#result(event); break;
    case "approval": this.#ask(event); break;
    case "failed": this.#end(problem(new Error(event.message || event.reason))); break;
    case "cancelled": this.#end(h("p", { class: "empty" }, "Stopped: " + event.message)); break;
    case "done": this.#end(null); break;
    }
  }

  /** Messages that stand before what is asked; a copied turn is all of them. */
  #bring(messages) {
    const asks = messages.findLastIndex((one) => one.role === "user");
    if (asks < 0) return;
    if (this.copied) {
      this.text = messages[asks].text || "";
      fill(this.user);
    }
    fill(this.before, (this.copied ? messages : messages.slice(0, asks)).map(broughtNode));
    this.before.hidden = !this.before.childNodes.length;
  }

  /** It cannot be followed any more. */
  broke(error) {
    this.#settle();
    this.body.append(problem(error));
    this.node.dataset.link = "broken";
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
    this.#answered();
    if (!call) return;
    call.name.textContent = "Tool " + call.tool + (event.error ? ": error" : "");
    call.fold.append(pretty(event.error ? event.message || "" : event.result));
  }

  /** The question goes, and the keyboard with it to where the next thing is said. */
  #answered() {
    if (this.question?.contains(document.activeElement)) this.acts.focus();
    this.question?.remove();
    this.question = null;
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
    this.#answered();
    if (last) this.body.append(last);
    this.over = true;
    this.acts.over(this);
  }
}

export async function chat(main, params, signal) {
  const { agents } = await get("/agents", {}, signal);
  const session = params.session || "console-" + fresh();
  const whose = { ...(params.workspace && { workspace: params.workspace }), ...(params.user && { user: params.user }) };
  const agent = select(agents.map((one) => [one.name, one.name + (one.model ? " · " + one.model : "")]),
    params.agent || agents.find((one) => one.default)?.name, { "aria-label": "Agent" });
  const input = h("textarea", { rows: "2", placeholder: "Say something", "aria-label": "Message" });
  const turns = h("div", { class: "turns", role: "log", "aria-label": "Conversation" }), said = h("div", { "aria-live": "polite" });
  const all = [];
  let current = null, sending = false, forking = false, chosen = Boolean(params.agent);
  let unanswered = null; // {body, key}: a message of which it is not known whether it has arrived
  agent.addEventListener("change", () => { chosen = true; });

  const stop = button("Stop", async () => {
    const { id } = current;
    try { await post(`/runs/${id}/cancel`); } catch (error) { tell(error.message); }
  }, { disabled: true });
  const retry = button("Retry", () => say(all.at(-1).text), { disabled: true });
  const busy = () => {
    stop.disabled = !current;
    retry.disabled = Boolean(current || sending || !all.at(-1)?.text);
  };
  const acts = {
    live: (turn) => turn === current, focus: () => input.focus(), fork,
    over: (turn) => { if (turn === current) current = null; busy(); },
  };

  /** Without an answer to the first time it is asked for again by the same name: where that is taken, it is there. */
  async function makeFork(turn) {
    const again = turn.forkTo !== undefined;
    turn.forkTo ??= "fork-" + fresh();
    const to = turn.forkTo;
    try {
      await post(`/sessions/${encodeURIComponent(session)}/fork?` + new URLSearchParams(whose), { run: turn.id, session_id: to }, { patient: true });
    } catch (error) {
      const isThere = again && error.code === "SESSION_EXISTS";
      if (error.status && error.status < 500 && !again) turn.forkTo = undefined;
      if (!isThere || !(await get("/runs", { session_id: to, ...whose })).runs.length) throw error; // it may be being made
    }
    turn.forkTo = undefined;
    return to;
  }

  /** A session of its own that begins with this conversation, up to and with `turn`. */
  async function fork(turn) {
    if (forking) return;
    forking = true;
    try {
      const to = await makeFork(turn);
      if (!signal.aborted) go("/chat", { agent: agent.value, ...whose, session: to });
    } catch (error) { if (!signal.aborted) fill(said, problem(error)); }
    forking = false;
  }

  function add(id, about) {
    const turn = new Turn(id, acts, about);
    all.push(turn);
    turns.append(turn.node);
    if (about.live) current = turn;
    busy();
    return turn;
  }

  /** To the end of the turn, however it comes: what is said next must not wait for it. */
  async function watch(turn) {
    try {
      await follow(turn.id, {
        event: (event) => { if (turn.live) stayAtEnd(); turn.take(event); },
        reset: (seq) => turn.cut(seq),
        link: (text) => { turn.node.dataset.link = text; },
      }, signal);
    } catch (error) {
      if (!signal.aborted) turn.broke(error);
    } finally {
      if (turn === current) current = null;
      busy();
    }
  }

  /** Begin a turn. Sent again without an answer to the first time, it is the same turn: it has the same key. */
  async function begin(text) {
    await opened.catch(() => {});
    const body = { agent: agent.value, session_id: session, ...whose, input: text }, written = write(body);
    if (unanswered?.body !== written) unanswered = { body: written, key: fresh() };
    try {
      const run = await post("/runs", body, { key: unanswered.key });
      unanswered = null;
      return run;
    } catch (error) {
      if (error.status && error.status < 500) unanswered = null;
      throw error;
    }
  }

  const why = (text) => fill(said, h("p", { class: "empty" }, text));

  /** `box`: where the text was written, if it was. */
  async function say(text, box) {
    if (sending) return why("The message before is still on its way.");
    if (current) return why("The turn goes on. Stop it, or wait for its end.");
    if (!text?.trim()) return why("Write a message first.");
    sending = true;
    why("Sending …");
    busy();
    if (box) box.value = "";
    try {
      const run = await begin(text);
      if (signal.aborted) return null;
      fill(said);
      note("/chat", { session, agent: agent.value, ...whose });
      watch(add(run.id, { text, live: true }));
    } catch (error) {
      if (box) box.value = box.value ? text + "\n" + box.value : text;
      if (!signal.aborted) fill(said, problem(error));
    } finally {
      sending = false;
      busy();
    }
    return null;
  }

  /** The turns that are there: all of them at once, in their order, and then what each of them says. */
  async function reopen() {
    const { runs } = await get("/runs", { session_id: session, ...whose }, signal);
    const shown = runs.slice(-TURNS_SHOWN);
    if (shown.length < runs.length) turns.append(h("p", { class: "empty" }, `${runs.length - shown.length} turns before these: `,
      h("a", { href: "#/sessions?" + new URLSearchParams({ session, ...whose }) }, "the session")));
    const last = shown.at(-1)?.agent;
    if (!chosen && agents.some((one) => one.name === last)) agent.value = last;
    return shown.map((run) => add(run.id, { text: run.text_cut ? "" : run.text, live: !ENDS.includes(run.state) }));
  }
  const opened = params.session ? reopen() : Promise.resolve([]);

  const form = h("form", { class: "say", on: { submit: (event) => { event.preventDefault(); say(input.value, input); } } },
    field("Message", input), h("div", { class: "tools" }, h("button", { type: "submit", class: "good" }, "Send"), stop, retry,
      button("New session", () => { go("/chat", { agent: agent.value }); })));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });
  fill(main, h("h1", null, "Chat"), h("div", { class: "tools" }, field("Agent", agent), h("span", { class: "empty" }, "Session " + session)),
    turns, said, form);
  input.focus();
  const before = await opened;
  before.filter((turn) => turn.live).forEach(watch);
  for (const turn of before) if (!turn.live) await watch(turn);
}
