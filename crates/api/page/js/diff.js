// A line diff with bounded work: common ends are cut off, the middle is compared by its longest common subsequence, and a
// middle of more than `MAX_CELLS` pairs of lines counts as replaced.

/** @typedef {{sign: " " | "+" | "-" | "⋯", text: string}} DiffLine */

const MAX_CELLS = 4_000_000;
const AROUND = 3;

/**
 * @param {string[]} before
 * @param {string[]} after
 * @returns {DiffLine[]}
 */
export function diffLines(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const [old, now] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  const width = now.length + 1;
  const isBounded = (old.length + 1) * width <= MAX_CELLS;
  // Length of the common subsequence of what follows line x of the old and line y of the new text.
  const common = new Uint32Array(isBounded ? (old.length + 1) * width : 0);
  for (let x = old.length - 1; isBounded && x >= 0; x--) {
    for (let y = now.length - 1; y >= 0; y--) {
      const at = x * width + y;
      common[at] = old[x] === now[y] ? common[at + width + 1] + 1 : Math.max(common[at + width], common[at + 1]);
    }
  }
  /** @type {DiffLine[]} */
  const lines = before.slice(0, start).map((text) => ({ sign: " ", text }));
  for (let x = 0, y = 0; x < old.length || y < now.length; ) {
    const at = x * width + y;
    if (isBounded && x < old.length && y < now.length && old[x] === now[y]) lines.push({ sign: " ", text: old[(y++, x++)] });
    else if (x < old.length && (y >= now.length || !isBounded || common[at + width] >= common[at + 1])) lines.push({ sign: "-", text: old[x++] });
    else lines.push({ sign: "+", text: now[y++] });
  }
  return [...lines, ...before.slice(before.length - end).map((text) => /** @type {DiffLine} */ ({ sign: " ", text }))];
}

/**
 * Replaces unchanged stretches by one line that says how long they are, but for a few lines at each change.
 * @param {DiffLine[]} lines
 */
export function hunks(lines) {
  const isNear = new Uint8Array(lines.length);
  for (const [index, line] of lines.entries()) if (line.sign !== " ") isNear.fill(1, Math.max(0, index - AROUND), index + AROUND + 1);
  /** @type {DiffLine[]} */
  const out = [];
  for (let index = 0; index < lines.length; index++) {
    const from = index;
    while (index < lines.length && !isNear[index]) index++;
    if (index > from) out.push({ sign: "⋯", text: `${index - from} unchanged` });
    if (index < lines.length) out.push(lines[index]);
  }
  return out;
}
