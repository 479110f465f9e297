// Chat Completions, embeddings and images with npm openai, and with the Vercel ai package
// through its provider for OpenAI-compatible servers.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embedMany, generateObject, generateText, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';

import { startSimulator } from './simulator.mjs';

const limit = { timeout: 45_000 };
const model = 'gpt-5-mini';
const fast = ['--speed=-1', '--first-audio-ms=-1'];

let simulator;
before(async () => {
  simulator = await startSimulator({ args: fast });
});
after(() => simulator.stop());

const isPNG = (bytes) => Buffer.from(bytes.subarray(0, 8)).toString('latin1') === '\x89PNG\r\n\x1a\n';

describe('openai', limit, () => {
  const client = (more = {}) => new OpenAI({ apiKey: 'sk-test', baseURL: `${simulator.http}/v1`, ...more });
  const user = (content) => [{ role: 'user', content }];

  test('streams text, with its usage', async () => {
    const stream = await client().chat.completions.create({ model, messages: user('Please explain'), stream: true, stream_options: { include_usage: true } });
    let text = '';
    let reason;
    let usage;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      reason = chunk.choices[0]?.finish_reason ?? reason;
      usage = chunk.usage ?? usage;
    }
    assert.match(text, /^I am a simulated model\. .* a script\.$/);
    assert.equal(reason, 'stop');
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  });

  test('runs tools, two at once, and answers with their results', async () => {
    const asked = [];
    const runner = client().chat.completions.runTools({
      model,
      stream: true,
      messages: user('What is the weather in Paris and London?'),
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'Tells the weather in a city.',
            parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
            parse: JSON.parse,
            function: ({ city }) => {
              asked.push(city);
              return `sunny in ${city}`;
            },
          },
        },
      ],
    });
    assert.equal(await runner.finalContent(), 'Both are here: Sunny in Paris. Sunny in London.');
    assert.deepEqual(asked, ['Paris', 'London']);
    assert.deepEqual(
      runner.messages.map((m) => m.role),
      ['user', 'assistant', 'tool', 'tool', 'assistant'],
    );
  });

  test('reads embeddings, requested as base64', async () => {
    const { data, usage } = await client().embeddings.create({ model: 'text-embedding-3-small', input: ['opening hours', 'a cup of tea'], dimensions: 256 });
    assert.deepEqual(data.map((d) => d.embedding.length), [256, 256]);
    const length = Math.hypot(...data[0].embedding);
    assert.ok(Math.abs(length - 1) < 1e-3, `the length is ${length}`);
    assert.ok(usage.total_tokens > 0);
  });

  test('makes images', async () => {
    const { data } = await client().images.generate({ model: 'gpt-image-2', prompt: 'a boat', size: '256x128', n: 2 });
    assert.deepEqual(data.map((d) => isPNG(Buffer.from(d.b64_json, 'base64'))), [true, true]);
  });

  test('recognizes errors, and retries after Retry-After', async () => {
    await assert.rejects(client({ apiKey: 'invalid' }).chat.completions.create({ model, messages: user('hi') }), OpenAI.AuthenticationError);
    await assert.rejects(client({ apiKey: 'quota', maxRetries: 0 }).chat.completions.create({ model, messages: user('hi') }), OpenAI.RateLimitError);
    await assert.rejects(client().chat.completions.create({ model: 'gpt-none', messages: user('hi') }), OpenAI.NotFoundError);
    await assert.rejects(client().chat.completions.create({ model, messages: [] }), OpenAI.BadRequestError);
    const rainy = await startSimulator({ args: fast, faults: 'faults: [{at: connect, connection: 1, do: http_error, code: 503, for: 5ms}]' });
    try {
      const answer = await client({ baseURL: `${rainy.http}/v1` }).chat.completions.create({ model, messages: user('Please stop') });
      assert.equal(answer.choices[0].message.content, 'I stop.');
    } finally {
      await rainy.stop();
    }
  });
});

describe('ai, with its OpenAI-compatible provider', limit, () => {
  const provider = (more = {}) =>
    createOpenAICompatible({ name: 'voicegw', apiKey: 'sk-test', baseURL: `${simulator.http}/v1`, includeUsage: true, supportsStructuredOutputs: true, ...more });
  const get_weather = tool({
    description: 'Tells the weather in a city.',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => ({ message: `sunny in ${city}` }),
  });

  test('streams text', async () => {
    const result = streamText({ model: provider()(model), prompt: 'Please explain' });
    const pieces = [];
    for await (const piece of result.textStream) {
      pieces.push(piece);
    }
    assert.ok(pieces.length > 10, `${pieces.length} pieces`);
    assert.match(pieces.join(''), /^I am a simulated model\./);
    assert.equal(await result.finishReason, 'stop');
    assert.ok((await result.usage).outputTokens > 10);
  });

  test('streams tools in several steps', async () => {
    const result = streamText({
      model: provider()(model),
      prompt: 'What is the weather in Paris?',
      tools: { get_weather },
      stopWhen: stepCountIs(3),
    });
    const kinds = [];
    for await (const part of result.fullStream) {
      if (['tool-call', 'tool-result', 'finish', 'error'].includes(part.type)) {
        kinds.push(part.type);
      }
    }
    assert.deepEqual(kinds, ['tool-call', 'tool-result', 'finish']);
    const steps = await result.steps;
    assert.deepEqual(steps.map((s) => s.finishReason), ['tool-calls', 'stop']);
    assert.deepEqual(steps[0].toolCalls.map((c) => c.input), [{ city: 'Paris' }]);
    assert.equal(await result.text, 'In Paris: Sunny in Paris.');
  });

  test('answers without a stream, with tools', async () => {
    const { text, steps } = await generateText({
      model: provider()(model),
      prompt: 'What is the weather in Paris and London?',
      tools: { get_weather },
      stopWhen: stepCountIs(3),
    });
    assert.equal(steps[0].toolCalls.length, 2);
    assert.equal(text, 'Both are here: Sunny in Paris. Sunny in London.');
  });

  test('makes an object', async () => {
    const { object } = await generateObject({ model: provider()(model), schema: z.object({ city: z.string(), days: z.int() }), prompt: 'We stay in Paris for 3 days.' });
    assert.deepEqual(object, { city: 'Paris', days: 3 });
  });

  test('embeds', async () => {
    const { embeddings } = await embedMany({ model: provider().embeddingModel('text-embedding-3-small'), values: ['one', 'two', 'three'] });
    assert.deepEqual(embeddings.map((e) => e.length), [1536, 1536, 1536]);
  });

  test('reports errors in the stream', async () => {
    const rainy = await startSimulator({ args: fast, faults: 'faults: [{at: chunk, n: 3, do: http_error, code: 500}]' });
    try {
      const result = streamText({ model: provider({ baseURL: `${rainy.http}/v1` })(model), prompt: 'Please explain', onError: () => {} });
      const errors = [];
      for await (const part of result.fullStream) {
        if (part.type === 'error') {
          errors.push(part.error);
        }
      }
      assert.equal(errors.length, 1);
      assert.match(JSON.stringify(errors[0], Object.getOwnPropertyNames(errors[0])) + String(errors[0]), /The server had an error/);
    } finally {
      await rainy.stop();
    }
  });
});
