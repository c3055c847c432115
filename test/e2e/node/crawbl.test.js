"use strict";

const assert = require("node:assert/strict");
const { test, after } = require("node:test");
const { converse, grpc, metadata, runtime } = require("./crawbl");

const client = runtime();
after(() => client.close());

const hello = { session_id: "node-1", message: "hello", workspace_id: "ws-1", user_id: "user-1" };
const kinds = (events) => events.map((event) => event.event);

test("a turn streams text and ends with exactly one done, last", async () => {
  const { events, status } = await converse(client, [hello]);
  assert.equal(status.code, grpc.status.OK, status.details);
  assert.equal(kinds(events).filter((kind) => kind === "done").length, 1);
  assert.equal(kinds(events).at(-1), "done");
  assert.ok(!events.at(-1).done.model.startsWith("ERROR:"), events.at(-1).done.model);
  assert.ok(kinds(events).includes("chunk"));
});

test("the chunks of a turn add up to the texts of its done", async () => {
  const { events } = await converse(client, [{ ...hello, session_id: "node-2" }]);
  const streamed = events.filter((e) => e.event === "chunk").map((e) => e.chunk.text).join("");
  const turns = events.at(-1).done.turns;
  assert.ok(turns.length > 0);
  for (const turn of turns) assert.ok(streamed.includes(turn.text), turn.text);
});

test("each request of a stream gets its done before the next is looked at", async () => {
  const requests = [1, 2, 3].map((n) => ({ ...hello, session_id: "node-3", message: `hello ${n}` }));
  const { events, status } = await converse(client, requests);
  assert.equal(status.code, grpc.status.OK, status.details);
  assert.equal(kinds(events).filter((kind) => kind === "done").length, 3);
});

test("a request that is not valid is a done that says so, and the stream goes on", async () => {
  const { events, status } = await converse(client, [{ ...hello, message: "" }, hello]);
  assert.equal(status.code, grpc.status.OK, status.details);
  assert.match(events[0].done.model, /^ERROR: INVALID_ARGUMENT: /);
  assert.deepEqual(events[0].done.turns, []);
  assert.equal(kinds(events).at(-1), "done");
  assert.ok(!events.at(-1).done.model.startsWith("ERROR:"));
});

test("a call without a token, or with a wrong one, is unauthenticated", async () => {
  for (const token of ["", "nonsense", "a.b"]) {
    const { events, status } = await converse(client, [hello], token);
    assert.equal(status.code, grpc.status.UNAUTHENTICATED);
    assert.deepEqual(events, []);
  }
});

test("a cancelled call ends, and the session takes the next turn", async () => {
  await new Promise((resolve) => {
    const call = client.Converse(metadata());
    call.on("data", () => call.cancel());
    call.on("error", () => {});
    call.on("status", (status) => {
      assert.equal(status.code, grpc.status.CANCELLED);
      resolve();
    });
    call.write({ ...hello, session_id: "node-4" });
  });
  const { events } = await converse(client, [{ ...hello, session_id: "node-4" }]);
  assert.equal(kinds(events).at(-1), "done");
});
