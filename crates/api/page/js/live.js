// The one event stream of the page. It reconnects with the last seq it saw, so that no event is missed or repeated.

/** @typedef {"connecting" | "live" | "offline"} LiveState */
/** @typedef {Record<string, (data: any) => void>} Handlers by the name of the message */

const FIRST_DELAY_MS = 500;
const LAST_DELAY_MS = 15_000;

/** @param {Handlers} handlers @param {(state: LiveState, isReconnect: boolean) => void} onState */
export function createLive(handlers, onState) {
  /** @type {EventSource | null} */
  let source = null;
  /** @type {string | null} */
  let session = null;
  let after = 0;
  let delay = FIRST_DELAY_MS;
  let timer = 0;
  let wasLive = false;

  function connect() {
    clearTimeout(timer);
    source?.close();
    const query = session === null ? "" : `?session=${encodeURIComponent(session)}&after=${after}`;
    const opened = new EventSource(`/api/events${query}`);
    source = opened;
    onState("connecting", wasLive);
    opened.onopen = () => {
      delay = FIRST_DELAY_MS;
      onState("live", wasLive);
      wasLive = true;
    };
    opened.onerror = () => {
      if (source !== opened) return;
      opened.close();
      onState("offline", wasLive);
      timer = window.setTimeout(connect, delay * (0.75 + Math.random() / 2));
      delay = Math.min(delay * 2, LAST_DELAY_MS);
    };
    for (const [name, handle] of Object.entries(handlers)) {
      opened.addEventListener(name, (message) => {
        if (source !== opened) return;
        const data = JSON.parse(message.data);
        if (name === "event") after = Math.max(after, data.seq);
        handle(data);
      });
    }
  }

  const retryNow = () => source?.readyState === EventSource.CLOSED && !document.hidden && connect();
  addEventListener("online", retryNow);
  document.addEventListener("visibilitychange", retryNow);

  return {
    /** Watches a session from after this seq on; null watches only the overview. @param {string | null} id @param {number} seq */
    watch(id, seq) {
      if (source && id === session && id === null) return;
      session = id;
      after = seq;
      connect();
    },
    stop() {
      clearTimeout(timer);
      source?.close();
      source = null;
    },
  };
}
