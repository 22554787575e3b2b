// The views beside the conversation, and every view in the ways in which people look at it: with axe, dark, on a narrow
// screen, with the keyboard alone.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ask, card, checkAccess, createBrowser, sessionOf } from "./browser.mjs";
import { until } from "./lango.mjs";
import { createStage } from "./stage.mjs";

const recording = fileURLToPath(new URL("recording.jsonl", import.meta.url));
/** What a narrow screen can change. */
const NARROW_RULES = ["scrollable-region-focusable", "aria-hidden-focus", "target-size", "button-name", "link-name"];
const VIEWS = ["Knowledge", "Memory", "Grants", "Usage", "Setup", "Doctor"];
/** @type {import("./stage.mjs").Stage} */
let stage;
/** @type {Awaited<ReturnType<typeof createBrowser>>} */
let browser;
let path = "";

before(async () => {
  [stage, browser] = await Promise.all([createStage({ hasRemote: true, recording }), createBrowser()]);
  const { client, home } = stage;
  const session = await stage.recorded("Prepare release");
  path = `/s/${session}/${(await client.events(session))[0].turn}`;
  await home.run("knowledge", "add", "CHANGELOG.md");
  // A grant, usage of today, and a request that waits.
  const { session: granted } = await client.post("/api/turns", { text: "write granted.md" });
  const request = await waiting();
  // The turn may be about to stop for the answer.
  await until(() => client.post(`/api/approvals/${request.id}`, { answer: "always", pattern: "granted*" }).then(() => true, () => false));
  await until(async () => (await client.get(`/api/sessions/${granted}`)).status === "idle");
  await client.post("/api/turns", { text: "write waiting.md" });
  await waiting();
});

after(async () => {
  await browser?.end();
  await stage?.end();
});

/** The request that waits. */
const waiting = () => until(async () => (await stage.client.get("/api/approvals")).pending[0]);

/** Opens a view and waits until it is filled. @param {import("./browser.mjs").Page} page @param {string} name */
async function openView(page, name) {
  await page.goto(`${stage.url}/view/${name.toLowerCase()}`);
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.getByRole("main").getByText("Loading…").first().waitFor({ state: "detached" });
}

test("the view of the library lists documents and finds passages", async () => {
  const page = await browser.open(stage);
  await openView(page, "Knowledge");
  const main = page.getByRole("main");
  await main.getByRole("cell", { name: /CHANGELOG/ }).first().waitFor();
  await main.getByRole("searchbox", { name: "Search the library" }).fill("attachments export");
  await page.keyboard.press("Enter");
  await main.getByText("The export no longer loses attachments.").first().waitFor();
  await openView(page, "Memory");
  await main.getByRole("heading", { name: "Saved" }).waitFor();
  await browser.close(page);
});

test("the view of grants lists a grant and revokes it", async () => {
  const page = await browser.open(stage);
  await openView(page, "Grants");
  const row = page.getByRole("main").getByRole("row").filter({ hasText: "granted*" });
  assert.match(await row.innerText(), /operator\s+fs_write\s+granted\*/);
  await row.getByRole("button", { name: /^Revoke/ }).click();
  // The page may ask first.
  const confirm = page.getByRole("dialog").getByRole("button", { name: /Revoke/ });
  if (await confirm.isVisible()) await confirm.click();
  await row.waitFor({ state: "detached" });
  assert.deepEqual((await stage.client.get("/api/approvals")).grants, []);
  await browser.close(page);
});

test("the view of usage plots tokens and cost by day and agent", async () => {
  const page = await browser.open(stage);
  await openView(page, "Usage");
  const main = page.getByRole("main");
  const { rows } = await stage.client.get("/api/usage?days=30");
  const calls = rows.reduce((/** @type {number} */ sum, /** @type {any} */ row) => sum + row.calls, 0);
  await main.getByText(new RegExp(`tokens in ${calls} calls?\\.`)).first().waitFor();
  for (const title of ["By day", "By agent"]) await main.getByRole("heading", { name: title, exact: true }).or(main.getByRole("img", { name: title })).first().waitFor();
  await main.getByRole("button", { name: "Cost" }).click();
  await main.getByText(/\$0\.\d+ in/).first().waitFor();
  await browser.close(page);
});

test("the views of setup and doctor show what the program says of itself", async () => {
  const page = await browser.open(stage);
  await openView(page, "Setup");
  const main = page.getByRole("main");
  await main.getByText("openai/gpt-6-sol").first().waitFor();
  await main.getByRole("cell", { name: /partner/ }).first().waitFor();
  await main.getByText("agent.maxDelegationRounds").first().waitFor();
  await openView(page, "Doctor");
  const { rows } = await stage.client.get("/api/doctor");
  for (const { name } of rows) await main.getByText(name).first().waitFor();
  await browser.close(page);
});

