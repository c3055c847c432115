'use strict';
// The same in JavaScript: npm install ./sdk/node, or NODE_PATH=sdk.
const { run } = require('weir-agent');

run(async (turn) => {
  if (!turn.input.startsWith('add ')) return 'I heard you.';
  const numbers = turn.input.split(' ').slice(1);
  turn.step(`adding ${numbers.length} numbers`);
  const { result } = await turn.call('calculator', { expression: numbers.join('+') });
  return `That makes ${result}.`;
});
