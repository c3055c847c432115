// virtual: a list of any length of which only what is on the screen stands in the document.
//
// Rows have one height. The list is one stop for the keyboard: arrows, Page Up and Down, Home and
// End move the chosen row, and a screen reader hears which of how many it is.

import { h, place } from "./dom.js";

const SPARE = 8; // rows above and below the screen
const MOST = 150;

let lists = 0;

// One list a frame: two at once would be one long task.
const due = new Set();
let frame = 0;
function drawNext() {
  frame = 0;
  for (const list of due) {
    due.delete(list);
    list.draw();
    break;
  }
  if (due.size) frame = requestAnimationFrame(drawNext);
}
function drawSoon(list) {
  due.add(list);
  if (!frame) frame = requestAnimationFrame(drawNext);
}

export class VirtualList {
  /** render(index) makes the content of a row, anew whenever version(index) is another;
   * chosen(index) is told of each choice. */
  constructor({ label, rowHeight = 30, render, version = () => 0, chosen }) {
    this.rowHeight = rowHeight;
    this.render = render;
    this.version = version;
    this.chosen = chosen;
    this.count = 0;
    this.index = -1;
    this.shown = new Map(); // index: {version, node}
    this.id = "list" + ++lists;
    this.sticky = true; // at the end, and stays there while rows come
    this.space = h("div", { class: "space", role: "presentation" });
    this.node = h("div", {
      class: "virtual", role: "listbox", tabindex: "0", "aria-label": label,
      on: {
        scroll: () => this.#scrolled(), keydown: (event) => this.#key(event),
        click: (event) => this.#click(event),
      },
    }, this.space);
    this.top = this.height = 0; // as last seen: to ask the browser makes it lay out the page
    this.observer = new ResizeObserver(() => {
      this.height = this.node.clientHeight;
      drawSoon(this);
    });
    this.observer.observe(this.node);
  }

  close() {
    this.observer.disconnect();
    due.delete(this);
  }

  /** There are `count` rows now. */
  update(count) {
    this.count = count;
    if (this.index >= count) this.index = -1;
    drawSoon(this);
  }

  /** The rows are others now: none that stands in the document is kept. */
  reset() { this.shown.clear(); }

  choose(index, quiet) {
    if (index < 0 || index >= this.count) return;
    this.index = index;
    this.sticky = false;
    const top = index * this.rowHeight;
    let to = this.top;
    if (top < to) to = top;
    if (top + this.rowHeight > to + this.height) to = top + this.rowHeight - this.height;
    this.#show(to);
    if (!quiet) this.chosen?.(index);
  }

  /** Draw what stands at `top`, then scroll there. */
  #show(top) {
    this.top = Math.max(0, Math.min(top, this.count * this.rowHeight - this.height));
    this.#rows();
    if (this.node.scrollTop !== this.top) this.node.scrollTop = this.top;
  }

  draw() {
    if (this.sticky && this.count) this.#show(this.count * this.rowHeight);
    else this.#rows();
  }

  #rows() {
    const first = Math.max(0, Math.floor(this.top / this.rowHeight) - SPARE);
    const end = Math.min(this.count, first + Math.min(MOST, Math.ceil(this.height / this.rowHeight) + 2 * SPARE));
    const before = this.shown;
    this.shown = new Map();
    this.space.style.height = this.count * this.rowHeight + "px";
    for (let i = first; i < end; i++) {
      const row = before.get(i), version = this.version(i);
      this.shown.set(i, row?.version === version ? row : { version, node: this.#row(i) });
    }
    const rows = [...this.shown.values()].map((row) => row.node);
    rows.forEach((row, i) => {
      row.setAttribute("aria-selected", first + i === this.index ? "true" : "false");
      row.setAttribute("aria-setsize", this.count);
    });
    place(this.space, rows);
    const active = this.index >= first && this.index < end;
    if (active) this.node.setAttribute("aria-activedescendant", this.id + "-" + this.index);
    else this.node.removeAttribute("aria-activedescendant");
  }

  #row(i) {
    const row = h("div", {
      class: "row", role: "option", id: this.id + "-" + i, "data-index": i, "aria-posinset": i + 1,
    }, this.render(i));
    row.style.top = i * this.rowHeight + "px";
    row.style.height = this.rowHeight + "px";
    return row;
  }

  #scrolled() {
    this.top = this.node.scrollTop;
    this.sticky = this.index < 0 && this.count * this.rowHeight - this.top - this.height < this.rowHeight;
    this.#rows();
  }

  #click(event) {
    const row = event.target.closest("[data-index]");
    if (row) this.choose(Number(row.dataset.index));
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.height / this.rowHeight) - 1);
    const to = {
      ArrowDown: this.index + 1, ArrowUp: this.index < 0 ? this.count - 1 : this.index - 1,
      PageDown: Math.min(this.count - 1, this.index + page), PageUp: Math.max(0, this.index - page),
      Home: 0, End: this.count - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(this.count - 1, to)));
  }
}
