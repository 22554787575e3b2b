// Answers that hold for later calls, and revoking them.

import { agentChip } from "../agents.js";
import { call, explain, get, url } from "../api.js";
import { ask, notify } from "../dialog.js";
import { h } from "../dom.js";
import { sessionPath } from "../router.js";
import { bad, code, grid, hint, loaded, when } from "./parts.js";

/** @typedef {{id: string, session: string, agent: string, tool: string, pattern: string, folder: string | null, given: number, not_in_force?: string}} Grant */

/** @param {HTMLElement} container */
export function render(container) {
  const show = () => loaded(container, () => get("/api/approvals"), (answer) => [
    h("p.lead", "Calls that run without asking you, because you said so."),
    grid("Grants", ["Agent", "Tool", "Pattern", "Holds in", "Given", "Action"], answer.grants.map(row), "You have granted nothing: lango asks before every call that can do harm."),
    hint("The same in a terminal: `lango approvals`."),
  ]);
  const row = (/** @type {Grant} */ grant) => [
    agentChip(grant.agent),
    code(grant.tool),
    [code(grant.pattern), grant.not_in_force && bad(`Not in force: ${grant.not_in_force}`)],
    grant.folder ? code(grant.folder) : h("a", { href: sessionPath(grant.session) }, "its session"),
    when(grant.given),
    h("button.button", { onclick: () => revoke(grant), "aria-label": `Revoke ${grant.tool} ${grant.pattern}` }, "Revoke"),
  ];
  const revoke = async (/** @type {Grant} */ { id, tool, pattern }) => {
    const answer = await ask({ title: "Revoke this grant?", text: `${tool} ${pattern}: you will be asked again before such a call runs.`, confirm: "Revoke", isDangerous: true });
    if (answer === null) return;
    await call("DELETE", url("grants", id)).catch((error) => notify(explain(error)));
    show();
  };
  show();
}
