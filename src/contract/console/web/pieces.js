// pieces: a long text as blocks of some KB. Where one text grows, the browser lays out all of it again and
// again; of pieces, only the last one.

import { h } from "./dom.js";

const FULL = 4096; // from here on the next line begins another piece ...
const MOST = 16384; // ... and here anything does
const WORD = 200;

/** Where a text that follows `have` characters of the piece is cut: after how many characters; 0: nowhere. */
function cut(text, have) {
  const line = text.indexOf("\n", Math.max(0, FULL - have - 1));
  if (line >= 0 && have + line < MOST) return line + 1;
  if (have + text.length < MOST) return 0;
  const most = MOST - have, word = text.lastIndexOf(" ", most - 1);
  if (word > most - WORD && word > 0) return word + 1;
  return /[\ud800-\udbff]/.test(text[most - 1]) ? most + 1 : most;
}

export class Pieces {
  constructor(node) {
    this.node = node;
    this.last = null; // a text node, while its piece is not full
  }

  add(text) {
    while (text) {
      if (!this.last) this.node.append(h("span", { class: "piece" }, this.last = document.createTextNode("")));
      const end = cut(text, this.last.length);
      this.last.appendData(end ? text.slice(0, end) : text);
      if (end) this.last = null;
      text = end ? text.slice(end) : "";
    }
    return this;
  }
}
