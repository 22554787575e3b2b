// Records the turns of recording.jsonl with the scripted model and a remote agent. Run it again when the form of events
// changes:
//
//   LANGO=target/debug/lango node crates/api/page/tests/e2e/record.mjs

import { writeFile } from "node:fs/promises";
import { createClient } from "./lango.mjs";
import { FAILS, PAGE, RELEASE } from "./script.mjs";
import { createStage } from "./stage.mjs";

/** How long the person thinks about an approval. */
const THINKING_MS = 2500;

const stage = await createStage({ hasRemote: true });
try {
  const { home, url } = stage;
  // As a browser does it, so that a person asks and not a program.
  const client = await createClient(url, { link: await home.link(url) });
  const failed = await play([FAILS]);
  const release = await play([RELEASE, PAGE]);
  await writeFile(new URL("recording.jsonl", import.meta.url), await home.run("sessions", "export", release, failed));

  /** Asks in a new session and returns its id. @param {string[]} questions */
  async function play(questions) {
    let session;
    for (const text of questions) {
      const started = await client.post("/api/turns", { session, text });
      session = started.session;
      await finished(session, started.turn);
    }
    return session;
  }

  /** Waits for the end of a turn and allows what it asks for. @param {string} id @param {string} turn */
  async function finished(id, turn) {
    for (;;) {
      const { events } = await client.get(`/api/sessions/${id}/turns/${turn}`);
      if (events.some((/** @type {any} */ event) => event.type === "turn.finished")) return;
      const { pending } = await client.get("/api/approvals");
      for (const request of pending) {
        await new Promise((resolve) => setTimeout(resolve, THINKING_MS));
        await client.post(`/api/approvals/${request.id}`, { answer: "once" });
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
} finally {
  await stage.end();
}
