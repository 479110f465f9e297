// The live client of npm @google/genai. Every wait here has its own limit.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { EndSensitivity, GoogleGenAI, Modality, StartSensitivity, Type } from '@google/genai';

import { Mailbox, soon } from './mailbox.mjs';
import { chunks, durationMS, loudness, recordings, speech, utterance } from './signals.mjs';
import { startSimulator } from './simulator.mjs';

const inputRate = 16000;
const outputRate = 24000;
const models = ['gemini-2.5-flash-native-audio-preview-12-2025', 'gemini-3.1-flash-live-preview', 'gemini-3.8-live'];
const model = models[1];
const limit = { timeout: 45_000 };

const weather = {
  functionDeclarations: [{
    name: 'get_weather',
    description: 'Tells the weather in a city.',
    parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ['city'] },
  }],
};

const transcripts = { inputAudioTranscription: {}, outputAudioTranscription: {} };

let simulator;
before(async () => {
  simulator = await startSimulator();
});
after(() => simulator.stop());

// google is a client of a simulator.
function google({ apiKey = 'test', base = simulator.http, ...options } = {}) {
  const { apiVersion, ...rest } = options;
  return new GoogleGenAI({ apiKey, ...rest, httpOptions: { baseUrl: base, ...(apiVersion ? { apiVersion } : {}) } });
}

// nameOf is the path of a message's content: serverContent.turnComplete.
function nameOf(message) {
  return Object.entries(message)
    .filter(([key]) => key !== 'usageMetadata')
    .map(([key, value]) => (key === 'serverContent' ? [key, ...Object.keys(value)].join('.') : key))
    .join('+') || 'nothing';
}

// Talk is one connection with all messages from it.
class Talk {
  messages = new Mailbox(nameOf);
  closes = new Mailbox((event) => `close ${event.code} ${event.reason}`);

  // The constructor starts to connect; connected settles like the client's promise.
  constructor(client, config = {}, use = model) {
    this.connected = client.live.connect({
      model: use,
      config: { responseModalities: [Modality.AUDIO], ...transcripts, ...config },
      callbacks: {
        onmessage: (message) => this.messages.push(message),
        onerror: (event) => this.messages.end(`error ${event.message}`),
        onclose: (event) => {
          this.messages.end(`close ${event.code} ${event.reason}`);
          this.closes.push({ code: event.code, reason: event.reason.toString() });
        },
      },
    });
    this.connected.catch(() => {}); // it rejects if the connection closes before the setup; tests find that in closes
  }

  static async open(client = google(), config = {}, use = model) {
    const talk = new Talk(client, config, use);
    // It resolves when the setup is complete. A close before that is an error.
    talk.session = await soon('the setup', Promise.race([
      talk.connected,
      talk.closed().then(({ code, reason }) => Promise.reject(new Error(`closed ${code} ${reason}`))),
    ]));
    return talk;
  }

  mark() {
    return this.messages.all.length;
  }

  closed() {
    return this.closes.wait('the close', () => true);
  }

  async close() {
    this.session.close();
    await this.closed();
  }

  speak(audio, rate = inputRate) {
    for (const chunk of chunks(audio, rate)) {
      this.session.sendRealtimeInput({ audio: { data: chunk.toString('base64'), mimeType: `audio/pcm;rate=${rate}` } });
    }
  }

  write(text) {
    this.session.sendClientContent({ turns: [{ role: 'user', parts: [{ text }] }], turnComplete: true });
  }

  answer(responses) {
    this.session.sendToolResponse({ functionResponses: responses });
  }

  // content waits for a message that has that field in serverContent.
  content(field, from = 0) {
    return this.messages.wait(field, (m) => m.serverContent?.[field] !== undefined, from);
  }

  toolCall(from = 0) {
    return this.messages.wait('toolCall', (m) => m.toolCall !== undefined, from).then((m) => m.toolCall.functionCalls);
  }

  // handle waits for a usable handle.
  handle(from = 0) {
    return this.messages
      .wait('a handle', (m) => m.sessionResumptionUpdate?.resumable && m.sessionResumptionUpdate.newHandle, from)
      .then((m) => m.sessionResumptionUpdate.newHandle);
  }

  transcript(field, from = 0) {
    return this.messages.all.slice(from).map((m) => m.serverContent?.[field]?.text ?? '').join('');
  }

  // blobs are the pieces of audio received.
  blobs(from = 0) {
    return this.messages.all.slice(from)
      .flatMap((m) => m.serverContent?.modelTurn?.parts ?? [])
      .filter((part) => part.inlineData)
      .map((part) => part.inlineData);
  }

