// RealtimeSession of npm @openai/agents-realtime against a gateway: tools that the gateway runs are invisible to it or,
// on request, are those of an MCP server with calls that its user approves.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { hostedMcpTool } from '@openai/agents-core';
import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession, tool } from '@openai/agents-realtime';
import { z } from 'zod';

import { Mailbox, soon } from '../../sim/clients/mailbox.mjs';
import { startGateway } from './gateway.mjs';

const limit = { timeout: 60_000 };

const scenario = `
name: realtime
rules:
  - when: {text: 'user approved'}
    do: [say: Lunch is in your calendar.]
  - when: {text: 'user declined'}
    do: [say: As you like.]
  - when: {text: 'font library'}
    do:
      - say: One moment.
      - call: {tool: kb_search, args: {query: font library, top_k: 1}}
      - then: [say: "I found the \${result.data.results.0.title}."]
  - when: {text: 'show me the page'}
    do:
      - call:
          - {tool: kb_search, args: {query: fonts}}
          - {tool: open_page, args: {page: fonts}}
      - then: [say: It is on your screen.]
  - when: {text: 'lunch'}
    do:
      - call: {tool: calendar_create_event, args: {title: Lunch, start_time: "2030-05-06T12:00:00", end_time: "2030-05-06T13:00:00"}}
      - then: [say: "Shall I enter it?"]
  - when: {text: any}
    do: [say: Good day to you.]
`;

// Talk is a session with the events that it has emitted, as {type, args}, and the events of the server.
class Talk {
  emitted = new Mailbox();
  events = new Mailbox();

  static async open(gateway, tools, config = {}) {
    const talk = new Talk();
    const url = `${gateway.http.replace('http', 'ws')}/v1/realtime?model=gpt-realtime`;
    talk.transport = new OpenAIRealtimeWebSocket({ url });
    talk.session = new RealtimeSession(new RealtimeAgent({ name: 'Tester', instructions: 'Be brief.', tools }), {
      transport: talk.transport, model: 'gpt-realtime', config: { outputModalities: ['text'], ...config },
    });
    talk.transport.on('*', (event) => talk.events.push(event));
    for (const type of ['agent_end', 'agent_tool_start', 'agent_tool_end', 'tool_approval_requested', 'mcp_tool_call_completed', 'error']) {
      talk.session.on(type, (...args) => talk.emitted.push({ type, args }));
    }
    await soon('the connection', talk.session.connect({ apiKey: gateway.key ?? 'any', url }));
    await talk.events.type('session.updated');
    return talk;
  }

  // asks types a text and returns the matching answer.
  async asks(text, answer) {
    this.session.sendMessage(text);
    const { args: [, , said] } = await this.emitted.wait(answer, (t) => t.type === 'agent_end' && t.args[2].includes(answer));
    return said;
  }

  close() {
    assert.deepEqual(this.emitted.all.filter((t) => t.type === 'error').map((t) => t.args[0]), []);
    this.session.close();
  }
}

for (const provider of ['openai', 'gemini']) {
  describe(`RealtimeSession with ${provider} behind the gateway`, { concurrency: true }, () => {
    let gateway;
    before(async () => {
      gateway = await startGateway({ scenario, settings: { provider } });
    });
    after(() => gateway.stop());

    const audited = async (name) => (await gateway.audit()).filter((r) => r.toolId === name);

    test('a tool of the gateway is invisible, and one response', limit, async () => {
      const talk = await Talk.open(gateway, []);
      await talk.asks('Where is the font library?', 'I found the Font library.');
      const types = talk.events.names();
      assert.ok(!types.some((type) => /function_call|mcp/.test(type)), types.join(', '));
      const done = talk.events.all.filter((e) => e.type === 'response.done');
      assert.deepEqual(done.map((e) => e.response.output.map((item) => item.content[0].text.trim())), [['One moment.', 'I found the Font library.']]);
      assert.ok((await audited('kb_search')).some((r) => r.ok && r.mode === 'voice'));
      talk.close();
    });

    test('a tool of the gateway and one of the client in one turn', limit, async () => {
      const shown = [];
      const page = tool({
        name: 'open_page', description: 'Shows a page.', parameters: z.object({ page: z.string() }),
        execute: async (args) => {
          shown.push(args.page);
          return 'shown';
        },
      });
      const talk = await Talk.open(gateway, [page]);
      await talk.asks('Please show me the page', 'It is on your screen.');
      assert.deepEqual(shown, ['fonts']);
      assert.ok((await audited('open_page')).every((r) => r.ok && r.executor === 'client'));
      talk.close();
    });

    for (const approve of [true, false]) {
      test(`its user ${approve ? 'approves' : 'denies'} a call`, limit, async () => {
        const talk = await Talk.open(gateway, [hostedMcpTool({ serverLabel: 'voicegw', serverUrl: 'https://gateway.invalid' })]);
        talk.session.sendMessage(`Lunch, please: ${approve}`);
        const { args: [, , request] } = await talk.emitted.type('tool_approval_requested');
        assert.equal(request.approvalItem.rawItem.name, 'calendar_create_event');
        const began = talk.emitted.all.length;
        await (approve ? talk.session.approve(request.approvalItem) : talk.session.reject(request.approvalItem));
        await talk.emitted.wait('the answer', (t) => t.type === 'agent_end' && t.args[2] === (approve ? 'Lunch is in your calendar.' : 'As you like.'), began);
        const outcomes = (await audited('calendar_create_event')).map((r) => r.confirmation);
        assert.ok(outcomes.includes(approve ? 'approved' : 'denied'), outcomes.join(', '));
        talk.close();
      });
    }

    test('a tool with the name of one of the gateway is refused', limit, async () => {
      const talk = await Talk.open(gateway, []);
      talk.transport.sendEvent({
        type: 'session.update', event_id: 'mine',
        session: { type: 'realtime', tools: [{ type: 'function', name: 'kb_search', parameters: { type: 'object', properties: {} } }] },
      });
      const { error } = await talk.events.type('error');
      assert.deepEqual([error.code, error.param, error.event_id], ['invalid_value', 'session.tools[0].name', 'mine']);
      talk.session.close();
    });
  });
}
