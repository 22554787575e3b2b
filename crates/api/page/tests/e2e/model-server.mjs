// A scripted model behind the chat-completions API. It chooses its reply from the request alone (the agent, its task, and
// how many replies the agent has given for it), so that the same request has the same reply before and after a restart of
// lango. A reply may stop in mid-stream at a gate until the test opens it.

import { createServer } from "node:http";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

/** How long a reply may take to come to its gate. */
const GATE_MS = 15_000;

/**
 * @typedef {object} Reply
 * @property {string} [text]
 * @property {[name: string, args: object][]} [calls]
 * @property {number} [pause] milliseconds before the first word
 * @property {string} [gate] the name of the gate at which the text stops half-way
 * @property {number} [status] an HTTP status instead of a reply
 */

/** @typedef {{agent: string, task: string, round: number, results: string[], body: any}} Asked */

/** Answers requests with what `script` returns for them. @param {(asked: Asked) => Reply} script */
export async function startModelServer(script) {
  /** @type {Map<string, {reached: ReturnType<typeof deferred>, opened: ReturnType<typeof deferred>}>} */
  const gates = new Map();
  const gate = (/** @type {string} */ name) => {
    const known = gates.get(name) ?? { reached: deferred(), opened: deferred() };
    gates.set(name, known);
    return known;
  };
  /** @type {Asked[]} */
  const requests = [];

  const server = createServer(async (request, response) => {
    if (request.method === "GET") return json(response, 200, { object: "list", data: [{ id: "gpt-6-sol", object: "model" }] });
    let text = "";
    for await (const part of request) text += part;
    const asked = read(JSON.parse(text));
    requests.push(asked);
    const reply = script(asked);
    if (reply.status) return json(response, reply.status, { error: { message: reply.text ?? "no", type: "invalid_request_error", code: "scripted" } });
    await delay(reply.pause ?? 0);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const words = (reply.text ?? "").match(/\S+\s*/g) ?? [];
    const half = Math.ceil(words.length / 2);
    send(response, { role: "assistant", content: "" });
    for (const [index, word] of words.entries()) {
      if (reply.gate && index === half) {
        gate(reply.gate).reached.resolve();
        await gate(reply.gate).opened.promise;
      }
      send(response, { content: word });
    }
    for (const [index, [name, args]] of (reply.calls ?? []).entries()) {
      const id = `call_${asked.round}_${index}`;
      send(response, { tool_calls: [{ index, id, type: "function", function: { name, arguments: JSON.stringify(args) } }] });
    }
    send(response, {}, reply.calls?.length ? "tool_calls" : "stop");
    const input = Math.round(text.length / 4);
    const output = Math.round(JSON.stringify(reply).length / 4);
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output, prompt_tokens_details: { cached_tokens: asked.round ? Math.round(input * 0.6) : 0 } };
    response.write(`data: ${JSON.stringify({ id: "reply", object: "chat.completion.chunk", created: 1, model: "scripted", choices: [], usage })}\n\n`);
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());

  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    /** Waits until a reply stands at a gate. @param {string} name */
    reached: (name) => Promise.race([gate(name).reached.promise, delay(GATE_MS, undefined, { ref: false }).then(() => Promise.reject(new Error(`no reply came to the gate ${name}; the last request was ${JSON.stringify(requests.at(-1))}`)))]),
    /** Lets replies pass a gate, now and later. @param {string} name */
    open: (name) => gate(name).opened.resolve(),
    close() {
      for (const { opened } of gates.values()) opened.resolve();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** @param {any} body @returns {Asked} */
function read(body) {
  const text = (/** @type {any} */ message) => (typeof message.content === "string" ? message.content : (message.content ?? []).map((/** @type {any} */ part) => part.text ?? "").join("\n"));
  // Images of results come in a message of the user's role too.
  const first = body.messages.findLastIndex((/** @type {any} */ message) => message.role === "user" && !text(message).startsWith("[image"));
  const later = body.messages.slice(first + 1);
  const instruction = text(body.messages[0]);
  const agent = /^You are ([\w-]+)/.exec(instruction)?.[1] ?? "";
  const whole = text(body.messages[first]);
  const task = (/## Task\n([\s\S]*)$/.exec(whole)?.[1] ?? whole)
    .replace(/\n\n<(?:environment|memory)[\s\S]*$/, "")
    // A request that was stopped stands before the one after it.
    .replace(/^[\s\S]*\(The request above was stopped [^)]*\)/, "")
    .trim();
  return {
    agent,
    task,
    round: later.filter((/** @type {any} */ message) => message.role === "assistant").length,
    results: later.filter((/** @type {any} */ message) => message.role === "tool").map(text),
    body,
  };
}

/** @param {import("node:http").ServerResponse} response @param {object} delta @param {string | null} [reason] */
function send(response, delta, reason = null) {
  const chunk = { id: "reply", object: "chat.completion.chunk", created: 1, model: "scripted", choices: [{ index: 0, delta, finish_reason: reason }] };
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}

/** @param {import("node:http").ServerResponse} response @param {number} status @param {object} body */
function json(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

/** @returns {{promise: Promise<void>, resolve: () => void}} */
function deferred() {
  /** @type {() => void} */
  let resolve = () => {};
  const promise = new Promise((/** @type {(value: void) => void} */ done) => (resolve = done));
  return { promise, resolve };
}
