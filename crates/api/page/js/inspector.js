// The inspector: everything about one step or one agent's run, as text. What a model call consists of is in model-call.js.

import { agentChip } from "./agents.js";
import { explain, get, sessionUrl } from "./api.js";
import { fill, h } from "./dom.js";
import { describeAnswer } from "./approvals.js";
import { attachments } from "./files.js";
import { duration, fullTime, plural } from "./format.js";
import { codeBlock } from "./highlight.js";
import { stepName } from "./log.js";
import { renderCall } from "./model-call.js";
import { KINDS } from "./timeline.js";

/** @import { Child } from "./dom.js" */
/** @import { Step, Turn } from "./types" */
/** @typedef {{openStep: (step: Step) => void}} InspectorContext */

const MAX_TEXT = 100_000;
const STATUS = /** @type {Record<string, string>} */ ({ ok: "is-ok", error: "is-bad", denied: "is-warn", unknown: "is-warn" });

/** @param {{start: number, end: number | null}} span */
const took = (span) => (span.end === null ? "running" : duration(span.end - span.start));

/**
 * @param {string} session
 * @param {Turn | null} turn
 * @param {Step} step
 * @param {InspectorContext} context
 */
export function renderStep(session, turn, step, context) {
  return h(
    "article.inspector",
    h("h3", agentChip(step.agent), stepName(step)),
    h("p.muted.small", `${KINDS[step.kind]} · ${took(step)} · event ${step.seq} · ${fullTime(step.start)}`),
    turn && neighbours(turn, step, context),
    step.kind === "model" ? renderCall(session, step) : otherStep(session, turn, step),
  );
}

/** @param {Turn} turn @param {Step} step @param {InspectorContext} context */
function neighbours(turn, step, context) {
  const all = turn.frames.flatMap((frame) => frame.steps).sort((left, right) => left.start - right.start || left.seq - right.seq);
  const index = all.indexOf(step);
  const button = (/** @type {string} */ label, /** @type {Step | undefined} */ to) => h("button.button", { disabled: !to, "data-key": label, onclick: () => to && context.openStep(to) }, label);
  return h("div.neighbours", button("← Previous", all[index - 1]), h("span.muted.small", `${index + 1} of ${all.length}`), button("Next →", all[index + 1]));
}

/** @param {string} title @param {...Child} children */
function section(title, ...children) {
  return h("section", h("h4", title), children);
}

/** @param {string} text */
export function plain(text) {
  const more = text.length - MAX_TEXT;
  return h("pre.code", { tabindex: "0" }, text.slice(0, MAX_TEXT) || "(empty)", more > 0 && `\n… ${plural(more, "more character")}`);
}

/** @param {any} value */
export function json(value) {
  return codeBlock(JSON.stringify(value, null, 2) ?? "", "json");
}

/**
 * Arguments of a call as JSON, with strings of several lines as text below.
 * @param {any} value
 * @returns {Child}
 */
export function argumentsOf(value) {
  if (value === null || typeof value !== "object") return plain(String(value ?? ""));
  const isLong = (/** @type {any} */ part) => typeof part === "string" && part.includes("\n");
  const short = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, isLong(part) ? "(below)" : part]));
  return [json(short), Object.entries(value).filter(([, part]) => isLong(part)).map(([key, part]) => [h("p.small.muted", key), plain(part)])];
}

/** @param {[string, Child][]} rows those without a value are left out */
export function facts(rows) {
  return h("dl.facts", rows.filter(([, value]) => value).map(([name, value]) => [h("dt", name), h("dd", value)]));
}

/** @param {string} session @param {Turn | null} turn @param {Step} step @returns {Child} */
function otherStep(session, turn, step) {
  const approval = turn?.approvals.find((asked) => (step.kind === "wait" ? asked.id === step.request : asked.call === step.call && asked.frame === step.frame));
  const answer = approval?.answered;
  const stored = h("div");
  loadEvents(session, step).then(
    (events) => {
      const inspection = events.find((event) => event.inspection)?.inspection;
      fill(stored, inspection && section("Inspection", json(inspection)), h("details", h("summary", "Raw events"), events.map(json)));
    },
    (error) => fill(stored, h("p.is-bad", explain(error))),
  );
  const status = step.status ?? "running";
  return [
    facts([["Status", h("span", { class: `badge ${STATUS[status] ?? ""}` }, step.kind === "wait" && answer ? answer.answer : status)], ["Effect", step.effect], ["Call", step.call]]),
    approval && section("Approval", facts([["Reason", approval.reason], ["Risk", approval.risk], ["Folder", approval.folder], ["Answer", answer ? describeAnswer(answer) : "not yet"], ["Waited", answer && duration(answer.time - approval.asked)]])),
    (step.kind === "tool" || step.kind === "wait") && section("Arguments", argumentsOf(step.arguments)),
    step.text && section(step.kind === "remote" ? "Task" : "Detail", plain(step.text)),
    step.output !== null && section("Output", plain(step.output)),
    attachments(step.attachments, session),
    stored,
  ];
}

/** @param {string} session @param {Step} step @returns {Promise<any[]>} the stored events that a step starts and ends with */
async function loadEvents(session, step) {
  const seqs = [...new Set([step.seq, step.endSeq ?? step.seq])];
  const pages = await Promise.all(seqs.map((seq) => get(sessionUrl(session, "events"), { after: seq - 1, limit: 1 })));
  return pages.flatMap((page) => page.events);
}
