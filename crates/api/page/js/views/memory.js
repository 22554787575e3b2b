// What lango remembers: notes that were saved on purpose, and observations and reflections of conversations.

import { get } from "../api.js";
import { h } from "../dom.js";
import { sessionPath } from "../router.js";
import { hint, loaded, section, when } from "./parts.js";

/** @typedef {{id: string, text: string, created: number, trust?: string, kind?: string, session?: string, tags?: string[], source?: string}} Entry */

/** @param {HTMLElement} container */
export function render(container) {
  loaded(container, () => get("/api/memory"), (/** @type {{saved: Entry[], recollections: Entry[]}} */ { saved, recollections }) => [
    section("Saved", list(saved, "Nothing is saved. Ask lango to remember something.")),
    section("From conversations", list(recollections, "No observations yet.")),
    hint("To delete an entry, ask lango to forget it."),
  ]);
}

/** @param {Entry[]} entries @param {string} none */
function list(entries, none) {
  if (entries.length === 0) return h("p.empty", none);
  return h("ul.entries", entries.map(({ text, kind, session, created, tags = [], trust }) => {
    const badges = [kind, ...tags, trust === "untrusted" && trust].map((word) => word && [h("span.badge", word), " "]);
    return h("li", h("p", text), h("p.small.muted", badges, when(created), session && [" ", h("a", { href: sessionPath(session) }, "conversation")]));
  }));
}
