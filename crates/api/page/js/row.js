// One delegation as a row: the agent, its task, what it does now, and on demand each step with its output as plain text.

import { agentChip, agentColor, agentLabel, stateLabel } from "./agents.js";
import { describeAnswer } from "./approvals.js";
import { fill, h, icon, setText } from "./dom.js";
import { attachments } from "./files.js";
import { argumentLine, count, elapsed, oneLine, plural } from "./format.js";
import { activity, stepName } from "./log.js";

/** @typedef {import("./types").Turn} Turn */
/** @typedef {import("./types").Frame} Frame */
/** @typedef {import("./types").Step} Step */
/** @typedef {import("./card.js").CardContext} CardContext */
/** @typedef {{element: HTMLElement, update: () => void, tick: (now: number) => void}} Row */

/** @param {Turn} turn @param {Frame} frame @param {CardContext} context @returns {Row} */
export function createRow(turn, frame, context) {
  const number = () => h("span.number");
  const [time, tools, tokens] = [number(), number(), number()];
  const status = h("span.status");
  const doing = h("span.doing");
  const note = h("div.note");
  const pictures = h("div.pictures");
  const task = h("span.words", oneLine(frame.task));
  const chip = h("span.who", agentChip(frame.agent));
  const line = h("summary", icon("chevron"), h("span.order", frame.order || ""), chip, h("span.task", task, doing), h("span.numbers", tools, tokens, time, status));
  const steps = h("div.steps");
  const details = h("details", { ontoggle: () => showSteps() }, line, steps);
  const element = h("div.row", { style: { "--agent": agentColor(frame.agent) } }, details, note, pictures);
  let shown = "";
  let shownPictures = 0;

  function showSteps() {
    const key = `${frame.steps.length} ${frame.steps.filter((step) => step.end !== null).length} ${frame.state}`;
    if (!details.open || key === shown) return;
    shown = key;
    const open = new Set([...steps.querySelectorAll("details[open]")].map((part) => /** @type {HTMLElement} */ (part).dataset.seq));
    fill(
      steps,
      !frame.isRoot && h("p.whole", h("b", "Task: "), frame.task),
      attachments(frame.attachments, context.session),
      h("ol", frame.steps.map((step) => h("li", { class: `step-${step.kind}` }, stepLine(step, turn, context, open.has(String(step.seq)))))),
    );
  }

  function update() {
    element.dataset.state = frame.state;
    if (frame.isRemote && !chip.querySelector("small")) fill(chip, agentChip(frame.agent, { isRemote: true }));
    const calls = frame.steps.filter((step) => step.kind === "tool").length;
    if (frame.isRoot) setText(task, calls ? "works itself" : plural(turn.corrections.length, "correction"));
    setText(tools, calls ? plural(calls, "tool") : "");
    const spent = frame.usage.input_tokens + frame.usage.output_tokens;
    setText(tokens, spent ? `${count(spent)} tok` : "");
    const denied = frame.steps.filter((step) => step.kind === "wait" && step.status === "denied").length;
    setText(status, stateLabel(frame.state) + (denied ? `, ${denied} denied` : ""));
    const next = frame.reroute && turn.byFrame.get(frame.reroute);
    note.hidden = !frame.reason || frame.isRoot;
    fill(
      note,
      h("span", frame.state === "rejected" ? "Rejected: " : "Failed: ", oneLine(frame.reason, 400)),
      next && h("span.reroute", icon("route"), `sent to ${agentLabel(next.agent)} (${next.order})`),
    );
    const images = frame.steps.flatMap((step) => step.attachments).filter((file) => file.media_type.startsWith("image/"));
    if (images.length !== shownPictures) {
      shownPictures = images.length;
      fill(pictures, attachments(images, context.session));
    }
    showSteps();
    tick(Date.now());
  }

  /** @param {number} now */
  function tick(now) {
    const current = activity(turn, frame);
    setText(time, elapsed(frame, now));
    const words = { model: "thinking", tool: `running ${current?.name}`, remote: "asked, no answer yet", wait: `${current?.name} needs your answer`, agents: "waiting for agents" };
    setText(doing, current ? words[current.kind] : "");
  }

  return { element, update, tick };
}

/** Characters of an output that are shown at most. */
const MOST_OUTPUT = 50_000;
const MARKS = /** @type {Record<string, string>} */ ({ ok: "✓", error: "✕", denied: "⊘", unknown: "?" });

/** @param {Step} step @param {Turn} turn @param {CardContext} context @param {boolean} isOpen */
function stepLine(step, turn, context, isOpen) {
  const { kind, usage, status, text } = step;
  const state = status ?? "running";
  const took = h("span.number", step.end === null ? "…" : elapsed(step, 0));
  const mark = h("span", { class: `mark ${state}`, title: state }, kind === "model" ? "◆" : MARKS[state] ?? "●", h("span.unseen", ` ${state} `));
  /** @param {string} name @param {string} rest @param {...import("./dom.js").Child} more */
  const line = (name, rest, ...more) => [mark, h("b", name), h("span", { class: kind === "correction" ? "rest wrap" : "rest" }, rest), more];
  if (kind === "wait") {
    const answered = turn.approvals.find((asked) => asked.id === step.request)?.answered;
    return h("div.line", line("asked you", `${step.name}: ${answered ? describeAnswer(answered) : "no answer yet"}`, took));
  }
  if (kind === "correction") return h("div.line", line(stepName(step), text));
  if (kind === "model") {
    const said = oneLine(text) || (step.calls.length > 0 ? `calls ${step.calls.map((call) => call.name).join(", ")}` : "");
    const inspect = h("button.link", { "aria-label": `Inspect model call ${step.seq}`, onclick: () => (context.select(turn.id), context.openCall(step.seq)) }, "inspect");
    const tokens = usage && usage.input_tokens + usage.output_tokens > 0 && `${count(usage.input_tokens)} → ${count(usage.output_tokens)}`;
    return h("div.line", line(step.name, said, inspect, h("span.number", tokens), took));
  }
  const output = step.output || "(no output)";
  const more = output.length - MOST_OUTPUT;
  // A large output is put into the page only when somebody opens it.
  const show = () => {
    if (!parts.open || parts.childElementCount > 1) return;
    parts.append(
      step.arguments ? h("pre.arguments", { tabindex: "0", "aria-label": "Arguments" }, JSON.stringify(step.arguments, null, 2)) : "",
      h("pre.output", { tabindex: "0", "aria-label": "Output" }, step.end === null ? "still running" : [output.slice(0, MOST_OUTPUT), more > 0 && `\n… ${plural(more, "more character")}`]),
      attachments(step.attachments, context.session) || "",
    );
  };
  const parts = h("details", { open: isOpen, dataset: { seq: step.seq }, ontoggle: show }, h("summary.line", line(kind === "remote" ? "remote call" : step.name, argumentLine(step.arguments), took)));
  show();
  return parts;
}
