// Socket.IO's own client in front of `weir orchestrate` (WEIR_URL, WEIR_TOKEN, WEIR_SWARM): message after
// message over one transport (WEIR_TRANSPORT), each event of each turn.
"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { io } = require("socket.io-client");

const { WEIR_URL, WEIR_TOKEN, WEIR_SWARM, WEIR_TRANSPORT } = process.env;
const TURNS = 20;

function once(emitter, event) {
  return new Promise((resolve) => emitter.once(event, resolve));
}

test(`${TURNS} turns over ${WEIR_TRANSPORT}`, async (t) => {
  const socket = io(`${WEIR_URL}/v1`, { transports: [WEIR_TRANSPORT], auth: { token: WEIR_TOKEN } });
  t.after(() => socket.disconnect());
  const heard = {};
  const chunks = {};
  socket.onAny((event) => (heard[event] = (heard[event] ?? 0) + 1));
  socket.on("message.chunk", ({ message_id, chunk }) => (chunks[message_id] = (chunks[message_id] ?? "") + chunk));
  await once(socket, "connect");
  socket.emit("workspace.subscribe", { workspace_ids: ["ws-1"] });
  assert.deepEqual(await once(socket, "workspace.subscribed"), { workspace_ids: ["ws-1"] });
  for (let turn = 1; turn <= TURNS; turn++) {
    const done = once(socket, "message.done");
    const content = { type: "text", text: `number ${turn}` };
    socket.emit("message.send", {
      workspace_id: "ws-1",
      conversation_id: WEIR_SWARM,
      local_id: `${WEIR_TRANSPORT}-${turn}`,
      content,
    });
    const { message_id, status } = await done;
    assert.equal(status, "delivered");
    assert.equal(chunks[message_id], `Fake runtime reply: number ${turn} `);
  }
  assert.equal(heard["message.send.ack"], TURNS);
  assert.equal(heard["message.new"], 2 * TURNS);
});
