// journal: the events of a run, and the same folded into a timeline: pieces of one text are one
// entry, a tool's call and its result are one, and the usage of all model calls is summed.

import { line, took, count } from "./dom.js";
import { write } from "./exact.js";

export const TRANSFER = "transfer_to_agent";
const ENDS = { done: "done", failed: "failed", cancelled: "cancelled" };

export class Journal {
  constructor() { this.clear(); }

  clear() {
    this.events = [];
    this.entries = [];
    this.calls = new Map();
    this.sums = { calls: 0, prompt: 0, completion: 0, cost: 0, unknown: 0, unpriced: 0 };
    this.state = "queued";
    this.started = null;
    this.lastMs = 0;
  }

  /** Forget what came after event `seq`. */
  cut(seq) {
    const kept = this.events.filter((event) => event.seq <= seq);
    this.clear();
    for (const event of kept) this.add(event);
  }

  add(event) {
    this.events.push(event);
    this.lastMs = event.at_ms;
    this.state = ENDS[event.type] || (event.type === "approval" ? "waiting" : "running");
    const last = this.entries.at(-1);
    const fold = fits(last, event);
    if (fold) {
      last.text += event.text;
      last.untilMs = event.at_ms;
      last.lastSeq = event.seq;
    } else if (event.type === "tool_result" && this.calls.has(event.call_id)) {
      const call = this.calls.get(event.call_id);
      call.result = event;
      call.untilMs = event.at_ms;
      call.lastSeq = event.seq;
    } else {
      this.#enter(event);
    }
  }

  #enter(event) {
    const entry = {
      kind: event.type === "tool_call" && event.tool === TRANSFER ? "transfer" : event.type,
      agent: event.agent, atMs: event.at_ms, untilMs: event.at_ms, seq: event.seq,
      lastSeq: event.seq, event, text: event.text || "", result: null,
    };
    if (event.type === "started") this.started = event;
    if (event.type === "tool_call") this.calls.set(event.call_id, entry);
    if (event.type === "usage") this.#sum(event);
    this.entries.push(entry);
  }

  #sum(event) {
    const sums = this.sums;
    sums.calls++;
    if (event.prompt_tokens === null || event.completion_tokens === null) sums.unknown++;
    sums.prompt += event.prompt_tokens || 0;
    sums.completion += event.completion_tokens || 0;
    if (event.cost_nano_usd === null || event.cost_nano_usd === undefined) sums.unpriced++;
    else sums.cost += event.cost_nano_usd;
  }

  /** The entry that event `seq` belongs to; -1: none. */
  entryOf(seq) {
    let low = 0, high = this.entries.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.entries[middle].seq <= seq) low = middle;
      else high = middle - 1;
    }
    const call = this.entries.findIndex((entry) => entry.result && entry.result.seq === seq);
    return call >= 0 ? call : this.entries.length ? low : -1;
  }
}

function fits(entry, event) {
  return entry && (event.type === "text" || event.type === "thinking") &&
    entry.kind === event.type && entry.agent === event.agent;
}

export const kinds = {
  started: "Asked", text: "Text", thinking: "Thinking", tool_call: "Tool", tool_result: "Result",
  transfer: "Hand-over", usage: "Model call", step: "Step", audio: "Audio", item: "Item",
  approval: "Question", done: "Done", failed: "Failed", cancelled: "Cancelled",
};

const asText = (value) => (typeof value === "string" ? value : write(value));

/** What an entry says, all of it: without times and ids. */
export function whole(entry) {
  const event = entry.event;
  switch (entry.kind) {
  case "started": case "text": case "thinking": return entry.text;
  case "tool_call": return event.tool + " " + asText(event.args || {}) + (entry.result ? " → " +
    (entry.result.error ? "error: " + (entry.result.message || "") : asText(entry.result.result)) : " …");
  case "transfer": return "to " + (event.args?.agent_name || "?");
  case "usage": return event.model + ": " + count(event.prompt_tokens) + " in, " + count(event.completion_tokens) + " out";
  case "approval": return event.question || "may " + event.tool + " be called?";
  case "failed": return event.code + " " + event.reason + ": " + event.message;
  case "cancelled": return event.message;
  case "step": return event.description;
  default: return entry.text || [event.content_type, event.bytes].filter(Boolean).join(" ");
  }
}

/** One line about it. */
export const summary = (entry) => line(entry.kind === "item" || entry.kind === "audio" ? entry.event.content_type || "" : whole(entry));

/** One line about an event as it came. */
export function rawSummary(event) {
  const { seq, at_ms: at, type, agent, ...rest } = event;
  return line(write(rest));
}

export const offset = (ms) => "+" + took(ms);
