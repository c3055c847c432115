// The agents as models of OpenAI's API, as its library for JavaScript meets them.
"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const OpenAI = require("openai");
const { zodResponseFormat, zodTextFormat } = require("openai/helpers/zod");
const { z } = require("zod");

const client = new OpenAI({
  baseURL: process.env.WEIR_URL + "/v1",
  apiKey: process.env.WEIR_TOKEN,
  maxRetries: 0,
});
const model = "manager";
const say = (content) => [{ role: "user", content }];
const Trip = z.object({ city: z.string(), days: z.number() });

async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

test("models are agents", async () => {
  const models = await all(await client.models.list());
  assert.deepEqual(models.map((m) => m.id), ["manager", "writer"]);
  await assert.rejects(client.models.retrieve("gpt-4o"), OpenAI.NotFoundError);
});

test("a completion, whole and in chunks", async () => {
  const whole = await client.chat.completions.create({ model, messages: say("count") });
  assert.equal(whole.choices[0].message.content, "One, two, three, four.");
  const runner = client.chat.completions.stream({
    model,
    messages: say("count"),
    stream_options: { include_usage: true },
  });
  assert.equal(await runner.finalContent(), "One, two, three, four.");
  assert.equal((await runner.totalUsage()).total_tokens, 32);
});

for (const streams of [false, true]) {
  test(`runTools makes the caller's calls, streamed: ${streams}`, async () => {
    const cities = [];
    const runner = client.chat.completions.runTools({
      model,
      stream: streams,
      messages: say("weather"),
      tools: [
        {
          type: "function",
          function: {
            name: "weather",
            description: "The weather of a city.",
            parse: JSON.parse,
            parameters: { type: "object", properties: { city: { type: "string" } } },
            function: ({ city }) => {
              cities.push(city);
              return "dry";
            },
          },
        },
      ],
    });
    assert.equal(await runner.finalContent(), "It is dry.");
    assert.deepEqual(cities, ["Kyoto", "Nara"]);
  });
}

test("a shaped answer is parsed", async () => {
  const completion = await client.chat.completions.parse({
    model,
    messages: say("shape"),
    response_format: zodResponseFormat(Trip, "trip"),
  });
  assert.deepEqual(completion.choices[0].message.parsed, { city: "Kyoto", days: 2 });
  const response = await client.responses.parse({
    model,
    input: "shape",
    text: { format: zodTextFormat(Trip, "trip") },
  });
  assert.deepEqual(response.output_parsed, { city: "Kyoto", days: 2 });
});

test("a response, whole and as events", async () => {
  const whole = await client.responses.create({ model, input: "look" });
  assert.deepEqual(whole.output.map((item) => item.type), ["message", "mcp_call", "message"]);
  const stream = client.responses.stream({ model, input: "look" });
  const events = await all(stream);
  const final = await stream.finalResponse();
  assert.deepEqual(events.map((e) => e.sequence_number), [...events.keys()]);
  assert.equal(final.output_text, "I look.Found 42.");
  const next = await client.responses.create({ input: "hi", previous_response_id: final.id });
  assert.equal(next.output_text, "heard: hi");
});

test("failures are the errors that the library has for them", async () => {
  const chat = (content, more) =>
    client.chat.completions.create({ model, messages: say(content), ...more });
  await assert.rejects(chat("hi", { n: 2 }), OpenAI.BadRequestError);
  await assert.rejects(chat("broken"), OpenAI.InternalServerError);
  await assert.rejects(async () => all(await chat("broken", { stream: true })), OpenAI.APIError);
  const stranger = new OpenAI({ baseURL: client.baseURL, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
});

test("a stream can be aborted", async () => {
  const stream = await client.chat.completions.create({
    model,
    messages: say("slow"),
    stream: true,
  });
  for await (const chunk of stream) {
    if (chunk.choices[0].delta.content) stream.controller.abort();
  }
});
