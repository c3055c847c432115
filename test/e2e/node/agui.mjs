// AG-UI's own client against weir: node agui.mjs URL TOKEN. Prints what it heard.
import { createRequire } from "node:module";

const load = createRequire(process.env.NODE_PATH + "/");
const { HttpAgent } = load("@ag-ui/client");

const [url, token] = process.argv.slice(2);
const heard = {};
const agent = (threadId, ...texts) =>
  new HttpAgent({
    url: `${url}/agui`,
    headers: { Authorization: `Bearer ${token}` },
    threadId,
    initialMessages: texts.map((content, i) => ({ id: `u${i}`, role: "user", content })),
  });
const last = (one) => {
  const message = one.messages.at(-1);
  return `${message.role}: ${message.content}`;
};

const counting = agent("js-count", "count");
await counting.runAgent();
heard.count = counting.messages.map((m) => (m.role === "user" ? m.role : `${m.role}: ${m.content}`));

const tools = [{ name: "weather", description: "The weather.", parameters: { type: "object" } }];
const asking = agent("js-tool", "weather");
await asking.runAgent({ tools });
for (const call of asking.messages.at(-1).toolCalls)
  asking.addMessage({ id: `t${call.id}`, role: "tool", toolCallId: call.id, content: "sunny" });
await asking.runAgent({ tools });
heard.tool = last(asking);

const paying = agent("js-pay", "pay");
let interrupt;
await paying.runAgent({}, {
  onRunFinishedEvent: ({ event }) => {
    interrupt = event.outcome.interrupts[0];
  },
});
heard.interrupted = interrupt.metadata.tool;
await paying.runAgent({
  resume: [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true } }],
});
heard.paid = last(paying);

const painting = agent("js-state", "paint");
painting.setState({ size: 7, "a/b~c": 1 });
await painting.runAgent();
heard.state = painting.state;

await agent("js-broken", "broken")
  .runAgent()
  .catch(() => {})
  .finally(() => {});
heard.failed = await new Promise((resolve) => {
  agent("js-broken-2", "broken")
    .runAgent({}, { onRunErrorEvent: () => resolve(true) })
    .then(() => resolve(false), () => resolve(true));
});
console.log(JSON.stringify(heard));
