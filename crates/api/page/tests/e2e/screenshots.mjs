// Takes the pictures of the documentation: node screenshots.mjs FOLDER

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { card, createBrowser } from "./browser.mjs";
import { createClient, until } from "./lango.mjs";
import { createStage } from "./stage.mjs";

const folder = process.argv[2];
if (!folder) throw new Error("name the folder for the pictures");
await mkdir(folder, { recursive: true });

const recording = fileURLToPath(new URL("recording.jsonl", import.meta.url));
const [stage, browser] = await Promise.all([createStage({ hasRemote: true, recording }), createBrowser()]);
try {
  const { home, url } = stage;
  const client = await createClient(url, { link: await home.link(url) });
  const session = await stage.recorded("Prepare release");
  const path = `/s/${session}/${(await stage.client.events(session))[0].turn}`;
  await home.run("knowledge", "add", "CHANGELOG.md");
  await client.post("/api/turns", { text: "write docs/upgrade.md" });
  await until(async () => (await client.get("/api/approvals")).pending[0]);

  /** @param {import("./browser.mjs").Page} page @param {string} name */
  const shot = async (page, name) => {
    // Nothing blinks and nothing is about to be drawn.
    await page.waitForLoadState("networkidle", { timeout: 1000 }).catch(() => {});
    await page.screenshot({ path: join(folder, `${name}.png`), caret: "hide", animations: "disabled" });
  };

  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    const page = await browser.open(stage, { colorScheme, path });
    const side = page.getByRole("complementary");
    await page.getByRole("heading", { name: "Release 2.4 is ready" }).waitFor();
    await side.getByText("reachable").waitFor();
    await shot(page, `session-${colorScheme}`);
    if (colorScheme === "light") {
      await side.getByRole("tab", { name: "Timeline" }).click();
      await shot(page, "timeline");
      await card(page, "Prepare release").locator("summary").filter({ hasText: "Read CHANGELOG" }).click();
      await page.getByRole("button", { name: /^Inspect model call/ }).last().click();
      await side.getByRole("tab", { name: "Response" }).click();
      await side.getByText("three changes").first().waitFor();
      await shot(page, "inspector");
      await page.getByRole("heading", { name: "Release 2.4 is ready" }).scrollIntoViewIfNeeded();
      await page.getByRole("img", { name: /^Time to open/ }).scrollIntoViewIfNeeded();
      await shot(page, "answer");
    }
    await page.getByRole("button", { name: "Requests that need you: 1" }).click();
    await page.getByRole("dialog").getByLabel("What it would change").waitFor();
    await shot(page, `approvals-${colorScheme}`);
    await page.keyboard.press("Escape");
    for (const name of ["usage", "setup", "doctor", "grants", "knowledge"]) {
      if (colorScheme === "dark" && name !== "usage") continue;
      await page.goto(`${url}/view/${name}`);
      await page.getByRole("heading", { level: 1, name: new RegExp(name, "i") }).waitFor();
      await page.getByRole("main").getByText("Loading…").first().waitFor({ state: "detached" });
      await shot(page, colorScheme === "dark" ? `${name}-dark` : name);
    }
    await page.context().close();
  }

  const narrow = await browser.open(stage, { width: 360, height: 740, path });
  await narrow.getByRole("heading", { name: "Release 2.4 is ready" }).waitFor();
  await shot(narrow, "narrow-session");
  await narrow.getByRole("button", { name: "Sessions", exact: true }).click();
  await shot(narrow, "narrow-sessions");
  await narrow.keyboard.press("Escape");
  await narrow.getByRole("button", { name: "Agents, timeline and inspector" }).click();
  await narrow.getByRole("tab", { name: "Timeline" }).click();
  await shot(narrow, "narrow-timeline");
  await narrow.keyboard.press("Escape");
  await narrow.getByRole("button", { name: "Requests that need you: 1" }).click();
  await narrow.getByRole("dialog").getByLabel("What it would change").waitFor();
  await shot(narrow, "narrow-approval");
} finally {
  await browser.end();
  await stage.end();
}
