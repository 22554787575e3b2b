// Tests `/v1/` with the official client for Node. Started by scripts/api-clients.
import assert from "node:assert/strict";
import OpenAI from "openai";

const { CLIENTS_URL, CLIENTS_TOKEN } = process.env;
const client = new OpenAI({ baseURL: `${CLIENTS_URL}/v1`, apiKey: CLIENTS_TOKEN });
const ASK = 'create todo.txt with the words "milk and bread"';

async function check(name, body) {
  try {
    await body();
    console.log(`ok openai for Node: ${name}`);
  } catch (error) {
    console.log(`FAILED openai for Node: ${name}: ${error.name}: ${error.message.replaceAll("\n", " ")}`);
  }
}

const chat = (content, more = {}, options = {}) =>
  client.chat.completions.create({ model: "lango", messages: [{ role: "user", content }], ...more }, options);

async function deny(approval) {
  const response = await fetch(`${CLIENTS_URL}/api/approvals/${approval}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${CLIENTS_TOKEN}`, "Content-Type": "application/json" },
    body: JSON.stringify({ answer: "no" }),
  });
  assert.equal(response.status, 202);
}

async function expectRefusal(kind, promise) {
  try {
    await promise;
  } catch (error) {
    assert(error instanceof kind, `${error.constructor.name} instead of ${kind.name}: ${error.message}`);
    assert(error.error.message);
    return error;
  }
  throw new Error(`the request was not refused with ${kind.name}`);
}

await check("lists models", async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert(ids.includes("lango") && ids.includes("offline/rules"));
  assert.equal((await client.models.retrieve("offline/rules")).id, "offline/rules");
});

await check("chat, whole", async () => {
  const completion = await chat("hello");
  assert.match(completion.choices[0].message.content, /^Hello!/);
  assert.equal(completion.choices[0].finish_reason, "stop");
});

await check("chat, streamed, with usage", async () => {
  let text = "";
  let last;
  for await (const chunk of await chat("hello", { stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta.content ?? "";
    last = chunk;
  }
  assert.match(text, /^Hello!/);
  assert.equal(typeof last.usage.total_tokens, "number");
});

await check("chat, streamed with the helper", async () => {
  const messages = [{ role: "user", content: "what files are here?" }];
  const stream = client.chat.completions.stream({ model: "lango", messages });
  const completion = await stream.finalChatCompletion();
  assert.match(completion.choices[0].message.content, /notes\.txt/);
});

await check("a session continues by its header", async () => {
  const headers = { "X-Lango-Session": "node-chat" };
  const first = await chat("hello", {}, { headers }).withResponse();
  const session = first.response.headers.get("x-lango-session");
  const again = await chat("what files are here?", {}, { headers: { "X-Lango-Session": session } }).withResponse();
  assert.equal(again.response.headers.get("x-lango-session"), session);
  assert.match(again.data.choices[0].message.content, /notes\.txt/);
});

await check("a pending approval ends a completion with its id", async () => {
  const completion = await chat(ASK);
  const [approval] = completion.lango.approvals;
  assert(completion.choices[0].message.content.includes(approval));
  await deny(approval);
});

await check("responses, whole", async () => {
  const response = await client.responses.create({ model: "lango", input: "hello" });
  assert.equal(response.status, "completed");
  assert.match(response.output_text, /^Hello!/);
});

await check("responses, streamed", async () => {
  let [text, number, last] = ["", 0, null];
  for await (const event of await client.responses.create({ model: "lango", input: "hello", stream: true })) {
    assert.equal(event.sequence_number, number++);
    if (event.type === "response.output_text.delta") text += event.delta;
    last = event;
  }
  assert.equal(last.type, "response.completed");
  assert.equal(last.response.output[0].content[0].text, text);
});

await check("responses, streamed with the helper", async () => {
  const stream = client.responses.stream({ model: "lango", input: "what files are here?" });
  const response = await stream.finalResponse();
  assert.match(response.output_text, /notes\.txt/);
});

await check("responses continue by conversation and previous_response_id", async () => {
  const first = await client.responses.create({ model: "lango", input: "hello", conversation: "node-responses" });
  for (const more of [{ conversation: { id: first.conversation.id } }, { previous_response_id: first.id }]) {
    const response = await client.responses.create({ model: "lango", input: "what files are here?", ...more });
    assert.equal(response.conversation.id, first.conversation.id);
    assert.match(response.output_text, /notes\.txt/);
  }
});

await check("a pending approval makes a response incomplete", async () => {
  const response = await client.responses.create({ model: "lango", input: ASK });
  assert.equal(response.status, "incomplete");
  await deny(response.lango.approvals[0]);
});

await check("errors have the client's own types", async () => {
  const stranger = new OpenAI({ baseURL: `${CLIENTS_URL}/v1`, apiKey: "wrong" });
  await expectRefusal(OpenAI.AuthenticationError, stranger.models.list());
  const messages = [{ role: "user", content: "hi" }];
  const missing = await expectRefusal(OpenAI.NotFoundError, client.chat.completions.create({ model: "gpt-9", messages }));
  assert.equal(missing.code, "model_not_found");
  const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
  const error = await expectRefusal(OpenAI.BadRequestError, chat("hi", { tools, stream: true }));
  assert.match(error.message, /own tools/);
  assert.equal(error.param, "tools");
});

console.log("end of openai for Node");
