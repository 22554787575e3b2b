// Numbers and times as people read them.

/** A duration in milliseconds: `14 ms`, `2.4 s`, `3 min 05 s`, `2 h 10 min`. @param {number} ms */
export function duration(ms) {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1000) return `${whole} ms`;
  if (whole < 59_950) return `${(whole / 1000).toFixed(1)} s`;
  const seconds = Math.round(whole / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(minutes / 1440)} d`;
}

/** A duration of something that still runs, in whole seconds. @param {number} ms */
export function ticking(ms) {
  return ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1000))} s` : duration(ms);
}

/** How long something took, or how long it runs by now. @param {{start: number, end: number | null}} span @param {number} now */
export function elapsed({ start, end }, now) {
  return end === null ? ticking(now - start) : duration(end - start);
}

/** A count: `940`, `12.4k`, `3.1M`. @param {number} number */
export function count(number) {
  if (number < 1000) return String(number);
  if (number < 99_950) return `${(number / 1000).toFixed(1)}k`;
  if (number < 999_500) return `${Math.round(number / 1000)}k`;
  return `${(number / 1_000_000).toFixed(1)}M`;
}

/** `1 call`, `3 calls`. @param {number} number @param {string} noun */
export function plural(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Millionths of a US dollar as dollars; empty if the price is unknown. @param {number | null | undefined} micros */
export function money(micros) {
  if (micros == null) return "";
  const dollars = micros / 1_000_000;
  if (dollars === 0) return "$0";
  return `$${dollars.toFixed(dollars < 0.01 ? 4 : dollars < 1 ? 3 : 2)}`;
}

/** A size: `940 B`, `12.4 kB`. @param {number} number */
export function bytes(number) {
  return count(number).replace(/[kM]?$/, " $&B");
}

// A formatter is expensive to create, so each is created once.
const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const WEEKDAY = new Intl.DateTimeFormat([], { weekday: "short" });
const DAY = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
const DATE = new Intl.DateTimeFormat([], { dateStyle: "medium" });
const FULL = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium" });

/** A moment, short: the time today, the weekday this week, else the date. @param {number} time @param {number} [now] */
export function moment(time, now = Date.now()) {
  const date = new Date(time);
  const today = new Date(now);
  if (date.toDateString() === today.toDateString()) return CLOCK.format(date);
  if (now - time < 6 * 86_400_000 && time <= now) return `${WEEKDAY.format(date)} ${CLOCK.format(date)}`;
  return (date.getFullYear() === today.getFullYear() ? DAY : DATE).format(date);
}

/** A moment in full, for tooltips. @param {number} time */
export function fullTime(time) {
  return FULL.format(time);
}

/** Makes characters visible that could hide or reorder what a person is asked to allow. @param {string} text */
export function reveal(text) {
  const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
  return text.replace(hidden, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`);
}

/** The first line of a text, shortened. @param {string} text @param {number} [most] */
export function oneLine(text, most = 160) {
  const line = text.slice(0, most * 4).replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** The arguments of a call on one line: `path=notes.md limit=20`. @param {any} value @param {number} [most] */
export function argumentLine(value, most = 120) {
  if (value == null) return "";
  if (typeof value !== "object" || Array.isArray(value)) return oneLine(typeof value === "string" ? value : JSON.stringify(value), most);
  const parts = Object.entries(value).map(([key, part]) => `${key}=${typeof part === "string" ? part : JSON.stringify(part)}`);
  return oneLine(parts.join("  "), most);
}
