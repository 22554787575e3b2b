// Turns the event log into what the page shows. It reads events and nothing else: no clock, no network, no DOM. The same
// events give the same picture, live or after a reload.

/** @typedef {import("./types").LogEvent} LogEvent */
/** @typedef {import("./types").Turn} Turn */
/** @typedef {import("./types").Frame} Frame */
/** @typedef {import("./types").Log} Log */
/** @typedef {import("./types").Step} Step */
/** @typedef {import("./types").Usage} Usage */

/** @param {string} session @returns {Log} */
export function createLog(session) {
  return { session, turns: [], byId: new Map(), last: 0 };
}

/**
 * Adds one event and returns the turn it changed. An event of a turn whose start is not in this log, or one that was
 * added before, changes nothing.
 * @param {Log} log
 * @param {LogEvent} event
 * @returns {Turn | null}
 */
export function reduce(log, event) {
  if (event.seq <= log.last) return null;
  log.last = event.seq;
  let turn = log.byId.get(event.turn);
  if (!turn) {
    if (event.type !== "user.message") return null;
    turn = newTurn(event);
    log.turns.push(turn);
    log.byId.set(turn.id, turn);
    return turn;
  }
  turn.last = event.seq;
  turn.events += 1;
  turn.notice = "";
  const frame = turn.byFrame.get(event.frame) ?? turn.frames[0];
  if (frame && REDUCERS[event.type]) {
    REDUCERS[event.type]?.(turn, frame, event);
    frame.since = event.time;
    for (const open of turn.frames) {
      if (open.end === null) open.state = isWaiting(open) ? "waiting" : "running";
    }
    if (!turn.finished) turn.state = stateOf(turn);
  }
  return turn;
}

/**
 * Starts or extends the text that an agent is writing. It is not part of the log: the stored message replaces it.
 * @param {Log} log
 * @param {{turn: string, agent: string, text: string, is_start: boolean}} draft
 * @returns {Turn | null}
 */
export function reduceDraft(log, draft) {
  const turn = log.byId.get(draft.turn);
  if (!turn || turn.finished) return null;
  const isNew = draft.is_start || turn.draft?.agent !== draft.agent;
  turn.draft = { agent: draft.agent, text: isNew ? draft.text : (turn.draft?.text ?? "") + draft.text };
  return turn;
}

/** @param {Log} log @param {string} id @returns {Turn | null} */
export function withdrawDraft(log, id) {
  const turn = log.byId.get(id);
  if (!turn?.draft) return null;
  turn.draft = null;
  return turn;
}

/**
 * Reduces a page of events on its own. Events before its first turn start belong to a turn that began on an earlier page;
 * they come back as `rest`, to be put after the next older page.
 * @param {string} session
 * @param {LogEvent[]} events ascending
 * @returns {{log: Log, rest: LogEvent[]}}
 */
export function reducePage(session, events) {
  const log = createLog(session);
  /** @type {LogEvent[]} */
  const rest = [];
  for (const event of events) {
    if (!reduce(log, event)) rest.push(event);
  }
  return { log, rest };
}

/**
 * What a running frame does now, and since when.
 * @param {Turn} turn
 * @param {Frame} frame
 * @returns {{kind: "model" | "tool" | "remote" | "wait" | "agents", name: string, since: number} | null}
 */
export function activity(turn, frame) {
  if (frame.end !== null) return null;
  const open = frame.steps.filter((step) => step.end === null);
  const busy = open.find((step) => step.kind !== "wait") ?? open[0];
  if (busy) return { kind: /** @type {any} */ (busy.kind), name: busy.name, since: busy.start };
  const child = turn.frames.find((other) => other.parent === frame.id && !other.isRoot && other.end === null);
  if (child) return { kind: "agents", name: child.agent, since: child.start };
  return { kind: "model", name: "", since: frame.since };
}

