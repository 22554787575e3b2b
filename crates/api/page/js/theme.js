// Light, dark, or as the system says. The choice is stored in this browser.

const KEY = "lango.theme";
const ORDER = ["system", "light", "dark"];

/** @returns {string} */
export function theme() {
  const stored = localStorage.getItem(KEY) ?? "";
  return ORDER.includes(stored) ? stored : "system";
}

export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}

/** Switches to the next choice. */
export function nextTheme() {
  localStorage.setItem(KEY, ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length]);
  applyTheme();
}
