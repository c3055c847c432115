// The Runtime Contract v1 as Node meets it: with fetch, and with HTTP/2 by prior knowledge.
"use strict";

const assert = require("node:assert/strict");
const http2 = require("node:http2");
const { test } = require("node:test");

const url = process.env.WEIR_URL;
const post = (path, body, options = {}) =>
  fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...options,
  });

function events(text) {
  assert.ok(!text.includes("\r"));
  assert.ok(text.endsWith("\n\n"));
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((frame) => {
      const [, name, data] = /^(?:event: (\w+)\n)?data: (.*)$/.exec(frame);
      return { name: name ?? "delta", data: data === "[DONE]" ? data : JSON.parse(data) };
    });
}

test("fetch reads an answer", async () => {
  const answer = await post("/invoke", { input: "hello", session_id: "node" });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("x-runtime-contract-version"), "1");
  const body = await answer.json();
  assert.equal(typeof body.output, "string");
  assert.equal(body.session_id, "node");
});

test("fetch reads deltas, the result and one [DONE], last", async () => {
  const answer = await post("/stream", { input: "hello" });
  assert.equal(answer.headers.get("content-type"), "text/event-stream");
  const all = events(await answer.text());
  assert.equal(all.at(-1).data, "[DONE]");
  assert.equal(all.filter((event) => event.data === "[DONE]").length, 1);
  assert.equal(all.at(-2).name, "result");
  const text = all.filter((e) => e.data.delta).map((e) => e.data.delta).join("");
  assert.equal(text, all.at(-2).data.output);
});

test("a reader that stops leaves a session that takes the next turn", async () => {
  const leave = new AbortController();
  const body = { input: "hello", session_id: "left" };
  const answer = await post("/stream", body, { signal: leave.signal });
  await answer.body.getReader().read();
  leave.abort();
  assert.equal((await post("/invoke", body)).status, 200);
});

test("HTTP/2 by prior knowledge streams the same", async () => {
  const session = http2.connect(url);
  const stream = session.request({
    ":method": "POST",
    ":path": "/stream",
    "content-type": "application/json",
  });
  stream.setEncoding("utf8");
  stream.end(JSON.stringify({ input: "hello" }));
  let headers;
  stream.on("response", (fields) => (headers = fields));
  let text = "";
  for await (const part of stream) text += part;
  session.close();
  assert.equal(headers[":status"], 200);
  assert.equal(headers["content-type"], "text/event-stream");
  assert.equal(headers.connection, undefined);
  assert.equal(events(text).at(-1).data, "[DONE]");
});

test("20 requests at once all get their own answers", async () => {
  const all = Array.from({ length: 20 }, (_, n) =>
    post("/invoke", { input: `number ${n}.` }).then((answer) => answer.json()),
  );
  (await Promise.all(all)).forEach((body, n) => assert.ok(body.output.includes(`number ${n}.`)));
});
