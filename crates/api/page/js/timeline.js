// The timeline of a turn: a lane per agent, a bar per step. Model, tool, remote and waiting bars differ in shape and
// pattern, not only in colour; waiting for a person is never drawn as work. Arrow keys move between bars.

import { agentColor, agentLabel, MARKS } from "./agents.js";
import { h } from "./dom.js";
import { argumentLine, duration, plural } from "./format.js";
import { activity, stepName } from "./log.js";
import { createScale } from "./scale.js";
import { grid } from "./views/parts.js";

/** @import { Scale } from "./scale.js" */
/** @import { Frame, Step, Turn } from "./types" */
/** @typedef {{start: number, end: number, isWork: boolean, kind: Step["kind"], agent: string, step: Step | null, row: number}} Bar */
/** @typedef {{openStep: (step: Step) => void, openFrame: (frame: Frame) => void, selected: number | null, isTableOpen: boolean}} TimelineContext */

const MAX_BARS = 1500;
const MAX_ROWS = 5;
export const KINDS = { model: "Model", tool: "Tool", remote: "Remote agent", wait: "Waiting for you", correction: "Correction" };

/**
 * @param {Turn} turn
 * @param {TimelineContext} context
 */
export function renderTimeline(turn, context) {
  const now = turn.end ?? Math.max(Date.now(), turn.start);
  const all = barsOf(turn, now);
  const bars = all.slice(-MAX_BARS);
  const scale = createScale(bars, all.length > bars.length ? bars[0].start : turn.start, now);
  const waited = all.reduce((sum, bar) => sum + (bar.kind === "wait" ? bar.end - bar.start : 0), 0);
  const lanes = [...new Set(turn.frames.map((frame) => frame.agent))];
  const body = h(
    "div.lanes",
    { role: "group", "aria-label": "Timeline; use the arrow keys to move between bars", onkeydown: moveFocus },
    h("div.axis", { "aria-hidden": "true" }, scale.ticks.map((tick) => h("span", { style: { left: percent(scale.place(tick.time)) } }, tick.label))),
    scale.segments.filter((segment) => segment.isBreak).map(({ from, to, at, width }) => h("div.time-break", { style: { left: percent(at), width: percent(width) }, title: "No work in this time; drawn shorter" }, h("span", `// ${duration(to - from)}`))),
    lanes.map((agent) => lane(agent, bars.filter((bar) => bar.agent === agent), turn, scale, context, now)),
  );
  const stops = body.querySelectorAll("button.bar");
  (body.querySelector(".bar[aria-current]") ?? stops[stops.length - 1])?.setAttribute("tabindex", "0");
  return h(
    "div.timeline",
    h("p.small.muted", `${duration(now - turn.start)} in all`, waited > 0 && `, ${duration(waited)} waiting for you`, turn.end === null && ", still running", all.length > bars.length && `; the last ${bars.length} of ${plural(all.length, "step")}`),
    body,
    h("ul.legend", Object.entries(KINDS).map(([kind, label]) => h("li", h("span", { class: `bar kind-${kind}` }), label))),
    h("details", { open: context.isTableOpen, ontoggle: (/** @type {Event} */ event) => (context.isTableOpen = /** @type {HTMLDetailsElement} */ (event.target).open) }, h("summary", { "data-key": "table" }, "As a table"), table(bars.slice(-200), turn, context)),
  );
}

/** @param {number} fraction */
const percent = (fraction) => `${(fraction * 100).toFixed(3)}%`;

/**
 * All steps as bars in the order of time, with the model call that runs now, which is no step yet.
 * @param {Turn} turn
 * @param {number} now
 */