/** A turn waits if a person is asked and no agent can go on without the answer. @param {Turn} turn */
function stateOf(turn) {
  const open = turn.approvals.filter((approval) => !approval.answered);
  if (open.length === 0) return "running";
  if (open.some((approval) => approval.asks === "turn")) return "waiting";
  const isStill = (/** @type {Frame} */ frame) => ["wait", "agents"].includes(activity(turn, frame)?.kind ?? "wait");
  return turn.frames.every(isStill) ? "waiting" : "running";
}

/** Faults that end their frame without an answer. */
const ENDING_FAULTS = ["model_failed", "model_call_limit", "token_limit", "cost_limit"];
/** Faults that are put right once; the second time they end the frame. */
const REPEATED_FAULTS = ["empty_reply", "output_limit", "stray_rejection", "invalid_answer"];

/** The state of frames that the end of the turn ends; others failed. */
const ENDS = /** @type {Record<string, Frame["state"]>} */ ({ answered: "done", cancelled: "stopped" });

/** @type {Record<string, (turn: Turn, frame: Frame, event: LogEvent) => void>} */
const REDUCERS = {
  "agent.message"(turn, frame, event) {
    if (turn.draft?.agent === event.author) turn.draft = null;
    for (const call of event.calls ?? []) turn.calls.set(call.id, call);
    const isOwn = !event.model;
    if (!isOwn) {
      const step = openStep(frame, event, { kind: "model", name: event.model, start: frame.since, text: event.text, usage: event.usage });
      closeStep(step, event, "ok");
      step.cost_micros = event.cost_micros ?? null;
      step.calls = event.calls ?? [];
      step.stop = event.stop ?? null;
      addUsage(turn, event.usage, event.cost_micros);
      addUsage(frame, event.usage, event.cost_micros);
      turn.model_calls += 1;
    }
    const isFinal = Boolean(event.final);
    if (!isFinal && !isOwn) return;
    const answer = { author: event.author, text: event.text, attachments: [], seq: event.seq, model: event.model ?? null };
    turn.answers.set(event.seq, answer);
    if (isFinal && (frame.isRoot || frame.finish)) turn.answer = answer;
    // Words of lango itself end a frame whose model failed.
    const isStopped = event.stop?.reason === "cancelled";
    if (isFinal) endFrame(turn, frame, event, isStopped ? "stopped" : isOwn ? "failed" : "done", "");
  },
  "agent.delegated"(turn, frame, event) {
    const next = newFrame(event.call, event.agent, event);
    next.order = turn.frames.length;
    next.parent = frame.id;
    next.task = event.task;
    next.round = event.round;
    next.finish = event.finish;
    next.attachments = event.attachments ?? [];
    turn.frames.push(next);
    turn.byFrame.set(next.id, next);
    turn.rounds = Math.max(turn.rounds, event.round);
    const rejected = turn.frames.find((other) => other.state === "rejected" && !other.reroute && other.round === event.round - 1);
    if (rejected) rejected.reroute = next.id;
  },
  "agent.rejected"(turn, frame, event) {
    endFrame(turn, frame, event, "rejected", event.reason);
  },
  "tool.called"(turn, frame, event) {
    const before = frame.steps.find((step) => step.call === event.call && step.end === null);
    if (before) closeStep(before, event, "unknown");
    openStep(frame, event, { kind: "tool", name: event.tool, call: event.call, arguments: event.arguments, effect: event.effect });
    turn.tool_calls += 1;
  },
  "tool.returned"(turn, frame, event) {
    const called = turn.calls.get(event.call);
    const found = frame.steps.find((step) => step.kind === "tool" && step.call === event.call && step.end === null);
    const step = found ?? openStep(frame, event, { kind: "tool", name: called?.name ?? "call", call: event.call, arguments: parse(called?.arguments) });
    step.output = event.output;
    step.attachments = event.attachments ?? [];
    closeStep(step, event, event.status);
  },
  "approval.requested"(turn, frame, event) {
    // A call whose outcome is unknown does not run any more; a person says what happened.
    const lost = frame.steps.find((step) => step.call === event.call && step.end === null);
    if (lost) closeStep(lost, event, "unknown");
    const step = openStep(frame, event, { kind: "wait", name: event.tool, arguments: event.arguments, request: event.id });
    turn.approvals.push({ ...requestOf(event), session: event.session, turn: turn.id, frame: frame.id, asked: event.time, seq: event.seq, answered: null, step });
  },
  "approval.answered"(turn, frame, event) {
    const approval = turn.approvals.find((asked) => asked.id === event.request);
    if (!approval || approval.answered) return;
    const { answer, by, pattern, reason, text, folder, time, seq } = event;
    approval.answered = { answer, by, pattern, reason, text, folder, time, seq };
    closeStep(approval.step, event, ["once", "session", "always", "retry", "happened"].includes(answer) ? "ok" : "denied");
    const asking = turn.byFrame.get(approval.frame);
    if (asking) asking.since = event.time;
  },
  "remote.called"(turn, frame, event) {
    frame.isRemote = true;
    openStep(frame, event, { kind: "remote", name: frame.agent, arguments: null, text: event.task });
  },
  "remote.returned"(turn, frame, event) {
    const step = frame.steps.find((open) => open.kind === "remote" && open.end === null) ?? openStep(frame, event, { kind: "remote", name: frame.agent });
    step.output = event.output;
    step.attachments = event.attachments ?? [];
    closeStep(step, event, event.status);
    if (!event.final) return endFrame(turn, frame, event, "failed", event.status === "ok" ? "it answered nothing" : event.output);
    const answer = { author: frame.agent, text: event.output, attachments: step.attachments, seq: event.seq, model: null };
    turn.answers.set(event.seq, answer);
    if (frame.finish) turn.answer = answer;
    endFrame(turn, frame, event, "done", "");
  },
  "turn.corrected"(turn, frame, event) {
    const step = openStep(frame, event, { kind: "correction", name: event.fault, text: event.detail });
    turn.corrections.push(step);
    closeStep(step, event, "error");
    if (event.call) return;
    const isSecond = REPEATED_FAULTS.includes(event.fault) && frame.faults.has(event.fault);
    frame.faults.add(event.fault);
    if (ENDING_FAULTS.includes(event.fault) || isSecond) endFrame(turn, frame, event, "failed", event.detail);
  },
  "turn.finished"(turn, frame, event) {
    turn.finished = event;
    turn.end = event.time;
    turn.state = event.outcome;
    turn.draft = null;
    turn.answer = event.answer ? (turn.answers.get(event.answer) ?? turn.answer) : null;
    turn.usage = { ...event.usage };
    turn.cost_micros = event.cost_micros ?? null;
    for (const key of /** @type {const} */ (["model_calls", "tool_calls", "rounds"])) turn[key] = event[key];
    const state = ENDS[event.outcome] ?? "failed";
    for (const open of turn.frames) {
      if (open.end === null) endFrame(turn, open, event, state, state === "failed" ? event.error ?? event.outcome : "");
    }
  },
  // It comes after the end of the turn that was the last one then, and may concern an earlier one.
  "turn.undone"(turn, _frame, event) {
    turn.undone.push(event.undone);
  },
};

