// Memory and agents of nimi.runtime.v1 with @grpc/grpc-js: what an app keeps, and what it hears.
"use strict";

const assert = require("node:assert/strict");
const { test, after } = require("node:test");
const nimi = require("./nimi");

const { memory, agents } = nimi.kept();
after(() => [memory, agents].forEach((stub) => stub.close()));

const context = { app_id: nimi.APP, subject_user_id: "anna" };
const owner = { account_id: "acc", workspace_id: "w" };
const bank = { scope: "MEMORY_BANK_SCOPE_WORKSPACE_PRIVATE", workspace_private: owner };
const locator = { workspace_private: owner };

// A subscription once its headers are there: from then on it misses nothing.
async function subscribe(stub, method, request) {
  const call = stub[method](request, nimi.metadata());
  const seen = [];
  const waiting = [];
  let status = null;
  const wake = () => waiting.splice(0).forEach((resolve) => resolve());
  call.on("data", (event) => { seen.push(event); wake(); });
  call.on("error", () => {});
  const ended = new Promise((resolve) => call.on("status", (s) => { status = s; wake(); resolve(s); }));
  await new Promise((resolve) => call.on("metadata", resolve));
  const until = async (count) => {
    while (seen.length < count && !status) await new Promise((resolve) => waiting.push(resolve));
    assert.ok(seen.length >= count, status && status.details);
    return seen.slice(0, count);
  };
  return { call, seen, until, ended };
}

test("what is retained is recalled, listed, heard and deleted", async () => {
  const events = await subscribe(memory, "SubscribeMemoryEvents", { context });
  const created = await nimi.ask(memory, "CreateBank", { context, locator, display_name: "Notes" });
  assert.equal(created.error, null);
  assert.equal(created.reply.bank.display_name, "Notes");
  assert.match(created.headers.get("x-nimi-runtime-version")[0], /^0\./);
  const records = [{ episodic: { summary: "Ada lives in Kyōto" } }, { episodic: { summary: "it rains" } }];
  const { reply } = await nimi.ask(memory, "Retain", { context, bank, records });
  const [ada] = reply.records;
  assert.equal(ada.kind, "MEMORY_RECORD_KIND_EPISODIC");
  const found = await nimi.ask(memory, "Recall", { context, bank, query: { query: "KYOTO" } });
  assert.deepEqual(found.reply.hits.map((hit) => hit.record), [ada]);
  const history = await nimi.ask(memory, "History", { context, bank, query: { page_size: 1 } });
  assert.equal(history.reply.records[0].episodic.summary, "it rains");
  const rest = { page_size: 1, page_token: history.reply.next_page_token };
  const next = await nimi.ask(memory, "History", { context, bank, query: rest });
  assert.deepEqual(next.reply.records, [ada]);
  const memory_ids = [ada.memory_id, "none"];
  const gone = await nimi.ask(memory, "DeleteMemory", { context, bank, memory_ids });
  assert.deepEqual(gone.reply.deleted_memory_ids, [ada.memory_id]);
  const heard = await events.until(4);
  assert.deepEqual(heard.map((event) => event.detail), [
    "bank_created", "record_retained", "record_retained", "record_deleted",
  ]);
  assert.deepEqual(heard[1].record_retained, ada);
  events.call.cancel();
  // A cursor: what came after it, once.
  const cursor = String(heard[1].sequence);
  const late = await subscribe(memory, "SubscribeMemoryEvents", { context, cursor });
  const missed = await late.until(2);
  assert.deepEqual(missed.map((event) => event.sequence), heard.slice(2).map((event) => event.sequence));
  late.call.cancel();
  assert.equal((await late.ended).code, nimi.grpc.status.CANCELLED);
});