function barsOf(turn, now) {
  /** @type {(frame: Frame, kind: Bar["kind"], start: number, end: number, step: Step | null) => Bar} */
  const bar = ({ agent }, kind, start, end, step) => ({ start, end, isWork: kind !== "wait" && kind !== "correction", kind, agent, step, row: 0 });
  /** @type {Bar[]} */
  const bars = [];
  for (const frame of turn.frames) {
    for (const step of frame.steps) bars.push(bar(frame, step.kind, step.start, step.end ?? now, step));
    const doing = activity(turn, frame);
    if (doing?.kind === "model") bars.push(bar(frame, "model", doing.since, now, null));
  }
  bars.sort((left, right) => left.start - right.start || left.end - right.end);
  /** @type {Record<string, number[]>} when each row of a lane is free again */
  const rows = {};
  for (const each of bars) {
    const free = (rows[each.agent] ??= []);
    const row = free.findIndex((until) => until <= each.start);
    each.row = row >= 0 ? row : Math.min(free.length, MAX_ROWS - 1);
    free[each.row] = each.end;
  }
  return bars;
}

/** @param {string} agent @param {Bar[]} bars @param {Turn} turn @param {Scale} scale @param {TimelineContext} context @param {number} now */
function lane(agent, bars, turn, scale, context, now) {
  const rows = bars.reduce((most, bar) => Math.max(most, bar.row + 1), 1);
  const work = bars.filter((bar) => bar.isWork);
  const frames = turn.frames.filter((frame) => frame.agent === agent && !frame.isRoot);
  const span = (/** @type {number} */ from, /** @type {number} */ to) => ({ left: percent(scale.place(from)), width: percent(scale.place(to) - scale.place(from)) });
  return h(
    "section.lane",
    { "aria-label": agentLabel(agent), style: { "--agent": agentColor(agent), "--rows": rows } },
    h("div.lane-head", h("span.dot"), h("strong", agentLabel(agent)), h("span.muted", `${plural(work.length, "step")} · ${duration(work.reduce((sum, bar) => sum + bar.end - bar.start, 0))}`)),
    h(
      "div.track",
      frames.map((frame) => h("span.frame-line", { style: span(frame.start, frame.end ?? now), "aria-hidden": "true" }, h("b", frame.order), ["rejected", "failed"].includes(frame.state) && h("i", MARKS[frame.state]))),
      bars.map((bar) => {
        const { step } = bar;
        const label = labelOf(bar);
        return h("button", { class: `bar kind-${bar.kind} is-${statusOf(bar)}`, style: { ...span(bar.start, bar.end), "--row": bar.row }, tabindex: "-1", title: label, "aria-label": label, "aria-current": step?.seq === context.selected && "true", "data-key": `bar-${step?.seq}`, "data-start": bar.start, onclick: () => step && context.openStep(step) });
      }),
    ),
  );
}

/** @param {Bar} bar */
const statusOf = ({ step }) => step?.status ?? "running";

/** @param {Bar} bar */
function labelOf(bar) {
  const what = [agentLabel(bar.agent), bar.step && stepName(bar.step), bar.kind !== "model" && argumentLine(bar.step?.arguments, 60)].filter(Boolean).join(" ");
  return `${KINDS[bar.kind]}: ${what}, ${duration(bar.end - bar.start)}${statusOf(bar) === "ok" ? "" : `, ${statusOf(bar)}`}`;
}

/** Left and right go to the bar before or after in time. @param {KeyboardEvent} event */
function moveFocus(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  const all = /** @type {HTMLElement[]} */ ([.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll("button.bar")]);
  const inTime = all.sort((left, right) => Number(left.dataset.start) - Number(right.dataset.start));
  const index = inTime.indexOf(target);
  /** @type {Record<string, number>} */
  const places = { ArrowRight: index + 1, ArrowLeft: Math.max(0, index - 1), Home: 0, End: inTime.length - 1 };
  const next = inTime[places[event.key]];
  if (index < 0 || !next) return;
  event.preventDefault();
  target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

/** The same as rows, with exact numbers. @param {Bar[]} bars @param {Turn} turn @param {TimelineContext} context */
function table(bars, turn, { openStep }) {
  const rows = bars.map((bar) => {
    const { step, start, end } = bar;
    return [duration(start - turn.start), agentLabel(bar.agent), KINDS[bar.kind], step && h("button.link", { onclick: () => openStep(step) }, stepName(step)), duration(end - start), statusOf(bar)];
  });
  return grid("Steps of the turn", ["After", "Agent", "Kind", "What", "Took", "Status"], rows, "");
}
