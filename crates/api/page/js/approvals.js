// Requests to the person: inline in their turn, and all of them in a tray. Whoever answers first, here or elsewhere, the
// request disappears everywhere, because both lists follow the log and the event stream.

import { agentChip } from "./agents.js";
import { explain, get, post, Problem, url } from "./api.js";
import { createDialog, notify } from "./dialog.js";
import { fill, h, icon } from "./dom.js";
import { fullTime, moment, reveal } from "./format.js";
import { codeBlock } from "./highlight.js";
import { sessionPath } from "./router.js";

/** @typedef {import("./api.js").Request} Request */
/** @typedef {import("./api.js").Pending} Pending */
/** @typedef {{answer: string, pattern?: string, reason?: string}} Answer */

/** Why this page cannot answer a request; empty if it can. @param {Request} request @param {import("./api.js").Me | null} me */
export function obstacle(request, me) {
  if (!me) return "Loading…";
  if (request.folder && request.folder !== me.folder) return `Asked in another folder (${request.folder}). Answer it from a lango that runs there.`;
  return me.scopes.includes("approve") ? "" : "This sign-in may not answer requests. Open a link with the scope `approve`.";
}

/** @param {Request} request @param {string} problem why it cannot be answered here @returns {HTMLElement} */
export function createApprovalBox(request, problem) {
  const preview = h("div.preview");
  const controls = h("div.controls");
  const failure = h("p.problem", { role: "alert" });
  const input = request.asks === "turn" ? h("div") : subject(request);
  const titles = { fate: "What happened to this call?", turn: "Continue this turn?" };
  const title = request.asks ? titles[request.asks] : `wants to run ${request.tool}`;
  const element = h(
    "section.approval",
    { "aria-label": `Approval: ${request.agent} ${title}`, dataset: { risk: request.risk } },
    h("div.head", agentChip(request.agent), h("strong", title), h("span", { class: `risk ${request.risk}` }, request.risk === "safe" ? "low risk" : request.risk)),
    input,
    preview,
    h("p.why", request.reason),
    findings(request),
    controls,
    failure,
  );
  if (problem) fill(controls, h("p.why", problem));
  else showControls(request, controls, answer);
  if (!request.asks) loadPreview(request.id, preview, input);

  /** @param {Answer} body */
  async function answer(body) {
    const disable = (/** @type {boolean} */ value) => controls.querySelectorAll("button").forEach((button) => (button.disabled = value));
    disable(true);
    fill(failure);
    try {
      await post(url("approvals", request.id), body);
      element.classList.add("sent");
    } catch (error) {
      if (error instanceof Problem && error.status === 404) notify("It was answered meanwhile.");
      fill(failure, explain(error));
      disable(false);
    }
  }
  return element;
}

/** @param {Request} request @param {HTMLElement} controls @param {(body: Answer) => void} answer */
function showControls(request, controls, answer) {
  const more = h("div.more");
  /** @param {string} label @param {string} kind @param {() => void} run */
  const button = (label, kind, run) => h("button", { class: `button ${kind}`, onclick: (/** @type {Event} */ event) => (event.stopPropagation(), run()) }, label);
  /** @param {string} label @param {string} word @param {string} [kind] */
  const say = (label, word, kind = "") => button(label, kind, () => answer({ answer: word }));
  /**
   * A button that opens a line with an input below the buttons.
   * @param {string} name
   * @param {string} kind
   * @param {[label: string, value: string, confirm: string]} line
   * @param {(text: string) => void} run
   */
  const open = (name, kind, [label, value, confirm], run) => button(name, kind, () => {
    const send = () => run(input.value.trim());
    const input = h("input", { type: "text", value, spellcheck: "false" });
    input.onkeydown = (event) => {
      if (event.key === "Enter") send();
      if (event.key !== "Escape") return;
      event.stopPropagation();
      fill(more);
      controls.querySelector("button")?.focus();
    };
    fill(more, h("label", h("span", label), input), button(confirm, "primary", send));
    input.focus();
  });
  const { asks, pattern } = request;
  if (asks === "turn") return fill(controls, say("Continue the turn", "retry", "primary"), say("End the turn", "skip"));
  if (asks === "fate") {
    const happened = open("It happened…", "", ["What happened, told to the agent", "", "Send"], (reason) => reason && answer({ answer: "happened", reason }));
    return fill(controls, say("Run it again", "retry"), happened, say("Leave it unknown", "skip"), more);
  }
  /** @param {string} name @param {string} label @param {string} confirm @param {string} word */
  const grant = (name, label, confirm, word) => open(name, "", [`${label}, calls like`, pattern ?? "", confirm], (text) => text && answer({ answer: word, pattern: text }));
  fill(
    controls,
    say("Allow once", "once", "primary"),
    pattern !== undefined && [grant("Session…", "Allow in this session", "Allow in session", "session"), grant("Always…", "Always allow in this folder", "Always allow", "always")],
    open("Deny…", "danger", ["Reason, told to the agent (optional)", "", "Deny"], (reason) => answer(reason ? { answer: "no", reason } : { answer: "no" })),
    pattern === undefined && h("span.why", "Asked every time."),
    more,
  );
}

