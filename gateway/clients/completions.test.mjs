// /v1/chat/completions of a running gateway with npm openai, and with the Vercel ai package through its provider for
// OpenAI-compatible servers: any client of Chat Completions can use the gateway's agent, with tools that run on the
// server.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { DefaultChatTransport, generateText, jsonSchema, readUIMessageStream, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';

import { startGateway } from './gateway.mjs';

const limit = { timeout: 60_000 };

const scenario = `
name: completions
rules:
  - when: {text: 'font library'}
    do:
      - say: One moment.
      - call: {tool: kb_search, args: {query: font library, top_k: 1}}
      - then:
          - say: "I found the \${result.data.results.0.title}."
  - when: {text: 'look twice'}
    do:
      - call:
          - {tool: kb_search, args: {query: fonts}}
          - {tool: kb_search, args: {query: apprentice}}
      - then: [say: Both are done.]
  - when: {text: 'show me the page'}
    do:
      - call:
          - {tool: kb_search, args: {query: fonts}}
          - {tool: open_page, args: {page: fonts}}
      - then: [say: It is on your screen.]
  - when: {text: 'what did I say'}
    do: [say: "\${history}"]
  - when: {text: any}
    do: [say: Good day to you.]
`;

let gateway;
before(async () => {
  gateway = await startGateway({ scenario, settings: { 'sim.speed': '-1' } });
});
after(() => gateway.stop());

// Each test has its own text: the same text within two minutes is the same message.
const user = (content) => [{ role: 'user', content }];

// ran are the calls of a tool in the audit, none of them with an error.
async function ran(tool) {
  const records = (await gateway.audit()).filter((r) => r.toolId === tool && r.mode === 'text');
  assert.ok(records.every((r) => r.ok), JSON.stringify(records));
  return records.length;
}

describe('npm openai', limit, () => {
  const client = (more = {}) => new OpenAI({ apiKey: 'any', baseURL: `${gateway.http}/v1`, ...more });

  test('streams, with a tool run on the server', async () => {
    const before = await ran('kb_search');
    const stream = await client().chat.completions.create({
      model: 'default', messages: user('Where is the font library?'), stream: true, stream_options: { include_usage: true },
    });
    let text = '';
    let pieces = 0;
    let reason;
    let usage;
    for await (const chunk of stream) {
      assert.equal(chunk.object, 'chat.completion.chunk');
      assert.equal(chunk.model, 'default');
      assert.equal(chunk.choices[0]?.delta.tool_calls, undefined, 'the tools are not the client’s');
      text += chunk.choices[0]?.delta.content ?? '';
      pieces += chunk.choices.length;
      reason = chunk.choices[0]?.finish_reason ?? reason;
      usage = chunk.usage ?? usage;
    }
    assert.equal(text.trim().replace(/\s+/g, ' '), 'One moment. I found the Font library.');
    assert.ok(pieces > 3, `only ${pieces} chunks`);
    assert.equal(reason, 'stop');
    assert.ok(usage.prompt_tokens > 0 && usage.total_tokens === usage.prompt_tokens + usage.completion_tokens);
    assert.equal(await ran('kb_search'), before + 1);
  });

  test('answers in one piece, after two tools at once', async () => {
    const before = await ran('kb_search');
    const done = await client().chat.completions.create({ model: 'default', messages: user('Please look twice') });
    assert.equal(done.choices[0].message.content.trim(), 'Both are done.');
    assert.equal(done.choices[0].finish_reason, 'stop');
    assert.equal(await ran('kb_search'), before + 2);
  });

  test('its helper for streams understands it', async () => {
    const runner = client().chat.completions.stream({ model: 'default', messages: user('Where is the font library?') });
    assert.match(await runner.finalContent(), /I found the Font library\.\s*$/);
  });

  test('the conversation is the client’s, in parts of text too', async () => {
    // Only operators instruct the model.
    const done = await client({ apiKey: gateway.key }).chat.completions.create({
      model: 'default',
      messages: [
        { role: 'system', content: 'Be brief.' }, { role: 'user', content: [{ type: 'text', text: 'My name is Ada.' }] },
        { role: 'assistant', content: 'Hello Ada.' }, { role: 'user', content: 'what did I say' },
      ],
    });
    assert.match(done.choices[0].message.content, /My name is Ada/);
  });

  test('models', async () => {
    const models = [];
    for await (const m of client().models.list()) {
      models.push(m.id);
    }
    assert.deepEqual(models, ['default']);
  });

  test('its own tools are available next to the gateway’s', async () => {
    const before = await ran('kb_search');
    const tools = [{ type: 'function', function: { name: 'open_page', parameters: { type: 'object', properties: { page: { type: 'string' } } } } }];
    const messages = user('Please show me the page');
    const asked = await client().chat.completions.create({ model: 'default', messages, tools });
    const [choice] = asked.choices;
    assert.equal(choice.finish_reason, 'tool_calls');
    assert.deepEqual(choice.message.tool_calls.map((c) => [c.function.name, JSON.parse(c.function.arguments)]), [['open_page', { page: 'fonts' }]]);
    assert.equal(await ran('kb_search'), before + 1, 'the gateway’s call of the same batch has run');
    messages.push(choice.message, { role: 'tool', tool_call_id: choice.message.tool_calls[0].id, content: JSON.stringify({ opened: true }) });
    const done = await client().chat.completions.create({ model: 'default', messages, tools });
    assert.equal(done.choices[0].message.content.trim(), 'It is on your screen.');
    assert.equal(await ran('kb_search'), before + 1, 'and not again');
  });

  test('refusals are its own errors, and are not retried', async () => {
    const wrong = client().chat.completions.create({ model: 'default', messages: user('x'), tools: [{ type: 'function', function: { name: 'kb_search' } }] });
    await assert.rejects(wrong, (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, 'tools[0].function.name');
      assert.equal(error.type, 'invalid_request_error');
      return true;
    });
    await assert.rejects(client().chat.completions.create({ model: 'default', messages: [] }), OpenAI.BadRequestError);
  });

  test('a client that leaves ends the turn', async () => {
    const stream = await client().chat.completions.create({ model: 'default', messages: user('Where is the font library?'), stream: true });
    for await (const chunk of stream) {
      assert.ok(chunk.id);
      break; // which aborts the request
    }
    const again = await client().chat.completions.create({ model: 'default', messages: user('Hello') });
    assert.equal(again.choices[0].message.content.trim(), 'Good day to you.');
  });
});

