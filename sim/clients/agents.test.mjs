// RealtimeSession of npm @openai/agents-realtime over a WebSocket. It checks every event against a schema, and passes on
// an invalid one only as '*': the last test shows that all events of the simulator are valid.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession, tool } from '@openai/agents-realtime';
import { z } from 'zod';

import { Mailbox, soon } from './mailbox.mjs';
import { chunks, durationMS, loudness, utterance } from './signals.mjs';
import { startRealtime, through } from './simulator.mjs';

const rate = 24000;
const limit = { timeout: 45_000 };

let simulator;
before(async () => {
  simulator = await startRealtime();
});
after(() => simulator.stop());

// seen counts events by type over all tests: all events, and those that the client's schema accepted.
const seen = new Map();

// watch counts the events of a transport.
function watch(transport) {
  const listening = new Set();
  transport.on('*', ({ type }) => {
    const count = seen.get(type) ?? { came: 0, known: 0 };
    seen.set(type, count);
    count.came++;
    if (!listening.has(type)) { // '*' comes before the type's own event
      listening.add(type);
      transport.on(type, () => count.known++);
    }
  });
}

// Talk is a session with the events that it has emitted, as {type, args}.
class Talk {
  emitted = new Mailbox();
  events = new Mailbox(); // of the provider

  static async open(agent = {}, config = {}, name = 'gpt-realtime-2.1') {
    const model = through || name; // the gateway would choose OpenAI by the model's name
    const talk = new Talk();
    const url = `${simulator.ws}/v1/realtime?model=${model}`;
    talk.transport = new OpenAIRealtimeWebSocket({ url });
    talk.session = new RealtimeSession(new RealtimeAgent({ name: 'Tester', instructions: 'Be brief.', ...agent }), {
      transport: talk.transport, model, config,
    });
    watch(talk.transport);
    talk.transport.on('*', (event) => talk.events.push(event));
    talk.transport.on('disconnected', () => talk.events.end('disconnected'));
    for (const type of [
      'agent_start', 'agent_end', 'agent_tool_start', 'agent_tool_end', 'audio', 'audio_start', 'audio_stopped',
      'audio_interrupted', 'history_added', 'history_updated', 'error',
    ]) {
      talk.session.on(type, (...args) => talk.emitted.push({ type, args }));
    }
    await soon('the connection', talk.session.connect({ apiKey: 'sk-test', url }));
    // On open it sends its configuration, and on session.created its tracing.
    await talk.events.wait('the configuration', () => talk.events.all.filter((e) => e.type === 'session.updated').length === 2);
    return talk;
  }

  mark() {
    return this.emitted.all.length;
  }

  speak(audio = utterance(rate)) {
    for (const chunk of chunks(audio, rate)) {
      this.session.sendAudio(chunk.buffer.slice(chunk.byteOffset, chunk.byteOffset + chunk.length));
    }
  }

  audio() {
    return Buffer.concat(this.emitted.all.filter((t) => t.type === 'audio').map((t) => Buffer.from(t.args[0].data)));
  }

  // history waits for the wanted history.
  history(what, fits) {
    return this.emitted.wait(what, () => fits(this.session.history)).then(() => this.session.history);
  }

  // close ends the session, which must have had only the expected number of errors.
  async close(errors = 0) {
    const emitted = this.emitted.all.filter((t) => t.type === 'error').map((t) => t.args[0]);
    assert.equal(emitted.length, errors, JSON.stringify(emitted));
    this.session.close();
    await this.events.wait('the end', () => false).catch((error) => assert.match(error.message, /disconnected/));
  }
}

// wordsOf are the words of a message of the history.
const wordsOf = (item) => item.content.map((part) => part.transcript ?? part.text).join('');

// complete reports whether there are n items, all of them complete.
const complete = (items, n) => items.length === n && items.every((item) => item.status === 'completed');

const weatherTool = (calls) => tool({
  name: 'get_weather',
  description: 'Tells the weather in a city.',
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => {
    calls.push(city);
    return `It is foggy in ${city}.`;
  },
});

