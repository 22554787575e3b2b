// The time scale of the timeline: linear while somebody works, with long idle stretches (waiting for a person, a server
// that was down) compressed, so that ten minutes of waiting do not squash two seconds of work.

/** @typedef {{from: number, to: number, isBreak: boolean, at: number, width: number}} Segment `at` and `width` are fractions of the whole */
/** @typedef {{segments: Segment[], place: (time: number) => number, ticks: {time: number, label: string}[]}} Scale */

/**
 * @param {{start: number, end: number, isWork: boolean}[]} spans in the order of their starts
 * @param {number} start
 * @param {number} end
 * @returns {Scale}
 */
export function createScale(spans, start, end) {
  /** @type {{from: number, to: number, isWork: boolean}[]} */
  const parts = [];
  let at = start;
  for (const span of [...spans.filter((one) => one.isWork), { start: end, end }]) {
    if (span.start > at) parts.push({ from: at, to: span.start, isWork: false });
    at = Math.max(at, span.start);
    if (span.end > at) parts.push({ from: at, to: span.end, isWork: true });
    at = Math.max(at, span.end);
  }
  const busy = parts.reduce((sum, part) => sum + (part.isWork ? part.to - part.from : 0), 0);
  const longest = Math.max(busy * 0.15, Math.min(busy, 500), 1);
  const isBreak = (/** @type {{from: number, to: number, isWork: boolean}} */ part) => !part.isWork && part.to - part.from > longest * 2;
  const sizes = parts.map((part) => (isBreak(part) ? longest : part.to - part.from));
  const total = sizes.reduce((sum, size) => sum + size, 0) || 1;
  let drawn = 0;
  const segments = parts.map((part, index) => {
    const segment = { from: part.from, to: part.to, isBreak: isBreak(part), at: drawn / total, width: sizes[index] / total };
    drawn += sizes[index];
    return segment;
  });
  const place = (/** @type {number} */ time) => {
    let [low, high] = [0, segments.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (segments[middle].from <= time) low = middle;
      else high = middle - 1;
    }
    const { from, to, at: left, width } = segments[low] ?? { from: start, to: end, at: 0, width: 1 };
    return left + width * Math.min(Math.max((time - from) / Math.max(to - from, 1), 0), 1);
  };
  // Round numbers people count time in, in milliseconds.
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5];
  const step = steps.find((size) => size >= total / 6) ?? 864e5;
  /** @type {Scale["ticks"]} */
  const ticks = [];
  for (const segment of segments.filter((one) => !one.isBreak)) {
    for (let time = Math.ceil((segment.from - start) / step) * step + start; time <= segment.to; time += step) {
      // A label needs about a seventh of the width, and stays clear of the end and of what a break says.
      const left = place(time);
      const last = ticks.at(-1);
      const isFree = left < 0.9 && (!last || left - place(last.time) > 0.14) && !segments.some((one) => one.isBreak && left > one.at - 0.12 && left < one.at + 0.22);
      if (isFree) ticks.push({ time, label: offset(time - start) });
    }
  }
  return { segments, place, ticks };
}

/** A distance from the start, short: `0`, `500 ms`, `2.5 s`, `10:30`. @param {number} ms */
function offset(ms) {
  if (ms < 1000) return ms === 0 ? "0" : `${ms} ms`;
  if (ms < 60_000) return `${ms / 1000} s`;
  const clock = new Date(ms).toISOString().slice(11, 19);
  return clock.replace(/^00:0?/, "");
}
