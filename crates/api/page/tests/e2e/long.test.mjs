// Long sessions: how quickly one is painted, and that a very long one scrolls. PAGE_TESTS_EVENTS is the length of the
// long one.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { card, createBrowser } from "./browser.mjs";
import { createStage } from "./stage.mjs";
import { writeLongLog } from "./long-log.mjs";

const PAINT_EVENTS = 5000;
const MOST_PAINT_MS = 300;
const EVENTS = Number(process.env.PAGE_TESTS_EVENTS ?? 100_000);
/** Cards and elements that the page may hold, however long the session is. */
const MOST_CARDS = 150;
const MOST_ELEMENTS = 15_000;

/** @type {Awaited<ReturnType<typeof createBrowser>>} */
let browser;
let folder = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "lango-long-"));
  browser = await createBrowser();
});

after(async () => {
  await browser?.end();
  await rm(folder, { recursive: true, force: true });
});

/** @param {number} count @param {(stage: import("./stage.mjs").Stage, log: {session: string, events: number}) => Promise<void>} run */
async function withLog(count, run) {
  const path = join(folder, `${count}.jsonl`);
  const log = await writeLongLog(path, count);
  const stage = await createStage({ recording: path });
  try {
    await run(stage, log);
  } finally {
    await stage.end();
  }
}

test(`a session with ${PAINT_EVENTS} events is painted within ${MOST_PAINT_MS} ms`, async () => {
  await withLog(PAINT_EVENTS, async (stage, { session }) => {
    const page = await browser.open(stage);
    const times = [];
    for (let attempt = 0; attempt < 5; attempt += 1) {
      await page.goto(`${stage.url}/s/${session}`);
      await page.getByRole("article").last().waitFor();
      // The paint with the last turn, from the start of the navigation: a mark is set in the frame after its card is there.
      times.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity));
    }
    const best = Math.min(...times);
    assert.ok(best < MOST_PAINT_MS, `first paints took ${times.map(Math.round).join(", ")} ms`);
    const shown = await shownAfter(page, `${stage.url}/s/${session}`);
    assert.ok(shown < MOST_PAINT_MS, `the newest turn was painted after ${Math.round(shown)} ms`);
    await browser.close(page);
  });
});

/**
 * The best of some loads: when the frame with the first card was painted, from the start of the navigation.
 * @param {import("./browser.mjs").Page} page
 * @param {string} url
 */
async function shownAfter(page, url) {
  await page.addInitScript(() => {
    const look = () => {
      if (document.querySelector("article")) requestAnimationFrame(() => setTimeout(() => (/** @type {any} */ (window).shown = performance.now())));
      else requestAnimationFrame(look);
    };
    look();
  });
  const times = [];
  for (let attempt = 0; attempt < 5; attempt += 1) {
    await page.goto(url);
    times.push(Number(await (await page.waitForFunction(() => /** @type {any} */ (window).shown)).jsonValue()));
  }
  return Math.min(...times);
}

test(`a session with ${EVENTS} events scrolls from its end to its beginning and back with the same memory`, async () => {
  await withLog(EVENTS, async (stage, { session, events }) => {
    const page = await browser.open(stage, { path: `/s/${session}` });
    const last = Math.floor(events / 24);
    await card(page, `Question ${last}:`).waitFor();
    const turns = page.getByRole("region", { name: "Turns" });
    /** @type {Set<number>} */
    const seen = new Set();
    let mostCards = 0;
    let mostElements = 0;
    const note = async () => {
      const [numbers, elements] = await page.evaluate(() => [[...document.querySelectorAll("article")].map((article) => Number(/Question (\d+)/.exec(article.getAttribute("aria-label") ?? "")?.[1])), document.querySelectorAll("*").length]);
      const found = /** @type {number[]} */ (numbers);
      assert.deepEqual(found, found.toSorted((left, right) => left - right), "turns are out of order");
      assert.equal(new Set(found).size, found.length, "a turn is there twice");
      mostCards = Math.max(mostCards, found.length);
      mostElements = Math.max(mostElements, /** @type {number} */ (elements));
      for (const number of found) seen.add(number);
      return found;
    };
    // Upwards through some screens, without a hole.
    const screens = 25;
    for (let screen = 0; screen < screens; screen += 1) {
      const before = (await note())[0];
      await turns.evaluate((element) => (element.scrollTop = 400));
      await page.waitForFunction((first) => Number(/Question (\d+)/.exec(document.querySelector("article")?.getAttribute("aria-label") ?? "")?.[1]) < Number(first), before);
    }
    const shown = await note();
    const lowest = Math.min(...seen);
    assert.deepEqual([...seen].toSorted((left, right) => left - right), Array.from({ length: last - lowest + 1 }, (_, index) => lowest + index), "turns were skipped");
    assert.ok(shown[0] === lowest && lowest < last - 100);
    assert.ok(mostCards <= MOST_CARDS && mostElements <= MOST_ELEMENTS, `${mostCards} cards, ${mostElements} elements`);
    // The beginning by its link, and the end by the button.
    const first = (await stage.client.get(`/api/sessions/${session}/events?after=0&limit=1`)).events[0];
    await page.goto(`${stage.url}/s/${session}/${first.turn}`);
    await card(page, "Question 1:").waitFor();
    await note();
    await page.getByRole("button", { name: "Latest" }).click();
    await card(page, `Question ${last}:`).waitFor();
    // A frame of scrolling stays quick.
    const slowest = await turns.evaluate(async (element) => {
      let most = 0;
      for (let step = 0; step < 40; step += 1) {
        const start = performance.now();
        element.scrollTop -= 120;
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        most = Math.max(most, performance.now() - start);
      }
      return most;
    });
    assert.ok(slowest < 400, `a frame took ${Math.round(slowest)} ms`);
    await browser.close(page);
  });
});
