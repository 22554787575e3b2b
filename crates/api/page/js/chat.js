// The conversation: a window of consecutive turns around the place that is read. Older and newer turns are loaded at its
// edges, and turns far away are dropped, so that a log of any length scrolls with the same memory.

import { explain, get, sessionUrl } from "./api.js";
import { createCard } from "./card.js";
import { fill, h, icon, setText } from "./dom.js";
import { createLog, reduce, reduceDraft, reducePage, withdrawDraft } from "./log.js";

/** @typedef {import("./types").Log} Log */
/** @typedef {import("./types").Turn} Turn */
/** @typedef {import("./api.js").LogEvent} LogEvent */

/** Events of one request. The first one is small, for a quick first paint; early.js sends it. */
const FIRST_PAGE = 48;
const PAGE = 240;
/** Events that the window holds at most. */
const MOST_EVENTS = 1600;
/** How near to an edge, in pixels, the next page is loaded. */
const NEAR = 1800;

/** @param {Element} element */
const boxOf = (element) => element.getBoundingClientRect();

/** @param {{root: HTMLElement, card: Omit<import("./card.js").CardContext, "session">, onChange: (turn: Turn | null) => void}} options */
export function createChat({ root, card: cardContext, onChange }) {
  const list = h("div.turns");
  const older = h("p.pager.older", { hidden: true }, "Loading older turns…");
  const state = h("div.blank", { hidden: true });
  const scroller = h("div.scroller", { tabindex: "0", role: "region", "aria-label": "Turns" }, list, state);
  const jump = h("div.jump", { hidden: true }, h("button.tool", { "aria-label": "First", onclick: () => toStart() }, icon("up")), h("button.tool", { "aria-label": "Latest", onclick: () => toEnd() }, icon("down")));
  root.append(scroller, older, jump);

  let log = createLog("");
  /** @type {LogEvent[]} events of a turn whose start is on an older page */
  let rest = [];
  let lowest = 1;
  let seen = 0;
  let opening = 0;
  let isLoading = false;
  let isAtBottom = true;
  /** @type {Map<string, import("./card.js").Card>} */
  const cards = new Map();
  /** @type {Set<Turn>} */
  const changed = new Set();
  let frameRequest = 0;

  const hasOlder = () => lowest > 1;
  const hasNewer = () => log.last < seen;
  const path = () => sessionUrl(log.session, "events");

  /**
   * Shows a session at its end, at a turn, or at its start. Returns the seq after which the live stream goes on.
   * @param {string} session
   * @param {string | null} turn
   * @param {boolean} [isStart]
   */
  async function open(session, turn, isStart = false) {
    const mine = ++opening;
    reset(session);
    setBlank("Loading…");
    try {
      let { events, last } = await get(path(), isStart ? { after: 0, limit: PAGE } : { limit: FIRST_PAGE });
      if (turn && !events.some((/** @type {LogEvent} */ event) => event.turn === turn && event.type === "user.message")) {
        ({ events } = await get(sessionUrl(session, "turns", turn)));
      }
      if (mine !== opening) return null;
      ({ log, rest } = reducePage(session, events));
      lowest = events[0]?.seq ?? 1;
      log.last = events.at(-1)?.seq ?? 0;
      seen = Math.max(seen, last);
      setBlank(log.turns.length === 0 && lowest <= 1 ? "No turns yet." : "");
      list.append(...log.turns.map((each) => cardOf(each).element));
      isAtBottom = !turn && !isStart;
      if (isAtBottom) toBottom();
      else {
        // The card can be at the top only if there is something below it.
        await loadNewer();
        if (mine !== opening) return null;
        scrollTo(turn ?? log.turns[0]?.id);
      }
      onChange(null);
      if (log.turns.length === 0) await loadOlder();
      // What is in view is painted before anything else is loaded.
      requestAnimationFrame(() => setTimeout(checkEdges));
      return last;
    } catch (error) {
      if (mine === opening) setBlank(explain(error));
      throw error;
    }
  }

  /** @param {string} session */
  function reset(session) {
    log = createLog(session);
    rest = [];
    lowest = 1;
    seen = 0;
    isLoading = false;
    isAtBottom = true;
    cards.clear();
    changed.clear();
    fill(list);
    setBlank("");
  }

  /** @param {string} text */
  function setBlank(text) {
    setText(state, text);
    state.hidden = text === "";
  }

  /** @param {Turn} turn */
  function cardOf(turn) {
    let card = cards.get(turn.id);
    if (!card) {
      card = createCard(turn, { ...cardContext, session: log.session });
      cards.set(turn.id, card);
    }
    return card;
  }

  async function loadOlder() {
    if (isLoading || !hasOlder()) return;
    const mine = opening;
    isLoading = true;
    older.hidden = false;
    try {
      let page;
      // A turn longer than a page is put together before it is shown.
      do {
        const { events } = await get(path(), { before: lowest, limit: PAGE });
        if (mine !== opening) return;
        page = reducePage(log.session, [...events, ...rest]);
        rest = page.rest;
        lowest = events[0]?.seq ?? 1;
      } while (page.log.turns.length === 0 && hasOlder());
      const { turns } = page.log;
      for (const turn of turns) log.byId.set(turn.id, turn);
      log.turns.unshift(...turns);
      keepPlace(() => {
        list.prepend(...turns.map((turn) => cardOf(turn).element));
        drop(true);
      });
    } catch {
      // The next scroll tries again.
    } finally {
      if (mine === opening) {
        isLoading = false;
        older.hidden = true;
        onChange(null);
      }
    }
    requestAnimationFrame(checkEdges);
  }

  async function loadNewer() {
    if (isLoading || !hasNewer()) return;
    const mine = opening;
    isLoading = true;
    try {
      const { events, last } = await get(path(), { after: log.last, limit: PAGE });
      if (mine !== opening) return;
      seen = Math.max(seen, last);
      for (const event of events) add(event);
      if (events.length === 0) log.last = seen;
      keepPlace(() => {
        flush();
        drop(false);
      });
    } catch {
      // The next scroll tries again.
    } finally {
      if (mine === opening) isLoading = false;
    }
    requestAnimationFrame(checkEdges);
  }

  /** Changes the list and keeps the card at the top of the view where it is. @param {() => void} change */
  function keepPlace(change) {
    const top = boxOf(scroller).top;
    const anchor = [...list.children].find((child) => boxOf(child).bottom > top);
    const before = anchor ? boxOf(anchor).top : 0;
    change();
    if (anchor?.isConnected) scroller.scrollTop += boxOf(anchor).top - before;
  }

  const size = () => log.turns.reduce((sum, turn) => sum + turn.events, 0);

  /** Drops turns at one end that are far from what is read. @param {boolean} isNewest */
  function drop(isNewest) {
    const view = boxOf(scroller);
    for (let total = size(); total > MOST_EVENTS && log.turns.length > 1; ) {
      const turn = /** @type {Turn} */ (log.turns.at(isNewest ? -1 : 0));
      const box = boxOf(cardOf(turn).element);
      if (isNewest ? box.top < view.bottom + NEAR : box.bottom > view.top - NEAR) return;
      total -= turn.events;
      if (isNewest) {
        log.turns.pop();
        log.last = turn.first - 1;
      } else {
        log.turns.shift();
        rest = [];
        lowest = log.turns[0].first;
      }
      forget(turn);
    }
  }

  /** @param {Turn} turn */
  function forget(turn) {
    log.byId.delete(turn.id);
    cards.get(turn.id)?.element.remove();
    cards.delete(turn.id);
    changed.delete(turn);
  }

  function checkEdges() {
    const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    jump.hidden = below < 400 && !hasNewer();
    if (isLoading || !log.session) return;
    if (scroller.scrollTop < NEAR && hasOlder()) loadOlder();
    else if (below < NEAR && hasNewer()) loadNewer();
  }

  scroller.addEventListener("scroll", () => {
    isAtBottom = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
    checkEdges();
  }, { passive: true });
  // Cards grow when their details open or images load; at the end the view follows the end.
  new ResizeObserver(() => {
    if (isAtBottom && !hasNewer()) toBottom();
  }).observe(list);

  /** @param {LogEvent} event */
  function add(event) {
    const turn = reduce(log, event);
    if (turn) touch(turn);
    return turn;
  }

  /** Takes an event of the live stream. If the window does not reach the end of the log, it is loaded when it is needed. @param {LogEvent} event */
  function addLive(event) {
    if (event.session !== log.session) return null;
    const isNext = event.seq === log.last + 1;
    seen = Math.max(seen, event.seq);
    if (isNext) return add(event);
    checkEdges();
    return null;
  }

  /** @param {Turn | null} turn */
  function touch(turn) {
    if (!turn) return;
    changed.add(turn);
    frameRequest ||= requestAnimationFrame(flush);
  }

  function flush() {
    cancelAnimationFrame(frameRequest);
    frameRequest = 0;
    if (changed.size === 0) return;
    setBlank("");
    let latest = null;
    for (const turn of changed) {
      const card = cards.get(turn.id);
      if (card) card.update();
      else list.append(cardOf(turn).element);
      latest = turn;
    }
    changed.clear();
    if (isAtBottom && !hasNewer()) toBottom();
    onChange(latest);
  }

  const toBottom = () => (scroller.scrollTop = scroller.scrollHeight);
  const reopen = (/** @type {boolean} */ isStart) => open(log.session, null, isStart).catch(() => {});

  function toEnd() {
    if (hasNewer()) return reopen(false);
    isAtBottom = true;
    toBottom();
  }

  function toStart() {
    if (hasOlder()) return reopen(true);
    scroller.scrollTop = 0;
  }

  /** @param {string | undefined} id */
  function scrollTo(id = "") {
    const card = cards.get(id);
    if (!card) return false;
    isAtBottom = false;
    card.element.scrollIntoView({ block: "start" });
    return true;
  }

  // Elapsed times tick for running turns in view only.
  setInterval(() => {
    if (document.hidden) return;
    for (const turn of log.turns) {
      if (turn.finished) continue;
      const card = cardOf(turn);
      const box = boxOf(card.element);
      if (box.bottom > 0 && box.top < innerHeight) card.tick(Date.now());
    }
  }, 1000);

  return {
    open, reset, addLive, scrollTo, toStart, toEnd, setBlank,
    draft: (/** @type {any} */ data) => touch(reduceDraft(log, data)),
    notice(/** @type {{turn: string, text: string}} */ { turn: id, text }) {
      const turn = log.byId.get(id) ?? null;
      if (turn) turn.notice = text;
      touch(turn);
    },
    withdraw: (/** @type {string} */ id) => touch(withdrawDraft(log, id)),
    /** Updates the cards whose requests may have another state. */
    refreshApprovals: () => log.turns.filter((turn) => turn.approvals.some((approval) => !approval.answered)).forEach(touch),
    cardElement: (/** @type {string | null} */ id) => cards.get(id ?? "")?.element,
    get log() {
      return log;
    },
  };
}
