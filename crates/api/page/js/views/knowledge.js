// The library: collections, documents, and a search over them.

import { get } from "../api.js";
import { h } from "../dom.js";
import { bytes, plural } from "../format.js";
import { code, grid, hint, loaded, section, when } from "./parts.js";

/** @typedef {{id: string, collection: string, title: string, source: string, size: number, chunks: number, added: number}} Document */
/** @typedef {{collection: string, title: string, heading?: string, source: string, snippet: string, score: number}} Hit */

/** @param {HTMLElement} container */
export function render(container) {
  const results = h("div");
  const field = h("input", { type: "search", placeholder: "Search the library", "aria-label": "Search the library" });
  const show = () => loaded(results, () => get("/api/knowledge", { search: field.value.trim() }), (answer) => (answer.hits ? passages(answer) : library(answer)));
  const submit = (/** @type {Event} */ event) => (event.preventDefault(), show());
  container.replaceChildren(h("form.view-bar", { role: "search", onsubmit: submit }, field, h("button.button", { onclick: show }, "Search")), results);
  show();
}

/** @param {{hits: Hit[], notes?: string[]}} answer */
function passages({ hits, notes = [] }) {
  const found = hits.map(({ title, heading, source, collection, score, snippet }) => [
    h("p.small.muted", h("b", [title || source, heading].filter(Boolean).join(" › ")), ` · ${collection} · score ${score.toFixed(2)}`),
    h("pre.code", { tabindex: "0" }, snippet),
  ]);
  return [section("Passages", hits.length > 0 ? found : h("p.empty", "Nothing found.")), notes.map(hint)];
}

/** @param {{collections: {name: string, chunks: number}[], documents: Document[], is_complete: boolean}} answer */
function library({ collections, documents, is_complete: isComplete }) {
  const rows = documents.map(({ title, collection, source, size, chunks, added }) => [title, collection, code(source), bytes(size), chunks, when(added)]);
  return [
    h("ul.tags", collections.map(({ name, chunks }) => h("li", `${name}: ${plural(chunks, "chunk")}`))),
    section("Documents", grid("Documents", ["Title", "Collection", "Source", "Size", "Chunks", "Added"], rows, "The library is empty.")),
    !isComplete && hint("These are the newest documents; `lango knowledge list` lists all."),
    hint("Add documents with `lango knowledge add <file or folder>`."),
  ];
}
