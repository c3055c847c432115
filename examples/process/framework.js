'use strict';
// A framework as a process agent: Vercel's AI SDK asks the model, weir makes the calls.
//
//   npm install ai ./sdk/node
//
// The framework has weir's tools, and so their policies, approvals and limits. Each turn goes on
// from the messages that weir has kept: a person may take days to approve, and this program may
// be killed meanwhile. Without `model:` in the settings a few lines below stand in for one.
const { generateText, jsonSchema, tool } = require('ai');
const { run, ToolError } = require('../../sdk/node'); // after npm install: 'weir-agent'

const toolsOf = (turn) =>
  Object.fromEntries(
    turn.tools.map(({ name, description, parameters }) => [
      name,
      tool({ description, inputSchema: jsonSchema(parameters) }), // without execute: we call it
    ])
  );

const resultOf = (toolCallId, toolName, failed, value) => ({
  type: 'tool-result',
  toolCallId,
  toolName,
  output: failed ? { type: 'error-text', value: String(value) } : { type: 'json', value },
});

// What was said and called in the conversation so far, in the framework's words.
function historyOf(turn) {
  return turn.messages.map(({ role, text, tool: toolName, call: toolCallId, args, result, error }) => {
    if (role === 'tool_call')
      return { role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName, input: args }] };
    if (role === 'tool_result')
      return { role: 'tool', content: [resultOf(toolCallId, toolName, error, error ? JSON.stringify(result) : result)] };
    return { role, content: text };
  });
}

async function take(turn) {
  turn.resume();
  const model = turn.model || pretend;
  const messages = historyOf(turn);
  for (;;) {
    const answer = await generateText({
      model,
      messages,
      tools: toolsOf(turn),
      system: turn.instructions || undefined,
      abortSignal: turn.signal,
      maxRetries: 0,
    });
    const { inputTokens: input, outputTokens: output } = answer.usage;
    turn.usage({ input, output, model: answer.response.modelId });
    turn.say(answer.text);
    if (!answer.toolCalls.length) return;
    const results = await turn.callAll(answer.toolCalls.map((c) => [c.toolName, c.input]));
    messages.push(...answer.response.messages, {
      role: 'tool',
      content: answer.toolCalls.map((c, i) => {
        const failed = results[i] instanceof ToolError;
        return resultOf(c.toolCallId, c.toolName, failed, failed ? results[i].message : results[i]);
      }),
    });
  }
}

// In place of a model: "add 1 2 3" and "note TEXT" call a tool, and its result is told.
const pretend = {
  specificationVersion: 'v3',
  provider: 'pretend',
  modelId: 'pretend',
  supportedUrls: {},
  async doGenerate({ prompt }) {
    const last = prompt[prompt.length - 1];
    const [word, ...rest] = last.role === 'user' ? last.content[0].text.split(' ') : [];
    const call = (toolName, input) => ({
      content: [{ type: 'tool-call', toolCallId: `c-${prompt.length}`, toolName, input: JSON.stringify(input) }],
      finishReason: { unified: 'tool-calls' },
    });
    const text = (words) => ({ content: [{ type: 'text', text: words }], finishReason: { unified: 'stop' } });
    const usage = { inputTokens: { total: prompt.length }, outputTokens: { total: 1 } };
    let answer = text('I heard you.');
    if (last.role === 'tool') answer = text(`I have ${JSON.stringify(last.content[0].output.value)}.`);
    if (word === 'add') answer = call('calculator', { expression: rest.join('+') });
    if (word === 'note') answer = call('memory_write', { key: 'note', content: rest.join(' ') });
    return { ...answer, usage, warnings: [] };
  },
};

run(take);
