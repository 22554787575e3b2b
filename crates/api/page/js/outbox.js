// Messages on their way. Each has an idempotency key and stays in localStorage until its turn is in the log, so that a lost
// connection or a reload neither loses it nor sends it twice.

import { explain, post, Problem } from "./api.js";

/**
 * @typedef {object} Message
 * @property {string} key
 * @property {string | null} session null starts a session
 * @property {string} text
 * @property {{name: string, media_type: string, data: string}[]} attachments
 * @property {"sending" | "queued" | "sent" | "offline" | "refused"} state
 * @property {string | null} turn
 * @property {string} problem
 */

const KEY = "lango.outbox";
/** Larger files stay in memory only: the browser's storage is small. */
const MOST_STORED = 1_000_000;

/** @param {{onChange: () => void, onSent: (session: string) => void, isInLog: (turn: string) => boolean}} options */
export function createOutbox({ onChange, onSent, isInLog }) {
  /** @type {Message[]} */
  let messages = load();

  function changed() {
    const stored = messages.filter((message) => message.attachments.reduce((sum, file) => sum + file.data.length, 0) < MOST_STORED);
    try {
      localStorage.setItem(KEY, JSON.stringify(stored));
    } catch {
      // A full storage costs the safety net, not the message.
    }
    onChange();
  }

  /** @param {Message} message */
  async function send(message) {
    message.state = "sending";
    message.problem = "";
    changed();
    try {
      const { key, session, text, attachments } = message;
      const { status, ...started } = await post("/api/turns", { session, text, attachments }, { "Idempotency-Key": key });
      Object.assign(message, started, { state: status === "queued" ? "queued" : "sent" });
      // The event stream may be faster than this answer.
      if (status === "finished" || status === "waiting" || isInLog(started.turn)) remove(message);
      if (session === null) onSent(started.session);
    } catch (error) {
      message.state = error instanceof Problem && error.isPassing ? "offline" : "refused";
      message.problem = explain(error);
    }
    changed();
  }

  /** @param {Message} message */
  function remove(message) {
    messages = messages.filter((other) => other !== message);
    changed();
  }

  return {
    /** @param {string | null} session @param {string} text @param {Message["attachments"]} attachments */
    add(session, text, attachments) {
      /** @type {Message} */
      const message = { key: newKey(), session, text, attachments, state: "sending", turn: null, problem: "" };
      messages.push(message);
      return send(message);
    },
    send,
    remove,
    /** Sends again what did not arrive; the key makes it one turn. */
    async flush() {
      for (const message of [...messages]) {
        if (message.state === "offline") await send(message);
      }
    },
    /** Removes a message once its turn is in the log. @param {string} turn */
    arrived(turn) {
      const message = messages.find((other) => other.turn === turn);
      if (message) remove(message);
    },
    /** @param {string | null} session */
    of: (session) => messages.filter((message) => message.session === session),
  };
}

/** @returns {Message[]} */
function load() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return stored.map((/** @type {Message} */ message) => ({ ...message, state: message.state === "refused" ? "refused" : "offline" }));
  } catch {
    return [];
  }
}

/** `crypto.randomUUID` exists on secure origins only; a server on the local network may be none. */
function newKey() {
  const random = crypto.getRandomValues(new Uint8Array(16));
  return [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
