// The realtime classes of npm openai, over TLS, because they support nothing else.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import OpenAI, { AzureOpenAI } from 'openai';
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';

import { Mailbox, soon, within } from './mailbox.mjs';
import { chunks, durationMS, loudness, recordings, ulaw, utterance } from './signals.mjs';
import { startRealtime, startSimulator, through } from './simulator.mjs';

const rate = 24000;
const model = through || 'gpt-realtime-2.1'; // a gateway would choose OpenAI by its model's name
// Gemini lacks the voice, and counts the tokens of audio differently.
const [voice, tokenMS] = through === 'gemini' ? ['Puck', 40] : ['cedar', 50];

// counted checks the tokens of audio.
const counted = (tokens, ms) => assert.ok(Math.abs(tokens - ms / tokenMS) <= 1, `${tokens} tokens for ${ms} ms`);
const limit = { timeout: 45_000 };
// A gateway has its own keys, models and faults.
const provider = { ...limit, skip: through && 'it is about the provider' };

const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'Tells the weather in a city.',
  parameters: {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
};

// The two classes differ in the handshake: a header, or subprotocols.
const classes = {
  OpenAIRealtimeWS: (client, props) => new OpenAIRealtimeWS(props, client),
  OpenAIRealtimeWebSocket: (client, props) => new OpenAIRealtimeWebSocket({ dangerouslyAllowBrowser: true, ...props }, client),
};

let simulator;
before(async () => {
  simulator = await startRealtime({ tls: true });
});
after(() => simulator.stop());

const client = (apiKey = simulator.key ?? 'sk-test') => new OpenAI({ apiKey, baseURL: `${simulator.http}/v1` });

// Talk is one connection with all events from it.
class Talk {
  constructor(rt) {
    this.rt = rt;
    this.events = new Mailbox();
    this.errors = new Mailbox((error) => error.error?.code ?? error.message);
    this.closed = within('the close', (done) => {
      rt.socket.addEventListener('close', (event) => {
        for (const box of [this.events, this.errors]) {
          box.end(`close ${event.code} ${event.reason}`);
        }
        done({ code: event.code, reason: event.reason });
      });
    }, undefined, 40_000);
    this.closed.catch(() => {}); // only tests that wait for it handle the rejection
    rt.on('event', (event) => this.events.push(event));
    rt.on('error', (error) => {
      this.errors.push(error);
      if (!error.error) { // of the connection, not of the provider
        this.events.end(error.message);
      }
    });
  }

  static async open(make, session, props = {}, apiKey = 'sk-test') {
    const talk = new Talk(make(client(apiKey), { model, ...props }));
    await talk.events.type('session.created');
    if (session) {
      talk.send({ type: 'session.update', session: { type: 'realtime', ...session } });
      await talk.events.type('session.updated');
    }
    return talk;
  }

  send(event) {
    this.rt.send(event);
  }

  // mark is the position of the next event.
  mark() {
    return this.events.all.length;
  }

  speak(audio) {
    for (const chunk of chunks(audio, rate)) {
      this.send({ type: 'input_audio_buffer.append', audio: chunk.toString('base64') });
    }
  }

  write(text) {
    this.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] } });
    this.send({ type: 'response.create' });
  }

  deltas(type, from = 0) {
    return this.events.all.slice(from).filter((e) => e.type === type).map((e) => e.delta);
  }

  audio(from = 0) {
    return Buffer.concat(this.deltas('response.output_audio.delta', from).map((d) => Buffer.from(d, 'base64')));
  }

  async close() {
    this.rt.close();
    const { code } = await this.closed;
    assert.equal(code, 1000);
  }
}

// orderly asserts the order of the names among the events.
function orderly(names, expected) {
  let at = 0;
  for (const name of names) {
    if (name === expected[at]) {
      at++;
    }
  }
  assert.equal(at, expected.length, `${expected[at]} is missing or out of order in ${names.join(', ')}`);
}

