// The text call of nimi.runtime.v1 with @grpc/grpc-js, as the protocol's own SDK makes it.
"use strict";

const assert = require("node:assert/strict");
const crypto = require("node:crypto");
const { test, after } = require("node:test");
const nimi = require("./nimi");

const ai = nimi.ai();
const audit = nimi.audit();
const health = nimi.health();
after(() => [ai, audit, health].forEach((stub) => stub.close()));

const stream = (text, options, md = nimi.metadata()) =>
  nimi.collect(ai.StreamScenario(nimi.request(text, options), md));
const kinds = (events) => events.map((event) => event.payload);
const deltas = (events) => events.filter((e) => e.payload === "delta").map((e) => e.delta.text.text);

// What C1 says of every stream that was established.
function checkStream({ events, status }, last) {
  assert.equal(status.code, nimi.grpc.status.OK, status.details);
  assert.deepEqual(new Set(kinds(events).slice(1, -1)), new Set(events.length > 2 ? ["delta"] : []));
  assert.equal(kinds(events)[0], "started");
  assert.equal(kinds(events).at(-1), last);
  assert.deepEqual(events.map((event) => event.sequence), events.map((_, index) => index + 1));
  assert.equal(new Set(events.map((event) => event.trace_id)).size, 1);
  const done = events.filter((event) => event.frame && event.frame.done);
  assert.deepEqual(done, [events.at(-1)]);
  assert.ok(done[0].frame.usage && !done[0].frame.text_delta && !done[0].frame.audio_chunk);
  for (const event of events.slice(1, -1)) {
    assert.equal(event.frame.done, undefined);
    assert.equal(event.frame.text_delta, event.delta.text.text);
  }
  const pieces = deltas(events);
  for (const piece of pieces.slice(0, -1)) assert.ok(Buffer.byteLength(piece) >= 32, piece);
  assert.ok(pieces.every((piece) => piece.length > 0));
  return { pieces, done: done[0] };
}

// --- acceptance 1 ---------------------------------------------------------------------------

test("ready() finds a runtime that is READY, with a version it may talk to", async () => {
  const { reply, headers } = await nimi.ask(audit, "GetRuntimeHealth", {});
  assert.equal(reply.status, "RUNTIME_HEALTH_STATUS_READY");
  assert.match(headers.get("x-nimi-runtime-version")[0], /^0\.\d+\.\d+/);
});

// --- acceptance 2 ---------------------------------------------------------------------------

test("a text call starts, streams and completes", async () => {
  const answer = await stream("a question of some length, so that it is cut");
  const { pieces, done } = checkStream(answer, "completed");
  const said = "You said: a question of some length, so that it is cut. Grüße 🌊, and that was all.";
  assert.equal(pieces.join(""), said);
  assert.deepEqual(done.completed.usage, done.frame.usage);
  assert.deepEqual(
    [done.frame.usage.input_tokens, done.frame.usage.output_tokens, done.frame.usage.compute_ms],
    [7, 11, -1],
  );
  assert.equal(done.completed.finish_reason, "FINISH_REASON_STOP");
  assert.equal(done.frame.reason_code, undefined);
  assert.equal(answer.events[0].started.model_resolved, "m");
  assert.match(answer.headers.get("x-nimi-runtime-version")[0], /^0\./);
});

test("what nobody counted is -1, and an empty answer has no delta", async () => {
  const { done } = checkStream(await stream("nobody counts"), "completed");
  assert.deepEqual(Object.values(done.frame.usage), [-1, -1, -1]);
  const silent = checkStream(await stream("say nothing"), "completed");
  assert.deepEqual(silent.pieces, []);
  assert.equal(silent.done.frame.usage.input_tokens, 5);
});

test("a client that trims each delta loses no space between words", async () => {
  const { pieces } = checkStream(await stream("spaces"), "completed");
  const whole = "Once  upon a time\n\n\tthere was a weir, and it stood   across a stream of words   \n";
  assert.equal(pieces.join(""), whole);
  assert.equal(pieces.map((piece) => piece.trim()).join(""), whole.trim());
});

