// The list of sessions: search, status, paging, and what can be done with one.

import { call, explain, get, post, sessionUrl } from "./api.js";
import { ask, menuButton, notify } from "./dialog.js";
import { fill, h, icon } from "./dom.js";
import { fullTime, moment, plural } from "./format.js";
import { sessionPath } from "./router.js";

/** @typedef {import("./api.js").Summary} Summary */

const PAGE = 50;
const FILTERS = [["", "All"], ["running", "Running"], ["waiting", "Needs you"], ["failed", "Failed"]];
const STATUS = { running: "running", waiting: "needs you", failed: "failed", idle: "" };
/** Names of the views, in the order of the list. */
export const VIEWS = ["Knowledge", "Memory", "Grants", "Usage", "Setup", "Doctor"];

/** @param {{root: HTMLElement, me: () => import("./api.js").Me | null, go: (path: string) => void, onChange: (summary: Summary) => void}} options */
export function createSessions({ root, me, go, onChange }) {
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search sessions" });
  const filters = h("div.filters", { role: "group", "aria-label": "Status" });
  const list = h("ul.list");
  const end = h("p.pager", { role: "status" });
  const scroller = h("div.scroller", list, end);
  root.append(
    h("div.find", h("span.field", icon("search"), search), h("a.button.primary.new", { href: "/", title: "New session (n)" }, icon("plus"), "New")),
    filters,
    scroller,
    h("div.places", { role: "navigation", "aria-label": "Views" }, h("ul.views", VIEWS.map((name) => h("li", h("a", { href: `/view/${name.toLowerCase()}` }, name))))),
  );

  /** @type {Map<string, {summary: Summary, element: HTMLElement}>} */
  const items = new Map();
  /** @type {string | null} */
  let next = null;
  let status = "";
  let current = "";
  let loading = 0;
  let isLoading = false;

  const isFiltered = () => search.value.trim() !== "" || status !== "";

  function showFilters() {
    fill(filters, FILTERS.map(([value, label]) => h("button", { "aria-pressed": String(value === status), onclick: () => ((status = value), showFilters(), load()) }, label)));
  }

  /** Loads the first page again, with the search and the filter; or the next page. @param {string} [cursor] */
  async function load(cursor = "") {
    const mine = ++loading;
    isLoading = true;
    try {
      const page = await get("/api/sessions", { limit: PAGE, cursor, search: search.value.trim(), status });
      if (mine !== loading) return;
      if (!cursor) {
        items.clear();
        fill(list);
      }
      next = page.next;
      for (const summary of page.sessions) list.append(itemOf(summary));
      end.textContent = items.size > 0 ? "" : isFiltered() ? "No session matches." : "No sessions yet.";
    } catch (error) {
      if (mine === loading) end.textContent = explain(error);
    } finally {
      if (mine === loading) isLoading = false;
    }
  }

  /** @param {Summary} summary */
  function itemOf(summary) {
    const { element } = items.get(summary.id) ?? { element: h("li") };
    items.set(summary.id, { summary, element });
    const hadFocus = element.contains(document.activeElement);
    const words = STATUS[summary.status];
    const user = me()?.user ?? summary.user;
    const link = h(
      "a",
      { href: sessionPath(summary.id), "aria-current": summary.id === current && "page" },
      h("span.name", summary.title || "Untitled"),
      h(
        "span.about",
        words && h("span", { class: `status-dot ${summary.status}` }, words),
        [summary.origin !== "person" && summary.origin, summary.user !== user && summary.user].map((text) => text && h("span.badge", text)),
        h("time", { title: fullTime(summary.updated) }, moment(summary.updated)),
        h("span", plural(summary.turns, "turn")),
      ),
    );
    fill(element, link, menuButton(`Actions for ${summary.title}`, () => actions(summary)));
    if (hadFocus) link.focus();
    return element;
  }

  /** @param {Summary} summary @returns {import("./dialog.js").MenuItem[]} */
  function actions(summary) {
    return [
      { label: "Rename…", run: () => rename(summary) },
      { label: "Export", href: sessionUrl(summary.id, "export") },
      { label: "Delete…", isDangerous: true, run: () => remove(summary) },
    ];
  }

  /** @param {Summary} summary */
  async function rename({ id, title: value }) {
    const title = await ask({ title: "Rename the session", input: { label: "Title", value }, confirm: "Rename" });
    if (title) await attempt(async () => update(await call("PATCH", sessionUrl(id), { title })));
  }

  /** @param {string} id @param {string} turn */
  function fork(id, turn) {
    return attempt(async () => {
      const summary = await post(sessionUrl(id, "fork"), { turn });
      update(summary);
      go(sessionPath(summary.id));
    });
  }

  /** @param {Summary} summary */
  async function remove({ id, title, turns }) {
    const answer = await ask({ title: "Delete the session?", text: `“${title}” with ${plural(turns, "turn")} is deleted for good.`, confirm: "Delete", isDangerous: true });
    if (answer === null) return;
    await attempt(async () => {
      await call("DELETE", sessionUrl(id));
      drop(id);
      if (id === current) go("/");
    });
  }

  /** @param {() => Promise<void>} action */
  function attempt(action) {
    return action().catch((error) => notify(explain(error)));
  }

  /** A session is new or changed: it moves to the top if it was updated. @param {Summary} summary */
  function update(summary) {
    const known = items.get(summary.id);
    if (summary.id === current) onChange(summary);
    // Whether it belongs to what is searched for is for the server to say.
    if (isFiltered()) return refresh();
    const isNewer = !known || summary.updated > known.summary.updated;
    const element = itemOf(summary);
    if (isNewer && list.firstChild !== element) list.prepend(element);
    end.textContent = "";
  }

  /** @param {string} id */
  function drop(id) {
    items.get(id)?.element.remove();
    items.delete(id);
  }

  let timer = 0;
  /** Loads the list in a moment. */
  function refresh() {
    clearTimeout(timer);
    timer = window.setTimeout(load, 200);
  }
  search.oninput = refresh;
  scroller.onscroll = () => {
    if (!isLoading && next !== null && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 600) load(next);
  };
  showFilters();

  return {
    load, update, drop, fork, actions,
    focusSearch: () => search.focus(),
    /** Marks what is open. @param {string} id @param {string} path */
    select(id, path) {
      current = id;
      for (const link of root.querySelectorAll("a")) link.ariaCurrent = link.getAttribute("href") === path ? "page" : null;
    },
    /** @param {string} id @returns {Promise<Summary>} */
    find: async (id) => items.get(id)?.summary ?? get(sessionUrl(id)),
  };
}
