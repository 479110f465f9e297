// The page of browser.test.mjs: RealtimeSession of @openai/agents-realtime in a browser, with a client secret of its own
// server. It reports the user's experience to that server.

import { RealtimeAgent, RealtimeSession, tool } from './agents/openai-realtime-agents.mjs';
import { Mailbox, soon } from './mailbox.mjs';

const reported = new Mailbox();
const events = new Mailbox();

async function talk() {
  const { value, url } = await (await fetch('./secret')).json();
  const speech = await (await fetch('./speech')).arrayBuffer();
  const shown = [];
  const page = tool({
    name: 'open_page', description: 'Shows a page.', strict: false,
    parameters: { type: 'object', properties: { page: { type: 'string' } }, required: ['page'], additionalProperties: true },
    execute: async (args) => {
      shown.push(args.page);
      return 'shown';
    },
  });
  const gatewayTools = { type: 'hosted_tool', name: 'hosted_mcp', providerData: { type: 'mcp', server_label: 'voicegw', server_url: url } };
  const session = new RealtimeSession(new RealtimeAgent({ name: 'Tester', instructions: 'Be brief.', tools: [page, gatewayTools] }), {
    transport: 'websocket', model: 'gpt-realtime', config: { audio: { input: { turnDetection: { type: 'server_vad' } } } },
  });
  session.transport.on('*', (event) => events.push(event));
  for (const type of ['agent_end', 'audio', 'audio_interrupted', 'tool_approval_requested', 'error']) {
    session.on(type, (...args) => reported.push({ type, args }));
  }
  const speak = () => {
    for (let at = 0; at < speech.byteLength; at += 4800) {
      session.sendAudio(speech.slice(at, at + 4800));
    }
  };
  const answer = async (words, from = 0) => (await reported.wait(words, (t) => t.type === 'agent_end' && t.args[2].includes(words), from)).args[2];

  await soon('the connection', session.connect({ apiKey: value, url }));
  await events.type('session.updated');
  speak();
  const spoken = await answer('I heard you.');

  session.sendMessage('Tell me a story.');
  const heard = reported.all.length;
  await reported.type('audio', heard);
  speak();
  await reported.type('audio_interrupted');
  const cut = await events.type('conversation.item.truncated');
  const { response } = await events.wait('a cancelled response', (e) => e.type === 'response.done' && e.response.status === 'cancelled');
  await answer('I heard you.', heard);

  session.sendMessage('Please show me the page');
  await answer('It is on your screen.');

  session.sendMessage('Lunch, please');
  const { args: [, , request] } = await reported.type('tool_approval_requested');
  await session.approve(request.approvalItem);
  await answer('Lunch is in your calendar.');

  const errors = reported.all.filter((t) => t.type === 'error').map((t) => t.args[0]);
  session.close();
  return { spoken, cut: cut.audio_end_ms, reason: response.status_details.reason, shown, approved: request.approvalItem.rawItem.name, errors };
}

const result = await talk().catch((error) => ({
  failed: String(error.stack ?? error), said: reported.all.filter((t) => t.type === 'agent_end').map((t) => t.args[2]), events: events.names().join(' '),
}));
await fetch('./done', { method: 'POST', body: JSON.stringify(result) });