/** @param {LogEvent} event @returns {import("./api.js").Request} */
function requestOf(event) {
  const { seq, session, turn, frame, author, time, type, ...request } = event;
  return /** @type {any} */ (request);
}

/** The JSON of a call's arguments. Models write some that are no JSON; those stay text. @param {string | undefined} text */
export function parse(text) {
  try {
    return text === undefined ? null : JSON.parse(text);
  } catch {
    return text;
  }
}

/** @returns {Usage} */
function noUsage() {
  return { input_tokens: 0, cached_tokens: 0, cache_write_tokens: 0, output_tokens: 0, reasoning_tokens: 0 };
}

/** @param {LogEvent} event a `user.message` @returns {Turn} */
function newTurn(event) {
  const root = newFrame(event.frame, "lango-orchestrator", event);
  root.isRoot = true;
  root.task = event.text;
  return {
    id: event.turn, first: event.seq, last: event.seq, events: 1,
    question: { text: event.text, attachments: event.attachments ?? [], origin: event.origin ?? null, time: event.time },
    settings: event.settings ?? null,
    frames: [root], byFrame: new Map([[root.id, root]]),
    approvals: [], corrections: [], undone: [], state: "running",
    answer: null, answers: new Map(), calls: new Map(), finished: null, draft: null, notice: "",
    usage: noUsage(), cost_micros: 0, model_calls: 0, tool_calls: 0, rounds: 0, start: event.time, end: null,
  };
}

