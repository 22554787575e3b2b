// Calls lango's HTTP API. A failed call throws a `Problem` that says what happened and what to do next.

import { early } from "./early.js";

/** @typedef {import("./types").LogEvent} LogEvent */
/** @typedef {import("./types").Attachment} Attachment */
/** @typedef {import("./types").Usage} Usage */
/** @typedef {import("./types").Summary} Summary */
/** @typedef {import("./types").Request} Request */
/** @typedef {import("./types").Pending} Pending */
/** @typedef {import("./types").Me} Me */
/** @typedef {import("./types").Agents} Agents */
/** @typedef {import("./types").AgentInfo} AgentInfo */

/** A call that the server refused, or that did not reach it (`status` 0). */
export class Problem extends Error {
  /** @param {number} status @param {string} detail @param {string} [next] what the person can do */
  constructor(status, detail, next = "") {
    super(detail);
    this.status = status;
    this.next = next;
  }

  /** Whether the same call may work in a moment. */
  get isPassing() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Dispatches `signed-out` when a call is answered with 401. */
export const session = new EventTarget();

/**
 * @param {string} method
 * @param {string} path
 * @param {any} [body]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<any>} the JSON of the answer; null if it has none
 */
export async function call(method, path, body, headers) {
  const isRead = method === "GET";
  const sent = isRead ? early.get(path) : null;
  early.delete(path);
  /** @type {Response} */
  let response;
  try {
    response = await (sent ?? fetch(path, isRead ? {} : { method, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body ?? {}) }));
  } catch {
    throw new Problem(0, "The server cannot be reached.", "Check that lango is running; the page tries again by itself.");
  }
  const answer = await response.json().catch(() => null);
  if (response.ok) return answer;
  if (response.status === 401) session.dispatchEvent(new Event("signed-out"));
  throw new Problem(response.status, answer?.detail ?? answer?.title ?? `The server answered ${response.status}.`, answer?.next);
}

/** @param {string} path @param {Record<string, string | number>} [query] empty values are left out */
export function get(path, query = {}) {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "").map(([key, value]) => [key, String(value)]));
  return call("GET", search.size > 0 ? `${path}?${search}` : path);
}

/** @param {string} path @param {any} [body] @param {Record<string, string>} [headers] */
export function post(path, body, headers) {
  return call("POST", path, body, headers);
}

/** An address of the API with these parts. @param {...(string | number)} parts */
export function url(...parts) {
  return ["/api", ...parts.map(encodeURIComponent)].join("/");
}

/** The address of a session in the API, or of something in it. @param {string} id @param {...(string | number)} rest */
export function sessionUrl(id, ...rest) {
  return url("sessions", id, ...rest);
}

/** The address of an attachment's bytes. @param {string} sessionId @param {{digest: string}} attachment */
export function attachmentUrl(sessionId, attachment) {
  return url("attachments", sessionId, attachment.digest);
}

/** What a failure says to a person. @param {unknown} error */
export function explain(error) {
  if (error instanceof Problem) return error.next ? `${error.message}: ${error.next}` : error.message;
  return error instanceof Error ? error.message : String(error);
}
