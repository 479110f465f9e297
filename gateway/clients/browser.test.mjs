// RealtimeSession of npm @openai/agents-realtime in Chromium, over a WebSocket to a gateway, with a client secret in the
// subprotocol; see page.mjs. Chromium needs no driver, because the page reports to this test's server.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { within } from '../../sim/clients/mailbox.mjs';
import { utterance } from '../../sim/clients/signals.mjs';
import { startGateway } from './gateway.mjs';

const chromium = process.env.CHROMIUM ?? '/usr/bin/chromium';
const here = dirname(fileURLToPath(import.meta.url));
const agents = join(here, 'node_modules/@openai/agents-realtime/dist/bundle');

const scenario = `
name: browser
rules:
  - when: {utterance: any}
    heard: Hello there.
  - when: {text: 'hello there'}
    do: [say: I heard you.]
  - when: {text: 'user approved'}
    do: [say: Lunch is in your calendar.]
  - when: {text: 'story'}
    do:
      - say: >-
          Once there was a small gateway that stood between a person and a model. It listened to both and understood neither,
          and that was its strength. Whenever the person began to speak, it told the model to be quiet.
  - when: {text: 'show me the page'}
    do:
      - call: {tool: open_page, args: {page: fonts}}
      - then: [say: It is on your screen.]
  - when: {text: 'lunch'}
    do:
      - call: {tool: calendar_create_event, args: {title: Lunch, start_time: "2030-05-06T12:00:00", end_time: "2030-05-06T13:00:00"}}
      - then: [say: "Shall I enter it?"]
`;

// secret is the client secret that the page's server gets from the gateway with its key.
async function secret(gateway) {
  const made = await fetch(`${gateway.http}/v1/realtime/client_secrets`, {
    method: 'POST', headers: { Authorization: `Bearer ${gateway.key}`, 'Content-Type': 'application/json' }, body: '{}',
  });
  assert.equal(made.status, 200, await made.clone().text());
  const { value } = await made.json();
  return JSON.stringify({ value, url: `${gateway.http.replace('http', 'ws')}/v1/realtime?model=gpt-realtime` });
}

// visit opens a page in Chromium and returns its report.
async function visit(gateway) {
  const files = {
    '/': ['text/html', () => '<!doctype html><script type="module" src="page.mjs"></script>'],
    '/page.mjs': ['text/javascript', () => readFileSync(join(here, 'page.mjs'))],
    '/mailbox.mjs': ['text/javascript', () => readFileSync(join(here, '../../sim/clients/mailbox.mjs'))],
    '/speech': ['application/octet-stream', () => utterance(24000)],
    '/secret': ['application/json', () => secret(gateway)],
  };
  let report;
  const reported = new Promise((resolve) => (report = resolve));
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, 'http://page').pathname;
    if (path === '/done') {
      let body = '';
      for await (const part of request) {
        body += part;
      }
      response.end();
      report(JSON.parse(body));
      return;
    }
    const [kind, content] = files[path] ?? ['text/javascript', () => readFileSync(join(agents, path.slice(path.lastIndexOf('/') + 1)))];
    try {
      const body = await content();
      response.writeHead(200, { 'Content-Type': kind }).end(body);
    } catch (error) {
      response.writeHead(404).end(String(error));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const profile = mkdtempSync(join(tmpdir(), 'voicegw-chromium-'));
  const browser = spawn(chromium, [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run',
    '--enable-logging=stderr', `--user-data-dir=${profile}`, `http://localhost:${server.address().port}/`,
  ], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  browser.stderr.on('data', (data) => (said += data));
  const ended = once(browser, 'exit');
  try {
    return await within('the page', (done, fail) => reported.then(done, fail), () => said.slice(-2000), 90_000);
  } finally {
    browser.kill('SIGTERM');
    await ended;
    server.closeAllConnections();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  }
}

describe('RealtimeSession in Chromium', { skip: existsSync(chromium) ? false : `${chromium} is not there` }, () => {
  for (const provider of ['openai', 'gemini']) {
    test(`it talks, is interrupted, runs a tool and approves a call with ${provider}`, { timeout: 120_000 }, async () => {
      const gateway = await startGateway({ scenario, settings: { provider, origins: 'http://localhost:*' } });
      try {
        const { cut, ...seen } = await visit(gateway);
        assert.deepEqual(seen, { spoken: 'I heard you.', reason: 'turn_detected', shown: ['fonts'], approved: 'calendar_create_event', errors: [] });
        assert.ok(cut >= 0 && cut < 20_000, `cut at ${cut}`);
        const records = await gateway.audit();
        assert.ok(records.some((r) => r.toolId === 'open_page' && r.executor === 'client' && r.ok));
        assert.ok(records.some((r) => r.toolId === 'calendar_create_event' && r.confirmation === 'approved'));
      } finally {
        await gateway.stop();
      }
    });
  }
});
