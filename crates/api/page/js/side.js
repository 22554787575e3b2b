// The panel on the right: the agent tree, the timeline and the inspector of the selected turn.

import { explain, get } from "./api.js";
import { fill, h } from "./dom.js";
import { renderStep } from "./inspector.js";
import { createTabs } from "./tabs.js";
import { renderTimeline } from "./timeline.js";
import { renderTree } from "./tree.js";

/** @import { Frame, Log, Step, Turn } from "./types" */
/** @typedef {ReturnType<typeof createSide>} Side */

/**
 * @param {HTMLElement} root
 * @param {{onOpen: () => void}} context `onOpen` is called when a step is opened here, so that a narrow page can show the panel
 */
export function createSide(root, context) {
  /** @type {Log | null} */
  let log = null;
  /** @type {Turn | null} */
  let turn = null;
  /** @type {import("./api.js").Agents | null} */
  let agents = null;
  let problem = "";
  /** @type {Step | null} the step in the inspector */
  let step = null;
  let drawn = "";
  let loadedAt = 0;
  let frameRequest = 0;
  const parts = {
    open: new Set(),
    selected: /** @type {number | null} */ (null),
    isTableOpen: false,
    openStep,
    openFrame: (/** @type {Frame} */ frame) => openStep(frame.steps[0] ?? null),
  };
  const panels = {
    Agents() {
      if (agents) return renderTree(agents, turn, parts);
      return problem ? h("div.empty", h("p", problem), h("button.button", { onclick: loadAgents }, "Try again")) : empty("Loading…");
    },
    Timeline: () => (turn ? renderTimeline(turn, parts) : empty("Select a turn to see who worked when.")),
    Inspector() {
      drawn = signature();
      return log && step ? renderStep(log.session, turn, step, parts) : empty("Select a step: a bar of the timeline, or “inspect” at a model call.");
    },
  };
  const tabs = createTabs("Details of the turn", Object.keys(panels), (name) => {
    // Whether remote agents can be reached changes.
    if (name === "Agents" && Date.now() - loadedAt > 30_000) loadAgents();
    render();
  });
  fill(root, h("h2.unseen", "Details of the turn"), tabs.element);
  tabs.select("Agents");
  // What runs grows by itself; nothing is drawn while the panel is hidden.
  setInterval(() => turn?.end === null && tabs.selected() !== "Inspector" && schedule(), 1000);

  async function loadAgents() {
    loadedAt = Date.now();
    try {
      agents = await get("/api/agents");
    } catch (error) {
      problem = explain(error);
    }
    schedule();
  }

  function schedule() {
    if (frameRequest || !root.checkVisibility() || document.hidden) return;
    frameRequest = requestAnimationFrame(() => {
      frameRequest = 0;
      // A press must end on the element it began on.
      if (root.matches(":active")) setTimeout(schedule, 200);
      else render();
    });
  }

  /** Draws the selected tab; focus stays on the element with the same key. */
  function render() {
    const { panel } = tabs;
    const active = document.activeElement;
    const key = active instanceof HTMLElement && panel.contains(active) ? active.dataset.key : undefined;
    const top = panel.scrollTop;
    fill(panel, panels[/** @type {keyof typeof panels} */ (tabs.selected())]());
    panel.scrollTop = top;
    if (key) /** @type {HTMLElement | null} */ (panel.querySelector(`[data-key="${CSS.escape(key)}"]`))?.focus({ preventScroll: true });
  }

  /** What the inspector depends on. */
  function signature() {
    return `${step?.seq} ${step?.end}`;
  }

  /** @param {string} text */
  function empty(text) {
    return h("p.empty", text);
  }

  /** @param {Log} next @param {string | null} turnId */
  function update(next, turnId) {
    const isOther = next.session !== log?.session;
    const before = turn;
    log = next;
    turn = next.byId.get(turnId ?? "") ?? next.turns.at(-1) ?? null;
    if (isOther) step = null;
    // The inspector shows stored facts; it is drawn again only when those changed.
    if (isOther || turn !== before || tabs.selected() !== "Inspector" || signature() !== drawn) schedule();
  }

  /** @param {Step | null} next */
  function openStep(next) {
    step = next;
    parts.selected = next?.seq ?? null;
    tabs.panel.scrollTop = 0;
    tabs.select("Inspector");
    context.onOpen();
  }

  /** @param {number} seq the event of the model's reply */
  function openCall(seq) {
    for (const other of log?.turns ?? []) {
      const found = other.frames.flatMap((frame) => frame.steps).find((each) => each.kind === "model" && each.seq === seq);
      if (!found) continue;
      turn = other;
      openStep(found);
    }
  }

  return { update, openCall };
}
