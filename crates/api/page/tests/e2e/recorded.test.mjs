// The recorded session, which has parallel delegations, a rejection, an approval, a failed call, an image, a remote agent, a
// hostile page and a failed turn: what the page shows of it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { card, createBrowser, shownSteps, stepsOf } from "./browser.mjs";
import { FAILS, PAGE, PAGE_HTML } from "./script.mjs";
import { createStage } from "./stage.mjs";

const recording = fileURLToPath(new URL("recording.jsonl", import.meta.url));
const RELEASE_CARD = "Prepare release 2.4";
/** @type {import("./stage.mjs").Stage} */
let stage;
/** @type {Awaited<ReturnType<typeof createBrowser>>} */
let browser;
/** @type {any[]} */
let events;
let session = "";
/** @type {import("./browser.mjs").Page} */
let page;

before(async () => {
  [stage, browser] = await Promise.all([createStage({ hasRemote: true, recording }), createBrowser()]);
  session = await stage.recorded(RELEASE_CARD);
  events = await stage.client.events(session);
  page = await browser.open(stage, { path: `/s/${session}/${events[0].turn}` });
  await card(page, RELEASE_CARD).getByRole("heading", { name: "Release 2.4 is ready" }).waitFor();
});

after(async () => {
  await browser?.end();
  await stage?.end();
});

/** @param {string} text a part of the row of a delegation */
const row = (text) => card(page, RELEASE_CARD).locator("summary").filter({ hasText: text });

test("the list shows the session with its status, and searches and filters", async () => {
  const list = page.getByRole("navigation", { name: "Sessions" });
  const link = list.getByRole("link", { name: /^Prepare release 2\.4/ });
  const failed = list.getByRole("link", { name: /^Translate the notes/ });
  assert.match(await link.innerText(), /2 turns/);
  assert.match(await failed.innerText(), /failed[\s\S]*1 turn/);
  await list.getByRole("button", { name: "Failed" }).click();
  await link.waitFor({ state: "detached" });
  await failed.waitFor();
  await list.getByRole("button", { name: "Running" }).click();
  await list.getByText("No session matches.").waitFor();
  await list.getByRole("button", { name: "All" }).click();
  await link.waitFor();
  const search = list.getByRole("searchbox", { name: "Search sessions" });
  await search.fill("no such title");
  await list.getByText("No session matches.").waitFor();
  await search.fill("release 2.4");
  await link.waitFor();
  assert.equal(await failed.count(), 0);
  await search.fill("");
});

test("a turn has one row for each delegation, in the order in which they began", async () => {
  const rows = await card(page, RELEASE_CARD).locator("summary").allInnerTexts();
  const words = rows.map((text) => text.replaceAll(/\s+/g, " "));
  assert.equal(words.length, 5);
  for (const [index, [agent, state]] of [["operator", "done"], ["planner", "rejected"], ["partner", "done"], ["vault", "done"], ["operator", "done"]].entries()) {
    assert.match(words[index] ?? "", new RegExp(`^${index + 1} ${agent}\\b.*${state}$`));
  }
  assert.match(words[0] ?? "", /3 tools .*tok/);
  assert.match(words[2] ?? "", /remote/);
});

test("a rejection says why, and where the task went", async () => {
  const text = (await card(page, RELEASE_CARD).innerText()).replaceAll(/\s+/g, " ");
  assert.match(text, /Rejected: I have no tools; hashing is work for vault.*sent to vault \(4\)/);
});

test("the steps of a delegation show each call with its output, and the failed one as failed", async () => {
  await row("Read CHANGELOG.md").click();
  const steps = card(page, RELEASE_CARD).getByRole("listitem");
  const failed = steps.filter({ hasText: "CHANGES.md" }).filter({ has: page.locator("summary") });
  assert.match(await failed.innerText(), /error/);
  await failed.locator("summary").click();
  assert.match(await failed.getByLabel("Output").innerText(), /does not exist/);
  await row("Write NOTES.md").click();
  assert.match(await steps.filter({ hasText: "asked you" }).innerText(), /fs_write: allowed once/);
  await row("Write NOTES.md").click();
  await row("Read CHANGELOG.md").click();
});

test("the footer has model, calls, rounds, tokens and cost of the log", async () => {
  const text = (await card(page, RELEASE_CARD).locator("footer").innerText()).replaceAll(/\s+/g, " ");
  const end = events.find((event) => event.type === "turn.finished");
  assert.match(text, new RegExp(`openai/gpt-6-sol ${end.model_calls} model calls ${end.tool_calls} tool calls round ${end.rounds} of 3 .* in · .* cached · ${end.usage.output_tokens} out \\$0\\.0\\d+ `));
});

