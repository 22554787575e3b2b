// A turn as a card: the question, a row per delegation, requests to the person, the answer, and what it took. A card is built
// once and then updated part by part, so that focus, selection and open details survive every event.

import { agentChip, agentLabel } from "./agents.js";
import { createApprovalBox, obstacle } from "./approvals.js";
import { menuButton } from "./dialog.js";
import { fill, h, setText } from "./dom.js";
import { attachments } from "./files.js";
import { count, duration, fullTime, moment, money, oneLine, plural, ticking } from "./format.js";
import { activity } from "./log.js";
import { renderMarkdown } from "./markdown.js";
import { sessionPath } from "./router.js";
import { createRow } from "./row.js";

/** @typedef {import("./types").Turn} Turn */

/**
 * What cards need from the page.
 * @typedef {object} CardContext
 * @property {string} session
 * @property {(seq: number) => void} openCall shows a model call in the inspector
 * @property {(turn: string) => void} fork
 * @property {(turn: string) => void} select
 * @property {() => import("./api.js").Me | null} me
 */

/** @typedef {{element: HTMLElement, update: () => void, tick: (now: number) => void}} Card */

const DRAFT_INTERVAL_MS = 90;

/** @param {Turn} turn @param {CardContext} context @returns {Card} */
export function createCard(turn, context) {
  const { session } = context;
  const rows = h("div.rows");
  const requests = h("div.requests");
  const answer = h("div.answer");
  const outcome = h("div.outcome");
  const footer = h("footer.meta");
  const element = h(
    "article.turn",
    { id: `turn-${turn.id}`, tabindex: "-1", "aria-label": `Turn: ${oneLine(turn.question.text, 80)}`, onclick: () => context.select(turn.id) },
    question(turn, context),
    rows,
    requests,
    answer,
    outcome,
    footer,
  );
  /** @type {Map<string, import("./row.js").Row>} */
  const rowById = new Map();
  /** @type {Map<string, {element: HTMLElement, problem: string}>} */
  const boxById = new Map();
  let shownAnswer = 0;
  let shownDraft = "";
  let draftTime = 0;

  function updateRows() {
    for (const frame of turn.frames) {
      // The root has a row only if it does more than delegate.
      if (frame.isRoot && frame.steps.every((step) => step.kind === "model")) continue;
      let row = rowById.get(frame.id);
      if (!row) {
        row = createRow(turn, frame, context);
        rowById.set(frame.id, row);
        rows.insertBefore(row.element, frame.isRoot ? rows.firstChild : null);
      }
      row.update();
    }
  }

  function updateRequests() {
    for (const approval of turn.approvals) {
      const shown = boxById.get(approval.id);
      const isOpen = !approval.answered && !turn.finished;
      const problem = obstacle(approval, context.me());
      // It is built again only if another answer is possible than before.
      if (isOpen ? shown?.problem === problem : !shown) continue;
      const hadFocus = shown?.element.contains(document.activeElement);
      shown?.element.remove();
      boxById.delete(approval.id);
      if (isOpen) {
        const box = createApprovalBox(approval, problem);
        boxById.set(approval.id, { element: box, problem });
        requests.append(box);
      }
      if (hadFocus) element.focus({ preventScroll: true });
    }
  }

  function updateAnswer() {
    if (turn.answer) {
      if (shownAnswer === turn.answer.seq) return;
      shownAnswer = turn.answer.seq;
      show(turn.answer.author, turn.answer.text);
      answer.append(attachments(turn.answer.attachments, session) || "");
      return;
    }
    const { text = "", agent = "" } = turn.draft ?? {};
    if (text === shownDraft) return;
    // A long draft is rendered a few times a second, not for every word.
    const now = performance.now();
    if (text && now - draftTime < DRAFT_INTERVAL_MS) return void setTimeout(updateAnswer, DRAFT_INTERVAL_MS);
    draftTime = now;
    shownDraft = text;
    if (text) show(agent, text);
    else fill(answer);
  }

  /** @param {string} author @param {string} text */
  function show(author, text) {
    const results = turn.frames.flatMap((frame) => frame.steps.flatMap((step) => step.attachments));
    answer.classList.toggle("draft", !turn.answer);
    fill(answer, h("div.author", agentChip(author)), h("div.markdown", renderMarkdown(text, { attachments: [...turn.question.attachments, ...results], session })));
  }

  function update() {
    element.dataset.state = turn.state;
    updateRows();
    updateRequests();
    updateAnswer();
    const undone = turn.undone.map((id) => `You undid the changes of ${id === turn.id ? "this turn" : id}`);
    const ending = [outcomeText(turn), ...undone].filter(Boolean).join(". ");
    outcome.hidden = ending === "";
    outcome.dataset.outcome = turn.state;
    setText(outcome, ending);
    if (turn.finished) fill(footer, facts(turn));
    else tick(Date.now());
  }

  /** @param {number} now */
  function tick(now) {
    if (turn.finished) return;
    for (const row of rowById.values()) row.tick(now);
    fill(footer, progress(turn), h("span", ticking(now - turn.start)), facts(turn));
  }

  update();
  return { element, update, tick };
}

