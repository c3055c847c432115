// Every route of the Runtime Contract, with types that openapi-typescript has made and the
// client openapi-fetch.
//
//     npm install openapi-typescript openapi-fetch typescript
//     npx openapi-typescript http://127.0.0.1:8080/openapi.json -o weir.d.ts
//     npx tsc --project . && node client.js http://127.0.0.1:8080
//
// package.json says "type": "module".
import createClient from "openapi-fetch";
import type { paths } from "./weir.js";

declare const process: { argv: string[] };

// With AGENT_AUTH_TOKEN: headers: { authorization: `Bearer ${token}` }
const client = createClient<paths>({ baseUrl: process.argv[2] });

/** What was answered, or an error that says why not. */
function data<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

async function main() {
  console.log("getHealth", data(await client.GET("/health")).status);
  console.log("getHealthHead", (await client.HEAD("/health")).response.status);
  console.log("getOpenAPI", data(await client.GET("/openapi.json")).openapi);
  console.log("getOpenAPIHead", (await client.HEAD("/openapi.json")).response.status);
  console.log("getAgentCard", data(await client.GET("/.well-known/agent.json")).name);
  console.log("getAgentCardHead", (await client.HEAD("/.well-known/agent.json")).response.status);

  const stream = await client.POST("/stream", { body: { input: "two days in Kyoto" }, parseAs: "text" });
  console.log("streamAgent", String(data(stream)).trimEnd().split("\n").pop());

  // The demo asks a person before it books.
  const turn = data(await client.POST("/invoke", { body: { input: "book the trip" } }));
  console.log("invokeAgent", turn.metadata.approval?.question);
  const answer = { thread_id: turn.session_id, human_input: "yes" };
  console.log("resumeAgent", data(await client.POST("/resume", { body: answer })).output);
}

main();
