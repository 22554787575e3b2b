// What the views share: loading with its failure, sections, hints, choices, tables.

import { explain } from "../api.js";
import { fill, h } from "../dom.js";
import { fullTime, moment } from "../format.js";

/** @import { Child } from "../dom.js" */

/**
 * Fills a container with what was loaded, or with the reason why it was not and a way to try again.
 * @template T
 * @param {HTMLElement} container
 * @param {() => Promise<T>} load
 * @param {(value: T) => Child} show
 */
export async function loaded(container, load, show) {
  if (!container.hasChildNodes()) fill(container, h("p.empty", "Loading…"));
  try {
    fill(container, show(await load()));
  } catch (error) {
    fill(container, h("div.empty", { role: "alert" }, h("p", explain(error)), h("button.button", { onclick: () => loaded(container, load, show) }, "Try again")));
  }
}

/** @param {string} title @param {...Child} children */
export function section(title, ...children) {
  return h("section.view-section", h("h2", title), children);
}

/** Text in which commands are in backticks. @param {string} text */
export function hint(text) {
  return h("p.view-hint", text.split("`").map((part, index) => (index % 2 ? code(part) : part)));
}

/** @param {string} text */
export function code(text) {
  return h("code", text);
}

/** @param {string} text */
export function bad(text) {
  return h("p.is-bad", text);
}

/** @param {number} time */
export function when(time) {
  return h("time", { title: fullTime(time) }, moment(time));
}

/**
 * Buttons of which one is pressed.
 * @template {string | number} T
 * @param {string} label @param {[T, string][]} choices @param {T} selected @param {(value: T) => void} onChoose
 */
export function choice(label, choices, selected, onChoose) {
  return h("div.choice", { role: "group", "aria-label": label }, choices.map(([value, text]) => h("button", { "aria-pressed": String(value === selected), onclick: () => onChoose(value) }, text)));
}

/**
 * A table that scrolls sideways on a narrow page.
 * @param {string} label
 * @param {string[]} columns
 * @param {import("../dom.js").Child[][]} rows
 * @param {string} none what to say when there are no rows
 */
export function grid(label, columns, rows, none) {
  if (rows.length === 0) return h("p.empty", none);
  const head = columns.map((text) => h("th", { scope: "col" }, text));
  const body = rows.map((cells) => h("tr", cells.map((cell) => h("td", cell))));
  return h("div.scroll-x", { tabindex: "0", role: "region", "aria-label": label }, h("table.grid", h("thead", h("tr", head)), h("tbody", body)));
}
