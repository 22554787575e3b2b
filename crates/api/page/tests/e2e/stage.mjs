// Everything that a test needs around a server: the scripted model, a remote agent, and the files that agents read.

import { chart } from "./chart.mjs";
import { createClient, createHome } from "./lango.mjs";
import { startModelServer } from "./model-server.mjs";
import { CHANGELOG, PAGE_HTML, script } from "./script.mjs";

/** @typedef {Awaited<ReturnType<typeof createStage>>} Stage */

/** @param {{hasRemote?: boolean, recording?: string, settings?: string[]}} [options] `recording` is imported before the server starts */
export async function createStage({ hasRemote = false, recording, settings = [] } = {}) {
  const model = await startModelServer(script);
  const remote = hasRemote ? await createRemote() : null;
  const home = await createHome([
    "agent.model=openai/gpt-6-sol",
    `providers.openai.baseUrl=${model.url}`,
    ...(remote ? [`a2a.remoteAgents=[{name="partner",agentCardUrl="${remote.url}"}]`] : []),
    ...settings,
  ]);
  await home.write("CHANGELOG.md", CHANGELOG);
  await home.write("page.html", PAGE_HTML);
  await home.write("chart.png", chart());
  if (recording) await home.run("sessions", "import", recording);
  const token = await home.token();
  const server = await home.serve();
  return {
    model,
    home,
    server,
    url: server.url,
    client: await createClient(server.url, { token }),
    /** The session of the recording with a title that begins like this. @param {string} title */
    async recorded(title) {
      const { sessions } = await this.client.get("/api/sessions");
      return sessions.find((/** @type {any} */ session) => session.title.startsWith(title)).id;
    },
    async end() {
      model.close();
      await home.remove();
      await remote?.home.remove();
    },
  };
}

/** A second lango with the built-in rules, which the first one calls by A2A. */
async function createRemote() {
  const home = await createHome(["agent.model=offline/rules", "server.requireToken=false"]);
  await home.write("build.log", "all green\n");
  const server = await home.serve();
  return { home, url: server.url };
}
