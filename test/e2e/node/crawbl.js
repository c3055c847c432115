// The client side of crawbl.agentruntime.v1, as a Node orchestrator would have it.
// The environment says where the daemon is: WEIR_TARGET, WEIR_TOKEN, WEIR_PROTO.
"use strict";

const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const definition = loader.loadSync(
  ["agentruntime/v1/runtime.proto", "agentruntime/v1/memory.proto"],
  {
    includeDirs: [process.env.WEIR_PROTO],
    keepCase: true,
    longs: String,
    oneofs: true,
    defaults: true,
  },
);
const { AgentRuntime, Memory } = grpc.loadPackageDefinition(definition).crawbl.agentruntime.v1;

function metadata(token = process.env.WEIR_TOKEN) {
  const md = new grpc.Metadata();
  if (token) md.set("authorization", `Bearer ${token}`);
  return md;
}

// Open Converse, send the requests one by one, half-close, and collect what comes:
// { events, status }, where status is what the RPC ended with.
function converse(client, requests, token) {
  return new Promise((resolve) => {
    const events = [];
    const call = client.Converse(metadata(token));
    call.on("data", (event) => events.push(event));
    call.on("error", () => {}); // the status says it too
    call.on("status", (status) => resolve({ events, status }));
    for (const request of requests) call.write(request);
    call.end();
  });
}

// One unary call as a promise of { reply } or { error }.
function ask(client, method, request, token) {
  return new Promise((resolve) => {
    client[method](request, metadata(token), (error, reply) => resolve({ error, reply }));
  });
}

module.exports = {
  grpc,
  ask,
  converse,
  metadata,
  runtime: () => new AgentRuntime(process.env.WEIR_TARGET, grpc.credentials.createInsecure()),
  memory: () => new Memory(process.env.WEIR_TARGET, grpc.credentials.createInsecure()),
};
