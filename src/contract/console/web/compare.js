// compare: two runs beside each other, entry by entry.

import { follow, pause } from "./api.js";
import { count, fill, h, patch, problem, table, took } from "./dom.js";
import { Journal, kinds, summary, whole } from "./journal.js";
import { link } from "./runs.js";
import { VirtualList } from "./virtual.js";

const MOST = 400; // entries of each, for the comparison's table of both
const SHOWN_EVERY_MS = 250;

/** What is compared of a run. The messages that a replay was given are no part of what it did. */
const entriesOf = (journal) => journal.entries.filter((entry) =>
  entry.kind !== "item" || journal.started?.contract !== "replay").slice(0, MOST);

const key = (entry) => entry.kind + "\n" + entry.agent + "\n" + (entry.event.tool || "");

/** Pairs of entries of a and b; null on one side where the other has one more. */
export function align(a, b) {
  const n = a.length, m = b.length, keysA = a.map(key), keysB = b.map(key), len = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      len[i][j] = keysA[i] === keysB[j] ? len[i + 1][j + 1] + 1 : Math.max(len[i + 1][j], len[i][j + 1]);
  const pairs = [];
  let i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && keysA[i] === keysB[j]) pairs.push([a[i++], b[j++]]);
    else if (j === m || (i < n && len[i + 1][j] >= len[i][j + 1])) pairs.push([a[i++], null]);
    else pairs.push([null, b[j++]]);
  }
  return pairs;
}

const same = (one, other) => one && other && whole(one) === whole(other);

function cell(entry, other) {
  if (!entry) return h("span", { class: "cell missing" }, "—");
  return h("span", { class: "cell " + (same(entry, other) ? "same" : "differs") },
    h("span", { class: "kind " + entry.kind }, kinds[entry.kind] || entry.kind), " ", entry.agent, " ", summary(entry));
}

const NUMBERS = [["State", (j) => (j.started ? j.state : "")], ["Agent", (j) => j.started?.agent], ["Wire", (j) => j.started?.contract],
  ["Took", (j) => took(j.lastMs)], ["Model calls", (j) => count(j.sums.calls)], ["Tokens in", (j) => count(j.sums.prompt)],
  ["Tokens out", (j) => count(j.sums.completion)], ["Events", (j) => count(j.events.length)]];

/** What can be said of the pairs so far. */
function judge(pairs, read, cut) {
  const differ = pairs.filter(([one, other]) => !same(one, other)).length;
  if (!read) return "Both runs are being read" + (differ ? `; so far ${count(differ)} of ${count(pairs.length)} entries differ.` : " …");
  if (differ) return `${count(differ)} of ${count(pairs.length)} entries differ.`;
  return cut ? `The first ${MOST} entries of both are the same.` : "What both say and do is the same.";
}

export async function compare(main, params, signal, ids) {
  if (ids.length !== 2 || !ids.every((id) => /^\d+$/.test(id))) {
    fill(main, h("h1", null, "Two runs"), h("p", { class: "empty" }, "The address names two runs, each by its number."));
    return;
  }
  const both = [new Journal(), new Journal()], numbers = h("div"), verdict = h("p", { role: "status" }), more = h("div");
  let pairs = [], dirty = true, read = false;
  const list = new VirtualList({
    label: "Entries of both runs", rowHeight: 34,
    render: (i) => [cell(pairs[i][0], pairs[i][1]), cell(pairs[i][1], pairs[i][0])],
    version: (i) => pairs[i].map((entry) => (entry ? entry.seq + "-" + entry.lastSeq : "")).join(),
  });
  list.sticky = false;
  fill(main, h("h1", null, "Two runs"), numbers, verdict, h("section", { class: "pairs", "aria-label": "Entries" }, list.node), more);

  function draw() {
    if (!dirty) return;
    dirty = false;
    pairs = align(entriesOf(both[0]), entriesOf(both[1]));
    const cut = both.some((journal) => journal.entries.length > MOST);
    patch(numbers, table("Both runs in numbers", ["What", ...ids.map((id) => link(id))], NUMBERS.map(([name, of]) => [name, ...both.map(of)])));
    const text = judge(pairs, read, cut);
    if (verdict.textContent !== text) verdict.textContent = text;
    patch(more, cut && h("p", null, `The first ${MOST} entries of each are compared.`));
    list.update(pairs.length);
  }
  const timer = setInterval(draw, SHOWN_EVERY_MS);
  signal.addEventListener("abort", () => { list.close(); clearInterval(timer); });

  const follows = both.map((journal, i) => follow(ids[i], {
    event: (event) => { journal.add(event); dirty = true; },
    reset: (seq) => { journal.cut(seq); list.reset(); dirty = true; },
    link: () => {},
  }, signal));
  const failed = (await Promise.allSettled(follows)).map((one) => one.reason);
  await pause();
  read = !failed.some(Boolean);
  dirty = true;
  if (read) return draw();
  clearInterval(timer);
  fill(verdict, "They cannot be compared.");
  return fill(more, failed.map((error, i) => error && problem(new Error(`${ids[i]}: ${error.message}`))));
}
