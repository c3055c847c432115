// Preloaded where the conformance kit of MCP runs: it imports fs.globSync, which Node has from 22
// on, for commands that are not used here.
import fs from "node:fs";
import { register } from "node:module";

const url = (code) => "data:text/javascript," + encodeURIComponent(code);
const stub = url('export * from "node:fs"; export const globSync = () => [];');
const hooks = `export function resolve(specifier, context, next) {
  const wanted = specifier === "fs" && context.parentURL?.includes("/conformance/");
  return wanted ? { url: ${JSON.stringify(stub)}, shortCircuit: true } : next(specifier, context);
}`;
if (!fs.globSync) register(url(hooks));
