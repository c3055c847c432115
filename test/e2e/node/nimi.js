// The client side of nimi.runtime.v1 as the protocol's own SDK has it: the same headers, the same
// way to read an error, the same way to read text. WEIR_NIMI and WEIR_PROTO say where.
"use strict";

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const APP = "demo.app";
const HEADERS = {
  "x-nimi-protocol-version": "1.0.0",
  "x-nimi-participant-protocol-version": "1.0.0",
  "x-nimi-participant-id": APP,
  "x-nimi-domain": "runtime.rpc",
  "x-nimi-caller-kind": "third-party-app",
  "x-nimi-caller-id": APP,
  "x-nimi-app-id": APP,
};

function load(folder, files, more = {}) {
  return grpc.loadPackageDefinition(
    loader.loadSync(files, {
      includeDirs: [folder],
      keepCase: true,
      longs: Number,
      enums: String,
      oneofs: true,
      ...more,
    }),
  );
}

const NAMES = ["ai", "app", "audit", "auth", "common", "connector", "local", "model", "transfer"];
const FILES = NAMES.map((name) => `nimi/runtime/v1/${name}.proto`);
const ours = load(process.env.WEIR_PROTO, [...FILES, "grpc/health/v1/health.proto"]);

// The protocol as it was before us: a client that has never heard of `frame`.
function theirs() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "weir-proto-"));
  try {
    fs.mkdirSync(path.join(folder, "nimi/runtime/v1"), { recursive: true });
    for (const file of FILES) {
      const text = fs.readFileSync(path.join(process.env.WEIR_PROTO, file), "utf8");
      const without = text.replace(/^ *StreamFrame frame = 100;$/m, "");
      if (file.includes("/ai.") && without === text) throw new Error("no field `frame` in " + file);
      fs.writeFileSync(path.join(folder, file), without);
    }
    return load(folder, FILES);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

function client(Service) {
  return new Service(process.env.WEIR_NIMI, grpc.credentials.createInsecure());
}

// The headers, with some changed; null leaves one out.
function metadata(changes = {}) {
  const md = new grpc.Metadata();
  for (const [name, value] of Object.entries({ ...HEADERS, ...changes })) {
    if (value !== null) md.set(name, value);
  }
  return md;
}

function request(text, { head = {}, ...others } = {}) {
  return {
    head: { app_id: APP, model_id: "local/m", route_policy: 1, fallback: 1, ...head },
    scenario_type: 1,
    execution_mode: 2,
    spec: { text_generate: { input: text === null ? [] : [{ role: "user", content: text }] } },
    ...others,
  };
}

// A status as the SDK reads it: only its message, and there a JSON object first.
function reason(status) {
  const json = status.details.match(/\{.*\}/s);
  if (json) return JSON.parse(json[0]).reasonCode;
  const prefix = status.details.match(/^([A-Z0-9_]+)(:|$)/);
  return prefix ? prefix[1] : `RUNTIME_GRPC_${grpc.status[status.code]}`;
}

// Everything that comes on a stream: { events, status, headers }.
function collect(call) {
  return new Promise((resolve) => {
    const events = [];
    let headers = null;
    call.on("metadata", (md) => (headers = md));
    call.on("data", (event) => events.push(event));
    call.on("error", () => {}); // the status says it too
    call.on("status", (status) => resolve({ events, status, headers }));
  });
}

// One unary call: { reply, error, headers }.
function ask(stub, method, message, md = metadata()) {
  return new Promise((resolve) => {
    let headers = null;
    const call = stub[method](message, md, (error, reply) => resolve({ error, reply, headers }));
    call.on("metadata", (sent) => (headers = sent));
  });
}

const { RuntimeAiService, RuntimeAuditService } = ours.nimi.runtime.v1;

// What an app meets first. Members that were not sent have their default, as in the SDK.
function apps() {
  const whole = load(process.env.WEIR_PROTO, FILES, { defaults: true }).nimi.runtime.v1;
  return {
    auth: client(whole.RuntimeAuthService),
    connectors: client(whole.RuntimeConnectorService),
    local: client(whole.RuntimeLocalService),
    messages: client(whole.RuntimeAppService),
    models: client(whole.RuntimeModelService),
  };
}

// Of what the runtime keeps for an app.
function kept() {
  const files = ["memory", "agent"].map((name) => `nimi/runtime/v1/${name}.proto`);
  const whole = load(process.env.WEIR_PROTO, files).nimi.runtime.v1;
  return {
    memory: client(whole.RuntimeCognitionService),
    agents: client(whole.RuntimeAgentService),
  };
}

module.exports = {
  APP,
  ask,
  collect,
  grpc,
  metadata,
  reason,
  request,
  ai: () => client(RuntimeAiService),
  apps,
  audit: () => client(RuntimeAuditService),
  kept,
  health: () => client(ours.grpc.health.v1.Health),
  oldAi: () => client(theirs().nimi.runtime.v1.RuntimeAiService),
};
