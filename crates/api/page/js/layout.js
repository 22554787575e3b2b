// The panels left and right: columns on a wide screen, drawers on a narrow one.

import { byId, fill, icon } from "./dom.js";

const KEY = "lango.side";

/** @param {() => void} onSideShown */
export function createLayout(onSideShown) {
  const app = byId("app");
  const scrim = byId("scrim");
  const panels = { sessions: byId("sessions"), side: byId("side") };
  const buttons = { sessions: byId("toggle-sessions"), side: byId("toggle-side") };
  /** Where panels are drawers; the right one becomes one earlier. */
  const narrow = { sessions: matchMedia("(max-width: 820px)"), side: matchMedia("(max-width: 1180px)") };
  /** @type {"sessions" | "side" | null} the open drawer */
  let drawer = null;
  let hasSide = false;
  let isSideWanted = localStorage.getItem(KEY) !== "closed";

  const isVisible = { sessions: () => !narrow.sessions.matches || drawer === "sessions", side: () => hasSide && (narrow.side.matches ? drawer === "side" : isSideWanted) };

  function show() {
    app.dataset.drawer = drawer ?? "";
    app.dataset.side = hasSide && isSideWanted ? "open" : "closed";
    for (const name of /** @type {const} */ (["sessions", "side"])) {
      panels[name].inert = !isVisible[name]();
      buttons[name].ariaExpanded = String(isVisible[name]());
    }
    buttons.side.hidden = !hasSide;
    scrim.hidden = drawer === null;
  }

  /** @param {"sessions" | "side"} name */
  function openDrawer(name) {
    if (!narrow[name].matches) return;
    drawer = name;
    show();
    /** @type {HTMLElement | null} */ (panels[name].querySelector("a, button, input, [tabindex]"))?.focus({ preventScroll: true });
  }

  function closeDrawers() {
    if (drawer === null) return;
    const button = buttons[drawer];
    drawer = null;
    show();
    button.focus();
  }

  function toggleSide() {
    if (!hasSide) return;
    if (narrow.side.matches) {
      if (drawer === "side") closeDrawers();
      else openDrawer("side");
    } else {
      isSideWanted = !isSideWanted;
      localStorage.setItem(KEY, isSideWanted ? "open" : "closed");
      show();
    }
    if (isVisible.side()) onSideShown();
  }

  fill(buttons.sessions, icon("menu"));
  fill(buttons.side, icon("panel"));
  buttons.sessions.onclick = () => (drawer === "sessions" ? closeDrawers() : openDrawer("sessions"));
  buttons.side.onclick = toggleSide;
  scrim.onclick = closeDrawers;
  for (const query of Object.values(narrow)) {
    query.onchange = () => {
      drawer = null;
      show();
      if (isVisible.side()) onSideShown();
    };
  }
  show();

  return {
    closeDrawers, toggleSide,
    isSideVisible: isVisible.side,
    openSessions: () => openDrawer("sessions"),
    openSide() {
      if (!isVisible.side()) toggleSide();
    },
    /** @param {boolean} value whether there is a turn to show there */
    setHasSide(value) {
      hasSide = value;
      show();
    },
  };
}
