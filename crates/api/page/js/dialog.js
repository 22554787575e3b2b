// Small things on top of the page: a dialog, a question, a menu, a short message.

import { byId, fill, h, icon } from "./dom.js";

/** @typedef {{label: string, run?: () => void, href?: string, isDangerous?: boolean, isDisabled?: boolean}} MenuItem a link is a download */

/** Fills a dialog of the page: a title, a button that closes it, its content. @param {string} id @param {string} title @param {...import("./dom.js").Child} content */
export function createDialog(id, title, ...content) {
  const dialog = /** @type {HTMLDialogElement} */ (byId(id));
  const close = h("button.tool", { "aria-label": "Close", onclick: () => dialog.close() }, icon("close"));
  fill(dialog, h("header", h("h2", { id: `${id}-title` }, title), close), content);
  dialog.onclick = (event) => {
    const target = /** @type {Element} */ (event.target);
    if (target === dialog || target.closest("a")) dialog.close();
  };
  return { dialog, close };
}

/**
 * Asks in a modal dialog. Resolves with the text (empty without an input), or null if it was closed.
 * @param {{title: string, text?: string, input?: {label: string, value: string}, confirm: string, isDangerous?: boolean}} question
 * @returns {Promise<string | null>}
 */
export function ask({ title, text, input: field, confirm, isDangerous }) {
  return new Promise((resolve) => {
    /** @type {string | null} */
    let answer = null;
    const accept = () => {
      answer = input?.value.trim() ?? "";
      dialog.close();
    };
    const input = field && h("input", { type: "text", value: field.value, "aria-label": field.label, onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && accept() });
    const cancel = h("button.button", { onclick: () => dialog.close() }, "Cancel");
    const dialog = h(
      "dialog.ask",
      { "aria-label": title },
      h("h2", title),
      text && h("p", text),
      input,
      h("div.actions", cancel, h("button", { class: `button ${isDangerous ? "danger" : "primary"}`, onclick: accept }, confirm)),
    );
    dialog.onclose = () => {
      dialog.remove();
      resolve(answer);
    };
    document.body.append(dialog);
    dialog.showModal();
    (input ?? cancel).focus();
    input?.select();
  });
}

/** A button with three dots that opens a menu. @param {string} label @param {() => MenuItem[]} items */
export function menuButton(label, items) {
  const button = h("button.tool.small", { "aria-label": label, "aria-haspopup": "menu", "aria-expanded": "false" }, icon("more"));
  button.onclick = (event) => {
    event.stopPropagation();
    openMenu(button, items());
  };
  return button;
}

/**
 * Opens a menu at a button. Arrow keys move, Escape closes and returns to the button.
 * @param {HTMLElement} button
 * @param {MenuItem[]} items
 */
export function openMenu(button, items) {
  const entries = items.map(({ label, run, href, isDangerous, isDisabled }) => {
    const props = { role: "menuitem", class: isDangerous && "danger", disabled: isDisabled, href, download: Boolean(href), onclick: () => (menu.hidePopover(), run?.()) };
    return h(href ? "a" : "button", props, label);
  });
  const menu = h("div.menu", { role: "menu", popover: "auto" }, entries);
  menu.onkeydown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const enabled = entries.filter((entry) => !entry.matches(":disabled"));
    const index = enabled.findIndex((entry) => entry === document.activeElement);
    enabled.at((index + step) % enabled.length)?.focus();
  };
  menu.addEventListener("toggle", (event) => {
    if (/** @type {any} */ (event).newState !== "closed") return;
    button.setAttribute("aria-expanded", "false");
    if (menu.contains(document.activeElement) || document.activeElement === document.body) button.focus();
    menu.remove();
  });
  document.body.append(menu);
  menu.showPopover();
  button.setAttribute("aria-expanded", "true");
  const anchor = button.getBoundingClientRect();
  const isBelow = anchor.bottom + 4 + menu.offsetHeight < innerHeight;
  menu.style.left = `${Math.max(8, Math.min(anchor.right, innerWidth - 8) - menu.offsetWidth)}px`;
  menu.style.top = `${isBelow ? anchor.bottom + 4 : Math.max(8, anchor.top - menu.offsetHeight - 4)}px`;
  entries[0]?.focus();
}

let hideTimer = 0;

/** Shows a short message for a few seconds; screen readers hear it. @param {string} text */
export function notify(text) {
  const region = byId("notice");
  fill(region, h("p", text));
  clearTimeout(hideTimer);
  hideTimer = window.setTimeout(() => fill(region), 8000);
}
