"use strict";

const assert = require("node:assert/strict");
const { test, after } = require("node:test");
const { converse, grpc, metadata, runtime } = require("./crawbl");

const client = runtime();
after(() => client.close());

const request = (session, message) => ({
  session_id: session,
  message,
  workspace_id: "ws-1",
  user_id: "user-1",
});
const texts = (events) =>
  events.filter((e) => e.event === "done").map((e) => e.done.turns.map((t) => t.text).join(""));

test("50 requests written at once on one stream are answered in order", async () => {
  const requests = Array.from({ length: 50 }, (_, n) => request("many-1", `number ${n}.`));
  const { events, status } = await converse(client, requests);
  assert.equal(status.code, grpc.status.OK, status.details);
  assert.equal(texts(events).length, 50);
  texts(events).forEach((text, n) => assert.ok(text.includes(`number ${n}.`), text));
});

test("90 streams of one connection do not mix", async () => {
  const all = Array.from({ length: 90 }, (_, n) =>
    converse(client, [request(`many-2-${n}`, `stream ${n}.`)]),
  );
  (await Promise.all(all)).forEach(({ events, status }, n) => {
    assert.equal(status.code, grpc.status.OK, status.details);
    assert.ok(texts(events)[0].includes(`stream ${n}.`));
  });
});

test("a stream stays open between its turns", async () => {
  const call = client.Converse(metadata());
  const done = () =>
    new Promise((resolve) => {
      const listen = (event) => {
        if (event.event !== "done") return;
        call.off("data", listen);
        resolve(event.done);
      };
      call.on("data", listen);
    });
  for (const number of [1, 2, 3]) {
    const answer = done();
    call.write(request("many-3", `turn ${number}`));
    assert.ok((await answer).turns[0].text.includes(`turn ${number}`));
  }
  const status = new Promise((resolve) => call.on("status", resolve));
  call.end();
  assert.equal((await status).code, grpc.status.OK);
});

test("a request that is too large is resource exhausted, and the next call is served", async () => {
  const { status } = await converse(client, [request("many-4", "x".repeat(4 << 20))]);
  assert.equal(status.code, grpc.status.RESOURCE_EXHAUSTED, status.details);
  const { events } = await converse(client, [request("many-4", "hello")]);
  assert.equal(texts(events).length, 1);
});

test("a deadline that has passed before the call begins is told as such", async () => {
  const call = client.Converse(metadata(), { deadline: Date.now() - 1000 });
  call.on("error", () => {});
  call.on("data", () => assert.fail("an event"));
  const status = await new Promise((resolve) => call.on("status", resolve));
  assert.equal(status.code, grpc.status.DEADLINE_EXCEEDED);
});
