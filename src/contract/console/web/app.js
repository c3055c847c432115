// app: the frame around the pages.

import { onTokenWanted, pause, token } from "./api.js";
import { approvals } from "./approvals.js";
import { chat } from "./chat.js";
import { compare } from "./compare.js";
import { fill, h, problem } from "./dom.js";
import { parse } from "./router.js";
import { run } from "./run.js";
import { runs } from "./runs.js";
import { sessions } from "./sessions.js";
import { usage } from "./usage.js";
import { agents, audit, health, memories, settings } from "./views.js";

// page: [name in the navigation or null, function]
const PAGES = {
  runs: ["Runs", runs], chat: ["Chat", chat], approvals: ["Approvals", approvals], sessions: ["Sessions", sessions],
  memories: ["Memories", memories], usage: ["Usage", usage], audit: ["Audit", audit], agents: ["Agents", agents],
  health: ["Health", health], settings: ["Settings", settings], run: [null, run], compare: [null, compare],
};
const PARENT = { run: "runs", compare: "runs" };

const main = document.getElementById("main");

/** Ask for the token; it stays in this tab's session. */
function askToken(why) {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
    const wrong = h("p", { class: "problem", role: "alert", hidden: true });
    const take = (event) => {
      event.preventDefault();
      const given = input.value.trim(), odd = /[^!-~]/u.exec(given);
      if (odd) {
        wrong.textContent = "That is no token: it has the character U+" +
          odd[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + ". Copy it again, without what stands around it.";
        wrong.hidden = false;
        return;
      }
      token.set(given);
      dialog.close();
    };
    const dialog = h("dialog", { "aria-labelledby": "token-why" },
      h("form", { on: { submit: take } },
        h("p", { id: "token-why" }, why ? why.message + ". " : "", "Give the token of this daemon: AGENT_AUTH_TOKEN, or one that `weir token new` makes. It is kept until this tab is closed."),
        h("label", { class: "field" }, h("span", null, "Token"), input), wrong,
        h("div", { class: "tools" }, h("button", { type: "submit" }, "Use it"),
          !why && h("button", { type: "button", on: { click: () => { token.set(""); dialog.close(); } } }, "Forget it"))));
    dialog.addEventListener("cancel", (event) => { if (why) event.preventDefault(); });
    dialog.addEventListener("close", () => { dialog.remove(); resolve(); });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}
onTokenWanted(askToken);
document.getElementById("token-change").addEventListener("click", async () => {
  const before = token.get();
  await askToken(null);
  if (token.get() !== before) show(); // else what was written stays
});

function navigation(page) {
  fill(document.getElementById("pages"), Object.entries(PAGES).filter(([, [name]]) => name).map(([path, [name]]) =>
    h("li", null, h("a", { href: "#/" + path, "aria-current": path === (PARENT[page] || page) ? "page" : null }, name))));
}

let leave = new AbortController();

async function show() {
  leave.abort();
  document.querySelectorAll("dialog.of-page").forEach((dialog) => dialog.close("left"));
  leave = new AbortController();
  const { signal } = leave;
  const { page, parts, params } = parse(location.hash);
  const known = Object.hasOwn(PAGES, page);
  const [name, view] = known ? PAGES[page] : ["Not here", (into) => fill(into, h("h1", null, "There is no such page"), h("p", null, h("a", { href: "#/runs" }, "To the runs")))];
  navigation(page);
  document.title = (name || page[0].toUpperCase() + page.slice(1)) + " · weir";
  const place = h("div", { class: "page page-" + (known ? page : "none") });
  main.replaceChildren(place);
  try {
    await view(place, params, signal, parts);
  } catch (error) {
    if (!signal.aborted) place.append(problem(error));
  }
  place.dataset.shown = "all"; // for tests and screenshots
}

addEventListener("hashchange", () => { show(); main.focus({ preventScroll: true }); window.scrollTo(0, 0); });
pause().then(show); // the frame first
