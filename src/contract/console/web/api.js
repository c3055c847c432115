// api: requests to /weir/v1 of the daemon that served this page.
//
// The token is asked for once and kept by this tab's session. Streams are read with fetch, as an
// EventSource cannot send a token.
//
// A browser has six connections to one HTTP/1.1 server, for all its tabs together. Streams take at
// most four of them, so that an action always has one:
//
//     a hidden tab                    none; it goes on where it was when it is shown again
//     three streams of this browser   one each, for as long as they are watched
//     all others                      one connection, each in its turn, for half a second

import { parse, write } from "./exact.js";

const KEPT = "weir.token";

export const token = {
  get: () => sessionStorage.getItem(KEPT) || "",
  set: (text) => (text ? sessionStorage.setItem(KEPT, text) : sessionStorage.removeItem(KEPT)),
};

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let ask = null; // asks a person for the token; one question at a time
let asking = null;
export function onTokenWanted(fn) { ask = fn; }

function askToken(why) {
  if (!asking) asking = ask(why).finally(() => { asking = null; });
  return asking;
}

let aheadMs = 0; // by how much the clock of the daemon is ahead of the browser's
/** The time at the daemon, to the second: the browser's clock may be wrong. */
export const now = () => Date.now() + aheadMs;

async function send(path, options = {}) {
  const headers = { accept: "application/json", ...options.headers };
  if (token.get()) headers.authorization = "Bearer " + token.get();
  const response = await fetch("/weir/v1" + path, { ...options, headers, cache: "no-store", redirect: "error" });
  const there = Date.parse(response.headers.get("date"));
  if (there) aheadMs = there - Date.now();
  return response;
}

async function refusal(response) {
  let code = "HTTP_" + response.status, message = "the daemon answered " + response.status;
  try {
    const body = parse(await response.text());
    if (body.error) { code = body.error.code || code; message = body.error.message || message; }
  } catch { /* it was no JSON */ }
  return new Refused(response.status, code, message);
}

/** A response that is fine. Where a token is missing or wrong a person is asked, and the request
 * is sent again. */
async function open(path, options) {
  for (;;) {
    const sent = token.get();
    const response = await send(path, options);
    if (response.ok) return response;
    await unlessToken(await refusal(response), sent);
  }
}

/** Throws unless the refusal is about the token `sent`; then a person has given another one. */
async function unlessToken(failed, sent) {
  const wrong = failed.status === 401 || (failed.status === 403 && /token/i.test(failed.message) && sent &&
    /invalid/i.test(failed.message));
  if (!wrong) throw failed;
  if (token.get() === sent) await askToken(failed);
}

const query = (params) => {
  const text = new URLSearchParams(Object.entries(params || {}).filter(([, v]) => v !== "" && v !== null && v !== undefined));
  return text.size ? "?" + text : "";
};

const PATIENCE_MS = 30000;

/** The whole answer as a value. One that does not come in time is an error, as is a broken line. A
 * question for the token takes a person, and so none of this time. `patient`: it may take any time. */
async function read(path, options = {}, signal, patient) {
  for (;;) {
    const sent = token.get(), late = patient ? new AbortController().signal : AbortSignal.timeout(PATIENCE_MS);
    try {
      const response = await send(path, { ...options, signal: signal ? AbortSignal.any([signal, late]) : late });
      if (response.ok) return parse(await response.text());
      await unlessToken(await refusal(response), sent);
    } catch (error) {
      if (signal?.aborted || error instanceof Refused) throw error;
      if (late.aborted) throw new Error(`weir did not answer within ${PATIENCE_MS / 1000} seconds.`);
      throw error instanceof TypeError ? new Error("weir cannot be reached.") : error;
    }
  }
}

export const get = (path, params, signal) => read(path + query(params), {}, signal);
export const raw = (path, params) => open(path + query(params), {});
export const remove = (path, params) => read(path + query(params), { method: "DELETE" });
/** `key`: what is sent again with the same one is done once. `patient`: it may wait at the daemon behind others, as
 * long as it takes. */
export const post = (path, body, { key, patient } = {}) => read(path, {
  method: "POST",
  headers: { ...(body !== undefined && { "content-type": "application/json" }), ...(key && { "idempotency-key": key }) },
  body: body === undefined ? undefined : write(body),
}, undefined, patient);

/** A name that nobody else has. (randomUUID() is there only over TLS.) */
export const fresh = () => [...crypto.getRandomValues(new Uint32Array(4))].map((n) => n.toString(36)).join("");

// --- work in slices ----------------------------------------------------------------------------

const SLICE_MS = 8;
const channel = new MessageChannel();
const waiting = [];
channel.port1.onmessage = () => waiting.shift()();

/** Let the browser paint and take input. */
export const pause = () => new Promise((resolve) => { waiting.push(resolve); channel.port2.postMessage(0); });

/** Call `await slice()` often: it pauses when the time of a slice is used up. */
export function slicer() {
  let began = performance.now();
  return async () => {
    if (performance.now() - began < SLICE_MS) return;
    await pause();
    began = performance.now();
  };
}

// --- server-sent events ------------------------------------------------------------------------

/** Call take({type, id, data}) for each event of a body, in order. between(): whether the reader stands
 * between two events, for who wants to leave. */
