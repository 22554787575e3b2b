// Runs the real program: servers with a home and a folder of their own, and single commands in them.

import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const program = process.env.LANGO ?? "";
if (!program) throw new Error("LANGO must name the program to test; scripts/page-tests sets it");

/** How long a server may take to answer, on a busy machine. */
const START_MS = 30_000;

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

/** @typedef {Awaited<ReturnType<typeof createHome>>} Home */
/** @typedef {Awaited<ReturnType<Home["serve"]>>} Server */

/** Makes a home and a folder that agents work in. @param {string[]} settings such as `agent.multiAgent=false` */
export async function createHome(settings = []) {
  const base = await mkdtemp(join(tmpdir(), "lango-page-"));
  const folder = join(base, "project");
  await mkdir(folder);
  await mkdir(join(base, "home"), { mode: 0o700 });
  // A browser of the agents themselves is not part of these tests.
  const flags = ["browser.enabled=false", ...settings].flatMap((setting) => ["-c", setting]);
  const kept = ["PATH", "LANG", "TMPDIR"].flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []));
  const env = { ...Object.fromEntries(kept), HOME: base, LANGO_HOME: join(base, "home"), OPENAI_API_KEY: "key-of-the-tests" };
  /** @type {Set<import("node:child_process").ChildProcess>} */
  const running = new Set();
  // A test that is ended from outside leaves no server behind.
  process.once("exit", () => running.forEach((child) => child.kill("SIGKILL")));

  /** Runs a command and returns what it prints. @param {string[]} args */
  async function run(...args) {
    const command = promisify(execFile)(program, [...flags, ...args], { cwd: folder, env, maxBuffer: 1 << 28 });
    // What is piped in would be a part of the question.
    command.child.stdin?.end();
    try {
      return (await command).stdout;
    } catch (error) {
      throw new Error(`lango ${args.join(" ")}: ${/** @type {any} */ (error).stderr ?? error}`);
    }
  }

  /** Starts a command and does not wait for it. @param {string[]} args */
  function start(...args) {
    const child = spawn(program, [...flags, ...args], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (output += part));
    const ended = new Promise((resolve) => child.once("exit", (code) => (running.delete(child), resolve(code))));
    return { child, ended, output: () => output };
  }

  /** Starts a server and waits until it answers. @param {number} [port] */
  async function serve(port) {
    const chosen = port ?? (await freePort());
    const url = `http://127.0.0.1:${chosen}`;
    const server = start("serve", "--port", String(chosen));
    await until(async () => {
      if (server.child.exitCode !== null) throw new Error(`the server did not start: ${server.output()}`);
      return fetch(`${url}/.well-known/agent-card.json`).then((response) => response.ok, () => false);
    });
    return {
      url,
      port: chosen,
      output: server.output,
      /** Ends the process at once, as a crash does. */
      async kill() {
        server.child.kill("SIGKILL");
        await server.ended;
      },
    };
  }

  return {
    folder,
    run,
    start,
    serve,
    /** A link that signs one browser in. @param {string} url */
    link: async (url) => (await run("tokens", "link", "--url", url)).match(/http\S+/)?.[0] ?? "",
    /** A token for requests of the test itself. @param {string[]} scopes */
    async token(...scopes) {
      const names = scopes.length ? scopes : ["read", "run", "approve"];
      return (await run("tokens", "create", "test", ...names.flatMap((scope) => ["--scope", scope]))).trim();
    },
    /** The token of A2A callers, which the server makes at its first start. */
    callerToken: async () => (await readFile(join(base, "home", "server-token"), "utf8")).trim(),
    /** @param {string} name @param {string | Uint8Array} content */
    write: (name, content) => writeFile(join(folder, name), content),
    async remove() {
      for (const child of running) child.kill("SIGKILL");
      await rm(base, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The API of a server, with a token or as a signed-in browser. @param {string} url @param {{token: string} | {link: string}} access */
export async function createClient(url, access) {
  /** @type {Record<string, string>} */
  const identity = "token" in access ? { authorization: `Bearer ${access.token}` } : { cookie: await signIn(access.link), origin: url };
  /** @param {string} method @param {string} path @param {object} [body] */
  async function call(method, path, body) {
    const headers = { ...identity, "content-type": "application/json" };
    const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }
  return {
    get: (/** @type {string} */ path) => call("GET", path),
    post: (/** @type {string} */ path, /** @type {object} */ body = {}) => call("POST", path, body),
    /** All events of a session. @param {string} session @returns {Promise<any[]>} */
    async events(session) {
      const events = [];
      for (;;) {
        const page = await call("GET", `/api/sessions/${session}/events?after=${events.length}&limit=1000`);
        events.push(...page.events);
        if (page.events.length === 0 || events.length >= page.last) return events;
      }
    },
  };
}

/** @param {string} link */
async function signIn(link) {
  const response = await fetch(link);
  const cookie = response.headers.get("set-cookie")?.split(";")[0];
  if (!cookie) throw new Error(`the link signs nobody in: ${response.status} ${await response.text()}`);
  return cookie;
}

/** Asks again until there is something, and returns it. @template T @param {() => Promise<T>} look @returns {Promise<T>} */
export async function until(look) {
  const end = Date.now() + START_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`nothing happened within ${START_MS} ms: ${look}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** @returns {Promise<number>} */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}
