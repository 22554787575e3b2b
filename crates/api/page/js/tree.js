// The agent tree: who exists, what each can do, and who acts in the selected turn. A nested list, so that it reads the
// same with a screen reader; the lines between nodes are CSS.

import { agentColor, agentLabel, MARKS, stateLabel } from "./agents.js";
import { h } from "./dom.js";
import { elapsed, oneLine, plural } from "./format.js";
import { activity } from "./log.js";

/** @import { Agents } from "./api.js" */
/** @import { Child } from "./dom.js" */
/** @import { Frame, Turn } from "./types" */
/** @typedef {{openFrame: (frame: Frame) => void, open: Set<string>}} TreeContext `open` remembers disclosures between renderings */

/**
 * @param {Agents} agents
 * @param {Turn | null} turn
 * @param {TreeContext} context
 */
export function renderTree(agents, turn, context) {
  const frames = turn?.frames.filter((frame) => !frame.isRoot) ?? [];
  const known = new Set(agents.agents.map((agent) => agent.name));
  // An agent of an old turn may have been removed since.
  const gone = new Set(frames.map((frame) => frame.agent).filter((name) => !known.has(name)));
  const child = (/** @type {string} */ name, /** @type {Child} */ facts) => node(name, frames.filter((frame) => frame.agent === name), turn, context, facts);
  const children = [
    agents.agents.map(({ name, description, capabilities, model, remote, reachable, tools }) => {
      // The description repeats the capabilities in a sentence of its own.
      const [summary] = description.split(" Can do: ");
      return child(name, [
        text(capabilities.length > 0 ? summary : description),
        capabilities.length > 0 && h("ul.tags", { "aria-label": "Capabilities" }, capabilities.map((capability) => h("li", capability))),
        model && h("p.fact", "Model ", h("code", model)),
        remote ? h("p.fact", h("span.badge", "remote"), reachable ? " ✓ reachable" : " ✕ not reachable") : toolList(name, tools, context),
      ]);
    }),
    [...gone].map((name) => child(name, text("No longer configured."))),
    agents.skipped.map(({ name, reason }) => h("li.node.is-absent", h("div.node-card", head(name, "absent"), text(reason)))),
  ];
  const { root, absent_tools: absent, unmatched } = agents;
  const role = root.tools.length > 0 ? "Does the work itself." : "Reads the message, delegates, never acts itself.";
  return h(
    "div.tree",
    h("ul", { "aria-label": "Agents" }, node(root.name, turn ? [turn.frames[0]] : [], turn, context, [text(role), toolList(root.name, root.tools, context)], h("ul", children))),
    absent && text(`Tools not here: ${absent}`),
    unmatched.length > 0 && text(`Tools that no agent holds: ${unmatched.join(", ")}`),
  );
}

/** @param {string} words */
const text = (words) => h("p.node-text", words);
/** @param {string} name @param {Child} state */
const head = (name, state) => h("div.node-head", h("span.dot"), h("strong", agentLabel(name)), h("span.node-state", state));

/**
 * @param {string} name @param {Frame[]} frames the agent's runs in the turn @param {Turn | null} turn @param {TreeContext} context
 * @param {Child} facts @param {HTMLElement} [children]
 */
function node(name, frames, turn, context, facts, children) {
  const acting = frames.map((frame) => turn && activity(turn, frame)).find((now) => now && !["agents", "wait"].includes(now.kind));
  const isWaiting = frames.some((frame) => frame.state === "waiting");
  const runs = frames.filter((frame) => !frame.isRoot);
  return h(
    "li.node",
    { style: { "--agent": agentColor(name) } },
    runs.length > 0 && h("span.edge", { "aria-hidden": "true" }, runs.slice(-3).map((frame) => frame.order).join(" ")),
    h(
      "div",
      { class: `node-card ${acting ? "is-acting" : isWaiting ? "is-waiting" : ""}` },
      head(name, acting ? (acting.kind === "model" ? "thinks" : acting.name) : isWaiting && "waits for you"),
      facts,
      runs.length > 0 && h("ol.runs", { "aria-label": "Delegations of this turn" }, runs.map((frame) => h("li", run(frame, context)))),
    ),
    children,
  );
}

/** @param {Frame} frame @param {TreeContext} context */
function run(frame, context) {
  return h(
    "button",
    { class: `run is-${frame.state}`, "data-key": `run-${frame.id}`, onclick: () => context.openFrame(frame), title: frame.task },
    h("b", frame.order),
    h("span", oneLine(frame.task, 90)),
    h("span.run-state", h("span", { "aria-hidden": "true" }, `${MARKS[frame.state]} `), `${stateLabel(frame.state)} · ${elapsed(frame, Date.now())}`),
    frame.reason && frame.state !== "done" && h("span.muted", oneLine(frame.reason, 160)),
  );
}

/** @param {string} name @param {string[]} tools @param {TreeContext} context */
function toolList(name, tools, context) {
  if (tools.length === 0) return h("p.fact", h("span.badge", "no tools"));
  const details = h(
    "details",
    { open: context.open.has(name), ontoggle: () => context.open[details.open ? "add" : "delete"](name) },
    h("summary", { "data-key": `tools-${name}` }, plural(tools.length, "tool")),
    h("ul", tools.map((tool) => h("li", h("code", tool)))),
  );
  return details;
}