  audio(from = 0) {
    return Buffer.concat(this.blobs(from).map((blob) => Buffer.from(blob.data, 'base64')));
  }
}

// holdsAudio reports whether a message has audio.
const holdsAudio = (m) => m.serverContent?.modelTurn?.parts?.some((part) => part.inlineData);

// sums asserts that a usage is plausible: there is audio on both sides, and the details do not exceed the counts. (Only
// in 2.5 they add up to them, as recorded.)
function sums(usage) {
  const total = (details) => details.reduce((sum, d) => sum + d.tokenCount, 0);
  const audio = (details) => details.find((d) => d.modality === 'AUDIO')?.tokenCount ?? 0;
  assert.ok(audio(usage.promptTokensDetails) > 0, 'no audio was counted in');
  assert.ok(audio(usage.responseTokensDetails) > 0, 'no audio was counted out');
  assert.ok(total(usage.promptTokensDetails) <= usage.promptTokenCount);
  assert.ok(total(usage.responseTokensDetails) <= usage.responseTokenCount);
  assert.equal(usage.totalTokenCount, usage.promptTokenCount + usage.responseTokenCount);
}

describe('@google/genai', { concurrency: true }, () => {
  for (const use of models) {
    describe(use, { concurrency: true }, () => {
      test('speech is heard and answered in speech', limit, async () => {
        const talk = await Talk.open(google(), {}, use);
        talk.speak(utterance(inputRate));
        await talk.content('turnComplete');
        assert.equal(talk.transcript('inputTranscription').trim(), 'Hello, my name is Marcelo.');
        assert.equal(talk.transcript('outputTranscription').trim(), 'Hello Marcelo, how are you?');
        const audio = talk.audio();
        assert.ok(talk.blobs().every((blob) => blob.mimeType === 'audio/pcm;rate=24000'));
        assert.ok(durationMS(audio.length, outputRate) > 800, `only ${audio.length} bytes`);
        assert.ok(loudness(audio) > 0.01, 'the answer is silent');
        const all = talk.messages.all;
        const generated = all.findIndex((m) => m.serverContent?.generationComplete);
        assert.ok(generated > all.findLastIndex(holdsAudio), 'audio after generationComplete');
        assert.ok(generated < all.findIndex((m) => m.serverContent?.turnComplete), 'turnComplete before generationComplete');
        const usage = all.map((m) => m.usageMetadata).filter((u) => u?.responseTokenCount).at(-1);
        sums(usage);
        assert.equal(talk.closes.all.length, 0);
        await talk.close();
      });

      test('text is answered', limit, async () => {
        const talk = await Talk.open(google(), {}, use);
        talk.write('Anything.');
        await talk.content('turnComplete');
        assert.equal(talk.transcript('outputTranscription').trim(), 'Well said.');
        const begin = talk.mark();
        talk.session.sendRealtimeInput({ text: 'My name is Ann.' });
        await talk.content('turnComplete', begin);
        assert.equal(talk.transcript('outputTranscription', begin).trim(), 'Hello Ann, how are you?');
        await talk.close();
      });

      test('a tool is called, and its result is spoken', limit, async () => {
        const talk = await Talk.open(google(), { tools: [weather] }, use);
        talk.write('What is the weather in London?');
        const calls = await talk.toolCall();
        assert.deepEqual(calls.map(({ name, args }) => ({ name, args })), [{ name: 'get_weather', args: { city: 'London' } }]);
        const begin = talk.mark();
        talk.answer({ id: calls[0].id, name: 'get_weather', response: { output: 'It is foggy.' } });
        await talk.messages.wait('the answer', () => talk.transcript('outputTranscription', begin).includes('It is foggy.'));
        await talk.content('turnComplete', begin);
        await talk.close();
      });

      test('two calls at once', limit, async () => {
        const talk = await Talk.open(google(), { tools: [weather] }, use);
        talk.write('And the weather in London and Paris?');
        const calls = await talk.toolCall();
        assert.deepEqual(calls.map((call) => call.args.city), ['London', 'Paris']);
        assert.notEqual(calls[0].id, calls[1].id);
        const begin = talk.mark();
        talk.answer(calls.map(({ id, name }) => ({ id, name, response: { output: 'Foggy.' } })));
        await talk.content('turnComplete', begin);
        assert.equal(talk.transcript('outputTranscription').trim(), 'Both are here: Foggy. Foggy.');
        await talk.close();
      });

      test('speech interrupts an answer', limit, async () => {
        const talk = await Talk.open(google(), {}, use);
        talk.write('Tell me a story.');
        await talk.messages.wait('audio', holdsAudio);
        talk.speak(utterance(inputRate));
        await talk.content('interrupted');
        const at = talk.messages.all.findIndex((m) => m.serverContent?.interrupted);
        await talk.content('turnComplete', at);
        const done = talk.messages.all.findIndex((m, i) => i >= at && m.serverContent?.turnComplete);
        assert.ok(!talk.messages.all.slice(at, done).some(holdsAudio), 'audio after interrupted');
        // The interrupting speech is the first utterance of this session, and gets an answer.
        await talk.content('turnComplete', done + 1);
        assert.equal(talk.transcript('outputTranscription', done + 1).trim(), 'Hello Marcelo, how are you?');
        await talk.close();
      });

      test('a session is resumed on another connection', limit, async () => {
        const first = await Talk.open(google(), { sessionResumption: {} }, use);
        first.speak(utterance(inputRate));
        await first.content('turnComplete');
        const handle = await first.handle(first.messages.all.findIndex((m) => m.serverContent?.generationComplete));
        await first.close();
        const second = await Talk.open(google(), { sessionResumption: { handle } }, use);
        // It is still the same conversation: this is its second utterance.
        second.speak(utterance(inputRate));
        await second.content('turnComplete');
        assert.equal(second.transcript('outputTranscription').trim(), 'I stop.');
        await second.close();
      });
    });
  }

  test('audio at the rate of the client, and activity reported by the client', limit, async () => {
    const talk = await Talk.open(google(), {
      realtimeInputConfig: { automaticActivityDetection: { disabled: true } },
      systemInstruction: 'Be brief.',
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Aoede' } } },
    });
    talk.session.sendRealtimeInput({ activityStart: {} });
    talk.speak(speech(48000, 1000), 48000);
    talk.session.sendRealtimeInput({ activityEnd: {} });
    await talk.content('turnComplete');
    assert.equal(talk.transcript('outputTranscription').trim(), 'Hello Marcelo, how are you?');
    await talk.close();
  });

  test('the end of the stream ends the speech', limit, async () => {
    const talk = await Talk.open(google(), {
      realtimeInputConfig: {
        automaticActivityDetection: {
          startOfSpeechSensitivity: StartSensitivity.START_SENSITIVITY_HIGH,
          endOfSpeechSensitivity: EndSensitivity.END_SENSITIVITY_LOW,
          prefixPaddingMs: 20,
          silenceDurationMs: 800,
        },
      },
    });
    talk.speak(speech(inputRate, 1000));
    talk.session.sendRealtimeInput({ audioStreamEnd: true });
    await talk.content('turnComplete');
    assert.equal(talk.transcript('outputTranscription').trim(), 'Hello Marcelo, how are you?');
    await talk.close();
  });

  test('an interruption cancels an open call', limit, async () => {
    const talk = await Talk.open(google(), { tools: [weather] });
    talk.write('What is the weather in London?');
    const [call] = await talk.toolCall();
    talk.speak(utterance(inputRate));
    const { toolCallCancellation } = await talk.messages.wait('the cancellation', (m) => m.toolCallCancellation !== undefined);
    assert.deepEqual(toolCallCancellation.ids, [call.id]);
    await talk.close();
  });

  test('over TLS, and as Vertex', limit, async (t) => {
    const secure = await startSimulator({ tls: true });
    t.after(() => secure.stop());
    for (const client of [google({ base: secure.http }), google({ base: secure.http, vertexai: true })]) {
      const talk = await Talk.open(client);
      talk.write('Anything.');
      await talk.content('turnComplete');
      assert.equal(talk.transcript('outputTranscription').trim(), 'Well said.');
      await talk.close();
    }
  });

  for (const apiVersion of [undefined, 'v1', 'v1beta', 'v1alpha']) {
    test(`version ${apiVersion} answers`, limit, async () => {
      const talk = await Talk.open(google({ apiVersion }));
      talk.write('Hello.');
      await talk.content('turnComplete');
      await talk.close();
    });

    test(`an ephemeral token opens one session, with its own setup (version ${apiVersion})`, limit, async () => {
      const token = await soon('the token', google({ apiVersion }).authTokens.create({
        config: {
          uses: 1,
          expireTime: new Date(Date.now() + 600_000).toISOString(),
          liveConnectConstraints: { model, config: { responseModalities: [Modality.AUDIO], tools: [weather], ...transcripts } },
        },
      }));
      assert.match(token.name, /^auth_tokens\/\w+$/);
      const holder = google({ apiKey: token.name, apiVersion });
      const talk = await Talk.open(holder, { inputAudioTranscription: undefined, outputAudioTranscription: undefined });
      talk.write('What is the weather in London?');
      assert.equal((await talk.toolCall())[0].name, 'get_weather'); // only the token has this tool
      await talk.close();

      const { code, reason } = await new Talk(holder).closed();
      assert.equal(code, 1007, reason);
      assert.match(reason, /no uses left/);
    });

    test(`a token locks the fields it names and no others (version ${apiVersion})`, limit, async () => {
      const token = await soon('the token', google({ apiVersion }).authTokens.create({
        config: {
          uses: 1,
          liveConnectConstraints: { model, config: { temperature: 0.5 } },
          lockAdditionalFields: [],
        },
      }));
      const talk = await Talk.open(google({ apiKey: token.name, apiVersion }), { tools: [weather] });
      talk.write('What is the weather in London?');
      assert.equal((await talk.toolCall())[0].name, 'get_weather');
      await talk.close();
    });
  }

  const closes = [
    { name: 'an invalid key', apiKey: 'invalid', code: 1007, reason: 'API key not valid. Please pass a valid API key.' },
    { name: 'an expired key', apiKey: 'expired', code: 1007, reason: 'API key expired. Please renew the API key.' },
    { name: 'an unknown token', apiKey: 'auth_tokens/nobody', code: 1007, reason: /token/ },
    {
      name: 'an unknown model', use: 'gemini-unknown', code: 1008,
      reason: /^models\/gemini-unknown is not found for API version v1, or is not supported for bidiGenerateContent\. Call/,
    },
    { name: 'an unknown handle', config: { sessionResumption: { handle: 'nowhere' } }, code: 1008, reason: 'BidiGenerateContent session not found' },
    {
      name: 'a tool with an invalid name', code: 1007, reason: /Invalid function name/,
      config: { tools: [{ functionDeclarations: [{ name: 'get weather' }] }] },
    },
  ];
  for (const { name, apiKey, use, config, code, reason } of closes) {
    test(`${name} is closed ${code}`, limit, async () => {
      const talk = new Talk(google({ apiKey }), config, use);
      const close = await talk.closed();
      assert.equal(close.code, code, close.reason);
      if (reason instanceof RegExp) {
        assert.match(close.reason, reason);
      } else {
        assert.equal(close.reason, reason);
      }
      assert.deepEqual(talk.messages.all, [], 'a message came before the close');
    });
  }

  test('an exhausted quota is reported after the setup', limit, async () => {
    const talk = await Talk.open(google({ apiKey: 'quota' }));
    const { code, reason } = await talk.closed();
    assert.equal(code, 1011);
    assert.match(reason, /^You exceeded your current quota/);
  });

  test('goAway comes before the end, and the session continues elsewhere', limit, async (t) => {
    const ending = await startSimulator({
      faults: 'faults:\n  - {at: turn, n: 2, connection: 1, do: goaway, for: 1s}\n',
    });
    t.after(() => ending.stop());
    const first = await Talk.open(google({ base: ending.http }), { sessionResumption: {} });
    first.speak(utterance(inputRate));
    await first.content('turnComplete');
    const handle = await first.handle(first.messages.all.findIndex((m) => m.serverContent?.generationComplete));
    first.write('Tell me a story.');
    const { goAway } = await first.messages.wait('goAway', (m) => m.goAway !== undefined);
    assert.match(goAway.timeLeft, /^1(\.0+)?s$/);
    const { code } = await first.closed();
    assert.equal(code, 1008);
    const second = await Talk.open(google({ base: ending.http }), { sessionResumption: { handle } });
    second.speak(utterance(inputRate));
    await second.content('turnComplete');
    assert.equal(second.transcript('outputTranscription').trim(), 'I stop.');
    await second.close();
  });

  const recording = recordings().find((r) => r.name.includes('marcelo'));
  test('recorded speech is heard as one utterance', { ...limit, skip: !recording && '../shared/audio is not there' }, async () => {
    const { audio, rate } = recording;
    const talk = await Talk.open();
    talk.speak(Buffer.concat([audio, Buffer.alloc(2 * rate)]), rate);
    await talk.content('turnComplete');
    assert.equal(talk.transcript('inputTranscription').trim(), 'Hello, my name is Marcelo.');
    await talk.close();
  });
});