describe('RealtimeSession', { concurrency: true }, () => {
  test('it gets its configuration', limit, async () => {
    const talk = await Talk.open({ voice: 'cedar', tools: [weatherTool([])] });
    const { session } = talk.events.all.findLast((e) => e.type === 'session.updated');
    assert.equal(session.instructions, 'Be brief.');
    assert.equal(session.tracing, 'auto');
    assert.equal(session.audio.output.voice, through === 'gemini' ? 'Puck' : 'cedar'); // Gemini does not have the voice
    assert.deepEqual(session.audio.output.format, { type: 'audio/pcm', rate: 24000 });
    const detection = session.audio.input.turn_detection;
    assert.deepEqual([detection.type, detection.interrupt_response], ['semantic_vad', true]);
    assert.equal(session.tools[0].name, 'get_weather');
    assert.equal(session.tools[0].parameters.additionalProperties, false);
    await talk.close();
  });

  test('speech is heard and answered in speech', limit, async () => {
    const talk = await Talk.open({}, { audio: { input: { turnDetection: { type: 'server_vad' } } } });
    talk.speak();
    const { args: [, , said] } = await talk.emitted.type('agent_end');
    assert.equal(said, 'Hello Marcelo, how are you?');
    const history = await talk.history('the transcripts', (items) => complete(items, 2) && items.every(wordsOf));
    assert.deepEqual(history.map((item) => [item.role, item.content[0].type, wordsOf(item)]), [
      ['user', 'input_audio', 'Hello, my name is Marcelo.'],
      ['assistant', 'output_audio', 'Hello Marcelo, how are you?'],
    ]);
    await talk.emitted.type('audio_stopped');
    const names = new Set(talk.emitted.names().filter((name) => !name.startsWith('history')));
    assert.deepEqual([...names], ['agent_start', 'audio_start', 'audio', 'audio_stopped', 'agent_end']);
    const audio = talk.audio();
    assert.ok(durationMS(audio.length, rate) > 800, `only ${audio.length} bytes`);
    assert.ok(loudness(audio) > 0.01, 'the answer is silent');
    // The transcript makes the client request the item.
    const { item } = await talk.events.type('conversation.item.retrieved');
    assert.equal(item.content[0].transcript, 'Hello, my name is Marcelo.');
    await talk.close();
  });

  test('text is answered, and usage is added up', limit, async () => {
    const talk = await Talk.open({}, { outputModalities: ['text'] });
    for (const [text, answer] of [['Anything.', 'Well said.'], ['My name is Ann.', 'Hello Ann, how are you?']]) {
      const begin = talk.mark();
      talk.session.sendMessage(text);
      const { args: [, , said] } = await talk.emitted.type('agent_end', begin);
      assert.equal(said, answer);
    }
    const history = await talk.history('four items', (items) => complete(items, 4));
    assert.deepEqual(history.map(wordsOf), ['Anything.', 'Well said.', 'My name is Ann.', 'Hello Ann, how are you?']);
    const done = talk.events.all.filter((e) => e.type === 'response.done').map((e) => e.response.usage);
    const { usage } = talk.session;
    assert.equal(usage.requests, 2);
    assert.equal(usage.inputTokens, done[0].input_tokens + done[1].input_tokens);
    assert.equal(usage.outputTokens, done[0].output_tokens + done[1].output_tokens);
    assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
    assert.ok(usage.outputTokens > 0);
    await talk.close();
  });

  for (const model of ['gpt-realtime-2.1', 'gpt-realtime']) {
    test(`a tool round with ${model}`, limit, async () => {
      const calls = [];
      const talk = await Talk.open({ tools: [weatherTool(calls)] }, {}, model);
      talk.session.sendMessage('What is the weather in London?');
      await talk.emitted.type('agent_tool_end');
      const { args: [, , said] } = await talk.emitted.wait('the answer', (t) => t.type === 'agent_end' && t.args[2].includes('foggy'));
      assert.equal(said, 'In London: It is foggy in London.');
      assert.deepEqual(calls, ['London']);
      const isCall = (item) => item.type === 'function_call';
      const call = (await talk.history('the call', (items) => items.some(isCall))).find(isCall);
      assert.deepEqual([call.name, call.status, call.output], ['get_weather', 'completed', 'It is foggy in London.']);
      assert.deepEqual(JSON.parse(call.arguments), { city: 'London' });
      assert.equal(talk.events.all.filter((e) => e.type === 'response.created').length, 2);
      await talk.close();
    });
  }

  test('two calls at once', limit, async () => {
    const calls = [];
    const talk = await Talk.open({ tools: [weatherTool(calls)] }, { outputModalities: ['text'] });
    talk.session.sendMessage('And the weather in London and Paris?');
    // The client requests a response after the first result, and again after the last.
    await talk.emitted.wait('Paris', (t) => t.type === 'agent_end' && t.args[2].includes('Paris'));
    const said = talk.emitted.all.filter((t) => t.type === 'agent_end').map((t) => t.args[2]).join(' ');
    // A gateway passes the results on in order of arrival.
    assert.match(said.trim(), /^Both are here: (It is foggy in London. It is foggy in Paris.|It is foggy in Paris. It is foggy in London.)$/);
    assert.deepEqual(calls, ['London', 'Paris']);
    await talk.close();
  });

  test('speech interrupts an answer during its generation', limit, async () => {
    const talk = await Talk.open();
    talk.session.sendMessage('Tell me a story.');
    await talk.emitted.type('audio');
    const { item_id } = await talk.events.type('response.output_audio.delta');
    talk.speak();
    await talk.emitted.type('audio_interrupted');
    const { response } = await talk.events.type('response.done');
    assert.deepEqual([response.status, response.status_details.reason], ['cancelled', 'turn_detected']);
    const cut = await talk.events.type('conversation.item.truncated');
    assert.equal(cut.item_id, item_id);
    assert.ok(cut.audio_end_ms <= durationMS(talk.audio().length, rate));
    // The truncation makes the client request the item, which has no transcript any more (the client's history keeps the
    // earlier words).
    const { item } = await talk.events.wait('the item', (e) => e.type === 'conversation.item.retrieved' && e.item.id === item_id);
    assert.equal(item.status, 'incomplete');
    assert.ok(!item.content[0].transcript);
    if (!through) { // a gateway stores no audio
      assert.equal(durationMS(Buffer.from(item.content[0].audio, 'base64').length, rate), cut.audio_end_ms);
    }
    await talk.history('the cut', (items) => items.find((i) => i.itemId === item_id)?.status === 'incomplete');
    // The server cancels itself, so the client must not: that would be an error.
    await talk.emitted.wait('the next answer', (t) => t.type === 'agent_end' && t.args[2] === 'Hello Marcelo, how are you?');
    await talk.close();
  });

  // Gemini completes an answer at the end of its playback.
  const early = { ...limit, skip: through === 'gemini' && 'no answer is complete before its playback' };
  test('speech interrupts the playback of an answer that is complete', early, async () => {
    const talk = await Talk.open();
    talk.session.sendMessage('Explain yourself.');
    await talk.emitted.type('agent_end');
    talk.speak(); // the answer still plays: it was made faster than it plays
    await talk.emitted.type('audio_interrupted');
    const cut = await talk.events.type('conversation.item.truncated');
    assert.ok(cut.audio_end_ms < durationMS(talk.audio().length, rate));
    await talk.emitted.wait('the next answer', (t) => t.type === 'agent_end' && t.args[2] === 'Hello Marcelo, how are you?');
    await talk.close();
  });

  test('the user of the session interrupts by hand', limit, async () => {
    const talk = await Talk.open();
    talk.session.sendMessage('Tell me a story.');
    await talk.emitted.type('audio');
    talk.session.interrupt();
    await talk.emitted.type('audio_interrupted');
    const { response } = await talk.events.type('response.done');
    assert.deepEqual([response.status, response.status_details.reason], ['cancelled', 'client_cancelled']);
    await talk.events.type('conversation.item.truncated');
    // response.create after a cancelled response is not delayed.
    const begin = talk.mark();
    talk.session.sendMessage('Anything.');
    await talk.emitted.wait('the next answer', (t) => t.type === 'agent_end' && t.args[2] === 'Well said.', begin);
    await talk.close();
  });

  test('the history is edited', limit, async () => {
    const talk = await Talk.open({}, { outputModalities: ['text'] });
    talk.session.sendMessage('Anything.');
    await talk.emitted.type('agent_end');
    await talk.history('two items', (items) => complete(items, 2));
    const [asked, answered] = talk.session.history;
    talk.session.updateHistory([
      { ...asked, content: [{ type: 'input_text', text: 'Something else.' }] },
      answered,
      { itemId: 'item_added_by_hand', type: 'message', role: 'user', status: 'completed', content: [{ type: 'input_text', text: 'One more.' }] },
    ]);
    await talk.events.type('conversation.item.deleted');
    const history = await talk.history('the edit', (items) => items.length === 3 && items.map(wordsOf).includes('Something else.'));
    assert.deepEqual(history.map(wordsOf), ['Something else.', 'Well said.', 'One more.']);
    await talk.close();
  });

  test('audio that is committed by hand', limit, async () => {
    const talk = await Talk.open({}, { audio: { input: { turnDetection: null } } });
    const [audio] = chunks(utterance(rate), rate, 5000);
    talk.session.sendAudio(audio.buffer.slice(audio.byteOffset, audio.byteOffset + audio.length), { commit: true });
    await talk.events.type('input_audio_buffer.committed');
    talk.transport.sendEvent({ type: 'response.create' });
    await talk.emitted.wait('the answer', (t) => t.type === 'agent_end' && t.args[2] === 'Hello Marcelo, how are you?');
    await talk.close();
  });

  test('an error names the event that caused it', limit, async () => {
    const talk = await Talk.open();
    talk.transport.sendEvent({ type: 'conversation.item.delete', item_id: 'item_nowhere', event_id: 'mine' });
    const { args: [{ error }] } = await talk.emitted.type('error');
    assert.equal(error.error.event_id, 'mine');
    assert.equal(error.error.type, 'invalid_request_error');
    talk.transport.sendEvent({ type: 'input_audio_buffer.clear' });
    await talk.events.type('input_audio_buffer.cleared');
    await talk.close(1);
  });
});

