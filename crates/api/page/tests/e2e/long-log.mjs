// Writes the export of a session with many events, as `lango sessions import` takes it: every event has the hash of its
// row after the row before, and the first line is sealed.

import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { once } from "node:events";

const SESSION = "s_long0000000";
const START = Date.UTC(2026, 0, 5, 9);
/** Events of a turn: question, delegation, calls, answers. */
const CALLS = 6;

/** @param {string} path @param {number} count the number of events, at least */
export async function writeLongLog(path, count) {
  const lines = [];
  let previous = Buffer.alloc(0);
  let seq = 0;
  for (let turn = 1; seq < count; turn += 1) {
    for (const [frame, author, body] of turnEvents(turn, seq)) {
      seq += 1;
      const row = { seq, session: SESSION, turn: `t_${turn}`, frame, author, time: START + seq * 400 };
      const text = JSON.stringify(body);
      previous = hash(row, text, previous);
      lines.push(`${JSON.stringify(row).slice(0, -1)},${text.slice(1, -1)},"hash":"${previous.toString("hex")}"}\n`);
    }
  }
  const record = { lango_session: 1, id: SESSION, user: "local", created: START, updated: START + seq * 400, title: `A session with ${seq} events`, events: seq, hash: previous.toString("hex") };
  const open = JSON.stringify(record).slice(0, -1);
  const file = createWriteStream(path);
  file.write(`${open},"seal":"${createHash("sha256").update(open).digest("hex")}"}\n`);
  for (const line of lines) if (!file.write(line)) await once(file, "drain");
  file.end();
  await once(file, "finish");
  return { session: SESSION, events: seq };
}

/** @param {number} turn @param {number} before the seq before its first event @returns {[frame: string, author: string, body: object][]} */
function turnEvents(turn, before) {
  const root = "lango-orchestrator";
  const usage = { input_tokens: 900 + turn, cached_tokens: 300, output_tokens: 80, reasoning_tokens: 0 };
  const reply = (/** @type {object} */ more) => ({ type: "agent.message", text: "", ...more, model: "openai/gpt-6-sol", usage, cost_micros: 1200 });
  const task = `Look at part ${turn}`;
  /** @type {[string, string, object][]} */
  const events = [
    ["", "user", { type: "user.message", text: `Question ${turn}: what does part ${turn} say?`, origin: { kind: "person" } }],
    ["", root, reply({ calls: [{ id: "d", name: "delegate", arguments: JSON.stringify({ agent: "operator", task }) }], final: false })],
    ["", root, { type: "agent.delegated", call: "d", agent: "operator", task, round: 1, finish: false }],
  ];
  for (let call = 0; call < CALLS; call += 1) {
    const input = { path: `part-${turn}-${call}.md` };
    events.push(
      ["d", "operator", reply({ calls: [{ id: `c${call}`, name: "fs_read", arguments: JSON.stringify(input) }], final: false })],
      ["d", "operator", { type: "tool.called", call: `c${call}`, tool: "fs_read", arguments: input, effect: "pure" }],
      ["d", "operator", { type: "tool.returned", call: `c${call}`, status: "ok", output: `Line of part ${turn}, call ${call}.\n`.repeat(8) }],
    );
  }
  events.push(
    ["d", "operator", reply({ text: `Part ${turn} says nothing new.`, final: true })],
    ["", root, reply({ text: `**Part ${turn}** says:\n\n- nothing new\n- \`code ${turn}\`\n\n| a | b |\n|--|--|\n| ${turn} | ${turn * 2} |\n`, final: true })],
  );
  const answer = before + events.length;
  events.push(["", root, { type: "turn.finished", outcome: "answered", answer, usage, cost_micros: 9000, model_calls: CALLS + 3, tool_calls: CALLS, rounds: 1 }]);
  return events;
}

/** @param {any} row @param {string} body @param {Buffer} previous */
function hash(row, body, previous) {
  const number = (/** @type {number} */ value) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(value));
    return bytes;
  };
  const texts = [row.session, row.turn, row.frame, row.author, body].map((text) => Buffer.from(text));
  const hasher = createHash("sha256");
  for (const field of [previous, number(row.seq), number(row.time), ...texts]) hasher.update(number(field.length)).update(field);
  return hasher.digest();
}
