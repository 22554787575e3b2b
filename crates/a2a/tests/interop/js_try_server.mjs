// Calls `lango serve` with the client of the JavaScript SDK, over both bindings, with and without streaming, and checks the results.
//
//   node js_try_server.mjs BASE_URL TOKEN_FILE ANSWER
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { Role, TaskState } from '@a2a-js/sdk';

const [base, tokenFile, answer] = process.argv.slice(2);
const token = readFileSync(tokenFile, 'utf8').trim();
const fetchImpl = (url, options = {}) => {
  const headers = new Headers(options.headers);
  headers.set('Authorization', `Bearer ${token}`);
  return fetch(url, { ...options, headers });
};

const request = () => ({
  tenant: '', configuration: undefined, metadata: undefined,
  message: {
    messageId: randomUUID(), contextId: '', taskId: '', role: Role.ROLE_USER, metadata: undefined, extensions: [],
    referenceTaskIds: [],
    parts: [{ content: { $case: 'text', value: 'say the words' }, metadata: undefined, filename: '', mediaType: '' }],
  },
});
const artifactText = (artifact) => artifact.parts.map((part) => part.content?.value ?? '').join('');

let wrong = 0;
const check = (variant, name, isOk, actual) => {
  console.log(`${isOk ? 'ok  ' : 'OFF '} ${variant}: ${name}${isOk ? '' : ` (${JSON.stringify(actual)})`}`);
  wrong += isOk ? 0 : 1;
};
for (const transport of [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })]) {
  const client = await new ClientFactory({ transports: [transport] }).createFromUrl(base);
  const sent = await client.sendMessage(request());
  const task = sent.payload?.value ?? sent;
  const whole = `${transport.protocolName}, not streamed`;
  check(whole, 'the task is completed', task.status?.state === TaskState.TASK_STATE_COMPLETED, task);
  check(whole, 'the answer is complete', task.artifacts?.map(artifactText).join('') === answer, task);
  const streamed = `${transport.protocolName}, streamed`;
  let text = '';
  let chunks = 0;
  let state;
  for await (const event of client.sendMessageStream(request())) {
    const { $case, value } = event.payload;
    if ($case === 'artifactUpdate') {
      chunks += 1;
      text = value.append ? text + artifactText(value.artifact) : artifactText(value.artifact);
    }
    if ($case === 'statusUpdate') state = value.status.state;
  }
  check(streamed, 'the task is completed', state === TaskState.TASK_STATE_COMPLETED, state);
  check(streamed, 'the answer is complete', text === answer, text);
  check(streamed, 'the answer arrived in chunks', chunks > 2, chunks);
}
process.exit(wrong ? 1 : 0);
