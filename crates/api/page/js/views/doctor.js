// Checks of the installation: what works, what could be better, what is broken.

import { get } from "../api.js";
import { h } from "../dom.js";
import { plural } from "../format.js";
import { hint, loaded } from "./parts.js";

/** @typedef {{name: string, ok: boolean, warning: boolean, absent: boolean, detail: string}} Row */

const KINDS = { ok: ["✓", "is-ok"], "not set up": ["–", ""], warning: ["!", "is-warn"], problem: ["✕", "is-bad"] };
/** @param {Row} row @returns {keyof typeof KINDS} */
const kindOf = (row) => (row.warning ? "warning" : row.absent ? "not set up" : row.ok ? "ok" : "problem");

/** @param {HTMLElement} container */
export function render(container) {
  loaded(container, () => get("/api/doctor"), (/** @type {{rows: Row[]}} */ { rows }) => {
    const number = (/** @type {"warning" | "problem"} */ kind) => plural(rows.filter((row) => kindOf(row) === kind).length, kind);
    return [
      h("p.lead", rows.every((row) => row.ok && !row.warning) ? "Everything works." : `${number("problem")}, ${number("warning")}.`),
      h("ul.checks", rows.map((row) => {
        const [mark, color] = KINDS[kindOf(row)];
        return h("li", h("b", { class: color, "aria-hidden": "true" }, mark), h("strong", row.name, h("span.unseen", `: ${kindOf(row)}`)), h("span", row.detail));
      })),
      hint("The same in a terminal: `lango doctor`."),
    ];
  });
}