test("an answer is Markdown with a table, highlighted code and the image of a result", async () => {
  const answer = card(page, RELEASE_CARD);
  assert.deepEqual(await answer.getByRole("columnheader").allInnerTexts(), ["Area", "Change", "Measured"]);
  const code = answer.locator("pre code").filter({ hasText: "sha256sum" });
  assert.ok((await code.locator("span").count()) > 0, "no part of the code is highlighted");
  assert.equal(await answer.getByRole("checkbox", { name: "done", exact: true }).count(), 2);
  const image = answer.getByRole("img", { name: "Time to open a session, by release" });
  await image.scrollIntoViewIfNeeded();
  await page.waitForFunction((/** @type {any} */ element) => element.naturalWidth === 360, await image.elementHandle());
});

test("nothing of an answer or a result runs as HTML or loads a remote image", async () => {
  const hostile = card(page, PAGE);
  await hostile.scrollIntoViewIfNeeded();
  assert.match(await hostile.innerText(), /<script>document\.title = "changed by the answer"<\/script>/);
  await hostile.getByRole("link", { name: "Build badge (image not loaded)" }).waitFor();
  await hostile.locator("summary").filter({ hasText: "Read page.html" }).click();
  await hostile.locator("summary").filter({ hasText: "fs_read" }).click();
  const output = hostile.getByLabel("Output");
  assert.ok((await output.innerText()).includes(PAGE_HTML.trim().split("\n")[1] ?? "?"));
  assert.equal(await output.locator("*").count(), 0, "the output has elements");
  assert.equal(await page.getByRole("heading", { name: "Build 2.4" }).count(), 0);
  assert.equal(await page.locator("script:not([src]), a[href^='javascript']").count(), 0);
  assert.doesNotMatch(await page.title(), /changed by/);
});

test("the policy blocks a remote image even if the page made one", async () => {
  const other = await browser.open(stage);
  const blocked = await other.evaluate(() => new Promise((resolve) => {
    document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
    const image = new Image();
    image.onload = () => resolve("loaded");
    image.src = "http://localhost:9/remote.png";
  }));
  assert.equal(blocked, "img-src");
  await other.context().close();
});

test("every response of the page has a policy of this server alone", async () => {
  for (const path of ["/", `/s/${session}`, "/view/usage", "/page/js/main.js", "/page/style.css"]) {
    const policy = (await fetch(stage.url + path)).headers.get("content-security-policy") ?? "";
    assert.match(policy, /^default-src 'none';/, path);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/, path);
  }
});

test("a failed turn says why", async () => {
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("link", { name: /^Translate the notes/ }).click();
  const failed = card(page, FAILS);
  await failed.waitFor();
  assert.match(await failed.innerText(), /The turn failed: .*the scripted model does not translate/);
});

test("the tree shows capabilities, the absent agent, the remote agent and who had which delegation", async () => {
  await page.goto(`${stage.url}/s/${session}/${events[0].turn}`);
  const tree = page.getByRole("complementary").getByRole("list", { name: "Agents" });
  const node = (/** @type {string} */ name) => tree.getByRole("listitem").filter({ has: page.locator("strong", { hasText: new RegExp(`^${name}$`) }) }).last();
  await node("partner").waitFor();
  assert.match(await tree.getByRole("listitem").first().innerText(), /^orchestrator\s[\s\S]*?no tools\s/);
  assert.match(await node("operator").getByRole("list", { name: "Capabilities" }).innerText(), /file operations/);
  assert.equal(await node("operator").getByRole("button", { name: /^[15] / }).count(), 2);
  assert.match(await node("planner").getByRole("button").innerText(), /rejected/);
  assert.match(await node("partner").innerText(), /remote\s+✓ reachable/);
  assert.match(await node("navigator").innerText(), /absent/);
});