describe('the Vercel ai package', limit, () => {
  const model = () => createOpenAICompatible({ name: 'voicegw', baseURL: `${gateway.http}/v1`, apiKey: 'any', includeUsage: true })('default');

  test('streams, with a tool run on the server', async () => {
    const before = await ran('kb_search');
    const result = streamText({ model: model(), prompt: 'And where is the font library?' });
    const pieces = [];
    for await (const piece of result.textStream) {
      pieces.push(piece);
    }
    assert.match(pieces.join(''), /One moment\.\s+I found the Font library\./);
    assert.ok(pieces.length > 2, `only ${pieces.length} pieces`);
    assert.equal(await result.finishReason, 'stop');
    assert.ok((await result.usage).inputTokens > 0);
    assert.deepEqual(await result.toolCalls, []);
    assert.equal(await ran('kb_search'), before + 1);
  });

  test('its own tools run between two answers', async () => {
    const opened = [];
    const open_page = tool({
      inputSchema: jsonSchema({ type: 'object', properties: { page: { type: 'string' } } }),
      execute: async ({ page }) => opened.push(page),
    });
    const result = streamText({ model: model(), prompt: 'Please show me the page', tools: { open_page }, stopWhen: stepCountIs(3) });
    assert.match(await result.text, /It is on your screen\./);
    assert.deepEqual(opened, ['fonts']);
  });

  test('answers in one piece', async () => {
    const result = await generateText({ model: model(), prompt: 'Hello' });
    assert.equal(result.text.trim(), 'Good day to you.');
  });
});

describe('the transport of useChat', limit, () => {
  test('a turn with a tool is a message with its parts', async () => {
    const transport = new DefaultChatTransport({ api: `${gateway.http}/v1/chat?protocol=ui-message-stream` });
    const stream = await transport.sendMessages({
      chatId: 'abc', trigger: 'submit-message', messages: [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'So where is the font library?' }] }],
    });
    let message;
    for await (const so_far of readUIMessageStream({ stream, onError: (e) => assert.fail(e) })) {
      message = so_far;
    }
    assert.match(message.metadata.conversation_id, /^conv-/);
    assert.ok(message.metadata.usage.inputTokens > 0);
    const kinds = message.parts.map((p) => p.type);
    assert.deepEqual(kinds, ['text', 'dynamic-tool', 'text']);
    assert.equal(message.parts[1].toolName, 'kb_search');
    assert.equal(message.parts[1].state, 'output-available');
    assert.match(message.parts[2].text, /I found the Font library/);
  });
});

describe('with api_key', limit, () => {
  const key = 'a-key-of-this-test';
  let locked;
  before(async () => {
    locked = await startGateway({ scenario, settings: { 'sim.speed': '-1' }, env: { VOICEGW_API_KEY: key } });
  });
  after(() => locked.stop());

  test('the key of the client is the gateway’s', async () => {
    const create = (apiKey) => new OpenAI({ apiKey, baseURL: `${locked.http}/v1` }).chat.completions.create({ model: 'default', messages: user('Hello') });
    await assert.rejects(create('another'), OpenAI.AuthenticationError);
    assert.equal((await create(key)).choices[0].message.content.trim(), 'Good day to you.');
  });
});
