// Starts the page and connects its parts. The log and the event stream are the only source of what is shown; every part
// reads from them, and writes go to the API and come back as events.

import { session as signIn, get } from "./api.js";
import { createTray } from "./approvals.js";
import { createChat } from "./chat.js";
import { createComposer } from "./composer.js";
import { openMenu } from "./dialog.js";
import { byId, fill, h, icon, setText } from "./dom.js";
import { oneLine } from "./format.js";
import { createKeys } from "./keys.js";
import { createLayout } from "./layout.js";
import { createLive } from "./live.js";
import { createOutbox } from "./outbox.js";
import { createRouter, sessionPath } from "./router.js";
import { createSessions, VIEWS } from "./sessions.js";
import { applyTheme, nextTheme, theme } from "./theme.js";

/** @typedef {import("./router.js").Route} Route */

applyTheme();

/** @type {import("./api.js").Me | null} */
let me = null;
/** @type {Route} */
let route = { kind: "home" };
/** The turn that the right panel shows; null follows the newest. @type {string | null} */
let selected = null;
/** @type {import("./api.js").Summary | null} */
let summary = null;
let waiting = 0;

const layout = createLayout(() => showSelected());
const router = createRouter(follow);
const sessionId = () => (route.kind === "session" ? route.session : null);

const chat = createChat({
  root: byId("chat"),
  card: {
    openCall: (seq) => {
      layout.openSide();
      side?.openCall(seq);
    },
    fork: (turn) => sessions.fork(sessionId() ?? "", turn),
    select,
    me: () => me,
  },
  onChange: () => showSelected(),
});

const outbox = createOutbox({
  onChange: () => composer.update(),
  onSent: (id) => {
    if (route.kind === "home") router.go(sessionPath(id));
  },
  isInLog: (turn) => chat.log.byId.has(turn),
});
const composer = createComposer(byId("chat"), outbox);

const sessions = createSessions({
  root: byId("sessions"),
  me: () => me,
  go: router.go,
  onChange: (changed) => {
    summary = changed;
    showTitle();
  },
});

const tray = createTray({
  button: byId("open-tray"),
  me: () => me,
  onCount: (count) => {
    waiting = count;
    showTitle();
  },
});

/** The panel is loaded after the first paint. @type {import("./side.js").Side | null} */
let side = null;

const live = createLive(
  {
    event(event) {
      const turn = chat.addLive(event);
      if (event.type === "user.message") outbox.arrived(event.turn);
      if (event.type !== "turn.finished" || !turn) return;
      setText(byId("announcer"), turn.answer ? `${turn.answer.author} answered: ${oneLine(turn.answer.text, 300)}` : `The turn ended: ${turn.state}`);
    },
    draft: chat.draft,
    withdrawn: (data) => chat.withdraw(data.turn),
    notice: chat.notice,
    session: sessions.update,
    deleted({ id }) {
      sessions.drop(id);
      if (id === sessionId()) router.go("/");
    },
    approvals(data) {
      tray.update(data.pending, data.count);
      chat.refreshApprovals();
    },
    reset: () => sessions.load(),
    signed_out: showSignIn,
  },
  (state, isReconnect) => {
    const words = { connecting: "Connecting…", live: "", offline: "Offline: reconnecting…" };
    const connection = byId("connection");
    connection.dataset.state = state;
    setText(connection, isReconnect || state === "offline" ? words[state] : "");
    if (state !== "live") return;
    outbox.flush();
    if (isReconnect) sessions.load();
  },
);

/** Runs something that only a conversation has; elsewhere the key keeps its meaning. @param {() => void} action */
const inChat = (action) => () => {
  const isElsewhere = route.kind !== "session" || document.activeElement?.closest("#sessions, #side");
  return isElsewhere ? false : action();
};
const keys = createKeys({
  "/": () => (layout.openSessions(), sessions.focusSearch()),
  n: () => router.go("/"),
  a: tray.open,
  c: composer.focus,
  p: layout.toggleSide,
  Escape: layout.closeDrawers,
  j: () => moveTurn(1),
  k: () => moveTurn(-1),
  Home: inChat(chat.toStart),
  End: inChat(chat.toEnd),
});

/** @param {Route} next */
function follow(next) {
  const isView = next.kind === "view";
  const isSession = next.kind === "session";
  const isSame = isSession && next.session === sessionId();
  route = next;
  layout.closeDrawers();
  byId("chat").hidden = isView;
  byId("view").hidden = !isView;
  byId("session-menu").hidden = !isSession;
  layout.setHasSide(isSession);
  sessions.select(isSession ? next.session : "", isSession ? sessionPath(next.session) : location.pathname);
  if (isView) return void showView(next.name);
  selected = isSession ? next.turn : null;
  if (isSame) {
    if (selected) openTurn(selected);
    return showSelected();
  }
  summary = null;
  composer.open(sessionId());
  if (isSession) openSession(next.session, next.turn);
  else showHome();
  showTitle();
}

