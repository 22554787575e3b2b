// A row of tabs with one panel; arrow keys move between tabs.

import { h } from "./dom.js";

let count = 0;

/**
 * @param {string} label
 * @param {string[]} names
 * @param {(name: string, panel: HTMLElement) => void} onSelect fills the panel
 */
export function createTabs(label, names, onSelect) {
  const id = `tabs-${++count}`;
  const panel = h("div", { role: "tabpanel", class: "tab-panel", tabindex: "-1", id });
  let current = "";
  const buttons = names.map((name) => h("button", { role: "tab", id: `${id}-${name}`, "data-key": `tab-${name}`, "aria-controls": id, onclick: () => select(name) }, name));
  const move = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = (names.indexOf(current) + step + names.length) % names.length;
    select(names[index]);
    buttons[index].focus();
  };

  /** @param {string} name */
  function select(name) {
    current = name;
    for (const [index, button] of buttons.entries()) {
      const isSelected = names[index] === name;
      button.setAttribute("aria-selected", String(isSelected));
      button.tabIndex = isSelected ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `${id}-${name}`);
    onSelect(name, panel);
  }

  return { element: h("div.tabbed", h("div", { role: "tablist", class: "tabs", "aria-label": label, onkeydown: move }, buttons), panel), panel, select, selected: () => current };
}
