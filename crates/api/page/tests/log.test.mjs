// Run with `node --test`. The reducer gives the same picture live, page by page and after a reload.

import assert from "node:assert/strict";
import { test } from "node:test";
import { activity, createLog, reduce, reduceDraft, reducePage } from "../js/log.js";

const ROOT = "lango-orchestrator";
let time = 1000;
let seq = 0;
const event = (type, fields = {}) => ({ seq: ++seq, session: "s_1", turn: "t_1", frame: "", author: ROOT, time: (time += 10), type, ...fields });
const usage = { input_tokens: 10, cached_tokens: 4, output_tokens: 2, reasoning_tokens: 0 };
const message = (frame, author, fields = {}) => event("agent.message", { frame, author, text: "", model: "m", usage, cost_micros: 5, ...fields });

/** A turn with two agents side by side, a rejection, a request that is denied, and an answer. */
function sample() {
  seq = 0;
  time = 1000;
  return [
    event("user.message", { author: "user", text: "hello", origin: { kind: "person" } }),
    message("", ROOT, { calls: [{ id: "c1", name: "delegate", arguments: "{}" }] }),
    event("agent.delegated", { call: "c1", agent: "operator", task: "one", round: 1, finish: false }),
    event("agent.delegated", { call: "c2", agent: "vault", task: "two", round: 1, finish: false }),
    event("agent.rejected", { frame: "c2", author: "vault", reason: "not mine" }),
    message("c1", "operator", { calls: [{ id: "c3", name: "shell", arguments: "{\"command\":\"ls\"}" }] }),
    event("approval.requested", { frame: "c1", id: "a1", agent: "operator", call: "c3", tool: "shell", arguments: { command: "ls" }, risk: "dangerous", reason: "rule" }),
    event("approval.answered", { frame: "c1", author: "user", request: "a1", answer: "no", by: "person" }),
    event("tool.returned", { frame: "c1", author: "operator", call: "c3", status: "denied", output: "no" }),
    message("c1", "operator", { text: "could not", final: true }),
    event("agent.delegated", { call: "c4", agent: "librarian", task: "two", round: 2, finish: true }),
    message("c4", "librarian", { text: "the answer", final: true }),
    event("turn.finished", { outcome: "answered", answer: 12, usage, cost_micros: 20, model_calls: 4, tool_calls: 0, rounds: 2 }),
  ];
}

const reduced = (events) => {
  const log = createLog("s_1");
  for (const each of events) reduce(log, each);
  return log;
};

test("a finished turn has its frames, its answer and its numbers", () => {
  const [turn] = reduced(sample()).turns;
  assert.equal(turn.state, "answered");
  assert.equal(turn.answer.text, "the answer");
  assert.deepEqual(turn.frames.map((frame) => [frame.agent, frame.state, frame.order]), [[ROOT, "done", 0], ["operator", "done", 1], ["vault", "rejected", 2], ["librarian", "done", 3]]);
  assert.equal(turn.byFrame.get("c2").reroute, "c4");
  assert.equal(turn.rounds, 2);
});

test("what the user undid belongs to the turn after which it was undone", () => {
  const events = [...sample(), event("turn.undone", { author: "user", undone: "t_0", restored: ["a.txt"] }), event("turn.undone", { author: "user", undone: "t_1", restored: [] })];
  const log = reduced(events);
  const [turn] = log.turns;
  assert.deepEqual(turn.undone, ["t_0", "t_1"]);
  assert.deepEqual([turn.state, turn.answer.text, turn.end], ["answered", "the answer", events[12].time]);
  assert.deepEqual([log.last, turn.last], [15, 15]);
});

test("agents of a turn that the user stopped are stopped, not failed", () => {
  const [turn] = reduced([...sample().slice(0, 4), event("turn.finished", { outcome: "cancelled", usage, model_calls: 1, tool_calls: 0, rounds: 1 })]).turns;
  assert.deepEqual(turn.frames.map((frame) => [frame.state, frame.reason]), [["stopped", ""], ["stopped", ""], ["stopped", ""]]);
});

test("a turn that nobody but the person can continue waits", () => {
  const log = reduced(sample().slice(0, 7));
  const [turn] = log.turns;
  assert.equal(turn.state, "waiting");
  assert.equal(turn.byFrame.get("c1").state, "waiting");
  assert.equal(activity(turn, turn.frames[0]).kind, "agents");
  reduce(log, sample()[7]);
  assert.equal(turn.state, "running");
  assert.equal(turn.approvals[0].answered.answer, "no");
  assert.equal(turn.byFrame.get("c1").steps.find((step) => step.kind === "wait").status, "denied");
});

test("waiting for a person is not time of the model", () => {
  const [turn] = reduced(sample()).turns;
  const steps = turn.byFrame.get("c1").steps;
  assert.deepEqual(steps.map((step) => step.kind), ["model", "wait", "tool", "model"]);
  assert.ok(steps[3].start >= steps[1].end);
});

test("an event that comes twice changes nothing", () => {
  const events = sample();
  const once = reduced(events);
  const twice = reduced([...events.slice(0, 6), ...events.slice(3)]);
  assert.deepEqual(twice, once);
});

test("a page that starts inside a turn gives its events back", () => {
  const events = sample();
  const { log, rest } = reducePage("s_1", events.slice(5));
  assert.equal(log.turns.length, 0);
  const whole = reducePage("s_1", [...events.slice(0, 5), ...rest]);
  assert.deepEqual(whole.log, reduced(events));
});

test("the stored message replaces the draft", () => {
  const events = sample();
  const log = reduced(events.slice(0, 11));
  reduceDraft(log, { turn: "t_1", agent: "librarian", text: "the", is_start: true });
  reduceDraft(log, { turn: "t_1", agent: "librarian", text: " answer", is_start: false });
  assert.equal(log.turns[0].draft.text, "the answer");
  reduce(log, events[11]);
  assert.equal(log.turns[0].draft, null);
  assert.equal(log.turns[0].answer.text, "the answer");
});

test("a call with an unknown outcome waits for the person", () => {
  const events = [
    ...sample().slice(0, 4),
    { ...message("c1", "operator", { calls: [{ id: "c3", name: "pay", arguments: "{}" }] }), seq: 5 },
    { ...event("tool.called", { frame: "c1", author: "operator", call: "c3", tool: "pay", arguments: {}, effect: "effect" }), seq: 6 },
    { ...event("approval.requested", { frame: "c1", id: "a2", agent: "operator", call: "c3", tool: "pay", arguments: {}, asks: "fate" }), seq: 7 },
    { ...event("agent.rejected", { frame: "c2", author: "vault", reason: "not mine" }), seq: 8 },
  ];
  const [turn] = reduced(events).turns;
  assert.equal(turn.state, "waiting");
  assert.equal(turn.byFrame.get("c1").steps.find((step) => step.kind === "tool").status, "unknown");
});
