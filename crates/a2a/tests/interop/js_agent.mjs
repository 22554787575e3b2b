// An agent on the server of the JavaScript SDK, to test lango's client.
//
//   node js_agent.mjs PORT
//
// Serves the same agent four times, at /jsonrpc-stream, /jsonrpc-poll, /rest-stream and /rest-poll.
import express from 'express';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express';
import { TaskState } from '@a2a-js/sdk';

const port = Number(process.argv[2]);
const part = (value) => ({ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: '' });
const pause = () => new Promise((done) => setTimeout(done, 30));

class Agent {
  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const heard = userMessage.parts.map((one) => (one.content?.$case === 'text' ? one.content.value : '')).join('');
    const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() });
    bus.publish(AgentEvent.task({
      id: taskId, contextId, status: status(TaskState.TASK_STATE_SUBMITTED), artifacts: [], history: [userMessage],
      metadata: undefined,
    }));
    const update = (state) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state), metadata: undefined }));
    update(TaskState.TASK_STATE_WORKING);
    const words = `js heard: ${heard}`.split(' ').map((word, index) => (index ? ` ${word}` : word));
    for (const [index, word] of words.entries()) {
      bus.publish(AgentEvent.artifactUpdate({
        taskId, contextId, append: index > 0, lastChunk: index + 1 === words.length, metadata: undefined,
        artifact: {
          artifactId: 'a', name: '', description: '', parts: [part(word)], metadata: undefined, extensions: [],
        },
      }));
      await pause();
    }
    update(TaskState.TASK_STATE_COMPLETED);
    bus.finished();
  }

  async cancelTask() {}
}

const app = express();
for (const [name, binding, streaming] of [
  ['jsonrpc-stream', 'JSONRPC', true],
  ['jsonrpc-poll', 'JSONRPC', false],
  ['rest-stream', 'HTTP+JSON', true],
  ['rest-poll', 'HTTP+JSON', false],
]) {
  const card = {
    name, description: 'Repeats what it hears.', version: '1', provider: undefined,
    supportedInterfaces: [
      { url: `http://127.0.0.1:${port}/${name}/a2a`, protocolBinding: binding, tenant: '', protocolVersion: '1.0' },
    ],
    capabilities: { streaming, pushNotifications: false, extensions: [] },
    securitySchemes: {}, securityRequirements: [], defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [], signatures: [],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Agent());
  const handler = binding === 'JSONRPC' ? jsonRpcHandler : restHandler;
  app.use(`/${name}/.well-known/agent-card.json`, agentCardHandler({ agentCardProvider: requestHandler }));
  app.use(`/${name}/a2a`, handler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
}
app.get('/healthz', (_, response) => response.send('ok'));
app.listen(port, '127.0.0.1');
