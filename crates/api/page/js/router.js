// Deep links: `/`, `/s/{session}`, `/s/{session}/{turn}` and `/view/{name}`.

/** @typedef {{kind: "home"} | {kind: "session", session: string, turn: string | null} | {kind: "view", name: string}} Route */

/** @param {string} path @returns {Route} */
export function parsePath(path) {
  const [first, second, third] = path.split("/").filter(Boolean).map(decode);
  if (first === "s" && second) return { kind: "session", session: second, turn: third ?? null };
  if (first === "view" && second) return { kind: "view", name: second };
  return { kind: "home" };
}

/** @param {string} session @param {string | null} [turn] */
export function sessionPath(session, turn) {
  return `/s/${encodeURIComponent(session)}${turn ? `/${encodeURIComponent(turn)}` : ""}`;
}

/** Follows links inside the page without loading it again, and the browser's back and forward. @param {(route: Route) => void} onRoute */
export function createRouter(onRoute) {
  const follow = () => onRoute(parsePath(location.pathname));
  window.addEventListener("popstate", follow);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.origin !== location.origin || link.hasAttribute("download") || link.target || link.getAttribute("href")?.startsWith("#")) return;
    if (link.pathname.startsWith("/api/") || link.pathname.startsWith("/page/")) return;
    event.preventDefault();
    go(link.pathname);
  });

  /** @param {string} path */
  function go(path) {
    if (path !== location.pathname) history.pushState(null, "", path);
    follow();
  }

  /** Changes the address without following it. @param {string} path */
  function replace(path) {
    if (path !== location.pathname) history.replaceState(null, "", path);
  }

  return { go, replace, follow };
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
