// Agents as tools, for the official TypeScript client: over HTTP, and over the pipes of `weir mcp`.
"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const {
  StreamableHTTPClientTransport,
} = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const endpoint = `${process.env.WEIR_URL}/mcp`;
const token = process.env.WEIR_TOKEN;

const transports = {
  http: () =>
    new StreamableHTTPClientTransport(new URL(endpoint), {
      requestInit: { headers: { authorization: `Bearer ${token}` } },
    }),
  stdio: () =>
    new StdioClientTransport({
      command: process.env.WEIR_BINARY,
      args: ["mcp", "--url", endpoint, "--token", token],
      stderr: "inherit",
    }),
};

for (const [name, transport] of Object.entries(transports)) {
  test(`tools are listed and called over ${name}`, async (t) => {
    const client = new Client({ name: "node", version: "1" });
    t.after(() => client.close());
    await client.connect(transport());
    assert.equal(client.getServerVersion().name, "weir");
    const { tools } = await client.listTools();
    const agent = tools[0].name;
    const reports = [];
    const result = await client.callTool(
      { name: agent, arguments: { message: "hello" } },
      undefined,
      { onprogress: (report) => reports.push(report) },
    );
    assert.equal(result.structuredContent.status, "done");
    assert.equal(result.content[0].text, result.structuredContent.answer);
    // Of what comes in one read of a pipe this client takes the answer first, and then drops the
    // progress before it.
    const said = reports.map((report) => report.message).join("");
    if (name === "http") assert.ok(said.includes(result.structuredContent.answer), said);
    const wrong = await client.callTool({ name: agent, arguments: {} });
    assert.equal(wrong.isError, true);
    await assert.rejects(
      client.callTool({ name: "nobody", arguments: {} }),
      (error) => error.code === -32602,
    );
    if (name === "http") await client.transport.terminateSession();
  });

  test(`a call is cancelled over ${name}`, async (t) => {
    const client = new Client({ name: "node", version: "1" });
    t.after(() => client.close());
    await client.connect(transport());
    const { tools } = await client.listTools();
    const stop = new AbortController();
    const call = client.callTool(
      { name: tools[0].name, arguments: { message: "hello" } },
      undefined,
      { signal: stop.signal },
    );
    stop.abort();
    await assert.rejects(call);
    const next = await client.callTool({ name: tools[0].name, arguments: { message: "hi" } });
    assert.equal(next.structuredContent.status, "done");
  });
}
