// dom: elements from values. Text is always text: nothing here reads markup from a string.

/** An element. `props`: attributes by name; `class`, `text`, `value` and `on` (listeners) are
 * set as such. Children are nodes, strings, or null. */
export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.className = value;
    else if (name === "text") node.textContent = value;
    else if (name === "value" || name === "checked") node[name] = value;
    else if (name === "on") for (const [event, fn] of Object.entries(value)) node.addEventListener(event, fn);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

/** The same of SVG. */
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, String(value));
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

let newsTimer = 0;
/** Say something to everyone, a screen reader included. */
export function tell(text) {
  const news = document.getElementById("news");
  news.textContent = text;
  clearTimeout(newsTimer);
  newsTimer = setTimeout(() => { news.textContent = ""; }, 8000);
}

export function button(text, fn, props) {
  return h("button", { type: "button", ...props, on: { click: fn } }, text);
}

export function field(label, input) {
  return h("label", { class: "field" }, h("span", null, label), input);
}

export function select(values, chosen, props) {
  return h("select", props, values.map(([value, text]) =>
    h("option", { value, selected: value === chosen }, text)));
}

/** A table that scrolls by itself on a narrow screen. */
export function table(caption, heads, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("caption", { class: "hidden" }, caption),
      h("thead", null, h("tr", null, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", null, rows.map((row) => h("tr", null, row.map((cell, i) =>
        i === 0 ? h("th", { scope: "row" }, cell) : h("td", null, cell)))))));
}

/** Pairs of a name and a value. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter((pair) => pair).map(([name, value]) =>
    h("div", null, h("dt", null, name), h("dd", null, value))));
}

export function state(name) {
  return h("span", { class: "state " + (/^[a-z]+$/.test(name) ? name : "") }, name);
}

export function problem(error) {
  return h("p", { class: "problem", role: "alert" }, error.message || String(error));
}

// --- values as text ---------------------------------------------------------------------------

export function when(ms) {
  if (!ms) return "";
  const date = new Date(ms);
  return h("time", { datetime: date.toISOString(), title: date.toISOString() }, localTime(date));
}

// Written by hand: what a browser loads to format the first date or number takes it a tenth of a
// second.
const two = (n) => String(n).padStart(2, "0");
const localTime = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
  `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
const grouped = (n) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

export function took(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "";
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60000) return (ms / 1000).toFixed(ms < 10000 ? 2 : 1) + " s";
  const minutes = Math.floor(ms / 60000);
  return minutes < 60 ? minutes + " min " + Math.round(ms % 60000 / 1000) + " s"
    : Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return (i ? n.toFixed(1) : n) + " " + units[i];
}

export const count = (n) => (n === null || n === undefined ? "unknown" : grouped(n));
export const dollars = (nano) => "$" + (nano / 1e9).toFixed(nano % 1e7 ? 6 : 2);

/** One line of a text, cut. */
export function line(text, most = 200) {
  return String(text).slice(0, most * 2).replace(/\s+/g, " ").trim().slice(0, most);
}
