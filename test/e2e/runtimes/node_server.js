// A server of the Runtime Contract over Node's own http. node node_server.js PORT
const http = require("node:http");
const crypto = require("node:crypto");

const token = process.env.AGENT_AUTH_TOKEN || "";

function send(res, status, body, headers = {}) {
  res.writeHead(status, {
    "Content-Type": "application/json",
    "X-Runtime-Contract-Version": "1",
    ...headers,
  });
  res.end(JSON.stringify(body));
}

const refuse = (res, status, code, message, headers) =>
  send(res, status, { error: { code, message }, detail: message }, headers);

async function read(req) {
  const pieces = [];
  for await (const piece of req) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

// The request that is fine, or nothing once it was refused.
function admit(req, res, text) {
  const given = req.headers.authorization || "";
  if (token && !given.startsWith("Bearer "))
    return refuse(res, 401, "UNAUTHORIZED", "Missing bearer token", { "WWW-Authenticate": "Bearer" });
  if (token && given !== "Bearer " + token) return refuse(res, 403, "FORBIDDEN", "Invalid bearer token");
  if ((req.headers["x-runtime-contract-version"] || "1") !== "1")
    return refuse(res, 400, "UNSUPPORTED_CONTRACT_VERSION", "only version 1 is served");
  if (!/^application\/json/.test(req.headers["content-type"] || ""))
    return refuse(res, 400, "INVALID_INPUT", "send application/json");
  try {
    const body = JSON.parse(text);
    if (typeof body !== "object" || body === null || Array.isArray(body))
      return refuse(res, 422, "INVALID_INPUT", "an object is needed");
    if (req.url === "/resume") return body;
    if (body.input === undefined) return refuse(res, 400, "INVALID_INPUT", "input is missing");
    if (body.session_id !== undefined && typeof body.session_id !== "string")
      return refuse(res, 422, "INVALID_INPUT", "session_id must be a string");
    return body;
  } catch (error) {
    return refuse(res, 400, "INVALID_INPUT", error.message);
  }
}

const say = (input) => (typeof input === "string" ? input : JSON.stringify(input));

const turns = {
  "/invoke": (req, res, body) =>
    send(res, 200, {
      output: say(body.input),
      session_id: body.session_id || req.headers["x-session-id"] || crypto.randomUUID(),
      metadata: {},
    }),
  "/stream": (req, res, body) => {
    res.writeHead(200, {
      "Content-Type": "text/event-stream",
      "Cache-Control": "no-cache",
      "X-Accel-Buffering": "no",
      "X-Runtime-Contract-Version": "1",
      Connection: "keep-alive",
    });
    res.write(`data: ${JSON.stringify({ delta: say(body.input) })}\n\n`);
    res.write(`event: result\ndata: ${JSON.stringify({ output: say(body.input) })}\n\n`);
    res.end("data: [DONE]\n\n");
  },
  "/resume": (req, res) => refuse(res, 501, "NOT_IMPLEMENTED", "runs cannot be resumed"),
};

http
  .createServer(async (req, res) => {
    if (req.url === "/health" && req.method === "GET")
      return send(res, 200, { status: "healthy", agent_name: "small", version: "1.0.0" });
    if (!turns[req.url]) return refuse(res, 404, "NOT_FOUND", "there is nothing here");
    if (req.method !== "POST") return refuse(res, 405, "METHOD_NOT_ALLOWED", "POST it", { Allow: "POST" });
    const body = admit(req, res, await read(req));
    if (body && !res.writableEnded) turns[req.url](req, res, body);
  })
  .listen(Number(process.argv[2]), "127.0.0.1");
