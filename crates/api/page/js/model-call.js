// A model call in the inspector: the request as it was sent, the difference to the agent's previous call, the response,
// its usage, and the raw JSON.

import { explain, get, sessionUrl } from "./api.js";
import { diffLines, hunks } from "./diff.js";
import { fill, h } from "./dom.js";
import { duration, money, oneLine, plural } from "./format.js";
import { argumentsOf, facts, json, plain } from "./inspector.js";
import { parse } from "./log.js";
import { createTabs } from "./tabs.js";

/** @import { Child } from "./dom.js" */
/** @import { Step } from "./types" */
/** @typedef {{seq: number, agent: string, model: string, previous: number | null, request: any, unavailable: string | null, response: any}} ModelCall */

const MAX_DIFF = 4000;
/** @type {Map<string, Promise<ModelCall>>} a stored call never changes */
const calls = new Map();
/** The part that was looked at last; the next call opens with it. */
let remembered = "Request";

/** @param {string} session @param {number} seq */
function loadCall(session, seq) {
  const path = sessionUrl(session, "calls", seq);
  const loading = calls.get(path) ?? get(path);
  if (calls.size > 20) calls.clear();
  calls.set(path, loading);
  loading.catch(() => calls.delete(path));
  return loading;
}

/**
 * @param {string} session
 * @param {Step} step
 */
export function renderCall(session, step) {
  /** @type {Record<string, (call: ModelCall) => Child | Promise<Child>>} */
  const parts = {
    Request: (call) => (call.request ? request(call.request) : unavailable(call)),
    Diff: (call) => difference(session, call),
    Response: (call) => response(call.response),
    Usage: (call) => usage(call.response, step),
    Raw: (call) => json({ request: call.request, response: call.response }),
  };
  const tabs = createTabs("Parts of the model call", Object.keys(parts), async (name, panel) => {
    remembered = name;
    fill(panel, h("p.empty", "Loading…"));
    const content = await loadCall(session, step.endSeq ?? step.seq).then(parts[name]).catch((error) => h("p.is-bad", explain(error)));
    if (tabs.selected() === name) fill(panel, content);
  });
  tabs.select(remembered);
  return tabs.element;
}

/** @param {ModelCall} call */
function unavailable(call) {
  return h("p.empty", call.unavailable);
}

/** Builds its content when it is first opened. @param {Child} title @param {boolean} isOpen @param {() => Child} build */
function disclosure(title, isOpen, build) {
  const body = h("div");
  return h("details", { open: isOpen, ontoggle: () => body.hasChildNodes() || fill(body, build()) }, h("summary", title), body);
}

/** @param {any} sent @returns {Child} */
function request({ instruction = "", messages = [], functions = [], ...settings }) {
  const summary = (/** @type {string} */ text) => h("span.muted", ` ${oneLine(text, 70)}`);
  return [
    disclosure(`Instruction, ${plural(instruction.length, "character")}`, messages.length < 2, () => plain(instruction)),
    messages.map((/** @type {any} */ message, /** @type {number} */ index) => {
      const { role, name = "", text = "", failed, calls: made = [], ...more } = message;
      const title = [h("b", role), ` ${name}${failed ? " (failed)" : ""}`, summary(text || made.map((/** @type {any} */ call) => call.name).join(", "))];
      return disclosure(title, index === messages.length - 1, () => [text && plain(text), made.map(madeCall), json(more)]);
    }),
    disclosure(plural(functions.length, "function"), false, () => functions.map((/** @type {any} */ offered) => disclosure([h("code", offered.name), summary(offered.description)], false, () => [plain(offered.description), json(offered.parameters)]))),
    disclosure("Settings", false, () => json(settings)),
  ];
}

/** @param {{name: string, arguments: string}} call */
function madeCall(call) {
  return h("div.made-call", "calls ", h("code", call.name), argumentsOf(parse(call.arguments)));
}

/** A request as lines, in the order in which a model reads it. @param {any} sent */
function linesOf({ instruction, messages = [], functions = [], ...rest }) {
  const lines = ["── instruction", ...String(instruction).split("\n")];
  for (const { name, description, parameters } of functions) lines.push(`── function ${name}`, ...String(description).split("\n"), JSON.stringify(parameters));
  lines.push("── settings", JSON.stringify(rest));
  for (const { role, text, ...more } of messages) lines.push(`── ${role}`, ...String(text).split("\n"), ...JSON.stringify(more, null, 1).split("\n").filter((line) => line !== "{}"));
  return lines;
}

/** @param {string} session @param {ModelCall} call @returns {Promise<Child>} */
async function difference(session, call) {
  if (!call.request) return unavailable(call);
  if (call.previous === null) return h("p.empty", "This is the agent's first call in this session.");
  const before = await loadCall(session, call.previous);
  if (!before.request) return unavailable(before);
  const lines = diffLines(linesOf(before.request), linesOf(call.request));
  const size = (/** @type {string} */ sign) => lines.filter((line) => line.sign === sign).length;
  const kinds = { "+": "t-added", "-": "t-removed", " ": null, "⋯": "t-hunk" };
  return [
    h("p.small.muted", `Against event ${call.previous}: ${plural(size("+"), "line")} added, ${size("-")} removed.`),
    h("pre.code", { tabindex: "0" }, hunks(lines).slice(0, MAX_DIFF).map((line) => h("span", { class: kinds[line.sign] }, `${line.sign} ${line.text}\n`))),
  ];
}

/** @param {any} event @returns {Child} */
function response(event) {
  const { stop } = event;
  return [
    event.text ? plain(event.text) : h("p.muted", "No text."),
    event.calls?.map(madeCall),
    facts([["Ends the frame", event.final ? "yes" : "no"], ["Stopped", stop ? `${stop.reason.replaceAll("_", " ")} ${stop.detail ?? ""}` : "finished"], ["Trust", event.trust ?? "untrusted"]]),
  ];
}

/** @param {any} event @param {Step} step */
function usage({ model, usage: used = {}, cost_micros: cost }, step) {
  const ms = (step.end ?? step.start) - step.start;
  const { output_tokens: output = 0 } = used;
  return facts([
    ["Model", model],
    ...Object.entries(used).map(([name, number]) => /** @type {[string, Child]} */ ([sentence(name), number.toLocaleString("en")])),
    ["Cost", money(cost) || "price unknown"],
    ["Time", duration(ms)],
    ["Speed", ms > 0 && output > 0 && `${((output * 1000) / ms).toFixed(0)} tokens/s`],
  ]);
}

/** A name of the API as words: `Input tokens`. @param {string} name */
function sentence(name) {
  return name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");
}
