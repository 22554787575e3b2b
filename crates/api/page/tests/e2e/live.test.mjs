// What happens while the page is open: from the first visit to an answered approval, a reload in mid-stream, several browsers,
// other processes, and a server that is killed and comes back.

import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ask, card, createBrowser, sessionOf, shownSteps, stepsOf } from "./browser.mjs";
import { createClient, until } from "./lango.mjs";
import { createStage } from "./stage.mjs";

/** How long a stored event may take to be on another process's page. */
const MOST_DELAY_MS = 500;

/** @type {import("./stage.mjs").Stage} */
let stage;
/** @type {Awaited<ReturnType<typeof createBrowser>>} */
let browser;

before(async () => {
  [stage, browser] = await Promise.all([createStage(), createBrowser()]);
});

after(async () => {
  await browser?.end();
  await stage?.end();
});

/** @typedef {import("./browser.mjs").Page} Page */

/** @param {Page} page @param {string} tool */
const request = (page, tool = "fs_write") => page.getByRole("main").getByRole("region", { name: `Approval: operator wants to run ${tool}` });
/** @param {Page} page @param {number} count */
const countShown = (page, count) => page.waitForFunction((wanted) => document.title.startsWith(wanted ? `(${wanted}) ` : "") && (wanted > 0 || !document.title.startsWith("(")), count);

/** What the event stream of a page brought for a session. @param {Page} page @param {string} session @returns {Promise<{seq: number, delay: number}[]>} */
const received = (page, session) => page.evaluate((id) => /** @type {any} */ (window).seen.received.filter((/** @type {any} */ event) => event.session === id), session);

/** Fails if an event was on its way for too long. @param {{delay: number}[]} events */
function checkDelays(events) {
  const slowest = Math.max(...events.map((event) => event.delay));
  assert.ok(slowest <= MOST_DELAY_MS, `an event took ${slowest} ms`);
}

/** @param {string} session */
async function finished(session) {
  await until(async () => !["running", "waiting"].includes((await stage.client.get(`/api/sessions/${session}`)).status));
}

test("a browser that is not signed in is told how, and a link works once", async () => {
  const page = await browser.open(stage, { isSignedIn: false });
  await page.getByRole("heading", { name: "Sign in to lango" }).waitFor();
  assert.match(await page.getByRole("region", { name: "Sign in to lango" }).innerText(), /lango tokens link/);
  const link = await stage.home.link(stage.url);
  await page.goto(link);
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  const second = await browser.open(stage, { isSignedIn: false });
  await second.goto(link);
  assert.match(await second.locator("body").innerText(), /used before/);
  await browser.close(second);
  await browser.close(page);
});

