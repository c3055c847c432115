// exact: JSON in which every number stays as it was written.
//
// JavaScript keeps a number in 53 bits, so 9007199254740993 would be shown, and sent back, as
// ...992. parse() keeps such a number as an Exact, and write() writes it as it came. Anything
// else is the usual value.

export class Exact {
  constructor(text) { this.text = text; }
  valueOf() { return Number(this.text); }
  toString() { return this.text; }
}

// Found in no text that did not come from here.
const MARK = "exact:" + crypto.getRandomValues(new Uint32Array(4)).join("-") + ":";
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;
const RISKY = /\d{16}|\d[.eE]|-0/; // without one of these no number can change
const MARKED = new RegExp(`"${MARK}([^"]*)"`, "g");

const changes = (source) => String(Number(source)) !== source;

// The engine says how a number was written (JSON.parse source text access) ...
const tells = (() => {
  let told = false;
  JSON.parse("1", (key, value, context) => { told = context?.source === "1"; return value; });
  return told;
})();
const told = (key, value, context) =>
  (typeof value === "number" && changes(context.source) ? new Exact(context.source) : value);

// ... or the numbers that would change are made strings that nobody else can write.
const marked = (text) => text.replace(TOKENS, (token) =>
  (token[0] === '"' || !changes(token) ? token : `"${MARK}${token}"`));
const unmarked = (key, value) =>
  (typeof value === "string" && value.startsWith(MARK) ? new Exact(value.slice(MARK.length)) : value);

/** `native`: whether the engine is asked; a test reads both ways. */
export function parse(text, native = tells) {
  if (!RISKY.test(text)) return JSON.parse(text);
  if (native) return JSON.parse(text, told);
  JSON.parse(text); // where it is wrong, the place is that of the text as it came
  return JSON.parse(marked(text), unmarked);
}

export function write(value, indent) {
  const text = JSON.stringify(value, (key, one) => (one instanceof Exact ? MARK + one.text : one), indent);
  return text?.includes(MARK) ? text.replace(MARKED, "$1") : text;
}