const spokenAnswer = [
  'response.created', 'response.output_item.added', 'conversation.item.added', 'response.content_part.added',
  'response.output_audio_transcript.delta', 'response.output_audio.delta', 'response.output_audio.done',
  'response.output_audio_transcript.done', 'response.content_part.done', 'conversation.item.done',
  'response.output_item.done', 'response.done',
];

describe('npm openai', { concurrency: true }, () => {
  for (const [name, make] of Object.entries(classes)) {
    describe(name, { concurrency: true }, () => {
      test('the session is complete, and accepts an update', limit, async () => {
        const talk = await Talk.open(make, { instructions: 'Be brief.', audio: { output: { voice: 'cedar' } } });
        const { session: created } = talk.events.all[0];
        assert.equal(created.object, 'realtime.session');
        assert.equal(created.model, model);
        assert.match(created.id, /^sess_\w{21}$/);
        assert.deepEqual(created.audio.input.format, { type: 'audio/pcm', rate: 24000 });
        assert.equal(created.audio.input.turn_detection.type, 'server_vad');
        assert.equal(created.audio.input.turn_detection.interrupt_response, true);
        assert.ok(created.expires_at > Date.now() / 1000 + 3000);
        const { session: updated } = await talk.events.type('session.updated');
        assert.equal(updated.instructions, 'Be brief.');
        assert.equal(updated.audio.output.voice, voice);
        assert.equal(updated.audio.output.speed, 1);
        await talk.close();
        assert.deepEqual(talk.errors.all, []);
      });

      test('speech is heard and answered in speech', limit, async () => {
        const talk = await Talk.open(make, { audio: { input: { transcription: { model: 'gpt-4o-mini-transcribe' } } } });
        const begin = talk.mark();
        talk.speak(utterance(rate));
        const { response } = await talk.events.type('response.done', begin);
        const heard = await talk.events.type('conversation.item.input_audio_transcription.completed', begin);
        orderly(talk.events.names(begin), [
          'input_audio_buffer.speech_started', 'input_audio_buffer.speech_stopped', 'input_audio_buffer.committed',
          'conversation.item.added', 'conversation.item.done', ...spokenAnswer,
        ]);
        const started = await talk.events.type('input_audio_buffer.speech_started');
        const stopped = await talk.events.type('input_audio_buffer.speech_stopped');
        assert.equal(stopped.item_id, started.item_id);
        assert.equal(heard.item_id, started.item_id);
        assert.equal(heard.transcript, 'Hello, my name is Marcelo.');
        assert.equal(talk.deltas('conversation.item.input_audio_transcription.delta').join('').trim(), heard.transcript);
        // 300 ms of silence before, 1200 ms of speech, 300 ms of padding and 500 ms of silence reported.
        assert.ok(started.audio_start_ms <= 300, `speech_started at ${started.audio_start_ms}`);
        assert.ok(Math.abs(stopped.audio_end_ms - 2000) < 250, `speech_stopped at ${stopped.audio_end_ms}`);

        assert.equal(response.status, 'completed');
        const said = response.output[0].content[0];
        assert.deepEqual(said, { type: 'output_audio', transcript: 'Hello Marcelo, how are you?' });
        assert.equal(talk.deltas('response.output_audio_transcript.delta').join(''), said.transcript);
        const audio = talk.audio();
        assert.ok(durationMS(audio.length, rate) > 800, `only ${audio.length} bytes`);
        assert.ok(loudness(audio) > 0.01, 'the answer is silent');
        const { usage } = response;
        assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
        counted(usage.output_token_details.audio_tokens, durationMS(audio.length, rate));
        assert.ok(usage.input_token_details.audio_tokens > 10);
        await talk.close();
        assert.deepEqual(talk.errors.all, []);
      });

      test('text is answered in text', limit, async () => {
        const talk = await Talk.open(make, { output_modalities: ['text'] });
        const begin = talk.mark();
        talk.write('Anything.');
        const { response } = await talk.events.type('response.done', begin);
        orderly(talk.events.names(begin), [
          'conversation.item.added', 'conversation.item.done', 'response.created', 'response.output_item.added',
          'response.content_part.added', 'response.output_text.delta', 'response.output_text.done', 'response.content_part.done',
          'response.output_item.done', 'response.done',
        ]);
        assert.equal(response.output[0].content[0].text, 'Well said.');
        assert.equal(talk.deltas('response.output_text.delta').join(''), 'Well said.');
        assert.equal(talk.audio().length, 0);
        await talk.close();
      });

      test('a tool is called, and its result is spoken', limit, async () => {
        const talk = await Talk.open(make, { tools: [weather] });
        talk.write('What is the weather in London?');
        const { response: first } = await talk.events.type('response.done');
        const call = first.output.find((item) => item.type === 'function_call');
        assert.equal(call.name, 'get_weather');
        assert.equal(call.status, 'completed');
        assert.deepEqual(JSON.parse(call.arguments), { city: 'London' });
        assert.equal(talk.deltas('response.function_call_arguments.delta').join(''), call.arguments);
        const done = await talk.events.type('response.function_call_arguments.done');
        assert.deepEqual([done.call_id, done.name, done.arguments], [call.call_id, 'get_weather', call.arguments]);

        const begin = talk.mark();
        talk.send({ type: 'conversation.item.create', item: { type: 'function_call_output', call_id: call.call_id, output: 'It is foggy.' } });
        talk.send({ type: 'response.create' });
        const { response: second } = await talk.events.type('response.done', begin);
        assert.equal(second.output[0].content[0].transcript, 'In London: It is foggy.');
        await talk.close();
        assert.deepEqual(talk.errors.all, []);
      });

      test('two calls at once', limit, async () => {
        const talk = await Talk.open(make, { tools: [weather], output_modalities: ['text'] });
        talk.write('And the weather in London and Paris?');
        const { response } = await talk.events.type('response.done');
        const calls = response.output.filter((item) => item.type === 'function_call');
        assert.deepEqual(calls.map((c) => JSON.parse(c.arguments).city), ['London', 'Paris']);
        assert.notEqual(calls[0].call_id, calls[1].call_id);
        const begin = talk.mark();
        for (const { call_id } of calls) {
          talk.send({ type: 'conversation.item.create', item: { type: 'function_call_output', call_id, output: 'Foggy.' } });
        }
        talk.send({ type: 'response.create' });
        const { response: answer } = await talk.events.type('response.done', begin);
        assert.equal(answer.output[0].content[0].text, 'Both are here: Foggy. Foggy.');
        await talk.close();
      });

      test('response.cancel ends an answer', limit, async () => {
        const talk = await Talk.open(make);
        talk.write('Tell me a story.');
        await talk.events.type('response.output_audio.delta');
        const { response: running } = await talk.events.type('response.created');
        const begin = talk.mark();
        talk.send({ type: 'response.cancel', response_id: running.id });
        const { response } = await talk.events.type('response.done', begin);
        assert.equal(response.status, 'cancelled');
        assert.deepEqual(response.status_details, { type: 'cancelled', reason: 'client_cancelled' });
        assert.equal(response.output[0].status, 'incomplete');
        orderly(talk.events.names(begin), [
          'response.output_audio.done', 'response.output_audio_transcript.done', 'response.content_part.done',
          'conversation.item.done', 'response.output_item.done', 'response.done',
        ]);
        assert.ok(through || response.usage.output_tokens > 0);

        // A second one finds no response to cancel.
        talk.send({ type: 'response.cancel', event_id: 'again' });
        const error = await talk.errors.type('response_cancel_not_active');
        assert.equal(error.error.event_id, 'again');
        await talk.close();
      });

      test('speech interrupts an answer, which is truncated at the playback position', limit, async () => {
        const talk = await Talk.open(make);
        talk.write('Tell me a story.');
        const { item_id } = await talk.events.type('response.output_audio.delta');
        talk.speak(utterance(rate));
        await talk.events.type('input_audio_buffer.speech_started');
        const { response } = await talk.events.type('response.done');
        assert.deepEqual([response.status, response.status_details.reason], ['cancelled', 'turn_detected']);
        const heard = 150;
        talk.send({ type: 'conversation.item.truncate', item_id, content_index: 0, audio_end_ms: heard });
        const cut = await talk.events.type('conversation.item.truncated');
        assert.deepEqual([cut.item_id, cut.content_index, cut.audio_end_ms], [item_id, 0, heard]);
        talk.send({ type: 'conversation.item.retrieve', item_id });
        const { item } = await talk.events.type('conversation.item.retrieved');
        if (!through) { // a gateway stores no audio
          assert.equal(durationMS(Buffer.from(item.content[0].audio, 'base64').length, rate), heard);
        }
        assert.ok(!item.content[0].transcript, 'the transcript of the unplayed part is still there');

        if (through) { // a position after the end means the end
          return talk.close();
        }
        // There is no audio after the truncation any more.
        talk.send({ type: 'conversation.item.truncate', item_id, content_index: 0, audio_end_ms: 4850, event_id: 'too-long' });
        const error = await talk.errors.wait('the refusal', (e) => e.error.event_id === 'too-long');
        assert.equal(error.error.message, 'Audio content of 150ms is already shorter than 4850ms');
        await talk.close();
      });

      test('errors are routed and leave the session open', limit, async () => {
        const talk = await Talk.open(make);
        talk.send({ type: 'session.update', event_id: 'mine', session: { type: 'realtime', modalities: ['audio'] } });
        const error = await talk.errors.type('unknown_parameter');
        assert.deepEqual(
          { type: error.error.type, message: error.error.message, param: error.error.param, event_id: error.error.event_id },
          {
            type: 'invalid_request_error', message: "Unknown parameter: 'session.modalities'.",
            param: 'session.modalities', event_id: 'mine',
          },
        );
        assert.match(error.event_id, /^event_/);
        talk.send({ type: 'bogus' });
        await talk.errors.type('invalid_value');
        talk.send({ type: 'input_audio_buffer.clear' });
        await talk.events.type('input_audio_buffer.cleared');
        await talk.close();
      });

      test('audio that is committed by hand, without turn detection', limit, async () => {
        const talk = await Talk.open(make, { audio: { input: { turn_detection: null } } });
        talk.speak(utterance(rate));
        talk.send({ type: 'input_audio_buffer.commit' });
        await talk.events.type('conversation.item.done');
        talk.send({ type: 'response.create' });
        const { response } = await talk.events.type('response.done');
        assert.equal(response.output[0].content[0].transcript, 'Hello Marcelo, how are you?');
        assert.ok(!talk.events.names().includes('input_audio_buffer.speech_started'));
        await talk.close();
      });

      test('a client secret opens the session it was made for', limit, async () => {
        const secret = await soon('the secret', client().realtime.clientSecrets.create({
          expires_after: { anchor: 'created_at', seconds: 120 },
          session: { type: 'realtime', model, instructions: 'Speak like a sailor.', audio: { output: { voice: 'cedar' } } },
        }));
        assert.match(secret.value, /^ek_\w+$/);
        assert.ok(Math.abs(secret.expires_at - Date.now() / 1000 - 120) < 10);
        assert.equal(secret.session.type, 'realtime');
        assert.equal(secret.session.instructions, 'Speak like a sailor.');
        for (let use = 0; use < 2; use++) {
          // A key that begins with ek_ needs no consent for use in a browser.
          const talk = await Talk.open(make, null, { dangerouslyAllowBrowser: false }, secret.value);
          const { session } = await talk.events.type('session.created');
          assert.equal(session.instructions, 'Speak like a sailor.');
          assert.equal(session.audio.output.voice, voice);
          await talk.close();
        }
      });

      test('a wrong key and an unknown model get an error and a close', provider, async () => {
        const cases = [
          { apiKey: 'sk-invalid', props: {}, code: 'invalid_api_key', close: 3000 },
          { apiKey: 'sk-test', props: { model: 'gpt-unknown' }, code: 'model_not_found', close: 4000 },
        ];
        for (const { apiKey, props, code, close } of cases) {
          const talk = new Talk(make(client(apiKey), { model, ...props }));
          const error = await talk.errors.type(code);
          const closed = await talk.closed;
          assert.deepEqual(closed, { code: close, reason: `${error.error.type}.${code}` });
        }
      });

      test('G.711 in both directions', limit, async () => {
        const format = { type: 'audio/pcmu' };
        const talk = await Talk.open(make, { audio: { input: { format }, output: { format } } });
        talk.send({ type: 'input_audio_buffer.append', audio: ulaw(utterance(8000)).toString('base64') });
        const { response } = await talk.events.type('response.done');
        assert.equal(response.output[0].content[0].transcript, 'Hello Marcelo, how are you?');
        assert.deepEqual(response.audio.output.format, format);
        counted(response.usage.output_token_details.audio_tokens, talk.audio().length / 8);
        await talk.close();
      });

      const recording = recordings().find((r) => r.rate === rate);
      test('recorded speech is heard as one utterance', { ...limit, skip: !recording && '../shared/audio is not there' }, async () => {
        const { audio } = recording;
        const talk = await Talk.open(make);
        talk.speak(Buffer.concat([audio, Buffer.alloc(2 * rate)]));
        const { response } = await talk.events.type('response.done');
        assert.equal(response.status, 'completed');
        assert.equal(talk.events.all.filter((e) => e.type === 'input_audio_buffer.committed').length, 1);
        await talk.close();
      });
    });
  }

  test('Azure', limit, async () => {
    const azure = new AzureOpenAI({ apiKey: 'test', apiVersion: 'v1', baseURL: `${simulator.http}/openai/v1`, deployment: 'anything' });
    const talk = new Talk(await OpenAIRealtimeWS.azure(azure));
    const { session } = await talk.events.type('session.created');
    assert.equal(session.type, 'realtime');
    talk.write('Anything.');
    const { response } = await talk.events.type('response.done');
    assert.equal(response.output[0].content[0].transcript, 'Well said.');
    await talk.close();
  });

  test('an exhausted quota fails the response, and the session expires', provider, async (t) => {
    const ending = await startSimulator({
      tls: true, faults: 'faults:\n  - {at: turn, n: 1, do: quota}\n  - {at: turn, n: 2, do: expire}\n',
    });
    t.after(() => ending.stop());
    const talk = new Talk(new OpenAIRealtimeWS({ model }, new OpenAI({ apiKey: 'sk-test', baseURL: `${ending.http}/v1` })));
    await talk.events.type('session.created');
    talk.write('Anything.');
    const { response } = await talk.events.type('response.done');
    assert.equal(response.status, 'failed');
    assert.equal(response.status_details.error.code, 'insufficient_quota');
    talk.write('Anything.');
    await talk.errors.type('session_expired');
    assert.deepEqual(await talk.closed, { code: 1001, reason: 'Your session hit the maximum duration of 60 minutes.' });
  });

  test('the REST client gets the error of a bad request', provider, async () => {
    await assert.rejects(
      client().realtime.clientSecrets.create({ expires_after: { anchor: 'created_at', seconds: 1 } }),
      (error) => error instanceof OpenAI.BadRequestError && error.param === 'expires_after.seconds',
    );
    await assert.rejects(client('sk-invalid').realtime.clientSecrets.create({}), OpenAI.AuthenticationError);
  });
});