test("a client that has never heard of `frame` reads the same", async () => {
  const old = nimi.oldAi();
  after(() => old.close());
  const { events, status } = await nimi.collect(
    old.StreamScenario(nimi.request("a question of some length"), nimi.metadata()),
  );
  assert.equal(status.code, nimi.grpc.status.OK);
  assert.ok(events.every((event) => !("frame" in event)));
  assert.equal(kinds(events).at(-1), "completed");
  assert.match(deltas(events).join(""), /^You said: a question of some length\./);
});

// --- acceptance 3 ---------------------------------------------------------------------------

test("a failure after the start flushes the text, says why and ends OK", async () => {
  const { pieces, done } = checkStream(await stream("fail"), "failed");
  assert.equal(pieces.join(""), "Let me see.");
  assert.equal(done.failed.reason_code, "AI_PROVIDER_UNAVAILABLE");
  assert.equal(done.frame.reason_code, "AI_PROVIDER_UNAVAILABLE");
  assert.match(done.failed.action_hint, /^AI_PROVIDER_UNAVAILABLE: /);
  assert.deepEqual([done.frame.usage.input_tokens, done.frame.usage.output_tokens], [3, 4]);
});

// --- acceptance 4 ---------------------------------------------------------------------------

const { INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION } = nimi.grpc.status;
const CLOUD = { route_policy: 2, subject_user_id: "anna" };
const refusals = [
  // step, what is wrong, headers, reason, status
  [1, { head: null }, {}, "PROTOCOL_ENVELOPE_INVALID", INVALID_ARGUMENT],
  [1, { spec: null }, {}, "PROTOCOL_ENVELOPE_INVALID", INVALID_ARGUMENT],
  [1, { execution_mode: 3 }, {}, "AI_ROUTE_UNSUPPORTED", INVALID_ARGUMENT],
  [1, { scenario_type: 3 }, {}, "AI_ROUTE_UNSUPPORTED", INVALID_ARGUMENT],
  [1, { spec: { text_generate: { system_prompt: "be kind" } } }, {}, "AI_INPUT_INVALID", INVALID_ARGUMENT],
  [1, { extensions: [{ namespace: "x" }] }, {}, "AI_MEDIA_OPTION_UNSUPPORTED", INVALID_ARGUMENT],
  [3, { head: { app_id: "" } }, {}, "AI_APP_ID_REQUIRED", INVALID_ARGUMENT],
  [3, { head: { app_id: "other" } }, {}, "AI_APP_ID_CONFLICT", INVALID_ARGUMENT],
  [4, { head: { ...CLOUD, connector_id: "mine" } }, { "x-nimi-provider-api-key": "k" }, "AI_REQUEST_CREDENTIAL_CONFLICT", INVALID_ARGUMENT],
  [4, {}, { "x-nimi-key-source": "managed" }, "AI_CONNECTOR_ID_REQUIRED", INVALID_ARGUMENT],
  [4, {}, { "x-nimi-key-source": "inline" }, "AI_REQUEST_CREDENTIAL_MISSING", INVALID_ARGUMENT],
  [4, { head: { ...CLOUD, subject_user_id: "", connector_id: "mine" } }, {}, "PROTOCOL_ENVELOPE_INVALID", INVALID_ARGUMENT],
  [5, { head: { ...CLOUD, connector_id: "none" } }, {}, "AI_CONNECTOR_NOT_FOUND", NOT_FOUND],
  [5, { head: { ...CLOUD, connector_id: "near" } }, {}, "AI_CONNECTOR_INVALID", INVALID_ARGUMENT],
  [6, { head: { ...CLOUD, subject_user_id: "bob", connector_id: "mine" } }, {}, "AI_CONNECTOR_NOT_FOUND", NOT_FOUND],
  [6, { head: { ...CLOUD, connector_id: "off" } }, {}, "AI_CONNECTOR_DISABLED", FAILED_PRECONDITION],
  [6, { head: { ...CLOUD, connector_id: "keyless" } }, {}, "AI_CONNECTOR_CREDENTIAL_MISSING", FAILED_PRECONDITION],
  [7, { head: { ...CLOUD, connector_id: "plain" } }, {}, "AI_PROVIDER_ENDPOINT_FORBIDDEN", FAILED_PRECONDITION],
  [9, { head: { model_id: "" } }, {}, "AI_MODEL_ID_REQUIRED", INVALID_ARGUMENT],
  [9, { head: { model_id: "a->b" } }, {}, "AI_ROUTE_UNSUPPORTED", FAILED_PRECONDITION],
  [9, { head: { model_id: "media/x" } }, {}, "AI_MODEL_PROVIDER_MISMATCH", INVALID_ARGUMENT],
  [9, { head: { model_id: "local/other" } }, {}, "AI_LOCAL_MODEL_UNAVAILABLE", FAILED_PRECONDITION],
];