async function readEvents(body, take, between) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const slice = slicer();
  let rest = "", event = { type: "", id: "", data: "" };
  between.is = () => !rest && !event.data;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    let from = 0;
    for (let end; (end = rest.indexOf("\n", from)) >= 0; from = end + 1) {
      const text = rest.slice(from, rest[end - 1] === "\r" ? end - 1 : end);
      if (text === "") {
        if (event.data) take(event);
        event = { type: "", id: "", data: "" };
        await slice();
        continue;
      }
      const colon = text.indexOf(":");
      const name = colon < 0 ? text : text.slice(0, colon);
      const data = colon < 0 ? "" : text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1);
      if (name === "event") event.type = data;
      else if (name === "id") event.id = data;
      else if (name === "data") event.data += (event.data && "\n") + data;
    }
    rest = rest.slice(from);
  }
}

// --- connections of one browser ------------------------------------------------------------------

const STREAMS = 3;
const BRIEF_MS = 500;
const BETWEEN_MS = 1000;

/** Call work(brief) while this stream has a connection, whoever else of this browser reads. Where there are
 * no locks (a page without TLS, of another machine), each tab that is seen has its own. */
async function withConnection(work, signal) {
  if (!navigator.locks) return work(false);
  for (let i = 0; i < STREAMS; i++) {
    const had = await navigator.locks.request("weir.stream." + i, { ifAvailable: true }, async (lock) => {
      if (lock) await work(false);
      return lock !== null;
    });
    if (had || signal.aborted) return had;
  }
  return navigator.locks.request("weir.brief", { signal }, () => work(true));
}

/** The promise is kept when the tab is seen. */
const seen = (signal) => new Promise((resolve) => {
  if (!document.hidden || signal.aborted) return resolve();
  const over = new AbortController(), end = () => { over.abort(); resolve(); };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) end(); }, { signal: over.signal });
  return signal.addEventListener("abort", end, { once: true, signal: over.signal });
});

/** A signal for one reading: it is over when `signal` is, when the tab is hidden and, of a brief one, when its
 * time is up and no event stands half read. end() must follow. */
function reading(signal, brief, between) {
  const leave = new AbortController(), over = () => leave.abort();
  const hide = () => { if (document.hidden) over(); };
  let timer = 0;
  signal.addEventListener("abort", over, { once: true });
  document.addEventListener("visibilitychange", hide);
  return {
    signal: leave.signal,
    begun: () => { if (brief) timer = setInterval(() => { if (!between.is || between.is()) over(); }, BRIEF_MS); },
    end: () => {
      clearInterval(timer);
      signal.removeEventListener("abort", over);
      document.removeEventListener("visibilitychange", hide);
    },
  };
}

const ENDS = new Set(["done", "failed", "cancelled"]);
const seqOf = (id) => Number(id.slice(id.indexOf("-") + 1));
const wait = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
});

/** Follow the events of a run to its end, over broken connections and restarts of the daemon.
 *
 * on.event(event)   each event once, in order
 * on.reset(seq)     events after this one were lost in a crash: forget them
 * on.link(text)     "live", "taking turns", "paused" while the tab is hidden, "reconnecting", "ended"
 */
export async function follow(run, on, signal) {
  let last = "", seq = 0, ended = false, tries = 0;
  const take = ({ type, id, data }) => {
    if (type === "reset") {
      last = JSON.parse(data).after;
      if (seqOf(last) < seq) on.reset(seqOf(last));
      seq = seqOf(last);
      ended = false;
      return;
    }
    const event = parse(data);
    if (id) last = id;
    if (event.seq <= seq) return;
    seq = event.seq;
    ended = ENDS.has(event.type);
    on.event(event);
  };
  /** One connection. how: it is "over" (there is nothing more), was "left" (by us), or is "broken"; or it was
   * `refused` as the one with the token `sent`. */
  const once = async (brief) => {
    if (document.hidden || signal.aborted) return { how: "left" }; // before it was its turn
    const between = {}, now = reading(signal, brief, between), sent = token.get();
    try {
      const headers = { accept: "text/event-stream", ...(last && { "last-event-id": last }) };
      const response = await send(`/runs/${encodeURIComponent(run)}/events`, { headers, signal: now.signal });
      if (response.status === 204) return { how: "over" };
      if (!response.ok) return { how: "broken", refused: await refusal(response), sent };
      on.link(brief ? "taking turns" : "live");
      tries = 0;
      now.begun();
      await readEvents(response.body, take, between);
    } catch (error) {
      return { how: now.signal.aborted ? "left" : "broken" };
    } finally { now.end(); }
    return { how: ended ? "over" : "broken" };
  };
  for (;;) {
    let was = { how: "left" };
    if (document.hidden) on.link("paused");
    await seen(signal);
    if (signal.aborted) return;
    try {
      await withConnection(async (brief) => { was = await once(brief); }, signal);
    } catch (error) { if (!signal.aborted) throw error; }
    if (signal.aborted) return;
    if (ended || was.how === "over") break;
    const { refused } = was;
    if (refused && refused.status < 500 && refused.status !== 429) {
      await unlessToken(refused, was.sent); // without a connection: a person may take long
      continue;
    }
    if (was.how === "broken") on.link("reconnecting");
    await wait(was.how === "broken" ? Math.min(250 * 2 ** tries++, 4000) : document.hidden ? 0 : BETWEEN_MS, signal);
  }
  on.link("ended");
}
