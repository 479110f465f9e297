// The Live class of npm openai, which uses unencrypted WebSockets for a base URL with http.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import OpenAI from 'openai';
import { LiveWS } from 'openai/resources/live/ws';

import { Mailbox, within } from './mailbox.mjs';
import { chunks, loudness, silence, utterance } from './signals.mjs';
import { startSimulator } from './simulator.mjs';

const rate = 24000;
const limit = { timeout: 45_000 };

let simulator;
before(async () => {
  simulator = await startSimulator({ args: ['--speed', '10'] });
});
after(() => simulator.stop());

// Talk is one session with all its events.
class Talk {
  events = new Mailbox();
  errors = new Mailbox((error) => error.error?.error?.code ?? error.message);

  constructor(apiKey = 'sk-test') {
    this.live = new LiveWS(new OpenAI({ apiKey, baseURL: `${simulator.http}/v1` }));
    this.live.on('event', (event) => this.events.push(event));
    this.live.on('error', (error) => this.errors.push(error));
    this.closed = within('the close', (done) => this.live.on('close', (code) => done(code)), undefined, 40_000);
    this.closed.catch(() => {}); // only some tests wait for it
  }

  static async open(session = {}) {
    const talk = new Talk();
    talk.live.send({ type: 'session.start', event_id: 'start', session: { model: 'gpt-live-1', ...session } });
    await talk.events.type('session.started');
    return talk;
  }

  speak(audio) {
    for (const chunk of chunks(audio, rate)) {
      this.live.send({ type: 'session.input_audio.append', audio: chunk.toString('base64') });
    }
  }

  words(type) {
    return this.events.all.filter((e) => e.type === type).map((e) => e.delta).join('');
  }

  audio() {
    return Buffer.concat(this.events.all.filter((e) => e.type === 'session.output_audio.delta').map((e) => Buffer.from(e.delta, 'base64')));
  }

  // close ends the session and returns its last event.
  async close() {
    this.live.send({ type: 'session.close' });
    const last = await this.events.type('session.closed');
    assert.equal(await this.closed, 1005);
    assert.equal(this.events.all.at(-1), last, 'session.closed is the last event');
    return last;
  }
}

describe('LiveWS', () => {
  test('speech is transcribed and answered on the track', limit, async () => {
    const talk = await Talk.open({ audio: { output: { voice: 'cedar' } }, delegation: { type: 'client' } });
    const { session, client_event_id: cause } = await talk.events.type('session.started');
    assert.equal(cause, 'start');
    assert.equal(session.audio.output.voice, 'cedar');
    assert.match(session.id, /^live_/);
    talk.speak(Buffer.concat([utterance(rate), silence(rate, 8000)]));
    await talk.events.wait('the answer', () => talk.words('session.output_transcript.delta').endsWith('how are you?'));
    assert.equal(talk.words('session.input_transcript.delta'), 'Hello, my name is Marcelo.');
    assert.equal(talk.words('session.output_transcript.delta'), 'Hello Marcelo, how are you?');
    assert.ok(loudness(talk.audio()) > 0);
    const { reason, usage } = await talk.close();
    assert.equal(reason, 'close_requested');
    assert.ok(usage.seconds > 2);
    assert.deepEqual(talk.errors.all, []);
  });

  test('work is delegated, and its result is spoken', limit, async () => {
    const talk = await Talk.open();
    talk.live.send({ type: 'session.instructions.append', content: 'The user typed: the weather in London', delegation_id: null });
    talk.speak(silence(rate, 20_000));
    const { delegation } = await talk.events.type('session.delegation.created');
    assert.equal(delegation.target, 'client');
    talk.live.send({ type: 'session.thinking.append', content: 'It was looked up.', delegation_id: delegation.id });
    talk.live.send({ type: 'session.commentary.append', event_id: 'c', content: 'It rains in London.', delegation_id: delegation.id });
    assert.equal((await talk.events.type('session.commentary.appended')).client_event_id, 'c');
    await talk.events.wait('the answer', () => talk.words('session.output_transcript.delta').endsWith('It rains in London.'));
    await talk.events.type('session.thinking.appended');
    await talk.close();
  });

  test('a fixture is played unchanged', limit, async () => {
    const talk = await Talk.open();
    const notice = utterance(rate);
    talk.live.send({ type: 'session.output_audio.fixture.play', audio: notice.toString('base64') });
    talk.speak(silence(rate, 10_000));
    await talk.events.type('session.output_audio.fixture.playing');
    await talk.events.type('session.output_audio.fixture.played');
    assert.ok(talk.audio().includes(notice));
    await talk.close();
  });

  test('the class reports the errors', limit, async () => {
    const talk = new Talk();
    talk.live.send({ type: 'session.start', session: { model: 'gpt-live-1', temperature: 1 } });
    await talk.errors.type('unknown_parameter');
    assert.equal(await talk.closed, 1005);
    const other = await Talk.open();
    other.live.send({ type: 'session.commentary.append', content: 'x', delegation_id: 'item_0' });
    await other.errors.type('invalid_value');
    other.live.send({ type: 'session.commentary.append', event_id: 'lost', content: 'x', delegation_id: null });
    other.live.send({ type: 'session.close' });
    const { error } = (await other.errors.type('context_injection_incomplete')).error;
    assert.equal(error.client_event_id, 'lost');
    assert.equal(await other.closed, 1005);
  });
});
