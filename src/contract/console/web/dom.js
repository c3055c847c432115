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

/** Make the children of `node` these, keeping each that is there already: who has the keyboard or has
 * scrolled in one stays where they are. Children are the same by their data-key, or by their place. */
export function patch(node, ...children) {
  const fresh = document.createElement("div"), old = new Map();
  const keyOf = (child, i) => child.dataset?.key ?? i;
  add(fresh, children);
  [...node.childNodes].forEach((child, i) => old.set(keyOf(child, i), child));
  const wanted = [...fresh.childNodes].map((child, i) => {
    const before = old.get(keyOf(child, i));
    return before?.isEqualNode(child) ? before : child;
  });
  place(node, wanted);
  return node;
}

/** The same of nodes that the caller keeps: those that stay are not moved. */
export function place(node, wanted) {
  const stay = new Set(wanted);
  for (const child of [...node.childNodes]) if (!stay.has(child)) child.remove();
  let at = node.firstChild;
  for (const child of wanted) {
    if (child === at) at = at.nextSibling;
    else node.insertBefore(child, at);
  }
}

let newsTimer = 0;
/** Say something to everyone, a screen reader included. */
export function tell(text) {
  const news = document.getElementById("news");
  news.textContent = text;
  clearTimeout(newsTimer);
  newsTimer = setTimeout(() => { news.textContent = ""; }, 8000);
}

/** A button that does one thing at a time: what fn() promises is awaited before it can be pressed again. */
export function button(text, fn, props) {
  let busy = false;
  const press = async (event) => {
    if (busy) return;
    busy = true;
    try { await fn(event); } catch (error) { if (error.name !== "AbortError") tell(error.message); }
    busy = false;
  };
  return h("button", { type: "button", ...props, on: { click: press } }, text);
}

/** Take nodes away; where one has the keyboard, `next` gets it. */
export function dismiss(nodes, next) {
  const had = nodes.some((node) => node.contains(document.activeElement));
  nodes.forEach((node) => node.remove());
  if (had) focusOn(next);
}

/** Also of what takes no keyboard by itself. */
export function focusOn(node) {
  if (node.tabIndex < 0) node.setAttribute("tabindex", "-1");
  node.focus();
}

export function field(label, input) {
  return h("label", { class: "field" }, h("span", null, label), input);
}

export function select(values, chosen, props) {
  return h("select", props, values.map(([value, text]) =>
    h("option", { value, selected: value === chosen }, text)));
}

/** A table that scrolls by itself on a narrow screen. */
export function table(caption, heads, rows, keys = []) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("caption", { class: "hidden" }, caption),
      h("thead", null, h("tr", null, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", null, rows.map((row, n) => h("tr", { "data-key": keys[n] }, row.map((cell, i) =>
        i === 0 ? h("th", { scope: "row" }, cell) : h("td", null, cell)))))));
}

/** Show a table in place of the one that is there; rows that are the same stay. */
export function refreshTable(into, fresh) {
  const old = into.querySelector("tbody"), now = fresh.querySelector("tbody");
  if (old && now) patch(old, [...now.children]);
  else fill(into, fresh);
}

/** Pairs of a name and a value. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter((pair) => pair).map(([name, value]) =>
    h("div", null, h("dt", null, name), h("dd", null, value))));
}

/** The same pairs with other values, in place. */
export function refresh(node, fresh) {
  const old = node.firstElementChild, [list] = fresh;
  if (old) patch(old, [...list.children]);
  else node.append(list);
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
