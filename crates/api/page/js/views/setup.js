// The setup, read-only: this sign-in, models, agents, tools, MCP servers, and the configuration with the origin of each value.

import { agentChip } from "../agents.js";
import { explain, get, post } from "../api.js";
import { notify } from "../dialog.js";
import { h } from "../dom.js";
import { count, oneLine } from "../format.js";
import { bad, code, grid, hint, loaded, section } from "./parts.js";

/** @import { Child } from "../dom.js" */

const RISKS = /** @type {Record<string, string>} */ ({ moderate: "badge is-warn", dangerous: "badge is-bad" });

/**
 * A table of one resource: its address, the columns, and the rows of its answer.
 * @type {[title: string, path: string, columns: string[], rows: (answer: any) => Child[][], none: string][]}
 */
const PARTS = [
  ["Models", "/api/models", ["Model", "About", "Context", "Price per million tokens"], ({ models }) => models.map((/** @type {any} */ { model, note, chosen, context_tokens: context, price }) => [[code(model), " ", chosen && h("span.badge.is-current", "in use")], note, context && count(context), price && Object.entries(price).map(([name, value]) => `${name.replaceAll("_", " ")} $${value}`).join(", ")]), "No model is configured."],
  ["Agents", "/api/agents", ["Agent", "Description", "Tools", "From"], ({ agents, skipped }) => [...agents.map((/** @type {any} */ { name, remote, description, tools, source }) => [agentChip(name, { isRemote: remote }), description, tools.length, source]), ...skipped.map((/** @type {any} */ { name, reason }) => [agentChip(name), bad(`Absent: ${reason}`), "", ""])], "One agent does everything."],
  ["MCP servers", "/api/mcp", ["Server", "Status", "Agent", "Tools"], ({ servers }) => servers.map((/** @type {any} */ { id, status, problem, agent, tools }) => [code(id), [status, problem && bad(problem)], agent && agentChip(agent), tools.length]), "No MCP server is configured."],
  ["Tools", "/api/tools", ["Tool", "Agent", "Risk", "Description"], ({ tools }) => tools.map((/** @type {any} */ { name, agent, risk, description }) => [code(name), agentChip(agent), h("span", { class: RISKS[risk] }, risk), oneLine(description, 140)]), "There are no tools."],
  ["Configuration", "/api/config", ["Key", "Value", "Origin"], ({ values }) => values.map((/** @type {any} */ { key, value, origin, help }) => [[code(key), help && h("p.small.muted", help)], value === null ? h("span.muted", "not set") : code(typeof value === "string" ? value : JSON.stringify(value)), origin]), "Everything has its default."],
];

/** @param {HTMLElement} container */
export function render(container) {
  const device = h("div");
  loaded(device, () => get("/api/me"), ({ user, token, scopes, folder, version }) => [
    h("p", `lango ${version} in `, code(folder), `. Signed in as ${user} with “${token}”, which may ${scopes.join(", ")}.`),
    h("button.button", { onclick: signOut }, "Sign out"),
  ]);
  const parts = PARTS.map(([title, path, columns, rows, none]) => {
    const body = h("div");
    loaded(body, () => get(path), (answer) => grid(title, columns, rows(answer), none));
    return section(title, body);
  });
  container.replaceChildren(hint("Change the model with `lango setup`, everything else in `lango.toml`. Sign in on another device with `lango tokens link`."), section("This browser", device), ...parts);
}

function signOut() {
  post("/api/sign-out").then(() => location.reload(), (error) => notify(explain(error)));
}
