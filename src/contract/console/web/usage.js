// usage: what model calls came to, by day, agent and model, and what is left of the budgets.

import { get, now } from "./api.js";
import { count, dollars, field, fill, h, select, svg, table } from "./dom.js";
import { go } from "./router.js";

const DAY_MS = 86400000;
const BARS_MOST = 366; // of a longer time each bar is some days
const dayOf = (ms) => new Date(ms).toISOString().slice(0, 10);
const MEASURES = [["total_tokens", "Tokens"], ["cost_nano_usd", "Cost"], ["calls", "Calls"]];
const show = (measure, value) => (measure === "cost_nano_usd" ? dollars(value) : count(value));

function dayChart(days, from, to, measure) {
  const first = Date.parse(from), all = Math.max(1, Math.round((Date.parse(to) - first) / DAY_MS) + 1);
  const each = Math.ceil(all / BARS_MOST), n = Math.ceil(all / each), values = new Map(); // by the number of the bar
  for (const day of days) {
    const bar = Math.floor(Math.round((Date.parse(day.day) - first) / DAY_MS) / each);
    values.set(bar, (values.get(bar) || 0) + day[measure]);
  }
  const span = each > 1 ? `each ${each} days` : "day";
  const most = Math.max(1, ...values.values()), width = 600, height = 160, step = width / n;
  const bars = [];
  for (let i = 0; i < n; i++) {
    const day = dayOf(first + i * each * DAY_MS) + (each > 1 ? ` and ${each - 1} days more` : ""), value = values.get(i) || 0, tall = value / most * (height - 20);
    bars.push(svg("rect", { x: i * step + step * 0.1, y: height - tall, width: step * 0.8, height: tall },
      svg("title", {}, `${day}: ${show(measure, value)}`)));
  }
  return h("figure", null, h("figcaption", null, most > 1 || values.size ? `By ${span}, at most ${show(measure, most)}` : "By day: nothing yet"), svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", preserveAspectRatio: "none",
    "aria-label": `By ${span}, ${from} to ${to}; at most ${show(measure, most)}. The table below has the numbers.` },
  svg("line", { x1: 0, x2: width, y1: height, y2: height }), bars), h("div", { class: "axis", "aria-hidden": "true" }, h("span", null, from), h("span", null, to)));
}

function shares(caption, rows, name, measure) {
  const most = Math.max(1, ...rows.map((row) => row[measure]));
  return h("div", { class: "shares" }, table(caption, [caption, "", "Calls", "Tokens", "Cost"], rows.map((row) => {
    const bar = h("span", { class: "share", "aria-hidden": "true" });
    bar.style.width = 100 * row[measure] / most + "%";
    return [row[name] || "(none)", bar, count(row.calls), count(row.total_tokens), row.cost];
  })));
}

/** What is used of a budget in its period. */
async function spent(budget, signal) {
  const to = dayOf(now()), from = budget.period === "day" ? to : to.slice(0, 8) + "01";
  const { usage } = await get("/usage", { from, to, by: "workspace", workspace: budget.workspace, agent: budget.agent }, signal);
  return usage;
}

async function budgets(all, into, signal) {
  if (!all.length) return fill(into, h("h2", null, "Budgets"), h("p", { class: "empty" }, "There is no budget."));
  const rows = [];
  for (const budget of all) {
    const money = budget.cost_nano_usd !== undefined, most = money ? budget.cost_nano_usd : budget.tokens;
    const write = money ? dollars : count;
    const used = await spent(budget, signal);
    for (const one of used.length ? used : [{ workspace: budget.workspace || "each", cost_nano_usd: 0, total_tokens: 0 }]) {
      const is = money ? one.cost_nano_usd : one.total_tokens;
      const meter = h("meter", { min: "0", max: most, high: most * 0.8, value: Math.min(is, most), "aria-label": "Used" });
      rows.push([one.workspace, budget.agent || "all", "a " + budget.period, write(most), write(is), meter, write(Math.max(0, most - is))]);
    }
  }
  return fill(into, h("h2", null, "Budgets"), table("Budgets", ["Workspace", "Agent", "Period", "Budget", "Used", "", "Left"], rows));
}

export async function usage(main, params, signal) {
  const { budgets: limits } = await get("/budgets", {}, signal); // and the daemon's time with it
  const asked = { from: params.from || dayOf(now() - 29 * DAY_MS), to: params.to || dayOf(now()) };
  const measure = MEASURES.some(([name]) => name === params.show) ? params.show : "total_tokens";
  const from = h("input", { type: "date", value: asked.from }), to = h("input", { type: "date", value: asked.to });
  const workspace = h("input", { type: "search", value: params.workspace || "" }), what = select(MEASURES, measure);
  const left = h("section", { "aria-label": "Budgets" });
  const filter = { ...asked, workspace: params.workspace };
  const [days, byAgent, byModel] = await Promise.all(["day", "agent", "model"].map((by) => get("/usage", { ...filter, by }, signal)));
  const total = days.total;
  fill(main, h("h1", null, "Usage"), h("form", { class: "filters", on: { submit: (event) => { event.preventDefault(); go("/usage", { from: from.value, to: to.value, workspace: workspace.value.trim(), show: what.value }); } } },
    field("From", from), field("To", to), field("Workspace", workspace), field("Show", what), h("button", { type: "submit" }, "Show")),
  h("p", null, `${count(total.calls)} calls, ${count(total.total_tokens)} tokens, cost ${total.cost}`,
    total.calls_tokens_unknown > 0 && `; ${count(total.calls_tokens_unknown)} calls of unknown size`),
  dayChart(days.usage, days.from, days.to, measure), shares("Agent", byAgent.usage, "agent", measure),
  shares("Model", byModel.usage, "model", measure), shares("Day", days.usage, "day", measure), left);
  await budgets(limits, left, signal);
}
