// Anthropic's JavaScript library against weir: node anthropic.mjs URL KEY. Prints what it heard.
import { createRequire } from "node:module";

const load = createRequire(process.env.NODE_PATH + "/");
const { default: Anthropic } = load("@anthropic-ai/sdk");

const [baseURL, apiKey] = process.argv.slice(2);
const client = new Anthropic({ baseURL, apiKey, maxRetries: 0 });
const asked = (content, more = {}) => ({
  model: "manager",
  max_tokens: 1000,
  messages: [{ role: "user", content }],
  ...more,
});
const heard = {};

heard.text = "";
const stream = client.messages.stream(asked("count"));
stream.on("text", (delta) => (heard.text += delta));
heard.final = (await stream.finalMessage()).content[0].text;

const weather = {
  name: "weather",
  input_schema: { type: "object", properties: { city: { type: "string" } } },
};
const messages = [{ role: "user", content: "weather" }];
const called = await client.messages.create(asked("", { messages, tools: [weather] }));
messages.push({ role: "assistant", content: called.content });
messages.push({
  role: "user",
  content: called.content
    .filter((block) => block.type === "tool_use")
    .map((block) => ({ type: "tool_result", tool_use_id: block.id, content: "sunny" })),
});
heard.tool = (await client.messages.create(asked("", { messages, tools: [weather] }))).content[0].text;

await client.messages
  .create({ ...asked("x"), model: "none" })
  .catch((error) => (heard.unknown = error.status));
await client.messages
  .stream(asked("broken"))
  .finalMessage()
  .catch((error) => (heard.failed = error.error?.error?.type ?? String(error)));
console.log(JSON.stringify(heard));
