"use strict";

const assert = require("node:assert/strict");
const { test, after } = require("node:test");
const { ask, grpc, memory } = require("./crawbl");

const client = memory();
const workspace_id = "ws-1";
after(() => client.close());

test("an entry is created, listed and deleted", async () => {
  const created = await ask(client, "CreateMemory", { workspace_id, key: "node", content: "v", category: "core" });
  assert.equal(created.error, null);
  assert.equal(created.reply.entry.content, "v");
  assert.deepEqual(created.reply.entry.created_at, created.reply.entry.updated_at);
  const listed = await ask(client, "ListMemories", { workspace_id, category: "core" });
  assert.deepEqual(listed.reply.entries, [created.reply.entry]);
  assert.equal((await ask(client, "DeleteMemory", { workspace_id, key: "node" })).error, null);
  const again = await ask(client, "DeleteMemory", { workspace_id, key: "node" });
  assert.equal(again.error.code, grpc.status.NOT_FOUND);
  assert.equal(again.error.details, "memory: entry not found");
});

test("what may not be asked has the code of the contract", async () => {
  const refusals = [
    ["ListMemories", { workspace_id, limit: -1 }, grpc.status.INVALID_ARGUMENT],
    ["ListMemories", {}, grpc.status.INVALID_ARGUMENT],
    ["ListMemories", { workspace_id: "ws-2" }, grpc.status.PERMISSION_DENIED],
    ["CreateMemory", { workspace_id, content: "v" }, grpc.status.INVALID_ARGUMENT],
  ];
  for (const [method, request, code] of refusals) {
    const { error } = await ask(client, method, request);
    assert.equal(error.code, code, error.details);
  }
  const { error } = await ask(client, "ListMemories", {}, "nonsense");
  assert.equal(error.code, grpc.status.UNAUTHENTICATED);
});
