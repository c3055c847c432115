// One chat as upstream's SDK sends it: each text in content, and again as a part. WEIR_CHAT is
// {"model", "messages": [[role, text], ...]}; prints what the model says.
"use strict";

const nimi = require("./nimi");

const { model, messages } = JSON.parse(process.env.WEIR_CHAT);
const ai = nimi.ai();
const input = messages.map(([role, text]) => ({
  role,
  content: text,
  parts: [{ type: "CHAT_CONTENT_PART_TYPE_TEXT", text }],
}));
const head = { model_id: model, route_policy: 2, connector_id: "house", subject_user_id: "anna" };
const spec = { text_generate: { input, system_prompt: "You lead." } };

nimi
  .collect(ai.StreamScenario(nimi.request(null, { head, spec }), nimi.metadata()))
  .then(({ events, status }) => {
    if (status.code !== nimi.grpc.status.OK) throw new Error(status.details);
    const deltas = events.filter((event) => event.payload === "delta");
    process.stdout.write(deltas.map((event) => event.delta.text.text).join(""));
  })
  .finally(() => ai.close());