/** @param {Turn} turn @param {CardContext} context */
function question(turn, context) {
  const { text, attachments: files, origin, time } = turn.question;
  const isLong = text.length > 1200 || text.split("\n").length > 14;
  const body = h("div.words", text);
  const more = isLong && h("button.link", { onclick: () => showAll(!body.classList.contains("clipped")) });
  const showAll = (/** @type {boolean} */ isClipped) => {
    body.classList.toggle("clipped", isClipped);
    if (!more) return;
    more.textContent = isClipped ? "Show all" : "Show less";
    more.ariaExpanded = String(!isClipped);
  };
  showAll(isLong);
  const path = sessionPath(context.session, turn.id);
  const copy = (/** @type {string} */ words) => () => navigator.clipboard?.writeText(words);
  return h(
    "div.question",
    h(
      "div.asked",
      h("h2", origin?.kind === "program" ? "A program" : "You"),
      origin?.kind === "pipe" && h("span.badge", "piped"),
      h("a.when", { href: path, title: fullTime(time) }, moment(time)),
      menuButton("Turn actions", () => [
        { label: "Copy link", run: copy(location.origin + path) },
        { label: "Copy answer", isDisabled: !turn.answer, run: copy(turn.answer?.text ?? "") },
        { label: "Fork the session from here", isDisabled: !turn.finished, run: () => context.fork(turn.id) },
      ]),
    ),
    body,
    more,
    attachments(files, context.session),
  );
}

const OUTCOMES = /** @type {Record<string, string>} */ ({
  limited: "Stopped at a limit before any agent answered",
  failed: "The turn failed",
  cancelled: "You stopped this turn",
  interrupted: "The process ended in the middle of this turn",
});
const LIMIT_KEYS = /** @type {Record<string, string>} */ ({
  rounds: "agent.maxDelegationRounds",
  model_calls: "agent.maxModelCalls",
  tool_calls: "agent.maxToolCalls",
  tokens: "agent.maxTokens",
  cost: "agent.maxCost",
  time: "agent.turnTimeout",
});

/** How a turn ended; empty if it runs or was answered in full. @param {Turn} turn */
function outcomeText({ finished: end }) {
  const isAnswered = end?.outcome === "answered";
  if (!end || (isAnswered && !end.limit)) return "";
  const what = isAnswered ? "A limit cut the work short" : OUTCOMES[end.outcome] ?? end.outcome;
  return `${what}${end.error ? `: ${end.error}` : ""}${end.limit ? ` (${LIMIT_KEYS[end.limit] ?? end.limit})` : ""}${end.setup ? ". Open Setup to see the settings." : ""}`;
}

/** What the orchestrator of a running turn does. @param {Turn} turn */
function progress(turn) {
  const [root] = turn.frames;
  const what = { model: "is thinking", tool: "uses a tool", remote: "waits for a remote agent", wait: "waits for you", agents: "waits for its agents" };
  const current = activity(turn, root);
  const text = current && `${agentLabel(root.agent)} ${what[current.kind]}`;
  return [h("span", { class: `live ${turn.state}` }, text), turn.notice && h("span.live.waiting", turn.notice)];
}

/** @param {Turn} turn */
function facts(turn) {
  const { usage } = turn;
  const limit = turn.settings?.limits?.rounds;
  const hasTokens = usage.input_tokens + usage.output_tokens > 0;
  const parts = [
    turn.answer?.model ?? turn.settings?.model,
    plural(turn.model_calls, "model call"),
    turn.tool_calls > 0 && plural(turn.tool_calls, "tool call"),
    turn.rounds > 0 && `round ${turn.rounds}${limit ? ` of ${limit}` : ""}`,
    hasTokens && `${count(usage.input_tokens)} in · ${count(usage.cached_tokens)} cached · ${count(usage.output_tokens)} out`,
    hasTokens && money(turn.cost_micros),
    turn.end !== null && duration(turn.end - turn.start),
  ];
  return parts.filter(Boolean).map((part) => h("span", part));
}
