// The job scenario of nimi.runtime.v1 with @grpc/grpc-js: asked for, watched, kept. With WEIR_JOB
// it is the second half, after a restart: the job of that id still says what it said.
"use strict";

const assert = require("node:assert/strict");
const { test, after } = require("node:test");
const nimi = require("./nimi");

const ai = nimi.ai();
after(() => ai.close());

const COMPLETED = "SCENARIO_JOB_EVENT_COMPLETED";
const SAID = "You said: a question. Grüße 🌊, and that was all.";
const submit = (text, others = {}) =>
  nimi.ask(ai, "SubmitScenarioJob", nimi.request(text, { execution_mode: 3, ...others }));
const watch = (job_id) =>
  nimi.collect(ai.SubscribeScenarioJobEvents({ job_id }, nimi.metadata()));
const types = (events) => events.map((event) => event.event_type);

function checkStory({ events, status }, last) {
  assert.equal(status.code, nimi.grpc.status.OK, status.details);
  assert.equal(types(events)[0], "SCENARIO_JOB_EVENT_SUBMITTED");
  assert.equal(types(events).filter((type) => type === last).length, 1);
  assert.equal(types(events).at(-1), last);
  assert.deepEqual(events.map((event) => event.sequence), events.map((_, index) => index + 1));
}

async function checkKept(job_id) {
  const story = await watch(job_id);
  checkStory(story, COMPLETED);
  const { reply } = await nimi.ask(ai, "GetScenarioJob", { job_id });
  assert.deepEqual(reply.job, story.events.at(-1).job);
  const result = await nimi.ask(ai, "GetScenarioArtifacts", { job_id });
  assert.equal(result.reply.output.text_generate.text, SAID);
  assert.equal(result.reply.trace_id, reply.job.trace_id); // the SDK shows this one
}

if (process.env.WEIR_JOB) {
  test("a job outlives a restart, and its late subscriber hears the whole story", async () => {
    await checkKept(process.env.WEIR_JOB);
  });
} else {
  test("a job is asked for, watched to its end, and fetched", async () => {
    const { reply, error } = await submit("a question");
    assert.equal(error, null);
    await checkKept(reply.job.job_id);
    console.error(`JOB ${reply.job.job_id}`);
  });

  test("a failed job says why in its last event, and ends OK", async () => {
    const { reply } = await submit("fail");
    const story = await watch(reply.job.job_id);
    checkStory(story, "SCENARIO_JOB_EVENT_FAILED");
    assert.equal(story.events.at(-1).job.reason_code, "AI_PROVIDER_UNAVAILABLE");
  });

  test("a cancelled job ends at once, for those who watch it, too", async () => {
    const { reply } = await submit("for ever");
    const { job_id } = reply.job;
    const watched = watch(job_id);
    const cancelled = await nimi.ask(ai, "CancelScenarioJob", { job_id, reason: "enough" });
    assert.equal(cancelled.reply.job.status, "SCENARIO_JOB_STATUS_CANCELED");
    checkStory(await watched, "SCENARIO_JOB_EVENT_CANCELED");
    const again = await nimi.ask(ai, "CancelScenarioJob", { job_id });
    assert.equal(nimi.reason(again.error), "AI_MEDIA_JOB_NOT_CANCELLABLE");
  });

  test("the same key is the same job, another request with it a conflict", async () => {
    const first = await submit("a question", { idempotency_key: "k" });
    const again = await submit("a question", { idempotency_key: "k" });
    assert.equal(again.reply.job.job_id, first.reply.job.job_id);
    const other = await submit("another", { idempotency_key: "k" });
    assert.equal(other.error.code, nimi.grpc.status.ALREADY_EXISTS);
    assert.equal(nimi.reason(other.error), "AI_MEDIA_IDEMPOTENCY_CONFLICT");
  });

  test("nobody's job is nowhere, and another app's is not shown", async () => {
    const job_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const story = await watch(job_id);
    assert.deepEqual([story.events, nimi.reason(story.status)], [[], "AI_MEDIA_JOB_NOT_FOUND"]);
    const { reply } = await submit("a question");
    const foreign = nimi.metadata({ "x-nimi-app-id": "other.app" });
    const { error } = await nimi.ask(ai, "GetScenarioJob", { job_id: reply.job.job_id }, foreign);
    assert.equal(nimi.reason(error), "APP_SCOPE_FORBIDDEN");
  });
}