/** @param {string} id @param {string} agent @param {LogEvent} event the event that opens it @returns {Frame} */
function newFrame(id, agent, event) {
  return {
    id, agent, task: "", round: 0, finish: false, parent: null, isRoot: false, isRemote: false,
    start: event.time, end: null, since: event.time, state: "running", reason: "", steps: [], attachments: [],
    usage: noUsage(), cost_micros: 0, order: 0, reroute: null, faults: new Set(),
  };
}

/** @param {Frame} frame @param {LogEvent} event @param {Partial<Step>} fields @returns {Step} */
function openStep(frame, event, fields) {
  /** @type {Step} */
  const step = {
    kind: "tool", frame: frame.id, agent: frame.agent, start: event.time, end: null, seq: event.seq, endSeq: null, name: "", call: null,
    arguments: null, effect: null, status: null, output: null, attachments: [], request: null, usage: null, cost_micros: null,
    calls: [], stop: null, text: "", ...fields,
  };
  frame.steps.push(step);
  // The root is named by what it does; the log has no event that only introduces it.
  if (frame.isRoot && event.type === "agent.message") frame.agent = step.agent = event.author;
  return step;
}

/** @param {Step} step @param {LogEvent} event @param {Step["status"]} status */
function closeStep(step, event, status) {
  if (step.end !== null) return;
  step.end = event.time;
  step.endSeq = event.seq;
  step.status = status;
}

/**
 * Ends a frame. Its end is the result of the call that opened it, so the parent goes on from here.
 * @param {Turn} turn
 * @param {Frame} frame
 * @param {LogEvent} event
 * @param {Frame["state"]} state
 * @param {string} reason
 */
function endFrame(turn, frame, event, state, reason) {
  frame.end = event.time;
  frame.state = state;
  frame.reason = reason;
  for (const step of frame.steps) closeStep(step, event, step.kind === "wait" ? "denied" : "unknown");
  const parent = frame.parent === null ? null : turn.byFrame.get(frame.parent);
  if (parent && parent.end === null) parent.since = event.time;
}

/**
 * Adds the usage of one model call. A call without a known price makes the sum unknown.
 * @param {{usage: Usage, cost_micros: number | null}} sum
 * @param {Usage | undefined} usage
 * @param {number | null | undefined} cost
 */
function addUsage(sum, usage, cost) {
  for (const key of /** @type {const} */ (["input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens"])) {
    sum.usage[key] = (sum.usage[key] ?? 0) + (usage?.[key] ?? 0);
  }
  sum.cost_micros = sum.cost_micros === null || cost == null ? null : sum.cost_micros + cost;
}

/** @param {Frame} frame */
function isWaiting(frame) {
  const open = frame.steps.filter((step) => step.end === null);
  return open.length > 0 && open.every((step) => step.kind === "wait");
}

/** What a step is called. @param {Step} step */
export function stepName({ kind, name }) {
  return kind === "correction" ? name.replaceAll("_", " ") : name;
}
