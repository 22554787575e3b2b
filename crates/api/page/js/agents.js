// The fixed colours of agents, and the words for what they do. A colour is a hue; each theme has its own lightness, so it
// has contrast in both.

import { h } from "./dom.js";

/** @type {Record<string, number>} */
const HUES = { orchestrator: 265, operator: 150, navigator: 235, vault: 55, librarian: 310, planner: 195, chronicler: 0, user: 265, lango: 265 };

/** The state of a frame as the page shows it. @param {string} state */
export const stateLabel = (state) => (state === "waiting" ? "waiting for you" : state);
export const MARKS = { running: "●", waiting: "‖", done: "✓", rejected: "↩", failed: "✕", stopped: "■" };

/** The colour of an agent as a CSS value: fixed for lango's own agents, a hash of the name for others. @param {string} name */
export function agentColor(name) {
  let hash = 2166136261;
  for (const character of name) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16777619);
  const hue = HUES[agentLabel(name)] ?? ((hash >>> 0) % 24) * 15;
  return `light-dark(oklch(0.46 0.13 ${hue}), oklch(0.82 0.1 ${hue}))`;
}

/** The name of an agent as people say it: the root is just the orchestrator. @param {string} name */
export function agentLabel(name) {
  return name.replace(/^lango-/, "");
}

/** A chip with the agent's name in its colour. @param {string} name @param {{isRemote?: boolean}} [options] */
export function agentChip(name, options = {}) {
  return h("span.chip", { style: { "--agent": agentColor(name) } }, agentLabel(name), options.isRemote && h("small", " remote"));
}