/** @param {string} id @param {string | null} turn */
async function openSession(id, turn) {
  const opened = chat.open(id, turn);
  // The title does not hold up the conversation.
  const found = opened.then(() => sessions.find(id));
  try {
    const last = await opened;
    if (id !== sessionId() || last === null) return;
    for (const known of chat.log.turns) outbox.arrived(known.id);
    live.watch(id, last);
    summary = await found;
    if (id === sessionId()) showTitle();
  } catch {
    found.catch(() => {});
    if (id === sessionId()) live.watch(null, 0);
  }
}

function showHome() {
  chat.reset("");
  chat.setBlank(me?.is_demo ? "The built-in rules answer here, not an AI model. Try: what files are here?" : "Start a session below. Agents show here what they do, step by step.");
  live.watch(null, 0);
  if (matchMedia("(hover: hover)").matches) composer.focus();
}

/** The title of a view, if there is one of that name. @param {string} name */
const viewTitle = (name) => VIEWS.find((title) => title.toLowerCase() === name);

/** @param {string} name */
async function showView(name) {
  const container = byId("view");
  live.watch(null, 0);
  showTitle();
  fill(container, h("p.blank", "There is no such view."));
  if (!viewTitle(name)) return;
  const { render } = await import(`./views/${name}.js`);
  if (route.kind !== "view" || route.name !== name) return;
  fill(container);
  container.scrollTop = 0;
  render(container);
}

/** @param {string} id */
function select(id) {
  const session = sessionId();
  if (session === null || selected === id || getSelection()?.type === "Range") return;
  selected = id;
  router.replace(sessionPath(session, id));
  route = { kind: "session", session, turn: id };
  showSelected();
}

/** @param {string} id */
async function openTurn(id) {
  if (!chat.scrollTo(id)) await chat.open(sessionId() ?? "", id).catch(() => {});
  showSelected();
}

/** @param {1 | -1} step */
function moveTurn(step) {
  const { turns } = chat.log;
  const index = turns.findIndex((turn) => turn.id === selected);
  const next = index < 0 ? turns.at(-1) : turns[index + step];
  if (!next) return;
  chat.scrollTo(next.id);
  chat.cardElement(next.id)?.focus({ preventScroll: true });
  select(next.id);
}

/** Updates what follows from the log: the right panel, the stop button, the marked card. */
function showSelected() {
  if (route.kind !== "session") return;
  const { log } = chat;
  const open = log.turns.findLast((turn) => !turn.finished);
  composer.setRunning(open?.id ?? null, open?.state === "waiting");
  const marked = document.querySelector(".turn.selected");
  const card = chat.cardElement(selected);
  if (marked !== card) {
    marked?.classList.remove("selected");
    card?.classList.add("selected");
  }
  if (layout.isSideVisible()) side?.update(log, selected);
}

function showTitle() {
  const view = route.kind === "view" && (viewTitle(route.name) ?? "View");
  const name = view || (route.kind === "session" ? summary?.title || "Session" : "New session");
  setText(byId("title"), name);
  document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${oneLine(name, 60)} · lango`;
}

function showSignIn() {
  live.stop();
  byId("app").hidden = true;
  const screen = byId("sign-in");
  const title = h("h1", { id: "sign-in-title", tabindex: "-1" }, "Sign in to lango");
  screen.hidden = false;
  fill(
    screen,
    h("img", { src: "/page/favicon.svg", width: "40", height: "40", alt: "" }),
    title,
    h("p", "Run ", h("code", "lango web"), " (or ", h("code", "lango tokens link"), ") on the machine of the server and open the printed link."),
    h("button.button", { onclick: () => location.reload() }, "Try again"),
  );
  document.title = "Sign in · lango";
  title.focus();
}

function showTheme() {
  byId("switch-theme").ariaLabel = byId("switch-theme").title = `Theme: ${theme()}`;
}

/** @param {string} id @param {Parameters<typeof icon>[0]} name @param {() => void} run */
function setButton(id, name, run) {
  fill(byId(id), icon(name));
  byId(id).onclick = run;
}

async function start() {
  setButton("open-help", "help", keys.openHelp);
  setButton("switch-theme", "theme", () => (nextTheme(), showTheme()));
  setButton("session-menu", "more", () => {
    const last = chat.log.turns.findLast((turn) => turn.finished);
    if (!summary) return;
    const { id } = summary;
    openMenu(byId("session-menu"), [
      { label: "Go to the first turn", run: chat.toStart },
      { label: "Fork", isDisabled: !last, run: () => sessions.fork(id, last?.id ?? "") },
      ...sessions.actions(summary),
    ]);
  });
  showTheme();
  signIn.addEventListener("signed-out", showSignIn);
  // The conversation does not wait for the rest.
  router.follow();
  sessions.load();
  // A 401 shows the sign-in screen; anything else shows as offline.
  me = await get("/api/me").catch(() => null);
  chat.refreshApprovals();
  if (route.kind === "home") showHome();
  const { createSide } = await import("./side.js");
  side = createSide(byId("side"), { onOpen: () => layout.openSide() });
  showSelected();
}

start();