test("axe finds no serious violation in any view, light and dark", async () => {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    const page = await browser.open(stage, { colorScheme });
    // The dark page differs in its colours alone.
    const rules = colorScheme === "dark" ? ["color-contrast"] : undefined;
    await checkAccess(page, `${colorScheme} home`, rules);
    for (const name of colorScheme === "dark" && process.env.PAGE_TESTS_SHORT ? ["Usage"] : VIEWS) {
      await openView(page, name);
      await checkAccess(page, `${colorScheme} ${name}`, rules);
    }
    await page.goto(stage.url + path);
    await page.getByRole("heading", { name: "Release 2.4 is ready" }).waitFor();
    for (const row of await card(page, "Prepare release").locator("summary").all()) await row.click();
    const side = page.getByRole("complementary");
    for (const tab of ["Agents", "Timeline"]) {
      await side.getByRole("tab", { name: tab }).click();
      await checkAccess(page, `${colorScheme} session, ${tab}`, rules);
    }
    await page.getByRole("button", { name: /^Inspect model call/ }).first().click();
    await side.getByRole("tab", { name: "Response" }).waitFor();
    await checkAccess(page, `${colorScheme} session, Inspector`, rules);
    await page.getByRole("button", { name: "Requests that need you: 1" }).click();
    await page.getByRole("dialog").getByLabel("What it would change").waitFor();
    await checkAccess(page, `${colorScheme} tray`, rules);
    await browser.close(page);
  }
});

test("everything fits on a screen of 360 pixels, and axe agrees", async () => {
  const page = await browser.open(stage, { width: 360, height: 740, path });
  const fits = async (/** @type {string} */ where) => {
    const width = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll("main, header, article, dialog[open]")].map((part) => Math.round(part.getBoundingClientRect().right))));
    assert.ok(width <= 360, `${where} is ${width} pixels wide`);
    await checkAccess(page, `narrow ${where}`, NARROW_RULES);
  };
  await page.getByRole("heading", { name: "Release 2.4 is ready" }).waitFor();
  await fits("session");
  await page.getByRole("button", { name: "Agents, timeline and inspector" }).click();
  const side = page.getByRole("complementary");
  await side.getByRole("tab", { name: "Timeline" }).click();
  await side.getByRole("region", { name: "operator", exact: true }).waitFor();
  await fits("timeline");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Sessions", exact: true }).click();
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("link", { name: /^Prepare release/ }).waitFor();
  await fits("list of sessions");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Requests that need you: 1" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Allow once" }).waitFor();
  await fits("tray");
  await page.keyboard.press("Escape");
  for (const name of VIEWS) {
    await openView(page, name);
    await fits(name);
  }
  await browser.close(page);
});

test("dark follows the system, and the switch is remembered", async () => {
  const page = await browser.open(stage, { colorScheme: "dark" });
  const brightness = () => page.evaluate(() => {
    const [red = 0, green = 0, blue = 0] = (getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
    return (red + green + blue) / 3;
  });
  assert.ok((await brightness()) < 60, `the dark page has brightness ${await brightness()}`);
  await page.getByRole("button", { name: "Theme: system" }).click();
  await page.getByRole("button", { name: "Theme: light" }).waitFor();
  assert.ok((await brightness()) > 200);
  await page.reload();
  await page.getByRole("button", { name: "Theme: light" }).click();
  await page.getByRole("button", { name: "Theme: dark" }).waitFor();
  assert.ok((await brightness()) < 60);
  await browser.close(page);
});

test("with the keyboard alone: find a session, read it, ask, and answer an approval", async () => {
  const page = await browser.open(stage);
  const { keyboard } = page;
  const focus = () => page.evaluate(() => {
    const element = document.activeElement;
    return element?.getAttribute("aria-label") ?? element?.textContent?.trim().slice(0, 60) ?? "";
  });
  const tabTo = async (/** @type {RegExp} */ name) => {
    for (let presses = 0; presses < 60; presses += 1) {
      await keyboard.press("Tab");
      if (name.test(await focus())) return;
    }
    assert.fail(`Tab does not reach ${name}`);
  };
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("link", { name: /^Prepare release/ }).waitFor();
  await keyboard.press("Escape");
  await keyboard.press("/");
  assert.equal(await focus(), "Search sessions");
  await keyboard.type("release 2.4");
  await page.waitForFunction(() => document.querySelectorAll("#sessions li a[href^='/s/']").length === 1);
  await tabTo(/^Prepare release/);
  await keyboard.press("Enter");
  await card(page, "What does page.html say?").waitFor();
  await keyboard.press("k");
  await keyboard.press("k");
  assert.match(await focus(), /^Turn: Prepare release/);
  await keyboard.press("j");
  assert.match(await focus(), /^Turn: What does page\.html say/);
  await keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await keyboard.press("Escape");
  await keyboard.press("n");
  await page.waitForURL(`${stage.url}/`);
  await keyboard.press("Escape");
  await keyboard.press("c");
  assert.equal(await focus(), "Message");
  await keyboard.type("write keys.md");
  await keyboard.press("Enter");
  const session = await sessionOf(page);
  await page.getByRole("region", { name: /^Approval: operator wants to run fs_write/ }).waitFor();
  await keyboard.press("Escape");
  await keyboard.press("a");
  const tray = page.getByRole("dialog", { name: "Needs you" });
  // The arguments, which name the file too, are folded as soon as the preview is there.
  await tray.getByText("keys.md").filter({ visible: true }).first().waitFor();
  await page.waitForFunction(() => (document.querySelector("dialog[open]")?.querySelectorAll("pre").length ?? 0) >= 2);
  // The request of this turn is the second one.
  await tabTo(/^Allow once/);
  await tabTo(/^Allow once/);
  await keyboard.press("Enter");
  await card(page, "write keys.md").getByText("Finished: write keys.md").waitFor();
  await keyboard.press("Escape");
  assert.equal((await stage.client.get(`/api/sessions/${session}`)).status, "idle");
  await browser.close(page);
});
