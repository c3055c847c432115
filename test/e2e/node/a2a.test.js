// weir as an A2A agent, for the official JavaScript client: 1.0 by JSON-RPC and HTTP+JSON, and 0.3.
"use strict";

const assert = require("node:assert/strict");
const crypto = require("node:crypto");
const http = require("node:http");
const { test } = require("node:test");
const { TaskState } = require("@a2a-js/sdk");
const {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} = require("@a2a-js/sdk/client");

const { WEIR_URL, WEIR_TOKEN } = process.env;
const dialects = [
  ["JSONRPC", "1.0"],
  ["HTTP+JSON", "1.0"],
  ["JSONRPC", "0.3"],
];

function fetchImpl(url, options = {}) {
  const headers = new Headers(options.headers);
  headers.set("authorization", `Bearer ${WEIR_TOKEN}`);
  return fetch(url, { ...options, headers });
}

async function connect([binding, version]) {
  const options = { fetchImpl, legacyCompat: { enabled: version === "0.3" } };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory(options), new RestTransportFactory(options)],
  });
  const card = await new DefaultAgentCardResolver().resolve(WEIR_URL);
  assert.deepEqual(card.skills.map((skill) => skill.id), ["manager", "clerk"]);
  card.supportedInterfaces = card.supportedInterfaces.filter(
    (i) => i.protocolBinding === binding && i.protocolVersion === version,
  );
  return factory.createFromAgentCard(card);
}

const message = (text, more = {}, configuration = {}) => ({
  tenant: "",
  message: {
    messageId: crypto.randomUUID(),
    role: 1,
    parts: [{ content: { $case: "text", value: text }, filename: "", mediaType: "" }],
    contextId: "",
    taskId: "",
    extensions: [],
    referenceTaskIds: [],
    ...more,
  },
  configuration: { acceptedOutputModes: [], returnImmediately: false, ...configuration },
});

// A webhook's own server: resolves with the first post that says this state.
async function told(state) {
  let arrived;
  const heard = new Promise((resolve) => (arrived = resolve));
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    response.end();
    const said = JSON.parse(body);
    const task = said.task ?? said;
    if (task.status.state.toLowerCase().endsWith(state)) arrived({ task, headers: request.headers });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const url = `http://127.0.0.1:${server.address().port}/told`;
  return { url, heard: heard.finally(() => server.close()) };
}

const textOf = (parts) => parts.map((part) => part.content.value).join("");

// The task, the answer as its chunks make it up, and the last state.
async function read(stream) {
  let task, answer, state;
  for await (const { payload } of stream) {
    const { $case, value } = payload;
    if ($case === "task") {
      task = value;
      answer = value.artifacts.map((artifact) => textOf(artifact.parts)).join("");
      state = value.status.state;
    } else if ($case === "artifactUpdate") {
      assert.equal(value.append, answer !== "");
      answer += textOf(value.artifact.parts);
    } else {
      assert.equal($case, "statusUpdate");
      state = value.status.state;
    }
  }
  return { task, answer, state };
}

for (const dialect of dialects) {
  test(`A2A ${dialect.join(" ")}: a turn, whole and streamed`, async () => {
    const client = await connect(dialect);
    const whole = await client.sendMessage(message("hello"));
    assert.equal(whole.status.state, TaskState.TASK_STATE_COMPLETED);
    assert.equal(textOf(whole.artifacts[0].parts), "heard: hello");
    const streamed = await read(client.sendMessageStream(message("look")));
    assert.equal(streamed.state, TaskState.TASK_STATE_COMPLETED);
    assert.equal(streamed.answer, "I look it up.\n\nThere is a pencil.");
    const failed = await read(client.sendMessageStream(message("fail")));
    assert.equal(failed.state, TaskState.TASK_STATE_FAILED);
  });

  test(`A2A ${dialect.join(" ")}: a question`, async () => {
    const client = await connect(dialect);
    const asked = await client.sendMessage(message("pay"));
    assert.equal(asked.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    assert.equal(asked.status.message.parts[1].content.value.tool, "pay");
    const paid = await read(client.sendMessageStream(message("yes", { taskId: asked.id })));
    assert.equal(paid.state, TaskState.TASK_STATE_COMPLETED);
    assert.match(paid.answer, /^Done: /);
    await assert.rejects(client.sendMessage(message("again", { taskId: asked.id })), /ended/);
  });

  test(`A2A ${dialect.join(" ")}: poll, resubscribe, cancel`, async () => {
    const client = await connect(dialect);
    const at_once = { returnImmediately: true };
    const task = await client.sendMessage(message("go on for ever", {}, at_once));
    const reader = read(client.resubscribeTask({ tenant: "", id: task.id }));
    const cancelled = await client.cancelTask({ tenant: "", id: task.id });
    assert.equal(cancelled.status.state, TaskState.TASK_STATE_CANCELED);
    await reader.catch((error) => assert.match(error.message, /ended/)); // too late to subscribe
    assert.equal((await client.getTask({ tenant: "", id: task.id })).id, task.id);
    await assert.rejects(client.getTask({ tenant: "", id: "1" }), /no such task/);
  });

  test(`A2A ${dialect.join(" ")}: a webhook`, async () => {
    const client = await connect(dialect);
    const { url, heard } = await told("completed");
    const webhook = { tenant: "", id: "mine", taskId: "", url, token: "known" };
    const taskPushNotificationConfig = { ...webhook, authentication: undefined };
    const task = await client.sendMessage(message("hello", {}, { taskPushNotificationConfig }));
    const notified = await heard;
    assert.equal(notified.task.id, task.id);
    assert.equal(notified.headers["x-a2a-notification-token"], "known");
    const name = { tenant: "", taskId: task.id, id: "mine" };
    const config = await client.getTaskPushNotificationConfig(name);
    assert.deepEqual([config.id, config.url, config.token], ["mine", url, "known"]);
    await client.deleteTaskPushNotificationConfig(name);
    const page = { tenant: "", taskId: task.id, pageSize: 0, pageToken: "" };
    const listed = await client.listTaskPushNotificationConfig(page);
    assert.deepEqual(listed.configs ?? listed, []);
  });
}
