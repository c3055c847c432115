// compare: two runs beside each other, entry by entry.

import { follow, get } from "./api.js";
import { count, fill, h, table, took } from "./dom.js";
import { Journal, kinds, summary } from "./journal.js";
import { link } from "./runs.js";
import { VirtualList } from "./virtual.js";

const MOST = 400; // entries of each, for the comparison's table of both

/** A stored run, or what a live one has come to. */
async function read(id, signal) {
  const journal = new Journal(), stop = new AbortController();
  signal.addEventListener("abort", () => stop.abort());
  const { last_seq: last } = await get("/runs/" + encodeURIComponent(id), {}, signal);
  await follow(id, {
    event: (event) => { journal.add(event); if (event.seq >= last) stop.abort(); },
    reset: (seq) => journal.cut(seq), link: () => {},
  }, stop.signal);
  return journal;
}

const key = (entry) => entry.kind + "\n" + entry.agent + "\n" + (entry.event.tool || "");

/** Pairs of entries of a and b; null on one side where the other has one more. */
export function align(a, b) {
  const n = a.length, m = b.length, len = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      len[i][j] = key(a[i]) === key(b[j]) ? len[i + 1][j + 1] + 1 : Math.max(len[i + 1][j], len[i][j + 1]);
  const pairs = [];
  let i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && key(a[i]) === key(b[j])) pairs.push([a[i++], b[j++]]);
    else if (j === m || (i < n && len[i + 1][j] >= len[i][j + 1])) pairs.push([a[i++], null]);
    else pairs.push([null, b[j++]]);
  }
  return pairs;
}

function cell(entry, other) {
  if (!entry) return h("span", { class: "cell missing" }, "—");
  const same = other && summary(entry) === summary(other);
  return h("span", { class: "cell " + (same ? "same" : "differs") },
    h("span", { class: "kind " + entry.kind }, kinds[entry.kind] || entry.kind), " ", entry.agent, " ", summary(entry));
}

export async function compare(main, params, signal, [one, two]) {
  fill(main, h("h1", null, "Two runs"), h("p", null, "Reading…"));
  const [a, b] = await Promise.all([read(one, signal), read(two, signal)]);
  const pairs = align(a.entries.slice(0, MOST), b.entries.slice(0, MOST));
  const list = new VirtualList({
    label: "Entries of both runs", rowHeight: 34,
    render: (i) => [cell(pairs[i][0], pairs[i][1]), cell(pairs[i][1], pairs[i][0])],
  });
  signal.addEventListener("abort", () => list.close());
  list.sticky = false;
  const numbers = [["State", (j) => j.state], ["Agent", (j) => j.started?.agent], ["Wire", (j) => j.started?.contract],
    ["Took", (j) => took(j.lastMs)], ["Model calls", (j) => count(j.sums.calls)], ["Tokens in", (j) => count(j.sums.prompt)],
    ["Tokens out", (j) => count(j.sums.completion)], ["Events", (j) => count(j.events.length)]];
  fill(main, h("h1", null, "Two runs"),
    table("Both runs in numbers", ["", link(one), link(two)], numbers.map(([name, of]) => [name, of(a), of(b)])),
    h("section", { class: "pairs", "aria-label": "Entries" }, list.node),
    (a.entries.length > MOST || b.entries.length > MOST) && h("p", null, `The first ${MOST} entries of each are compared.`));
  list.update(pairs.length);
}