/** A word of a command, in quotes if its ends could be misread. @param {unknown} word */
function quoted(word) {
  return typeof word === "string" && /^[^\s"'\\]+$/.test(word) ? word : JSON.stringify(word);
}

/** What would run, all of it: the command if it is one, else the arguments. @param {Request} request */
function subject(request) {
  const { command, argv, ...rest } = request.arguments ?? {};
  const line = typeof command === "string" ? command : Array.isArray(argv) ? argv.map(quoted).join(" ") : null;
  const others = line === null ? request.arguments ?? {} : rest;
  return h(
    "div.subject",
    line !== null && h("pre.command", { tabindex: "0", "aria-label": "Command" }, reveal(line)),
    Object.keys(others).length > 0 && h("pre", { tabindex: "0", "aria-label": "Arguments" }, reveal(JSON.stringify(others, null, 2))),
  );
}

/** @param {Request} request */
function findings(request) {
  const { guarded, site, user_only: only, notes } = request.inspection ?? {};
  const lines = [
    guarded && `${guarded.path}: ${guarded.reason}`,
    site && `Site ${site.host}: ${site.summary}${site.url ? ` (${site.url})` : ""}`,
    only,
    ...(notes ?? []),
    request.folder && `Folder ${request.folder}`,
  ].filter(Boolean);
  return lines.length > 0 && h("ul.findings", lines.map((line) => h("li", line)));
}

/**
 * Shows what the call would change, and folds the arguments that say the same.
 * @param {string} id
 * @param {HTMLElement} element
 * @param {HTMLElement} input
 */
async function loadPreview(id, element, input) {
  // The arguments say it too, and an answered request has no preview.
  const { preview } = await get(url("approvals", id)).catch(() => ({}));
  if (!preview) return;
  const shown = codeBlock(reveal(preview), "diff");
  shown.ariaLabel = "What it would change";
  fill(element, shown);
  const folded = h("details", h("summary", "Arguments"));
  input.replaceWith(folded);
  folded.append(input);
}

const ANSWERS = /** @type {Record<string, string>} */ ({ once: "allowed once", session: "allowed in this session", always: "always allowed here", no: "denied", retry: "run again", skip: "left unknown", happened: "told what happened" });
const SPEAKERS = /** @type {Record<string, string>} */ ({ grant: "by an earlier answer", nobody: "because nobody could be asked", turn_ended: "because the turn ended", expired: "because it expired" });

/** An answer in words. @param {{answer: string, by: string, pattern?: string, reason?: string, text?: string}} answered */
export function describeAnswer(answered) {
  const detail = answered.pattern ?? answered.reason ?? answered.text;
  return [ANSWERS[answered.answer] ?? answered.answer, detail && `(${detail})`, SPEAKERS[answered.by]].filter(Boolean).join(" ");
}

/**
 * The tray with everything that waits for the person.
 * @param {{button: HTMLElement, me: () => import("./api.js").Me | null, onCount: (count: number) => void}} options
 */
export function createTray({ button, me, onCount }) {
  const list = h("div.list");
  const empty = h("p.empty", "Nothing waits for you.");
  const { dialog, close } = createDialog("tray", "Needs you", empty, list);
  /** @type {Map<string, HTMLElement>} */
  const boxes = new Map();
  /** @type {Pending[]} */
  let pending = [];

  function open() {
    render();
    dialog.showModal();
  }

  function render() {
    for (const [id, box] of boxes) {
      if (pending.some((request) => request.id === id)) continue;
      const hadFocus = box.contains(document.activeElement);
      box.remove();
      boxes.delete(id);
      if (hadFocus) close.focus();
    }
    for (const request of pending) {
      if (boxes.has(request.id)) continue;
      const link = h("a.when", { href: sessionPath(request.session, request.turn), title: fullTime(request.asked) }, `Open the turn · asked ${moment(request.asked)}`);
      const item = h("div.item", createApprovalBox(request, obstacle(request, me())), link);
      boxes.set(request.id, item);
      list.append(item);
    }
    empty.hidden = pending.length > 0;
  }

  /** @param {Pending[]} waiting @param {number} count */
  function update(waiting, count) {
    pending = waiting;
    fill(button, icon("bell"), count > 0 && h("span.count", count));
    button.ariaLabel = `Requests that need you: ${count || "none"}`;
    if (dialog.open) render();
    onCount(count);
  }
  button.onclick = open;
  update([], 0);
  return { update, open };
}
