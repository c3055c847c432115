// markdown: a text of a model as nodes. Only the elements below are ever made, each text stays a
// text node, and an address is a link only where it is http, https or mailto. There is no raw
// HTML, no picture and no attribute from the text besides that address.

import { h } from "./dom.js";
import { Pieces } from "./pieces.js";

const MOST = 65536; // longer texts are shown as they are
const SPAN = 500; // between two marks of one line
const NESTED = 6;

const BULLET = /^ {0,3}[-*+] +/;
const NUMBER = /^ {0,3}(\d{1,9})[.)] +/;
const FENCE = /^ {0,3}(```+|~~~+)/;
const RULE = /^ {0,3}([-*_])( *\1){2,} *$/;

// A heading without the number signs that close it. Without a pattern, which could take very long.
function closed(heading) {
  const text = heading.trimEnd();
  let at = text.length;
  while (at > 0 && text[at - 1] === "#") at--;
  return at < text.length && text[at - 1] === " " ? text.slice(0, at).trimEnd() : heading;
}

export function markdown(text, target) {
  const node = target || h("div", { class: "markdown" });
  text = String(text);
  if (text.length > MOST) {
    const pre = h("pre", { tabindex: "0" });
    new Pieces(pre).add(text);
    node.append(pre);
  }
  else node.append(...blocks(text.split(/\r?\n/), 0));
  return node;
}

function blocks(lines, depth) {
  const out = [];
  let i = 0;
  const take = (test) => {
    const taken = [];
    while (i < lines.length && test(lines[i])) taken.push(lines[i++]);
    return taken;
  };
  while (i < lines.length) {
    const text = lines[i];
    const fence = FENCE.exec(text);
    const heading = /^ {0,3}(#{1,6}) +(.*)$/.exec(text);
    if (!text.trim()) i++;
    else if (fence) {
      i++;
      const code = take((line) => !line.trim().startsWith(fence[1]));
      i++;
      out.push(h("pre", { tabindex: "0" }, h("code", null, code.join("\n"))));
    } else if (heading) {
      i++;
      out.push(h("p", { class: "heading" }, inline(closed(heading[2]), 0)));
    } else if (RULE.test(text)) {
      i++;
      out.push(h("hr"));
    } else if (depth < NESTED && /^ {0,3}>/.test(text)) {
      out.push(h("blockquote", null, blocks(take((line) => /^ {0,3}>/.test(line)).map((line) =>
        line.replace(/^ {0,3}> ?/, "")), depth + 1)));
    } else if (depth < NESTED && (BULLET.test(text) || NUMBER.test(text))) {
      out.push(listOf(lines, i, depth, (end) => { i = end; }));
    } else if (text.includes("|") && /^[\s|:-]+$/.test(lines[i + 1] || "") && (lines[i + 1] || "").includes("-")) {
      out.push(tableOf(take((line) => line.includes("|"))));
    } else {
      out.push(h("p", null, inline(take((line, first = line === text) => line.trim() && (first ||
        !(FENCE.test(line) || BULLET.test(line) || /^ {0,3}(>|#{1,6} )/.test(line)))).join("\n"), 0)));
      if (lines[i] === text) i++;
    }
  }
  return out;
}

function listOf(lines, from, depth, ended) {
  const mark = BULLET.test(lines[from]) ? BULLET : NUMBER;
  const goesOn = (line = "") => mark.test(line) || /^ {2,}\S/.test(line);
  const items = [];
  let i = from;
  for (; i < lines.length; i++) {
    if (mark.test(lines[i])) items.push([lines[i].replace(mark, "")]);
    else if (/^ {2,}\S/.test(lines[i])) items.at(-1).push(lines[i].replace(/^ {2,4}/, ""));
    else if (!lines[i].trim() && goesOn(lines[i + 1])) items.at(-1).push("");
    else break;
  }
  ended(i);
  const bodies = items.map((item) => h("li", null, item.some((line, n) => n > 0 && line) ? blocks(item, depth + 1) : inline(item[0], 0)));
  return mark === BULLET ? h("ul", null, bodies) : h("ol", { start: Number(NUMBER.exec(lines[from])[1]) }, bodies);
}

/** The cells of a row: a bar after a backslash is a part of its cell. */
function cellsOf(line) {
  const cells = [""], text = line.trim();
  for (let i = text[0] === "|" ? 1 : 0; i < text.length; i++) {
    if (text[i] === "\\" && text[i + 1] === "|") cells[cells.length - 1] += text[i] + text[++i];
    else if (text[i] !== "|") cells[cells.length - 1] += text[i];
    else if (i < text.length - 1) cells.push("");
  }
  return cells.map((cell) => inline(cell.trim(), 0));
}

function tableOf(lines) {
  const [head, , ...rows] = lines;
  return h("div", { class: "scroll", tabindex: "0" }, h("table", null,
    h("thead", null, h("tr", null, cellsOf(head).map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", null, rows.map((row) => h("tr", null, cellsOf(row).map((cell) => h("td", null, cell)))))));
}

/** From `at`, what stands before the next `mark`; null where there is none. */
function until(text, at, mark) {
  const len = text.slice(at, at + SPAN).indexOf(mark);
  return len > 0 ? { inner: text.slice(at, at + len), next: at + len + mark.length } : null;
}

export function safeAddress(text) {
  const address = text.trim();
  return /^(https?:\/\/|mailto:)[^\s\u0000-\u001f]+$/i.test(address) ? address : null;
}

/** The same for the parenthesis that closes, with pairs of them inside. */
function untilClosed(text, at) {
  let depth = 0;
  for (let i = at; i < Math.min(text.length, at + SPAN); i++) {
    if (text[i] === "(") depth++;
    else if (text[i] === ")" && depth-- === 0) return i > at ? { inner: text.slice(at, i), next: i + 1 } : null;
  }
  return null;
}

function linkAt(text, at) {
  const label = until(text, at + 1, "](");
  if (!label || label.inner.includes("\n\n")) return null;
  const target = untilClosed(text, label.next);
  const address = target && safeAddress(target.inner.split(/\s/)[0]);
  return address ? { label: label.inner, address, next: target.next } : null;
}

function anchor(address, content) {
  return h("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank" }, content);
}

/** `links`: whether there may be any: not within one. */
function inline(text, depth, links = true) {
  const out = [];
  let plain = "";
  const flush = () => { if (plain) out.push(plain); plain = ""; };
  const put = (node, next) => { flush(); out.push(node); at = next; };
  let at = 0;
  while (at < text.length) {
    const c = text[at], rest = text.slice(at, at + 8);
    let found = null;
    if (c === "\\" && /[\\`*_[\]()#>~|-]/.test(text[at + 1] || "")) {
      plain += text[at + 1];
      at += 2;
    } else if (c === "`" && (found = until(text, at + 1, "`"))) {
      put(h("code", null, found.inner), found.next);
    } else if (depth < NESTED && text.startsWith("**", at) && (found = until(text, at + 2, "**"))) {
      put(h("strong", null, inline(found.inner, depth + 1, links)), found.next);
    } else if (depth < NESTED && c === "*" && /\S/.test(text[at + 1] || "") && (found = until(text, at + 1, "*"))) {
      put(h("em", null, inline(found.inner, depth + 1, links)), found.next);
    } else if (depth < NESTED && text.startsWith("~~", at) && (found = until(text, at + 2, "~~"))) {
      put(h("s", null, inline(found.inner, depth + 1, links)), found.next);
    } else if (links && c === "[" && (found = linkAt(text, at))) {
      put(anchor(found.address, inline(found.label.replaceAll("[", ""), depth + 1, false)), found.next);
    } else if (links && (rest.startsWith("http://") || rest.startsWith("https://")) && (found = /^https?:\/\/[^\s<>"'`\])]+/.exec(text.slice(at, at + 2000)))) {
      put(anchor(found[0], found[0]), at + found[0].length);
    } else {
      plain += c;
      at++;
    }
  }
  flush();
  return out;
}