test("a bank with a profile is recalled by parts of words, and says so", async () => {
  const named = { account_id: "acc", workspace_id: "vectors" };
  const at = { ...bank, workspace_private: named };
  const embedding_profile = {
    provider: "local", model_id: "hash-256", dimension: 256,
    distance_metric: "MEMORY_DISTANCE_METRIC_COSINE",
    migration_policy: "MEMORY_MIGRATION_POLICY_REINDEX",
  };
  const asked = { context, locator: { workspace_private: named }, embedding_profile };
  const created = await nimi.ask(memory, "CreateBank", asked);
  assert.equal(created.error, null);
  assert.equal(created.reply.bank.embedding_profile.dimension, 256);
  const records = [{ episodic: { summary: "wagonwheels roll" } }, { episodic: { summary: "it rains" } }];
  await nimi.ask(memory, "Retain", { context, bank: at, records });
  const query = { query: "wagonwheel", limit: 1 };
  let hits = [];
  for (const end = Date.now() + 30000; hits.length === 0 && Date.now() < end; )
    ({ hits = [] } = (await nimi.ask(memory, "Recall", { context, bank: at, query })).reply);
  assert.equal(hits[0].record.episodic.summary, "wagonwheels roll");
  assert.equal(hits[0].match_reason, "cosine");
  assert.ok(hits[0].relevance_score > 0 && hits[0].relevance_score <= 0.5);
  const wrong = { ...asked, embedding_profile: { ...embedding_profile, dimension: 128 } };
  const { error } = await nimi.ask(memory, "CreateBank", wrong);
  assert.equal(error.code, nimi.grpc.status.INVALID_ARGUMENT);
});

test("another subject finds nothing, as if nothing were there", async () => {
  const ben = { ...context, subject_user_id: "ben" };
  const answers = await Promise.all(
    ["w", "never"].map((workspace_id) => {
      const other = { ...bank, workspace_private: { ...owner, workspace_id } };
      return nimi.ask(memory, "GetBank", { context: ben, locator: other });
    }),
  );
  for (const { error } of answers) {
    assert.equal(error.code, nimi.grpc.status.NOT_FOUND);
    assert.equal(error.details, "memory bank not found");
  }
});

test("an agent's life is replayed, then heard", async () => {
  const agent_id = "ada";
  const made = await nimi.ask(agents, "InitializeAgent", { context, agent_id, display_name: "Ada" });
  assert.equal(made.reply.agent.lifecycle_status, "AGENT_LIFECYCLE_STATUS_ACTIVE");
  assert.equal(made.reply.state.execution_state, "AGENT_EXECUTION_STATE_IDLE");
  const events = await subscribe(agents, "SubscribeAgentEvents", { context, agent_id });
  const mutations = [{ set_status_text: { status_text: "thinking" } }, { put_attribute: { key: "k", value: "v" } }];
  const { reply } = await nimi.ask(agents, "UpdateAgentState", { context, agent_id, mutations });
  assert.deepEqual([reply.state.status_text, reply.state.attributes], ["thinking", { k: "v" }]);
  await nimi.ask(agents, "TerminateAgent", { context, agent_id });
  const heard = await events.until(5);
  assert.deepEqual(heard.map((event) => event.event_type.replace("AGENT_EVENT_TYPE_", "")), [
    "LIFECYCLE", "STATE", "STATE", "LIFECYCLE", "STATE",
  ]);
  assert.equal(heard[2].state.current_status_text, "thinking");
  assert.deepEqual(heard.map((event) => event.sequence), [1, 2, 3, 4, 5]);
  events.call.cancel();
  const nameless = agents.SubscribeAgentEvents({ context }, nimi.metadata());
  nameless.on("data", () => assert.fail("no event"));
  nameless.on("error", () => {});
  const status = await new Promise((resolve) => nameless.on("status", resolve));
  assert.deepEqual([status.code, status.details], [nimi.grpc.status.INVALID_ARGUMENT, "agent_id is required"]);
});

test("what this runtime does not serve is UNIMPLEMENTED", async () => {
  const path = "/nimi.runtime.v1.RuntimeCognitionService/PutPage";
  const same = (bytes) => bytes;
  const error = await new Promise((resolve) =>
    memory.makeUnaryRequest(path, same, same, Buffer.alloc(0), nimi.metadata(), resolve),
  );
  assert.equal(error.code, nimi.grpc.status.UNIMPLEMENTED);
});
