// Speech and vectors of nimi.runtime.v1 with @grpc/grpc-js, read as the protocol's own SDK reads
// them: it needs mime_type on each delta and one chunk before COMPLETED, throws on FAILED, and
// believes a USAGE event before completed.usage.
"use strict";

const assert = require("node:assert/strict");
const { test, after } = require("node:test");
const nimi = require("./nimi");

const ai = nimi.ai();
const old = nimi.oldAi();
after(() => [ai, old].forEach((stub) => stub.close()));

const WORDS = "The quick brown fox jumps over the lazy dog. ".repeat(4);

function speech(spec, head = {}) {
  return nimi.request(null, {
    head: { model_id: "speech/espeak-ng", ...head },
    scenario_type: 5,
    spec: { speech_synthesize: { text: WORDS, ...spec } },
  });
}

// What the SDK makes of a stream: { sound, mime, usage }, or it throws.
function read({ events, status }) {
  const chunks = [];
  let usage = null;
  let mime = null;
  for (const event of events) {
    if (event.payload === "delta") {
      const { chunk, mime_type } = event.delta.artifact;
      if (!mime_type) throw new Error("a delta without mime_type");
      mime = mime_type;
      chunks.push(chunk);
    } else if (event.payload === "usage") {
      usage = event.usage;
    } else if (event.payload === "completed") {
      if (chunks.length === 0) throw new Error("completed without a chunk");
      assert.deepEqual(event.completed.usage, usage);
    } else if (event.payload === "failed") {
      throw new Error(event.failed.reason_code);
    }
  }
  assert.equal(status.code, nimi.grpc.status.OK, status.details);
  return { sound: Buffer.concat(chunks), mime, usage };
}

test("speech is sound in pieces, its usage, and an end without sound", async () => {
  const answer = await nimi.collect(ai.StreamScenario(speech({}), nimi.metadata()));
  const { sound, mime, usage } = read(answer);
  assert.equal(mime, "audio/wav");
  assert.equal(sound.subarray(0, 4).toString(), "RIFF");
  assert.equal(sound.readUInt32LE(4) + 8, sound.length);
  assert.equal(usage.compute_ms, -1);
  const kinds = answer.events.map((event) => event.payload);
  assert.equal(kinds[0], "started");
  assert.deepEqual(kinds.slice(-2), ["usage", "completed"]);
  const { frame } = answer.events.at(-1);
  assert.ok(frame.done && !frame.audio_chunk && !frame.reason_code);
  for (const event of answer.events.filter((e) => e.payload === "delta"))
    assert.deepEqual(event.frame.audio_chunk, event.delta.artifact.chunk);
});

test("a client that has never heard of `frame` hears the same", async () => {
  const [known, unknown] = await Promise.all(
    [ai, old].map((stub) => nimi.collect(stub.StreamScenario(speech({}), nimi.metadata()))),
  );
  assert.ok(unknown.events.every((event) => !("frame" in event)));
  assert.deepEqual(read(unknown).sound, read(known).sound);
});

test("what no voice can is a reason that the SDK reads, and no event", async () => {
  for (const [spec, reason] of [
    [{ text: " " }, "AI_INPUT_INVALID"],
    [{ speed: 9 }, "AI_MEDIA_SPEC_INVALID"],
    [{ audio_format: "flac" }, "AI_MEDIA_OPTION_UNSUPPORTED"],
    [{ voice_ref: { kind: 1, preset_voice_id: "nobody" } }, "AI_VOICE_INPUT_INVALID"],
    [{ voice_ref: { kind: 2, voice_asset_id: "v" } }, "AI_VOICE_ASSET_NOT_FOUND"],
  ]) {
    const { events, status } = await nimi.collect(
      ai.StreamScenario(speech(spec), nimi.metadata()),
    );
    assert.deepEqual(events, []);
    assert.equal(nimi.reason(status), reason);
  }
});

// As the SDK sends what an app calls `extensions`.
test("a job shows the extension that nothing read, and a stream cannot", async () => {
  const namespace = "nimi.scenario.speech_synthesize.request";
  const fields = { emphasis: { string_value: "strong" } };
  const asked = { ...speech({}), extensions: [{ namespace, payload: { fields } }] };
  const job = { ...asked, execution_mode: 3 };
  const { reply, error } = await nimi.ask(ai, "SubmitScenarioJob", job);
  assert.equal(error, null);
  const { job_id, ignored_extensions } = reply.job;
  assert.deepEqual(ignored_extensions.map((e) => [e.namespace, e.reason !== ""]), [
    [namespace, true],
  ]);
  const call = ai.SubscribeScenarioJobEvents({ job_id }, nimi.metadata());
  const { events } = await nimi.collect(call);
  assert.equal(events.at(-1).event_type, "SCENARIO_JOB_EVENT_COMPLETED");
  assert.deepEqual(events.at(-1).job.ignored_extensions, ignored_extensions);
  const stream = await nimi.collect(ai.StreamScenario(asked, nimi.metadata()));
  assert.equal(nimi.reason(stream.status), "AI_MEDIA_OPTION_UNSUPPORTED");
  const other = [{ namespace: "nimi.scenario.image.request" }];
  const refused = await nimi.ask(ai, "SubmitScenarioJob", { ...job, extensions: other });
  assert.equal(nimi.reason(refused.error), "AI_MEDIA_OPTION_UNSUPPORTED");
});

test("a voice that is listed can be asked for", async () => {
  const listed = await nimi.ask(ai, "ListPresetVoices", {
    app_id: nimi.APP,
    model_id: "speech/espeak-ng",
  });
  const voices = new Set(listed.reply.voices.map((voice) => voice.voice_id));
  assert.ok(voices.has("en-US") && voices.has("de"));
  const voice_ref = { kind: 1, preset_voice_id: "de" };
  const german = await nimi.collect(ai.StreamScenario(speech({ voice_ref }), nimi.metadata()));
  const english = await nimi.collect(ai.StreamScenario(speech({}), nimi.metadata()));
  assert.notDeepEqual(read(german).sound, read(english).sound);
});

test("vectors come at once, one for each input", async () => {
  const request = nimi.request(null, {
    head: { model_id: "hash-256" },
    scenario_type: 2,
    execution_mode: 1,
    spec: { text_embed: { inputs: ["one", "two"] } },
  });
  const { reply, error } = await nimi.ask(ai, "ExecuteScenario", request);
  assert.equal(error, null);
  assert.deepEqual(reply.output.text_embed.vectors.map((v) => v.values.length), [256, 256]);
});