test("each fault of steps 1 to 9 is a status in every carrier, and no event", async () => {
  for (const [step, wrong, headers, reason, code] of refusals) {
    const request = nimi.request("hi", wrong.head === null ? { ...wrong, head: {} } : wrong);
    if (wrong.head === null) delete request.head;
    const answer = await nimi.collect(ai.StreamScenario(request, nimi.metadata(headers)));
    const { events, status } = answer;
    const which = `step ${step}: ${JSON.stringify(wrong)} ${status.details}`;
    assert.deepEqual(events, [], which);
    assert.equal(nimi.reason(status), reason, which);
    assert.equal(status.code, code, which);
    const { traceId, retryable, message, actionHint } = JSON.parse(status.details);
    assert.ok(traceId.length === 26 && retryable === false && message && actionHint, which);
    const details = status.metadata.get("grpc-status-details-bin")[0].toString("latin1");
    for (const part of [reason, "nimi.runtime.v1", "type.googleapis.com/google.rpc.ErrorInfo", traceId])
      assert.ok(details.includes(part), which);
  }
  checkStream(await stream("hello"), "completed");
});

// As the SDK's generate({ provider, model }) asks.
test("the cloud route takes a connector or a vendor from in front of the model's name", async () => {
  const ask = (model_id, subject_user_id = "anna") =>
    stream("hello", { head: { ...CLOUD, model_id, subject_user_id } });
  for (const model of ["mine/maker/gpt-x", "scripted/maker/gpt-x"]) {
    const answer = await ask(model);
    checkStream(answer, "completed");
    assert.equal(answer.events[0].started.model_resolved, "maker/gpt-x");
  }
  for (const [model, subject, reason] of [
    ["mine/gpt-x", "bob", "AI_CONNECTOR_ID_REQUIRED"],
    ["near/m", "anna", "AI_CONNECTOR_ID_REQUIRED"],
    ["none/gpt-x", "anna", "AI_CONNECTOR_ID_REQUIRED"],
    ["off/gpt-x", "anna", "AI_CONNECTOR_DISABLED"],
    ["mine/", "anna", "AI_MODEL_ID_REQUIRED"],
  ]) {
    const { events, status } = await ask(model, subject);
    assert.deepEqual([events, nimi.reason(status)], [[], reason], model);
  }
});

test("an invalid bearer is step 2, and never makes its caller anonymous", async () => {
  const { status } = await stream("hi", {}, nimi.metadata({ authorization: "Bearer x.y.z" }));
  assert.equal(status.code, nimi.grpc.status.UNAUTHENTICATED);
  assert.equal(nimi.reason(status), "AUTH_TOKEN_INVALID");
});

// --- acceptance 5 ---------------------------------------------------------------------------

test("without a first word, in silence and after its time a stream fails in its own words", async () => {
  const limit = { head: { timeout_ms: 300 } };
  const answers = await Promise.all([stream("be silent", limit), stream("stop in the middle", limit)]);
  answers.push(await stream("for ever", limit));
  const texts = answers.map((answer) => {
    const { pieces, done } = checkStream(answer, "failed");
    assert.equal(done.failed.reason_code, "AI_PROVIDER_TIMEOUT");
    return pieces.join("");
  });
  assert.equal(texts[0], "");
  assert.equal(texts[1], "A few words, and then no more of them.");
  assert.match(texts[2], /^on on /);
});

