// aimock: the vendors' model APIs as an independent package plays them. Prints its port, and ends
// with whoever started it. test/e2e/vendors.py tells it what to say.
const { LLMock } = require("@copilotkit/aimock");

async function main() {
  const mock = new LLMock({ port: 0, host: "127.0.0.1", strict: true, logLevel: "silent" });
  await mock.start();
  console.log(new URL(mock.url).port);
  process.stdin.on("end", () => process.exit(0)).resume();
}

main();
