// A model behind Node's own https server (test_https.py says what it is asked for).
//
//     node https_model.js CERTIFICATE KEY      prints its port, and ends with its input
const fs = require("fs");
const https = require("https");

const pause = () => new Promise((resolve) => setTimeout(resolve, 5));

async function answer(request, response) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const asked = JSON.parse(Buffer.concat(parts).toString());
  const [word, count] = asked.messages.at(-1).content.split(" ");
  const say = (delta, reason) =>
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`);

  response.writeHead(200, { "content-type": "text/event-stream" });
  let pieces = ["hello ", "from ", String(request.socket.remotePort)];
  if (word === "long") pieces = Array(Number(count)).fill("x".repeat(1000));
  if (word === "take") pieces = [String(asked.messages.at(-1).content.length)];
  for (const content of pieces) {
    if (!say({ content })) await new Promise((resolve) => response.once("drain", resolve));
    if (pieces.length < 10) await pause();
    if (word === "cut") return request.socket.destroy();
  }
  say({}, "stop");
  response.end("data: [DONE]\n\n");
}

const [cert, key] = process.argv.slice(2).map((path) => fs.readFileSync(path));
const server = https.createServer({ cert, key }, answer);
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit(0));
