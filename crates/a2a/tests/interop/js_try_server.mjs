// Calls `lango serve` with the JavaScript SDK's own client, over both bindings, streamed and not, and compares what comes.
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
const words = (artifact) => artifact.parts.map((part) => part.content?.value ?? '').join('');

let wrong = 0;
const check = (way, what, holds, seen) => {
  console.log(`${holds ? 'ok  ' : 'OFF '} ${way}: ${what}${holds ? '' : ` (${JSON.stringify(seen)})`}`);
  wrong += holds ? 0 : 1;
};
for (const transport of [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })]) {
  const client = await new ClientFactory({ transports: [transport] }).createFromUrl(base);
  const sent = await client.sendMessage(request());
  const task = sent.payload?.value ?? sent;
  const way = `${transport.protocolName}, not streamed`;
  check(way, 'the task is completed', task.status?.state === TaskState.TASK_STATE_COMPLETED, task);
  check(way, 'the answer is whole', task.artifacts?.map(words).join('') === answer, task);
  const streamed = `${transport.protocolName}, streamed`;
  let text = '';
  let pieces = 0;
  let state;
  for await (const event of client.sendMessageStream(request())) {
    const { $case, value } = event.payload;
    if ($case === 'artifactUpdate') {
      pieces += 1;
      text = value.append ? text + words(value.artifact) : words(value.artifact);
    }
    if ($case === 'statusUpdate') state = value.status.state;
  }
  check(streamed, 'the task is completed', state === TaskState.TASK_STATE_COMPLETED, state);
  check(streamed, 'the answer is whole', text === answer, text);
  check(streamed, 'it came in pieces', pieces > 2, pieces);
}
process.exit(wrong ? 1 : 0);
