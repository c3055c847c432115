'use strict';
// The same in JavaScript. After npm install ./sdk/node it is require('weir-agent').
const { run } = require('../../sdk/node');

run(async (turn) => {
  if (!turn.input.startsWith('add ')) return 'I heard you.';
  const numbers = turn.input.split(' ').slice(1);
  turn.step(`adding ${numbers.length} numbers`);
  const { result } = await turn.call('calculator', { expression: numbers.join('+') });
  return `That makes ${result}.`;
});