test("a client's own deadline is a status", async () => {
  const call = ai.StreamScenario(nimi.request("for ever"), nimi.metadata(), {
    deadline: Date.now() + 300,
  });
  const { events, status } = await nimi.collect(call);
  assert.equal(status.code, nimi.grpc.status.DEADLINE_EXCEEDED);
  assert.ok(!kinds(events).includes("completed") && !kinds(events).includes("failed"));
});

// --- acceptance 14 and 15 ---------------------------------------------------------------------

const LIMITED = [
  "x-nimi-participant-id", "x-nimi-domain", "x-nimi-idempotency-key", "x-nimi-caller-id",
  "x-nimi-trace-id", "x-nimi-surface-id",
]; // prettier-ignore

test("metadata has at most 4096 bytes each, and the four basic headers", async () => {
  for (const name of LIMITED) {
    const much = await stream("hi", {}, nimi.metadata({ [name]: "x".repeat(4096) }));
    checkStream(much, "completed");
    const { events, status } = await stream("hi", {}, nimi.metadata({ [name]: "x".repeat(4097) }));
    assert.deepEqual([events, nimi.reason(status)], [[], "PROTOCOL_ENVELOPE_INVALID"]);
    assert.ok(JSON.parse(status.details).message.includes(name));
  }
  for (const name of Object.keys(nimi.metadata().getMap()).slice(0, 4)) {
    const { status } = await stream("hi", {}, nimi.metadata({ [name]: null }));
    assert.equal(nimi.reason(status), "PROTOCOL_ENVELOPE_INVALID", name);
    assert.ok(JSON.parse(status.details).message.includes(name));
    const unary = await nimi.ask(audit, "GetRuntimeHealth", {}, nimi.metadata({ [name]: null }));
    assert.equal(nimi.reason(unary.error), "PROTOCOL_ENVELOPE_INVALID");
  }
});

test("probes need no envelope", async () => {
  const bare = new nimi.grpc.Metadata();
  for (const service of ["", "nimi.runtime.v1.RuntimeAiService"]) {
    const { reply } = await nimi.ask(health, "Check", { service }, bare);
    assert.equal(reply.status, "SERVING");
    const call = health.Watch({ service }, bare);
    call.on("error", () => {}); // it is cancelled below
    const first = await new Promise((resolve) => call.once("data", resolve));
    assert.equal(first.status, "SERVING");
    call.cancel();
  }
  const { error } = await nimi.ask(health, "Check", { service: "x" }, bare);
  assert.equal(error.code, NOT_FOUND);
});

// --- artifacts --------------------------------------------------------------------------------

function upload(messages) {
  return new Promise((resolve) => {
    // No headers: the SDK sends none with this one.
    const call = ai.UploadArtifact((error, reply) => resolve({ error, reply }));
    for (const message of messages) call.write(message);
    call.end();
  });
}

test("an artifact is uploaded without the protocol's headers", async () => {
  const bytes = crypto.randomBytes(3 << 20);
  const metadata = { app_id: nimi.APP, subject_user_id: "anna", mime_type: "image/png" };
  const chunks = [0, 1, 2].map((i) => ({
    chunk: { sequence: i, bytes: bytes.subarray(i << 20, (i + 1) << 20) },
  }));
  const { error, reply } = await upload([{ metadata }, ...chunks]);
  assert.equal(error, null);
  assert.match(reply.artifact.artifact_id, /^artifact_[0-9A-Z]{26}$/);
  assert.equal(reply.artifact.sha256, crypto.createHash("sha256").update(bytes).digest("hex"));
  assert.equal(reply.artifact.size_bytes, bytes.length);
  const gap = await upload([{ metadata }, chunks[1]]);
  assert.equal(nimi.reason(gap.error), "AI_ARTIFACT_UPLOAD_INVALID");
  const large = await upload([{ metadata }, { chunk: { sequence: 0, bytes: Buffer.alloc(5 << 20) } }]);
  assert.equal(nimi.reason(large.error), "AI_ARTIFACT_UPLOAD_TOO_LARGE");
});
