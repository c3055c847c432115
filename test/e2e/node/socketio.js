// Socket.IO's own client against the server of test/socketio/ (SOCKETIO_URL): both transports,
// the upgrade, acks, rooms, refusals, and coming back after a lost connection.
const assert = require("node:assert");
const test = require("node:test");
const { io } = require("socket.io-client");

const url = process.env.SOCKETIO_URL;

function client(options = {}, name = "/v1") {
  return io(url + name, { auth: { token: "good" }, forceNew: true, reconnectionDelay: 20, ...options });
}

function once(emitter, event) {
  return new Promise((resolve) => emitter.once(event, resolve));
}

// It may be through before anybody asks.
async function upgraded(socket) {
  const engine = socket.io.engine;
  if (engine.transport.name !== "websocket") await once(engine, "upgrade");
}

async function connected(options, name) {
  const socket = client(options, name);
  await once(socket, "connect");
  return socket;
}

for (const transports of [["websocket"], ["polling"], ["polling", "websocket"]]) {
  test(`a client by ${transports}`, async () => {
    const socket = await connected({ transports });
    if (transports.length === 2) await upgraded(socket);
    assert.strictEqual(socket.io.engine.transport.name, transports.at(-1));
    assert.deepStrictEqual(await socket.timeout(5000).emitWithAck("echo", { a: ["ä", null] }), { a: ["ä", null] });
    const room = `node ${transports}`;
    assert.strictEqual(await socket.timeout(5000).emitWithAck("join", room), true);
    const said = once(socket, "said");
    socket.emit("say", { room, data: 7 });
    assert.strictEqual(await said, 7);
    socket.disconnect();
  });
}

test("a hundred events in flight during an upgrade arrive once and in order", async () => {
  const socket = client({ transports: ["polling", "websocket"] });
  const heard = [];
  socket.on("echo", (value) => heard.push(value));
  await once(socket, "connect");
  for (let i = 0; i < 100; i++) {
    socket.emit("echo", i);
    if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await socket.timeout(5000).emitWithAck("echo", "end");
  assert.deepStrictEqual(heard, [...Array(100).keys(), "end"]);
  await upgraded(socket);
  socket.disconnect();
});

test("a refusal carries its data", async () => {
  const socket = client({ auth: {}, transports: ["websocket"] });
  const error = await once(socket, "connect_error");
  assert.strictEqual(error.message, "unauthorized");
  assert.strictEqual(error.data, "missing authentication");
  socket.disconnect();
});

test("an unknown namespace is refused", async () => {
  const socket = client({ transports: ["websocket"] }, "/nowhere");
  assert.strictEqual((await once(socket, "connect_error")).message, "Invalid namespace");
  socket.disconnect();
});

test("a client comes back after its connection is lost", async () => {
  const socket = await connected({ transports: ["websocket"] });
  const first = socket.id;
  const again = once(socket, "connect");
  socket.io.engine.transport.ws.terminate();
  assert.strictEqual(await once(socket, "disconnect"), "transport close");
  await again;
  assert.notStrictEqual(socket.id, first);
  assert.strictEqual(await socket.timeout(5000).emitWithAck("echo", 1), 1);
  socket.disconnect();
});

test("the server may disconnect a client", async () => {
  const socket = await connected({ transports: ["websocket"] });
  const reason = once(socket, "disconnect");
  socket.emit("bye");
  assert.strictEqual(await reason, "io server disconnect");
});

test("two namespaces share one connection", async () => {
  const manager = (await connected({ transports: ["websocket"] })).io;
  const root = manager.socket("/");
  root.connect();
  await once(root, "connect");
  assert.strictEqual(await root.timeout(5000).emitWithAck("echo", "root"), "root");
  manager._close();
});

test("binary data is refused, and the client hears that the connection is over", async () => {
  const socket = await connected({ transports: ["websocket"], reconnection: false });
  const reason = once(socket, "disconnect");
  socket.emit("echo", Buffer.from([1, 2, 3]));
  assert.match(await reason, /transport (close|error)/);
});
