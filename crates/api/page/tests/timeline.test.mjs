// Run with `node --test`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLines, hunks } from "../js/diff.js";
import { createScale } from "../js/scale.js";

const show = (lines) => lines.map((line) => line.sign + line.text).join(" ");
/** Applying a diff gives both sides back. */
const sides = (lines) => [lines.filter((line) => line.sign !== "+").map((line) => line.text), lines.filter((line) => line.sign !== "-").map((line) => line.text)];

test("a diff keeps what both texts share", () => {
  assert.equal(show(diffLines(["a", "b", "c"], ["a", "x", "c"])), " a -b +x  c");
  assert.equal(show(diffLines([], ["a"])), "+a");
  assert.equal(show(diffLines(["a"], ["a"])), " a");
  assert.equal(show(diffLines(["a", "b", "c", "d"], ["b", "c", "x", "d", "e"])), "-a  b  c +x  d +e");
});

test("a diff of random texts gives both sides back", () => {
  let seed = 7;
  const random = (most) => (seed = (seed * 16807) % 2147483647) % most;
  for (let round = 0; round < 200; round++) {
    const before = Array.from({ length: random(12) }, () => String(random(4)));
    const after = Array.from({ length: random(12) }, () => String(random(4)));
    assert.deepEqual(sides(diffLines(before, after)), [before, after]);
  }
});

test("a diff of long different texts is bounded", () => {
  const before = Array.from({ length: 20_000 }, (_, index) => `old ${index}`);
  const after = Array.from({ length: 20_000 }, (_, index) => `new ${index}`);
  const start = performance.now();
  assert.deepEqual(sides(diffLines(before, after)), [before, after]);
  assert.ok(performance.now() - start < 1000);
});

test("unchanged stretches are left out", () => {
  const lines = diffLines([..."abcdefghij"], [..."abcdefghijk"]);
  assert.equal(show(hunks(lines)), "⋯7 unchanged  h  i  j +k");
});

test("a long wait is drawn short, and work keeps its scale", () => {
  const span = (start, end, isWork = true) => ({ start, end, isWork });
  const scale = createScale([span(0, 2000), span(1000, 603_000, false), span(603_000, 605_000)], 0, 605_000);
  assert.equal(scale.segments.filter((segment) => segment.isBreak).length, 1);
  const first = scale.place(2000) - scale.place(0);
  const last = scale.place(605_000) - scale.place(603_000);
  assert.ok(Math.abs(first - last) < 1e-9);
  assert.ok(first > 0.4, `work has ${first} of the width`);
  for (let time = 0; time < 605_000; time += 5000) assert.ok(scale.place(time) <= scale.place(time + 5000));
  assert.equal(scale.place(605_000), 1);
});

test("very short work keeps half of the width beside a wait", () => {
  const scale = createScale([{ start: 0, end: 16, isWork: true }, { start: 16, end: 60_000, isWork: false }], 0, 60_000);
  assert.ok(scale.place(16) > 0.4);
});

test("a turn without steps has a scale", () => {
  const scale = createScale([], 5, 5);
  assert.ok(Number.isFinite(scale.place(5)));
});