test("from the first visit to an answered approval", async () => {
  const page = await browser.open(stage);
  await page.getByText("Start a session below").waitFor();
  await ask(page, "write hello.md");
  const box = request(page);
  await box.getByLabel("What it would change").waitFor();
  assert.match(await box.innerText(), /\+# hello\.md/);
  assert.match(await box.innerText(), /moderate/);
  assert.match(await box.innerText(), /it changes something, and no rule allows it/);
  await countShown(page, 1);
  await assert.rejects(access(join(stage.home.folder, "hello.md")), "the file was written before it was allowed");
  await box.getByRole("button", { name: "Allow once" }).click();
  await card(page, "write hello.md").getByText("Finished: write hello.md").waitFor();
  await countShown(page, 0);
  assert.equal(await request(page).count(), 0);
  assert.equal(await readFile(join(stage.home.folder, "hello.md"), "utf8"), "# hello.md\n");

  // The request as it was sent, computed again from the log, and what changed since the call before.
  const side = page.getByRole("complementary");
  await card(page, "write hello.md").locator("summary").first().click();
  await card(page, "write hello.md").getByRole("button", { name: /^Inspect model call/ }).last().click();
  await side.getByRole("tab", { name: "Request" }).click();
  await side.getByText(/Instruction, [\d,.k]+ characters/).waitFor();
  await side.getByText("created hello.md").first().waitFor();
  await side.getByRole("tab", { name: "Diff" }).click();
  await side.getByText(/^\+.*fs_write/).first().waitFor();
  await browser.close(page);
});

test("a denial tells the agent the reason, and a grant has the pattern as it was edited", async () => {
  const page = await browser.open(stage);
  await ask(page, "write secret.md");
  const session = await sessionOf(page);
  await request(page).getByRole("button", { name: "Deny…" }).click();
  await request(page).getByRole("textbox").fill("not in this folder");
  await page.keyboard.press("Enter");
  await card(page, "write secret.md").getByText("Finished: write secret.md").waitFor();
  const denied = (await stage.client.events(session)).find((event) => event.type === "approval.answered");
  assert.deepEqual([denied.answer, denied.reason], ["no", "not in this folder"]);
  await ask(page, "write allowed-1.md");
  await request(page).getByRole("button", { name: "Always…" }).click();
  const pattern = request(page).getByRole("textbox");
  assert.equal(await pattern.inputValue(), "allowed-1.md");
  await pattern.fill("allowed-*");
  await page.keyboard.press("Enter");
  await card(page, "write allowed-1.md").getByText("Finished: write allowed-1.md").waitFor();
  await ask(page, "write allowed-2.md");
  await card(page, "write allowed-2.md").getByText("Finished: write allowed-2.md").waitFor();
  const { grants } = await stage.client.get("/api/approvals");
  assert.deepEqual(grants.map((/** @type {any} */ grant) => grant.pattern), ["allowed-*"]);
  await browser.close(page);
});

test("a reload in mid-stream shows the draft again, and then the answer once", async () => {
  const page = await browser.open(stage);
  await ask(page, "say reload");
  await stage.model.reached("reload");
  await page.getByText("has a beginning that is shown").waitFor();
  const session = await sessionOf(page);
  await page.reload();
  await card(page, "say reload").getByText("has a beginning that is shown").waitFor();
  assert.doesNotMatch(await card(page, "say reload").innerText(), /opens\./);
  stage.model.open("reload");
  const whole = card(page, "say reload").getByText("comes when the gate reload opens.");
  await whole.waitFor();
  await finished(session);
  const before = await card(page, "say reload").innerText();
  assert.equal(before.split("has a beginning").length, 2, "the answer is there twice");
  // A reload of a finished turn shows the same.
  await page.reload();
  await whole.waitFor();
  assert.equal(await card(page, "say reload").innerText(), before);
  assert.equal(await page.getByRole("article").count(), 1);
  await browser.close(page);
});

test("an approval that is answered in one browser disappears in the other, from the turn and the tray", async () => {
  const [first, second] = [await browser.open(stage), await browser.open(stage, { hasOwnLink: true })];
  await ask(first, "write both.md");
  const session = await sessionOf(first);
  await request(first).waitFor();
  await second.goto(`${stage.url}/s/${session}`);
  await request(second).waitFor();
  await countShown(second, 1);
  await second.getByRole("button", { name: "Requests that need you: 1" }).click();
  const tray = second.getByRole("dialog", { name: "Needs you" });
  await tray.getByRole("region", { name: /^Approval/ }).waitFor();
  await request(first).getByRole("button", { name: "Allow once" }).click();
  await tray.getByText("Nothing waits for you.").waitFor();
  await Promise.all([countShown(first, 0), countShown(second, 0)]);
  await second.keyboard.press("Escape");
  await card(second, "write both.md").getByText("Finished: write both.md").waitFor();
  assert.equal(await request(second).count(), 0);
  assert.deepEqual((await received(second, session)).map((event) => event.seq).filter((seq, index, all) => all.indexOf(seq) !== index), []);
  await Promise.all([browser.close(first), browser.close(second)]);
});

test("an approval that is answered in a terminal disappears on the page", async () => {
  const page = await browser.open(stage);
  await ask(page, "write terminal.md");
  await request(page).waitFor();
  const { pending } = await stage.client.get("/api/approvals");
  await stage.home.run("approvals", "answer", pending[0].id, "yes");
  await request(page).waitFor({ state: "detached" });
  await countShown(page, 0);
  await card(page, "write terminal.md").getByText("Finished: write terminal.md").waitFor();
  await browser.close(page);
});

test("a turn that is started in a terminal appears on the page, within half a second of each event", async () => {
  const page = await browser.open(stage);
  await ask(page, "hello");
  const session = await sessionOf(page);
  await card(page, "hello").getByText("You said: hello").waitFor();
  const known = (await received(page, session)).length;
  await stage.home.run("run", "--session", session, "List terminal-turn");
  await card(page, "List terminal-turn").getByText("You said: List terminal-turn").waitFor();
  const later = (await received(page, session)).slice(known);
  assert.ok(later.length >= 3);
  checkDelays(later);
  await browser.close(page);
});

test("a task by A2A appears in the list and can be followed", async () => {
  const page = await browser.open(stage);
  await page.getByText("Start a session below").waitFor();
  const message = { messageId: "a2a-1", role: "ROLE_USER", parts: [{ text: "say a2a" }] };
  const sent = fetch(stage.url, {
    method: "POST",
    headers: { "content-type": "application/json", "a2a-version": "1.0", authorization: `Bearer ${await stage.home.callerToken()}` },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } }),
  });
  const link = page.getByRole("navigation", { name: "Sessions" }).getByRole("link", { name: /^say a2a/ });
  await link.waitFor();
  assert.match(await link.innerText(), /running[\s\S]*program[\s\S]*a2a/);
  await link.click();
  // The turn runs in this process, so that its draft is shown.
  await card(page, "say a2a").getByText("has a beginning that is shown").waitFor();
  stage.model.open("a2a");
  await card(page, "say a2a").getByText("the gate a2a opens.").waitFor();
  assert.equal((await sent).status, 200);
  checkDelays(await received(page, await sessionOf(page)));
  await browser.close(page);
});

