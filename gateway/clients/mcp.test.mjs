// The tools of a running gateway and of mcp serve, called by both generations of the official
// TypeScript client of the Model Context Protocol.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as FirstStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as FirstHTTP } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { startGateway } from './gateway.mjs';

const limit = { timeout: 60_000 };
const scenario = 'name: mcp\nrules:\n  - when: {text: any}\n    do: [say: Good day to you.]\n';
const settings = { 'mcp.confirm': 'elicitation', 'mcp.expose': 'calendar_create_event,extract_contacts' };
const sets = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);

let gateway;
before(async () => {
  gateway = await startGateway({ scenario, settings: { ...settings, 'mcp.serve': 'true' } });
});
after(() => gateway.stop());

const http = () => new URL(`${gateway.http}/mcp`);
const stdio = { command: process.env.VOICEGW, args: ['mcp', 'serve', ...sets] };
const info = { name: 'test', version: '1' };
const capabilities = { elicitation: { form: {} } };
const newest = { mode: { pin: '2026-07-28' } };

const clients = {
  'newest over HTTP': { make: () => new Client(info, { capabilities, versionNegotiation: newest }), over: () => new StreamableHTTPClientTransport(http()), asked: 1 },
  'legacy over HTTP': { make: () => new Client(info, { capabilities }), over: () => new StreamableHTTPClientTransport(http()), asked: 0 },
  'first over HTTP': { make: () => new FirstClient(info, { capabilities }), over: () => new FirstHTTP(http()), asked: 0 },
  'newest over stdio': { make: () => new Client(info, { capabilities, versionNegotiation: newest }), over: () => new StdioClientTransport(stdio), asked: 1 },
  'first over stdio': { make: () => new FirstClient(info, { capabilities }), over: () => new FirstStdio(stdio), asked: 1 },
};

for (const [name, { make, over, asked }] of Object.entries(clients)) {
  describe(name, limit, () => {
    let client;
    let questions = 0;
    before(async () => {
      client = make();
      client.setRequestHandler(client instanceof Client ? 'elicitation/create' : ElicitRequestSchema, async () => {
        questions++;
        return { action: 'accept', content: { approve: true } };
      });
      await client.connect(over());
    });
    after(() => client.close());

    test('tools, guides and results', async () => {
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map((t) => t.name), ['calendar_create_event', 'extract_contacts']);
      assert.equal(tools[1].annotations.readOnlyHint, true);
      const found = await client.callTool({ name: 'extract_contacts', arguments: { text: 'Write to ada@example.com.' } });
      assert.equal(found.structuredContent.data.emails[0].address, 'ada@example.com');
      const wrong = await client.callTool({ name: 'extract_contacts', arguments: {} });
      assert.equal(wrong.isError, true);
      assert.equal(wrong.structuredContent.error.type, 'VALIDATION');
      const guide = await client.readResource({ uri: 'voicegw://tools/extract_contacts/guide.md' });
      assert.match(guide.contents[0].text, /^# /);
      await assert.rejects(client.callTool({ name: 'ignore_user', arguments: {} }), /unknown tool/);
    });

    test('an approval', async () => {
      const event = { title: name, start_time: '2026-12-03T09:00:00', end_time: '2026-12-03T10:00:00' };
      const made = await client.callTool({ name: 'calendar_create_event', arguments: event });
      assert.equal(questions, asked);
      if (asked > 0) {
        assert.equal(made.structuredContent.ok, true);
      } else {
        assert.equal(made.structuredContent.error.type, 'CONFIRMATION_REQUIRED');
      }
    });
  });
}
