// Tests `/agui` with the official client, which validates every event. Started by scripts/api-clients.
import assert from "node:assert/strict";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";

const { CLIENTS_URL, CLIENTS_TOKEN, CLIENTS_RUN_TOKEN } = process.env;
const ASK = 'create todo.txt with the words "milk and bread"';

// The client warns when it has to strip or repair something, which must not happen.
const warnings = [];
console.warn = (...parts) => warnings.push(parts.join(" "));
// The client prints the errors that the checks expect.
console.error = () => {};

async function check(name, body) {
  try {
    await body();
    assert.deepEqual(warnings.splice(0), []);
    console.log(`ok @ag-ui/client: ${name}`);
  } catch (error) {
    console.log(`FAILED @ag-ui/client: ${name}: ${error.name}: ${error.message.replaceAll("\n", " ")}`);
  }
}

const createAgent = (threadId, token = CLIENTS_TOKEN) =>
  new HttpAgent({ url: `${CLIENTS_URL}/agui`, threadId, headers: { Authorization: `Bearer ${token}` } });

function say(agent, content) {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
}

/** Runs an agent and returns the events that its subscribers receive. */
async function run(agent, parameters = {}) {
  const events = [];
  const result = await agent.runAgent(parameters, { onEvent: ({ event }) => void events.push(event) });
  return { events, result };
}

const types = (events) => events.map((event) => event.type);

await check("a run answers with a text message", async () => {
  const agent = createAgent("agui-hello");
  say(agent, "hello");
  const { events } = await run(agent);
  assert.equal(types(events)[0], "RUN_STARTED");
  assert.deepEqual(events.at(-1).outcome, { type: "success" });
  assert.match(agent.messages.at(-1).content, /^Hello!/);
});

await check("a thread continues, with steps, activities and tool calls", async () => {
  const agent = createAgent("agui-hello");
  say(agent, "hello");
  await run(agent);
  say(agent, "what files are here?");
  const { events } = await run(agent);
  for (const type of ["STEP_STARTED", "ACTIVITY_SNAPSHOT", "TOOL_CALL_START", "TOOL_CALL_RESULT", "STEP_FINISHED"]) {
    assert(types(events).includes(type), `no ${type} in ${types(events)}`);
  }
  assert.match(agent.messages.at(-1).content, /notes\.txt/);
});

for (const approved of [false, true]) {
  await check(`an interrupt is answered with ${approved ? "yes" : "no"}`, async () => {
    const agent = createAgent(`agui-approval-${approved}`);
    say(agent, ASK);
    const { events } = await run(agent);
    const { outcome } = events.at(-1);
    assert.equal(outcome.type, "interrupt");
    assert.equal(agent.pendingInterrupts.length, 1);
    const [interrupt] = agent.pendingInterrupts;
    const proposal = events.find((event) => event.type === "TOOL_CALL_START");
    assert.equal(proposal.toolCallId, interrupt.toolCallId);
    const payload = { approved };
    const resume = buildResumeArray(agent.pendingInterrupts, { [interrupt.id]: { status: "resolved", payload } });
    const second = await run(agent, { resume });
    assert.equal(second.events.at(-1).outcome.type, "success", JSON.stringify(second.events.at(-1)));
    assert.equal(agent.pendingInterrupts.length, 0);
    assert(!types(second.events).includes("TOOL_CALL_START"));
    const result = second.events.find((event) => event.type === "TOOL_CALL_RESULT");
    assert.equal(result.toolCallId, interrupt.toolCallId);
  });
}

await check("a token without `approve` cannot answer an interrupt", async () => {
  const agent = createAgent("agui-runner", CLIENTS_RUN_TOKEN);
  say(agent, ASK);
  await run(agent);
  const [interrupt] = agent.pendingInterrupts;
  const resume = [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true } }];
  await assert.rejects(run(agent, { resume }), (error) => error.status === 403 && /approve/.test(error.message));
  agent.headers.Authorization = `Bearer ${CLIENTS_TOKEN}`;
  await run(agent, { resume: [{ interruptId: interrupt.id, status: "cancelled" }] });
  assert.equal(agent.pendingInterrupts.length, 0);
});

await check("tools of the client are refused with a run error", async () => {
  const agent = createAgent("agui-tools");
  say(agent, "hello");
  const tools = [{ name: "f", description: "f", parameters: { type: "object", properties: {} } }];
  const errors = [];
  const subscriber = { onRunErrorEvent: ({ event }) => void errors.push(event.message) };
  await agent.runAgent({ tools }, subscriber).catch(() => {});
  assert.match(errors[0], /own tools/);
});

await check("a wrong token is an error", async () => {
  const agent = createAgent("agui-stranger", "wrong");
  say(agent, "hello");
  await assert.rejects(run(agent), (error) => error.status === 401);
});

console.log("end of @ag-ui/client");
