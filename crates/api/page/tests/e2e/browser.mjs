// Chromium for the tests: pages that are signed in, that note every problem and every request to another host, and the
// checks that several tests share.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

// Packages are installed below `target/`, not beside this file.
const modules = createRequire(process.env.PAGE_TESTS_MODULES ?? import.meta.url);
/** @type {import("playwright-core")} */
const { chromium } = modules("playwright-core");
const axe = await readFile(modules.resolve("axe-core/axe.min.js"), "utf8");

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {{width?: number, height?: number, colorScheme?: "light" | "dark", path?: string, isSignedIn?: boolean, hasOwnLink?: boolean}} View */
/** @typedef {{problems: string[], foreign: string[]}} Notes */

/** How long the page may take to show something, on a busy machine. */
const PATIENCE_MS = 30_000;

/** Runs in the page before its scripts: notes what the event stream brings, and how many streams are open. */
function watchStreams() {
  const Native = window.EventSource;
  /** @type {any} */
  const seen = { open: 0, most: 0, received: [] };
  /** @type {any} */ (window).seen = seen;
  window.EventSource = class extends Native {
    constructor(/** @type {string} */ url) {
      super(url);
      seen.most = Math.max(seen.most, ++seen.open);
      this.addEventListener("event", (message) => {
        const { session, seq, time } = JSON.parse(message.data);
        seen.received.push({ session, seq, delay: Date.now() - time });
      });
    }
    close() {
      if (this.readyState !== Native.CLOSED) seen.open -= 1;
      super.close();
    }
  };
}

export async function createBrowser() {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--disable-gpu", "--force-color-profile=srgb"] });
  /** @type {WeakMap<Page, Notes>} */
  const notes = new WeakMap();
  /** The cookies of the browser that signed in first, which other tests use too. @type {Map<string, import("playwright-core").Cookie[]>} */
  const cookies = new Map();

  /**
   * Opens a page in a browser profile of its own.
   * @param {import("./stage.mjs").Stage} stage
   * @param {View} [view]
   */
  async function open(stage, { width = 1280, height = 800, colorScheme = "light", path = "/", isSignedIn = true, hasOwnLink = false } = {}) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme, locale: "en-GB", reducedMotion: "reduce" });
    context.setDefaultTimeout(PATIENCE_MS);
    await context.addInitScript(watchStreams);
    const page = await context.newPage();
    /** @type {Notes} */
    const noted = { problems: [], foreign: [] };
    notes.set(page, noted);
    page.on("pageerror", (error) => noted.problems.push(error.stack || error.message || "an error without words"));
    page.on("console", (message) => {
      // Chromium reports failed requests too; those are a matter of each test.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) noted.problems.push(message.text());
    });
    context.on("request", (request) => {
      if (!request.url().startsWith(stage.url) && !/^(data|blob|chrome-extension):/.test(request.url())) noted.foreign.push(request.url());
    });
    const known = cookies.get(stage.url);
    if (isSignedIn && known && !hasOwnLink) await context.addCookies(known);
    else if (isSignedIn) {
      await page.goto(await stage.home.link(stage.url));
      await page.waitForURL(`${stage.url}/`);
      cookies.set(stage.url, await context.cookies());
    }
    if (page.url() !== stage.url + path) await page.goto(stage.url + path);
    return page;
  }

  return {
    open,
    /** Closes a page and fails if it had a problem or asked another host. @param {Page} page */
    async close(page) {
      const noted = notes.get(page);
      await page.context().close();
      assert.deepEqual(noted, { problems: [], foreign: [] });
    },
    end: () => browser.close(),
  };
}

/**
 * Fails if axe finds a serious violation.
 * @param {Page} page
 * @param {string} where
 * @param {string[]} [rules] those to check where another test has checked all
 */
export async function checkAccess(page, where, rules) {
  // The policy of the page forbids scripts in the document; this runs beside it.
  await page.evaluate(axe);
  const result = await page.evaluate((only) => /** @type {any} */ (window).axe.run(document, { resultTypes: ["violations"], ...(only ? { runOnly: only } : {}) }), rules);
  const serious = result.violations.filter((/** @type {any} */ violation) => ["serious", "critical"].includes(violation.impact));
  const found = serious.map((/** @type {any} */ { id, nodes }) => `${where}: ${id}: ${nodes.map((/** @type {any} */ node) => `${node.target} ${node.any.map((/** @type {any} */ check) => check.message)}`).slice(0, 5).join("; ")}`);
  assert.deepEqual(found, []);
}

/** Sends a message with the keyboard. @param {Page} page @param {string} text */
export async function ask(page, text) {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
}

/** The card of a turn. @param {Page} page @param {string} question */
export function card(page, question) {
  return page.getByRole("article", { name: `Turn: ${question}` });
}

/** The session that the page shows. @param {Page} page */
export async function sessionOf(page) {
  await page.waitForURL(/\/s\/[^/]+/);
  return new URL(page.url()).pathname.split("/")[2] ?? "";
}

/**
 * The numbers of the events that the steps of the selected turn begin with, read from the inspector one by one.
 * @param {Page} page
 * @returns {Promise<number[]>}
 */
export async function shownSteps(page) {
  const side = page.getByRole("complementary");
  await side.getByRole("tab", { name: "Timeline" }).click();
  const table = side.getByRole("region", { name: "Steps of the turn" });
  if (!(await table.isVisible())) await side.getByText("As a table").click();
  await table.getByRole("button").first().click();
  const seqs = [];
  for (;;) {
    const text = await side.getByRole("tabpanel").first().innerText();
    seqs.push(Number(/event (\d+)/.exec(text)?.[1]));
    const next = side.getByRole("button", { name: "Next →" });
    if (await next.isDisabled()) return seqs.toSorted((left, right) => left - right);
    await next.click();
  }
}

/** The events that a step begins with, as the log has them. @param {any[]} events */
export function stepsOf(events) {
  const begins = (/** @type {any} */ event) => (event.type === "agent.message" ? Boolean(event.model) : ["tool.called", "approval.requested", "remote.called", "turn.corrected"].includes(event.type));
  return events.filter(begins).map((event) => event.seq);
}
