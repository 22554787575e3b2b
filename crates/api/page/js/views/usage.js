// Tokens and cost by day and by agent.

import { agentColor, agentLabel } from "../agents.js";
import { get } from "../api.js";
import { h } from "../dom.js";
import { count, money, plural } from "../format.js";
import { barChart } from "./plot.js";
import { choice, grid, hint, loaded, section } from "./parts.js";

/** @typedef {{day: string, agent: string, model: string, calls: number, input_tokens: number, cached_tokens: number, output_tokens: number, cost_micros: number | null}} Row */
/** @typedef {"tokens" | "cost"} Measure */

/** @type {{tokens: {name: string, color: string, value: (row: Row) => number}[], cost: {name: string, color: string, value: (row: Row) => number}[]}} */
const KINDS = {
  tokens: [
    { name: "input, cached", color: "var(--plot-1)", value: (row) => row.cached_tokens },
    { name: "input, new", color: "var(--plot-2)", value: (row) => row.input_tokens - row.cached_tokens },
    { name: "output", color: "var(--plot-3)", value: (row) => row.output_tokens },
  ],
  cost: [{ name: "cost", color: "var(--plot-2)", value: (row) => row.cost_micros ?? 0 }],
};

/** @param {HTMLElement} container */
export function render(container) {
  let days = 30;
  /** @type {Measure} */
  let measure = "tokens";
  const bar = h("div.view-bar");
  const body = h("div");
  const show = () => {
    bar.replaceChildren(
      choice("Range", [[7, "7 days"], [30, "30 days"], [90, "90 days"]], days, (value) => ((days = value), show())),
      choice("Measure", [["tokens", "Tokens"], ["cost", "Cost"]], measure, (value) => ((measure = value), show())),
    );
    loaded(body, () => get("/api/usage", { days }), (answer) => charts(answer, days, measure));
  };
  container.replaceChildren(bar, body);
  show();
}

/** @param {{rows: Row[], is_complete?: boolean}} answer @param {number} days @param {Measure} measure */
function charts({ rows, is_complete: isComplete }, days, measure) {
  if (rows.length === 0) return h("p.empty", "No model was called in this time.");
  const total = (/** @type {Row[]} */ some, kinds = KINDS[measure]) => some.reduce((sum, row) => sum + kinds.reduce((part, kind) => part + kind.value(row), 0), 0);
  const format = measure === "cost" ? (/** @type {number} */ value) => money(Math.round(value)) : count;
  const byAgent = groups(rows, (row) => row.agent).sort((left, right) => total(right) - total(left));
  const sum = `${format(total(rows))} ${measure === "cost" ? "" : "tokens "}in ${plural(rows.reduce((all, row) => all + row.calls, 0), "call")}`;
  return [
    h("p.lead", `${sum}.`),
    isComplete === false && hint("Older days are not counted yet."),
    measure === "cost" && rows.some((row) => row.cost_micros === null) && hint("The cost leaves out models without a known price."),
    total(rows) > 0 && [
      barChart({
        title: "By day",
        description: `Last ${days} days, stacked by agent: ${sum}.`,
        series: byAgent.map(([{ agent }]) => ({ name: agentLabel(agent), color: agentColor(agent) })),
        groups: dayNames(days).map((day) => ({ label: day.slice(5), values: byAgent.map(([{ agent }]) => total(rows.filter((row) => row.day === day && row.agent === agent))) })),
        format,
      }),
      barChart({ title: "By agent", description: `Last ${days} days.`, series: KINDS[measure], groups: byAgent.map((some) => ({ label: agentLabel(some[0].agent), values: KINDS[measure].map((kind) => total(some, [kind])) })), format }),
    ],
    section("By agent and model", grid("By agent and model", ["Agent", "Model", "Calls", "Input", "Cached", "Output", "Cost"], groups(rows, (row) => `${row.agent} ${row.model}`).map((some) => {
      const add = (/** @type {"calls" | "input_tokens" | "cached_tokens" | "output_tokens"} */ key) => count(some.reduce((all, row) => all + row[key], 0));
      return [agentLabel(some[0].agent), some[0].model, add("calls"), add("input_tokens"), add("cached_tokens"), add("output_tokens"), some.some((row) => row.cost_micros === null) ? "unknown" : money(total(some, KINDS.cost))];
    }), "")),
  ];
}

/** @param {Row[]} rows @param {(row: Row) => string} key */
function groups(rows, key) {
  /** @type {Record<string, Row[]>} */
  const found = {};
  for (const row of rows) (found[key(row)] ??= []).push(row);
  return Object.values(found);
}

/** Every day of the range in UTC, also those without calls. @param {number} days */
function dayNames(days) {
  return Array.from({ length: days }, (_, index) => new Date(Date.now() - (days - 1 - index) * 86_400_000).toISOString().slice(0, 10));
}