test("the timeline has a lane for each agent, and waiting is not drawn as work", async () => {
  const side = page.getByRole("complementary");
  await side.getByRole("tab", { name: "Timeline" }).click();
  const lane = (/** @type {string} */ name) => side.getByRole("region", { name, exact: true });
  for (const name of ["orchestrator", "operator", "planner", "partner", "vault"]) await lane(name).waitFor();
  const asked = events.find((event) => event.type === "approval.requested");
  const answered = events.find((event) => event.type === "approval.answered");
  const waited = (answered.time - asked.time) / 1000;
  const waiting = lane("operator").getByRole("button", { name: /^Waiting for you: operator fs_write/ });
  assert.match((await waiting.getAttribute("aria-label")) ?? "", new RegExp(`, ${waited.toFixed(1)} s`));
  assert.match(await side.innerText(), new RegExp(`${waited.toFixed(1)} s waiting for you`));
  const worked = /· ([\d.]+) (ms|s)/.exec(await lane("operator").innerText());
  assert.ok(Number(worked?.[1]) * (worked?.[2] === "ms" ? 0.001 : 1) < waited, `the lane of operator counts waiting as work: ${worked?.[0]}`);
  assert.equal(await lane("partner").getByRole("button", { name: /^Remote agent: partner/ }).count(), 1);
  assert.equal(await lane("operator").getByRole("button", { name: /^Tool: operator fs_read .*CHANGES\.md.*, error$/ }).count(), 1);
  // The bars of a waiting and a working step look different.
  const look = (/** @type {import("playwright-core").Locator} */ bar) => bar.evaluate((element) => getComputedStyle(element).background + getComputedStyle(element).borderStyle);
  assert.notEqual(await look(waiting), await look(lane("operator").getByRole("button", { name: /^Tool/ }).first()));
});

test("the arrow keys move between the bars, and Enter opens one in the inspector", async () => {
  const side = page.getByRole("complementary");
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? "");
  await side.getByRole("button", { name: /^Waiting for you/ }).focus();
  await page.keyboard.press("ArrowLeft");
  const earlier = await focused();
  await page.keyboard.press("ArrowRight");
  assert.match(await focused(), /^Waiting for you/);
  assert.notEqual(earlier, await focused());
  await page.keyboard.press("Enter");
  assert.equal(await side.getByRole("tab", { name: "Inspector" }).getAttribute("aria-selected"), "true");
  assert.match(await side.innerText(), /Answer\s+allowed once/);
});

test("the inspector walks through exactly the steps that the log has", async () => {
  const turn = events[0].turn;
  assert.deepEqual(await shownSteps(page), stepsOf(events.filter((event) => event.turn === turn)));
});

test("the inspector shows the response, the usage and the raw event of a model call", async () => {
  const side = page.getByRole("complementary");
  await row("Read CHANGELOG.md").click();
  await card(page, RELEASE_CARD).getByRole("button", { name: /^Inspect model call/ }).last().click();
  await side.getByRole("tab", { name: "Response" }).click();
  await side.getByText("Release 2.4 has three changes").first().waitFor();
  await side.getByRole("tab", { name: "Usage" }).click();
  await side.getByText(/\$0\.\d+/).first().waitFor();
  await side.getByRole("tab", { name: "Raw" }).click();
  await side.getByText('"agent.message"').first().waitFor();
});

test("deep links open a turn, and back and forward follow them", async () => {
  const last = events.at(-1).turn;
  await page.goto(`${stage.url}/s/${session}/${last}`);
  await card(page, PAGE).waitFor();
  await page.getByRole("link", { name: "Usage" }).click();
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  await page.goBack();
  await card(page, PAGE).waitFor();
  assert.equal(new URL(page.url()).pathname, `/s/${session}/${last}`);
  await page.goForward();
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
});

test("a session can be renamed, forked, exported and deleted", async () => {
  const menu = (/** @type {string} */ item) => page.getByRole("menuitem", { name: item });
  await page.goto(`${stage.url}/s/${session}`);
  await card(page, PAGE).waitFor();
  await card(page, RELEASE_CARD).getByRole("button", { name: "Turn actions" }).click();
  await menu("Fork the session from here").click();
  await page.waitForURL((url) => !url.pathname.includes(session));
  await card(page, RELEASE_CARD).waitFor();
  assert.equal(await card(page, PAGE).count(), 0, "the fork has a turn after the one it was made at");
  await page.getByRole("button", { name: "Session actions" }).click();
  await menu("Rename…").click();
  await page.getByRole("textbox", { name: "Title" }).fill("A fork of the release");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "A fork of the release" }).waitFor();
  await page.getByRole("button", { name: "Session actions" }).click();
  const [download] = await Promise.all([page.waitForEvent("download"), menu("Export").click()]);
  assert.match(download.suggestedFilename(), /\.(jsonl|ndjson)$/);
  await page.getByRole("button", { name: "Session actions" }).click();
  await menu("Delete…").click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.waitForURL(`${stage.url}/`);
  assert.equal((await stage.client.get("/api/sessions")).sessions.length, 2);
});

test("the page had no error, asked no other host and had one event stream at a time", async () => {
  assert.equal(await page.evaluate(() => /** @type {any} */ (window).seen.most), 1);
  await browser.close(page);
});
