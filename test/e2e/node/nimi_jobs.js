// The job scenario of nimi.runtime.v1 with @grpc/grpc-js, in two parts with a restart between.
//
//     node nimi_jobs.js before           submits, watches; prints the job's id once it runs, and
//                                        waits until the daemon cuts the subscription
//     node nimi_jobs.js after JOB_ID     reads the snapshot, watches again, fetches what came
"use strict";

const assert = require("node:assert/strict");
const nimi = require("./nimi");

const { status } = nimi.grpc;
const ai = nimi.ai();
const TERMINAL = new Set(["COMPLETED", "FAILED", "CANCELED", "TIMEOUT"]);
const short = (event) => event.event_type.replace("SCENARIO_JOB_EVENT_", "");

function subscribe(job_id) {
  return ai.SubscribeScenarioJobEvents({ job_id }, nimi.metadata());
}

async function before() {
  const asked = { ...nimi.request("hello"), execution_mode: 3, idempotency_key: "node-1" };
  const { reply, error } = await nimi.ask(ai, "SubmitScenarioJob", asked);
  assert.equal(error, null);
  const call = subscribe(reply.job.job_id);
  const answer = nimi.collect(call);
  call.on("data", (event) => short(event) === "RUNNING" && console.log(reply.job.job_id));
  const { events, status: end } = await answer;
  assert.equal(end.code, status.CANCELLED);
  assert.equal(end.details, "runtime shutting down");
  assert.deepEqual(events.map(short), ["SUBMITTED", "QUEUED", "RUNNING"]);
  return reply.job.job_id;
}

// Preempted: fetch the snapshot when it is ready again, then subscribe anew.
async function after(job_id) {
  const { reply } = await nimi.ask(ai, "GetScenarioJob", { job_id });
  assert.equal(reply.job.job_id, job_id);
  const { events, status: end } = await nimi.collect(subscribe(job_id));
  assert.equal(end.code, status.OK, end.details);
  const types = events.map(short);
  assert.deepEqual(types, ["SUBMITTED", "QUEUED", "RUNNING", "QUEUED", "RUNNING", "COMPLETED"]);
  assert.ok(types.slice(0, -1).every((type) => !TERMINAL.has(type)));
  assert.deepEqual(events.map((event) => event.sequence), [1, 2, 3, 4, 5, 6]);
  const snapshot = await nimi.ask(ai, "GetScenarioJob", { job_id });
  assert.deepEqual(snapshot.reply.job, events.at(-1).job);
  assert.equal(snapshot.reply.job.retry_count, 1);
  const result = await nimi.ask(ai, "GetScenarioArtifacts", { job_id });
  assert.equal(result.reply.output.text_generate.text, "on ".repeat(10));
  const refused = await nimi.ask(ai, "CancelScenarioJob", { job_id });
  assert.equal(nimi.reason(refused.error), "AI_MEDIA_JOB_NOT_CANCELLABLE");
  const again = { ...nimi.request("hello"), execution_mode: 3, idempotency_key: "node-1" };
  const same = await nimi.ask(ai, "SubmitScenarioJob", again);
  assert.equal(same.reply.job.job_id, job_id);
}

const [part, job_id] = process.argv.slice(2);
(part === "before" ? before() : after(job_id)).then(
  () => ai.close(),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
