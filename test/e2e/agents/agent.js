'use strict';
// The same for Node: what the user says is what it does.
const { run, ToolError } = require('../../../sdk/node');

run(async (turn) => {
  console.log('this goes to standard error');
  const [what, ...words] = turn.input.split(' ');
  const rest = words.join(' ');
  switch (what) {
    case 'hello':
      turn.step('greeting');
      turn.usage({ input: 10, output: 2, model: 'own-model' });
      turn.say('heard: ');
      return turn.input;
    case 'calc':
      turn.say('it is ');
      return JSON.stringify(await turn.call('calculator', { expression: rest }));
    case 'both': {
      const [one, two] = await turn.callAll([['calculator', { expression: '1+1' }], ['no_such_tool', { x: 1 }]]);
      return `${JSON.stringify(one)} and ${two.constructor.name}`;
    }
    case 'write': {
      turn.say('before ');
      const first = await turn.call('calculator', { expression: '2+3' });
      turn.say('writing ');
      try {
        await turn.call('file_write', { key: 'note.txt', content: rest });
      } catch (refused) {
        if (refused instanceof ToolError) return `refused ${refused.message}`;
        throw refused;
      }
      return `after ${first.result}`;
    }
    case 'ask':
      turn.say('well: ');
      return `they said ${await turn.ask('May I go on?')}`;
    case 'pid':
      return String(process.pid);
    case 'slow':
      for (let i = 0; i < 10000; i++) {
        turn.say('word ');
        await new Promise((done) => setTimeout(done, 10));
      }
      return 'end';
    case 'fail':
      throw new Error('this is why');
    case 'crash':
      turn.say('about to ');
      process.exit(3);
    default:
      throw new Error(what);
  }
});
