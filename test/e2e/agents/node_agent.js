'use strict';
// An agent of the Runtime Contract as its Node templates are: node's own http.
//
//     PORT=8081 node node_agent.js
const http = require('http');

function answer(response, status, value) {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(value));
}

function turn(request, response, body) {
  let input;
  try {
    input = JSON.parse(body).input;
  } catch (error) {
    answer(response, 400, { error: 'no JSON' });
    return;
  }
  if (request.url === '/invoke') {
    answer(response, 200, { output: `you said: ${input}`, heard: request.headers });
    return;
  }
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const delta = `data: ${JSON.stringify({ delta: `you said: ${input}` })}\n\n`;
  if (input === 'boom') {
    response.write(delta, () => response.destroy());
    return;
  }
  response.write(delta);
  response.end('data: [DONE]\n\n');
}

const server = http.createServer((request, response) => {
  if (request.url === '/health') {
    answer(response, 200, { status: 'ok', agent: 'node', version: '1.0.0' });
    return;
  }
  if (request.method !== 'POST') {
    answer(response, 404, { error: 'Not found' });
    return;
  }
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => turn(request, response, Buffer.concat(pieces).toString()));
});

server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log(`port ${server.address().port}`));