// The events that the client needs (and rate_limits.updated, which is optional).
const wanted = [
  'session.created', 'session.updated', 'input_audio_buffer.speech_started', 'input_audio_buffer.speech_stopped',
  'input_audio_buffer.committed', 'input_audio_buffer.cleared', 'conversation.item.added', 'conversation.item.done',
  'conversation.item.retrieved', 'conversation.item.deleted', 'conversation.item.truncated',
  'conversation.item.input_audio_transcription.delta', 'conversation.item.input_audio_transcription.completed',
  'response.created', 'response.done', 'response.output_item.added', 'response.output_item.done',
  'response.content_part.added', 'response.content_part.done', 'response.output_audio.delta', 'response.output_audio.done',
  'response.output_audio_transcript.delta', 'response.output_audio_transcript.done', 'response.output_text.delta',
  'response.output_text.done', 'response.function_call_arguments.delta', 'response.function_call_arguments.done',
  'rate_limits.updated', 'error',
];

test('every event is valid in its schema', () => {
  const missing = wanted.filter((type) => !seen.has(type) && !(through && type === 'rate_limits.updated'));
  assert.deepEqual(missing, [], 'these never came');
  const degraded = [...seen].filter(([, { came, known }]) => came !== known);
  assert.deepEqual(degraded, [], 'these came, but the client took them for unknown');
});
