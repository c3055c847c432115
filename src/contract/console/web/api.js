// api: requests to /weir/v1 of the daemon that served this page.
//
// The token is asked for once and kept by this tab's session. Streams are read with fetch, as an
// EventSource cannot send a token.

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

function send(path, options = {}) {
  const headers = { accept: "application/json", ...options.headers };
  if (token.get()) headers.authorization = "Bearer " + token.get();
  return fetch("/weir/v1" + path, { ...options, headers, cache: "no-store", redirect: "error" });
}

async function refusal(response) {
  let code = "HTTP_" + response.status, message = "the daemon answered " + response.status;
  try {
    const body = JSON.parse(await response.text());
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
    const failed = await refusal(response);
    const wrong = failed.status === 401 || (failed.status === 403 && /token/i.test(failed.message) && sent &&
      /invalid/i.test(failed.message));
    if (!wrong) throw failed;
    if (token.get() === sent) await askToken(failed);
  }
}

const query = (params) => {
  const text = new URLSearchParams(Object.entries(params || {}).filter(([, v]) => v !== "" && v !== null && v !== undefined));
  return text.size ? "?" + text : "";
};

export const get = async (path, params, signal) => (await open(path + query(params), { signal })).json();
export const raw = (path, params) => open(path + query(params), {});
export const remove = async (path, params) => (await open(path + query(params), { method: "DELETE" })).json();
export const post = async (path, body) => (await open(path, {
  method: "POST",
  headers: body === undefined ? {} : { "content-type": "application/json" },
  body: body === undefined ? undefined : JSON.stringify(body),
})).json();

// --- work in slices ----------------------------------------------------------------------------

const SLICE_MS = 12;
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

/** Call take({type, id, data}) for each event of a body, in order. */
async function readEvents(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const slice = slicer();
  let rest = "", event = { type: "", id: "", data: "" };
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
 * on.link(text)     "live", "ended", "reconnecting"
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
    const event = JSON.parse(data);
    if (id) last = id;
    if (event.seq <= seq) return;
    seq = event.seq;
    ended = ENDS.has(event.type);
    on.event(event);
  };
  while (!signal.aborted && !ended) {
    try {
      const headers = { accept: "text/event-stream", ...(last && { "last-event-id": last }) };
      const response = await open(`/runs/${encodeURIComponent(run)}/events`, { headers, signal });
      if (response.status === 204) break;
      on.link("live");
      tries = 0;
      await readEvents(response.body, take);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status < 500 && error.status !== 429) throw error;
    }
    if (ended || signal.aborted) break;
    on.link("reconnecting");
    await wait(Math.min(250 * 2 ** tries++, 4000), signal);
  }
  if (!signal.aborted) on.link("ended");
}
