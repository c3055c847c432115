// What an app meets first, with @grpc/grpc-js: is the runtime there, what may be asked, who am I.
"use strict";

const assert = require("node:assert/strict");
const { test, after } = require("node:test");
const nimi = require("./nimi");

const stubs = nimi.apps();
after(() => Object.values(stubs).forEach((stub) => stub.close()));

const { local, connectors, messages, models, auth } = stubs;

test("upstream's readiness probe: ListLocalAssets of nothing in particular", async () => {
  const { reply, error, headers } = await nimi.ask(local, "ListLocalAssets", {});
  assert.equal(error, null);
  assert.match(headers.get("x-nimi-runtime-version")[0], /^0\.\d+\.\d+/);
  assert.deepEqual(
    reply.assets.map(({ asset_id, kind, status, engine }) => [asset_id, kind, status, engine]),
    [
      ["local/m", "LOCAL_ASSET_KIND_CHAT", "LOCAL_ASSET_STATUS_ACTIVE", "llama"],
      ["local/espeak-ng", "LOCAL_ASSET_KIND_TTS", "LOCAL_ASSET_STATUS_ACTIVE", "speech"],
      ["local/hash-256", "LOCAL_ASSET_KIND_EMBEDDING", "LOCAL_ASSET_STATUS_ACTIVE", "llama"],
    ],
  );
  assert.equal(reply.next_page_token, "");
});

test("lists have pages, and a token of another list is refused", async () => {
  const first = await nimi.ask(local, "ListLocalAssets", { page_size: 2 });
  assert.equal(first.reply.assets.length, 2);
  const page_token = first.reply.next_page_token;
  const second = await nimi.ask(local, "ListLocalAssets", { page_size: 2, page_token });
  assert.deepEqual([second.reply.assets.length, second.reply.next_page_token], [1, ""]);
  const engine_filter = "speech";
  const other = await nimi.ask(local, "ListLocalAssets", { engine_filter, page_token });
  assert.equal(nimi.reason(other.error), "PAGE_TOKEN_INVALID");
  const speech = await nimi.ask(local, "ListLocalAssets", { engine_filter });
  assert.deepEqual(speech.reply.assets.map((asset) => asset.asset_id), ["local/espeak-ng"]);
});

test("connectors are those of the settings, an owner's only for the owner", async () => {
  const ids = async (request) => {
    const { reply } = await nimi.ask(connectors, "ListConnectors", request);
    return reply.connectors.map((connector) => connector.connector_id);
  };
  assert.deepEqual(await ids({}), ["near", "voice", "off", "far"]);
  assert.deepEqual(await ids({ owner_id: "anna" }), ["near", "voice", "mine", "off", "far"]);
  assert.deepEqual(await ids({ kind_filter: 2 }), ["off", "far"]);
  assert.deepEqual(await ids({ status_filter: 2 }), ["off"]);
  const request = { connector_id: "far" };
  const { reply } = await nimi.ask(connectors, "GetConnector", request);
  const { provider, endpoint, has_credential, owner_type } = reply.connector;
  assert.deepEqual(
    { provider, endpoint, has_credential, owner_type },
    {
      provider: "openai",
      endpoint: "https://far.example/v1",
      has_credential: false,
      owner_type: "CONNECTOR_OWNER_TYPE_SYSTEM",
    },
  );
  const hidden = await nimi.ask(connectors, "GetConnector", { connector_id: "mine" });
  assert.equal(nimi.reason(hidden.error), "AI_CONNECTOR_NOT_FOUND");
});

test("a connector's models say what they can do and whether they can be asked", async () => {
  const of = async (connector_id) => {
    const { reply } = await nimi.ask(connectors, "ListConnectorModels", { connector_id });
    return reply.models.map((m) => [m.model_id, m.available, m.capabilities[0]]);
  };
  assert.deepEqual(await of("voice"), [
    ["espeak-ng", true, "audio.synthesize"],
    ["hash-256", true, "text.embed"],
  ]);
  assert.deepEqual(await of("far"), [["gpt-x", false, "text.generate"]]); // it has no key
  const { reply } = await nimi.ask(models, "ListModels", {});
  assert.deepEqual(reply.models[0].model_id, "local/m");
  assert.equal(reply.models[0].capability_profile.supports_text_stream, true);
  const health = async (model_id) =>
    (await nimi.ask(models, "CheckModelHealth", { model_id })).reply;
  assert.equal((await health("local/m")).healthy, true);
  assert.equal((await health("no-such")).reason_code, "AI_MODEL_NOT_FOUND");
});

test("an app registers, opens a session, refreshes and revokes it", async () => {
  const app = { app_id: nimi.APP };
  const early = await nimi.ask(auth, "OpenSession", app);
  assert.equal(early.error.code, nimi.grpc.status.UNAUTHENTICATED);
  assert.equal(nimi.reason(early.error), "APP_NOT_REGISTERED");
  const other = await nimi.ask(auth, "RegisterApp", { app_id: "other.app" });
  assert.equal(nimi.reason(other.error), "PROTOCOL_DOMAIN_FIELD_CONFLICT");
  const { reply } = await nimi.ask(auth, "RegisterApp", {
    ...app,
    app_version: "1.0.0",
    capabilities: ["runtime.ai.generate"],
    mode_manifest: { app_mode: 3, runtime_required: true, world_relation: 1 },
  });
  assert.equal(reply.accepted, true);
  const { app_instance_id } = reply;
  assert.match(app_instance_id, /^[0-9A-Z]{26}$/);
  // Without issuers the subject is only the app's word, and the other calls do not repeat it.
  const asked = { ...app, app_instance_id, subject_user_id: "anna", ttl_seconds: 60 };
  const opened = (await nimi.ask(auth, "OpenSession", asked)).reply;
  assert.equal(opened.reason_code, "ACTION_EXECUTED");
  assert.equal(opened.expires_at.seconds - opened.issued_at.seconds, 60);
  assert.match(opened.session_token, /^[\w-]{43}$/);
  const { session_id } = opened;
  const fresh = (await nimi.ask(auth, "RefreshSession", { session_id })).reply;
  assert.notEqual(fresh.session_token, opened.session_token);
  const revoked = (await nimi.ask(auth, "RevokeSession", { session_id })).reply;
  assert.deepEqual([revoked.ok, revoked.action_hint], [true, ""]);
  const gone = await nimi.ask(auth, "RefreshSession", { session_id });
  assert.equal(nimi.reason(gone.error), "APP_NOT_REGISTERED");
});

test("an app streams what it has to say to another one, and that is no loop", async () => {
  const to_app_id = "reader.app";
  const reader = nimi.metadata({ "x-nimi-app-id": to_app_id });
  const call = messages.SubscribeAppMessages({ app_id: to_app_id }, reader);
  await new Promise((resolve) => call.once("metadata", resolve)); // it is subscribed
  const received = new Promise((resolve) => {
    const types = [];
    call.on("error", () => {}); // of the cancel
    call.on("data", (event) => types.push(event.message_type) === 30 && resolve(types));
  });
  const sent = Array.from({ length: 30 }, (_, index) => `delta.${index}`);
  for (const message_type of sent) {
    const message = { from_app_id: nimi.APP, to_app_id, message_type };
    const { reply, error } = await nimi.ask(messages, "SendAppMessage", message);
    assert.equal(error, null);
    assert.equal(reply.accepted, true);
  }
  assert.deepEqual(await received, sent);
  call.cancel();
});
