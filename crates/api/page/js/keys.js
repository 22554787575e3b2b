// Keyboard shortcuts and the dialog that lists them.

import { createDialog } from "./dialog.js";
import { h } from "./dom.js";

const LIST = [
  ["j / k", "Next and previous turn"],
  ["Home / End", "First and latest turn"],
  ["/", "Search sessions"],
  ["n", "New session"],
  ["c", "Write a message"],
  ["a", "Requests that need you"],
  ["p", "Agents, timeline and inspector"],
  ["?", "This list"],
  ["Esc", "Close, or leave the input"],
  ["Enter", "Send; Shift+Enter breaks the line"],
];

/** @param {Record<string, () => void>} actions by the name of the key */
export function createKeys(actions) {
  const { dialog } = createDialog("help", "Keyboard", h("dl.keys", LIST.map(([key, text]) => [h("dt", h("kbd", key)), h("dd", text)])));
  const openHelp = () => dialog.showModal();
  /** @type {Record<string, () => void>} */
  const run = { ...actions, "?": openHelp };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const isTyping = target.matches?.("input, textarea, select");
    if (event.key === "Escape") {
      if (isTyping) target.blur();
    } else if (isTyping || !run[event.key]) return;
    else event.preventDefault();
    run[event.key]?.();
  });
  return { openHelp };
}
