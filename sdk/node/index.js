'use strict';
// A weir agent in JavaScript: one function that takes a turn.
//
//   const { run } = require('weir-agent');
//   run(async (turn) => {
//     const weather = await turn.call('get_weather', { city: 'Kyoto' });
//     turn.say(`It is ${weather.sky} there.`);
//   });
//
// weir starts the program and keeps it warm. A turn may be given to the function anew, after a
// restart or because it waited long for a person. Its calls are then answered from the record,
// in their order, and what it says before them is not said twice. So call tools and say things
// as the turn and their results make you; do what has an effect in a tool.

const fs = require('fs');
const readline = require('readline');

// The turn is over for weir. Let it pass; nothing more of this turn is heard.
class Cancelled extends Error {}

// The tool failed, was refused by a person, or does not exist.
class ToolError extends Error {}

const textOf = (result) => (typeof result === 'string' ? result : JSON.stringify(result));

class Turn {
  #write;
  #id;
  #recorded;
  #calls = 0;
  #waiting = [];
  #abort = new AbortController();

  constructor(write, line) {
    const { turn, calls, type, ...rest } = line;
    this.#write = write;
    this.#id = turn;
    this.#recorded = calls;
    Object.assign(this, rest); // input, messages, tools, instructions, agent, session, user, ...
  }

  get signal() {
    return this.#abort.signal;
  }

  say(text) { this.#tell({ type: 'text', text }); } // a piece of the answer
  think(text) { this.#tell({ type: 'thinking', text }); } // a piece of the reasoning
  step(text) { this.#tell({ type: 'step', text }); } // what is being done, for those who watch
  usage(tokens) { this.#tell({ type: 'usage', ...tokens }); } // of one call of a model

  // Call a tool and wait for its result. Rejects with a ToolError.
  async call(tool, args = {}) {
    const [result] = await this.callAll([[tool, args]]);
    if (result instanceof ToolError) throw result;
    return result;
  }

  // Call several tools, [[name, arguments], ...], at once. A failure is a ToolError in its place.
  callAll(list) {
    const calls = list.map(([tool, args = {}]) => ({ tool, args }));
    return this.#answers(calls, { type: 'call', calls });
  }

  // Ask a person and wait for the answer, however long it takes.
  async ask(question) {
    const [result] = await this.#answers([null], { type: 'ask', question });
    return result && result.answer !== undefined ? result.answer : result;
  }

  // For code that goes on from `messages`: what is on record there is not called again.
  resume() {
    this.#calls = this.#recorded.length;
  }

  async #answers(calls, line) {
    const start = this.#calls;
    this.#calls += calls.length;
    let results = this.#recorded.slice(start, this.#calls);
    if (!results.length) {
      this.#send(line);
      results = await Promise.all(calls.map(() => this.#next()));
    } else if (results.length < calls.length) {
      throw new Error('the turn was given anew and makes other calls than before');
    }
    calls.forEach((call, i) => {
      if (call && results[i].tool !== undefined && results[i].tool !== call.tool)
        throw new Error(`the turn was given anew and calls ${call.tool}, not ${results[i].tool}`);
    });
    return results.map((r) => (r.error ? new ToolError(textOf(r.result)) : r.result));
  }

  #next() {
    return new Promise((take, fail) => this.#waiting.push({ take, fail }));
  }

  #tell(line) {
    if (this.#calls >= this.#recorded.length) this.#send(line); // else it was said before
  }

  #send(line) {
    if (this.signal.aborted) throw new Cancelled('the turn was cancelled');
    this.#write(this.#id, line);
  }

  _hear(line) {
    if (line.turn !== this.#id) return;
    if (line.type === 'result' && this.#waiting.length) this.#waiting.shift().take(line);
    if (line.type !== 'cancel') return;
    this.#abort.abort();
    for (const { fail } of this.#waiting.splice(0)) fail(new Cancelled('the turn was cancelled'));
  }
}

// Serve turns until weir ends. What `answer` returns is said last.
function run(answer) {
  const write = (turn, line) => fs.writeSync(1, `${JSON.stringify({ ...line, turn })}\n`);
  for (const name of ['log', 'info', 'debug']) console[name] = console.error; // 1 is weir's
  let turn = null;

  async function take(line) {
    turn = new Turn(write, line);
    try {
      const last = await answer(turn);
      if (last) turn.say(last);
      write(line.turn, { type: 'done' });
    } catch (failure) {
      if (failure instanceof Cancelled) return write(line.turn, { type: 'done' });
      console.error(failure);
      write(line.turn, { type: 'error', message: String(failure) });
    }
  }

  const lines = readline.createInterface({ input: process.stdin });
  lines.on('line', (text) => {
    const line = JSON.parse(text);
    if (line.type === 'turn') take(line);
    else if (turn) turn._hear(line);
  });
  lines.on('close', () => process.exit(0)); // weir is gone
}

module.exports = { run, Cancelled, ToolError };