test("a turn on another replica appears on the page, and its approval can be answered there", async () => {
  const page = await browser.open(stage);
  await ask(page, "hello again");
  const session = await sessionOf(page);
  await card(page, "hello again").getByText("You said: hello again").waitFor();
  const replica = await stage.home.serve();
  const other = await createClient(replica.url, { token: await stage.home.token() });
  const known = (await received(page, session)).length;
  await other.post("/api/turns", { session, text: "say replica" });
  await stage.model.reached("replica");
  await card(page, "say replica").waitFor();
  assert.doesNotMatch(await card(page, "say replica").innerText(), /beginning/, "a draft came from another process");
  stage.model.open("replica");
  await card(page, "say replica").getByText("the gate replica opens.").waitFor();
  checkDelays((await received(page, session)).slice(known));
  await finished(session);
  await other.post("/api/turns", { session, text: "write replica.md" });
  await request(page).getByRole("button", { name: "Allow once" }).click();
  await card(page, "write replica.md").getByText("Finished: write replica.md").waitFor();
  await request(page).waitFor({ state: "detached" });
  await replica.kill();
  await browser.close(page);
});

test("a message to a busy session is queued, and Stop ends the running turn", async () => {
  const page = await browser.open(stage);
  await ask(page, "say stopped");
  const session = await sessionOf(page);
  await stage.model.reached("stopped");
  await card(page, "say stopped").waitFor();
  await ask(page, "hello after that");
  await page.getByRole("list", { name: "On their way" }).getByText("queued").waitFor();
  await page.getByRole("button", { name: "Stop the running turn" }).click();
  await card(page, "say stopped").getByText("You stopped this turn").waitFor();
  await card(page, "hello after that").getByText("You said: hello after that").waitFor();
  assert.equal(await page.getByRole("list", { name: "On their way" }).getByRole("listitem").count(), 0);
  stage.model.open("stopped");
  await finished(session);
  await browser.close(page);
});

test("a server that is killed in mid-stream comes back without a gap or a duplicate", async () => {
  const page = await browser.open(stage);
  await ask(page, "steps killed");
  const session = await sessionOf(page);
  await stage.model.reached("killed");
  await card(page, "steps killed").locator("summary").filter({ hasText: "3 tools" }).waitFor();
  await stage.server.kill();
  await page.getByRole("status").filter({ hasText: "Offline" }).waitFor();
  // What is written meanwhile is sent when the server is back.
  await ask(page, "hello from the outbox");
  stage.model.open("killed");
  stage.server = await stage.home.serve(stage.server.port);
  await card(page, "steps killed").getByText("Finished: steps killed").waitFor();
  await card(page, "hello from the outbox").getByText("You said: hello from the outbox").waitFor();
  await finished(session);
  assert.equal(await page.getByRole("status").filter({ hasText: "Offline" }).count(), 0);

  const log = await stage.client.events(session);
  assert.deepEqual(log.map((event) => event.seq), log.map((_, index) => index + 1));
  const seqs = (await received(page, session)).map((event) => event.seq);
  const first = Number(seqs[0]);
  assert.deepEqual(seqs, log.map((event) => event.seq).slice(first - 1), "the streams brought a gap or a duplicate");
  const questions = log.filter((event) => event.type === "user.message").map((event) => event.text);
  assert.deepEqual(questions, ["steps killed", "hello from the outbox"]);
  assert.equal(await page.getByRole("article").count(), 2);
  await page.goto(`${stage.url}/s/${session}/${log[0].turn}`);
  await card(page, "steps killed").waitFor();
  const steps = stepsOf(log.filter((event) => event.turn === log[0].turn));
  assert.deepEqual(await shownSteps(page), steps);
  await page.context().close();
});

test("a page that stayed open through the crash shows the same as one that was loaded after it", async () => {
  const open = "say open";
  const page = await browser.open(stage);
  await ask(page, open);
  const session = await sessionOf(page);
  await stage.model.reached("open");
  await page.getByText("has a beginning that is shown").waitFor();
  await stage.server.kill();
  stage.server = await stage.home.serve(stage.server.port);
  stage.model.open("open");
  await card(page, open).getByText("the gate open opens.").waitFor();
  await finished(session);
  const steps = stepsOf(await stage.client.events(session));
  assert.deepEqual(await shownSteps(page), steps);
  const shown = await card(page, open).innerText();
  await page.reload();
  await card(page, open).getByText("the gate open opens.").waitFor();
  assert.equal(await card(page, open).innerText(), shown);
  await page.context().close();
});

test("an approval can be answered while another agent of the turn still works", async (t) => {
  // A failure would leave a request that other tests count.
  const own = await createStage();
  t.after(own.end);
  const page = await browser.open(own);
  await ask(page, "both early");
  await own.model.reached("early");
  await request(page).getByRole("button", { name: "Allow once" }).click();
  own.model.open("early");
  await card(page, "both early").getByText("Finished: both early").waitFor();
  assert.equal(await readFile(join(own.home.folder, "early.md"), "utf8"), "# early.md\n");
  await browser.close(page);
});
