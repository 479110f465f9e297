// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test, vi } from "vitest";
import type { MicrophoneHandlers } from "../src/audio/microphone.js";
import type { SpeakerHandlers } from "../src/audio/speaker.js";
import { VoiceError } from "../src/errors.js";
import type { Disconnected, VoiceEvents } from "../src/events.js";
import type { ConnectOptions } from "../src/options.js";
import { connect } from "../src/connect.js";
import { VoiceSession } from "../src/session.js";
import { FakeWebSocket, installNetwork, pass, removeNetwork, settle } from "./fakes.js";

/** The newest session's devices: the calls they got, and their events. */
const devices = vi.hoisted(() => ({
  speaker: undefined as unknown as SpeakerHandlers,
  microphone: undefined as unknown as MicrophoneHandlers,
  calls: [] as string[],
  start: (): Promise<void> => Promise.resolve(),
}));

vi.mock("../src/audio/speaker.js", () => ({
  Speaker: class {
    constructor(handlers: SpeakerHandlers) {
      devices.speaker = handlers;
    }
    open = async (): Promise<void> => void devices.calls.push("speaker open");
    resume = (): void => undefined;
    start = (item: string): void => void devices.calls.push(`start ${item}`);
    audio = (item: string): void => void devices.calls.push(`audio ${item}`);
    end = (item: string): void => void devices.calls.push(`end ${item}`);
    flush = (item: string | null): void => void devices.calls.push(`flush ${item}`);
    close = (): void => void devices.calls.push("speaker close");
  },
}));
vi.mock("../src/audio/microphone.js", () => ({
  Microphone: class {
    constructor(_: unknown, handlers: MicrophoneHandlers) {
      devices.microphone = handlers;
    }
    ready = (): void => undefined;
    start = (): Promise<void> => devices.start();
    muted = false;
    mute = (muted: boolean): void => void (this.muted = muted);
    close = (): void => void devices.calls.push("microphone close");
  },
}));
vi.mock("../src/audio/worklets/load.js", () => ({ loadWorklets: async () => undefined, packagedWorklets: () => ({}) }));

class FakeAudioContext {
  close = async (): Promise<void> => void devices.calls.push("context close");
}

/** A session's events in order. */
class Listener {
  readonly events: { type: keyof VoiceEvents; event: unknown }[] = [];

  constructor(session: VoiceSession, ...types: (keyof VoiceEvents)[]) {
    for (const type of types) {
      session.on(type, (event) => this.events.push({ type, event }));
    }
  }

  of<T extends keyof VoiceEvents>(type: T): VoiceEvents[T][] {
    return this.events.filter((e) => e.type === type).map((e) => e.event as VoiceEvents[T]);
  }

  get types(): string[] {
    return this.events.map((e) => e.type);
  }
}

const all: VoiceSession[] = [];

function make(options: ConnectOptions = {}): VoiceSession {
  const session = new VoiceSession(options);
  all.push(session);
  return session;
}

/** An open session. */
async function open(options: ConnectOptions = {}, fields: Record<string, unknown> = {}): Promise<VoiceSession> {
  const session = make(options);
  const opened = session.open();
  await settle();
  FakeWebSocket.last.start(fields);
  await opened;
  devices.calls.length = 0;
  return session;
}

/** The connection breaks and is restored. */
async function reconnect(fields: Record<string, unknown> = {}): Promise<void> {
  const sockets = FakeWebSocket.all.length;
  FakeWebSocket.last.drop();
  while (FakeWebSocket.all.length === sockets) {
    await pass(250);
  }
  FakeWebSocket.last.start(fields);
}

const frame = (ageMs = 0): void => devices.microphone.frame({ pcm: new ArrayBuffer(640), at: Date.now() - ageMs, clockMs: 0 });
const question = (token: string): { type: string; [field: string]: unknown } => ({ type: "confirmation.request", seq: 2, turn: 1, token, tool: "send", args: {}, preview: "Send?", expires_at: "" });

beforeEach(() => {
  installNetwork();
  vi.stubGlobal("AudioContext", FakeAudioContext);
  devices.calls.length = 0;
  devices.start = () => Promise.resolve();
});

afterEach(async () => {
  all.splice(0).forEach((session) => void session.disconnect());
  await pass(5000);
  removeNetwork();
});

describe("a session that opens", () => {
  test("tells in order what happens, and what the gateway said", async () => {
    const session = make();
    const told = new Listener(session, "state", "message", "session.started", "sent", "disconnected");
    assert.equal(session.state, "connecting");
    assert.equal(session.info, null);
    const opened = session.open();
    await settle();
    FakeWebSocket.last.start({ conversation_id: "c-7" });
    await opened;
    assert.deepEqual(told.types, ["sent", "message", "session.started", "state"]);
    assert.equal(session.state, "connected");
    assert.equal((session.info as { conversation_id?: string } | null)?.conversation_id, "c-7");
  });

  test("is opened once", async () => {
    const session = make();
    const opened = session.open();
    assert.equal(session.open(), opened);
    await settle();
    FakeWebSocket.last.start();
    await opened;
    assert.equal(session.open(), opened);
    assert.equal(FakeWebSocket.all.length, 1);
  });

  test("goes on without a voice where there is none, and without a microphone that is refused", async () => {
    vi.stubGlobal("AudioContext", undefined);
    const mute = make();
    const told = new Listener(mute, "error");
    void mute.open();
    await settle();
    FakeWebSocket.last.start();
    assert.deepEqual(told.of("error").map((e) => e.code), ["audio_unavailable"]);
    assert.equal(mute.state, "connected");

    vi.stubGlobal("AudioContext", FakeAudioContext);
    devices.start = () => Promise.reject(new VoiceError("microphone_denied"));
    const typing = make();
    const refused = new Listener(typing, "error");
    void typing.open();
    await settle();
    FakeWebSocket.last.start();
    assert.deepEqual(refused.of("error").map((e) => e.code), ["microphone_denied"]);
    assert.equal(typing.state, "connected");
  });

  test("fails with the gateway's reason, gives the devices back and ends", async () => {
    const session = make();
    const told = new Listener(session, "state", "error", "disconnected");
    const opened = session.open();
    await settle();
    FakeWebSocket.last.open();
    FakeWebSocket.last.say({ type: "error", seq: 1, code: "ticket_missing", message: "…", retryable: false });
    FakeWebSocket.last.drop(4501);
    const error = await opened.catch((e: unknown) => e);
    assert.ok(error instanceof VoiceError);
    assert.equal(error.gatewayCode, "ticket_missing");
    assert.deepEqual(told.types, ["state", "error", "disconnected"]);
    assert.equal(told.of("error")[0], error);
    assert.equal(told.of("disconnected")[0]?.error, error);
    assert.deepEqual(devices.calls, ["speaker open", "microphone close", "speaker close", "context close"]);
  });

  test("connected is told once, with what the gateway said", async () => {
    const session = make();
    const told = new Listener(session, "connected");
    void session.open();
    await settle();
    FakeWebSocket.last.start({ session_id: "voice-7" });
    await reconnect({ resumed: true });
    await reconnect();
    assert.deepEqual(told.of("connected").map((info) => info.session_id), ["voice-7"]);
  });

  test("connect is new and open", async () => {
    const connected = connect();
    await settle();
    FakeWebSocket.last.start();
    const session = await connected;
    assert.equal(session.state, "connected");
    all.push(session);
  });

  test("tells of devices that come and go, until it ends", async () => {
    const mediaDevices = new EventTarget();
    Object.defineProperty(navigator, "mediaDevices", { value: mediaDevices, configurable: true });
    const session = await open();
    const told = new Listener(session, "devices");
    mediaDevices.dispatchEvent(new Event("devicechange"));
    void session.disconnect();
    mediaDevices.dispatchEvent(new Event("devicechange"));
    assert.deepEqual(told.types, ["devices"]);
    Reflect.deleteProperty(navigator, "mediaDevices");
  });

  test("an audio context of the page's own stays open", async () => {
    const session = await open({ audioContext: new FakeAudioContext() as unknown as AudioContext });
    void session.disconnect();
    assert.deepEqual(devices.calls, ["microphone close", "speaker close"]);
  });
});

describe("the end", () => {
  test("gives the devices back at once, and comes with what the gateway has to say", async () => {
    const session = await open();
    const told = new Listener(session, "state", "session.ended", "disconnected");
    const ended = session.disconnect();
    assert.deepEqual(devices.calls, ["microphone close", "speaker close", "context close"]);
    assert.deepEqual(told.types, ["state"]);
    FakeWebSocket.last.say({ type: "session.ended", seq: 2, reason: "client_ended", handback: { conversation_id: "c-7", summary: "…" } });
    FakeWebSocket.last.drop(1000);
    const expected: Disconnected = { reason: "client_ended", code: 1000, error: undefined, handback: { conversation_id: "c-7", summary: "…" } };
    assert.deepEqual(await ended, expected);
    assert.deepEqual(told.types, ["state", "session.ended", "disconnected"]);
  });

  test("twice is once", async () => {
    const session = await open();
    const told = new Listener(session, "disconnected");
    const [first, second] = [session.disconnect(), session.disconnect()];
    FakeWebSocket.last.drop(1000);
    assert.equal(await first, await second);
    assert.equal(told.types.length, 1);
    assert.equal(FakeWebSocket.last.of("session.end").length, 1);
    assert.equal((await session.disconnect()).reason, "client_ended");
  });

  test("before and while it is opened is an abort", async () => {
    const before = make();
    void before.disconnect();
    await assert.rejects(before.open(), { code: "aborted" });

    let allow = (): void => undefined;
    devices.start = () => new Promise((resolve) => (allow = resolve));
    const asking = make();
    const opened = asking.open();
    await settle();
    void asking.disconnect();
    devices.calls.length = 0;
    allow();
    await assert.rejects(opened, { code: "aborted" });
    assert.ok(devices.calls.includes("microphone close"), "a microphone that comes after the end is given back");

    const connecting = make();
    const later = connecting.open();
    devices.start = () => Promise.resolve();
    allow();
    await settle();
    FakeWebSocket.last.open();
    void connecting.disconnect();
    await assert.rejects(later, { code: "aborted" });
  });

  test("can be a signal's", async () => {
    const gone = new AbortController();
    gone.abort();
    await assert.rejects(connect({ signal: gone.signal }), { code: "aborted" });
    assert.equal(FakeWebSocket.all.length, 0);

    const give = new AbortController();
    const session = await open({ signal: give.signal });
    give.abort();
    assert.equal(session.state, "disconnected");
    assert.equal(FakeWebSocket.last.of("session.end").length, 1);

    const unused = new AbortController();
    const ended = await open({ signal: unused.signal });
    void ended.disconnect();
    FakeWebSocket.last.drop(1000);
    unused.abort();
    assert.equal(FakeWebSocket.last.of("session.end").length, 1);
  });

  test("of the page is told to the gateway where nothing can be taken up, and is the end also for a page that comes back", async () => {
    const session = await open();
    const told = new Listener(session, "disconnected");
    globalThis.dispatchEvent(new Event("pagehide"));
    assert.equal(FakeWebSocket.last.of("session.end").length, 1);
    assert.equal(FakeWebSocket.last.closedWith, 1000);
    assert.equal(told.of("disconnected")[0]?.reason, "client_ended");
    globalThis.dispatchEvent(new Event("pagehide"));
    assert.equal(told.types.length, 1);
  });

  test("leaves no listener behind, on the page or on a signal", async () => {
    const live = new Map<unknown, string>();
    const signal = new AbortController().signal;
    for (const target of [globalThis, document, signal] as EventTarget[]) {
      const { addEventListener, removeEventListener } = target;
      vi.spyOn(target, "addEventListener").mockImplementation((...args) => {
        live.set(args[1], args[0]);
        addEventListener.apply(target, args);
      });
      vi.spyOn(target, "removeEventListener").mockImplementation((...args) => {
        live.delete(args[1]);
        removeEventListener.apply(target, args);
      });
    }
    const session = await open({ signal });
    assert.deepEqual([...live.values()].sort(), ["abort", "online", "pagehide", "visibilitychange"]);
    await reconnect();
    assert.equal(live.size, 4);
    void session.disconnect();
    FakeWebSocket.last.drop(1000);
    assert.equal(live.size, 0);
  });

  test("by the gateway has its reason, and an error only where it is one", async () => {
    const done = await open();
    const goodbye = new Listener(done, "disconnected");
    FakeWebSocket.last.say({ type: "session.ended", seq: 2, reason: "tool_ended" });
    FakeWebSocket.last.drop(1000);
    assert.deepEqual([goodbye.of("disconnected")[0]?.reason, goodbye.of("disconnected")[0]?.error], ["tool_ended", undefined]);

    const idle = await open();
    const silence = new Listener(idle, "disconnected");
    FakeWebSocket.last.say({ type: "session.ended", seq: 2, reason: "idle" });
    FakeWebSocket.last.drop(4004);
    assert.equal(silence.of("disconnected")[0]?.error?.message, "The call was idle for too long.");
  });

  test("is the end: nothing more is sent, kept or told", async () => {
    const session = await open();
    void session.disconnect();
    FakeWebSocket.last.drop(1000);
    const told = new Listener(session, "sent", "error", "uplink", "state");
    session.sendText("hello");
    session.interrupt();
    session.approve("cf_1");
    frame();
    await pass(60_000);
    assert.deepEqual(told.types, []);
    assert.equal(session.stats().droppedOffline, 0);
  });
});

describe("what is sent", () => {
  test("a text in which nothing can be seen is not sent, interrupts nothing, and is told", async () => {
    const session = await open();
    const told = new Listener(session, "error", "sent");
    for (const text of ["", " \n", "\u200b\u2060", "\u2800"]) {
      session.sendText(text);
    }
    assert.deepEqual(told.of("error").map((e) => e.code), ["empty", "empty", "empty", "empty"]);
    assert.deepEqual(FakeWebSocket.last.of("input.text"), []);
    assert.deepEqual(devices.calls, []);
    session.sendText("\u200b!");
    assert.equal(FakeWebSocket.last.of("input.text").length, 1);
  });

  test("a typed text has an id, and silences what sounds", async () => {
    const session = await open();
    assert.equal(session.sendText("Hello"), "typed-1");
    assert.equal(session.sendText("Hello again"), "typed-2");
    assert.deepEqual(FakeWebSocket.last.of("input.text")[0], { type: "input.text", text: "Hello", id: "typed-1" });
    assert.deepEqual(devices.calls, ["flush null", "flush null"]);
  });

  test("is told without what would be a secret in a log", async () => {
    const session = make({ ticket: "Zx3" });
    const told = new Listener(session, "sent");
    void session.open();
    await settle();
    FakeWebSocket.last.start({ resume_token: "rt_1" });
    session.approve("cf_1");
    await reconnect({ resumed: true, seq: 5 });
    assert.equal(FakeWebSocket.all[0]?.of("session.start")[0]?.ticket, "Zx3");
    assert.equal(FakeWebSocket.all[0]?.of("confirmation.resolve")[0]?.token, "cf_1");
    assert.equal(FakeWebSocket.last.of("session.start")[0]?.resume?.token, "rt_1");
    assert.doesNotMatch(JSON.stringify(told.events), /Zx3|cf_1|rt_1/);
    assert.match(JSON.stringify(told.events), /"ticket":"\*\*\*".*"token":"\*\*\*"/);
  });

  test("of the microphone is told with its bytes; a slow line drops it and is complained of now and then", async () => {
    const session = await open();
    const told = new Listener(session, "uplink", "error");
    frame();
    assert.equal(FakeWebSocket.last.audioFrames, 1);
    assert.equal(told.of("uplink")[0]?.pcm.length, 320);
    FakeWebSocket.last.bufferedAmount = 1e6;
    frame();
    frame();
    for (let i = 0; i < 90; i++) {
      await pass(100);
      FakeWebSocket.last.audio();
      FakeWebSocket.last.bufferedAmount -= 1; // slow, not stalled
      frame();
    }
    assert.deepEqual(told.types, ["uplink", "error"]);
    assert.equal(told.of("error")[0]?.code, "slow");
    await pass(1000);
    frame();
    assert.deepEqual(told.types, ["uplink", "error", "error"]);
    assert.equal(session.stats().droppedSlow, 93);
  });

  test("of a page that was held up, what was said more than two seconds ago is dropped", async () => {
    const session = await open();
    const told = new Listener(session, "error");
    for (const age of [5000, 2020, 2000, 1000, 0]) {
      frame(age);
    }
    assert.equal(FakeWebSocket.last.audioFrames, 3);
    assert.equal(session.stats().droppedSlow, 2);
    assert.equal(told.of("error")[0]?.code, "slow");
  });

  test("what was heard is reported, under the gateway's name", async () => {
    const session = await open();
    const told = new Listener(session, "played", "silenced", "underrun");
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    const item = devices.calls[0]!.slice("start ".length);
    devices.speaker.played({ item, playedMs: 200, done: false, at: 1 });
    devices.speaker.silenced({ item, ms: 8, latencyMs: 20 });
    devices.speaker.underrun({ item, cushionMs: 90 });
    assert.deepEqual(FakeWebSocket.last.of("playback"), [{ type: "playback", item_id: "item_1", played_ms: 200, done: false }]);
    assert.deepEqual(told.events.map(({ event }) => (event as { item: string }).item), ["item_1", "item_1", "item_1"]);
    assert.deepEqual([session.stats().underruns, session.stats().cushionMs], [1, 90]);
  });

  test("push-to-talk that was pressed when the connection broke is pressed in the new one", async () => {
    await open({ turnDetection: "client" });
    devices.microphone.activity(true);
    await reconnect();
    assert.deepEqual(FakeWebSocket.last.of("input.activity"), [{ type: "input.activity", active: true }]);
    devices.microphone.activity(false);
    await reconnect();
    assert.deepEqual(FakeWebSocket.last.of("input.activity"), []);
  });

  test("push-to-talk in a session that is taken up is told where it has changed meanwhile", async () => {
    await open({ turnDetection: "client" }, { resume_token: "rt_1" });
    devices.microphone.activity(true);
    await reconnect({ resumed: true, seq: 2 });
    assert.deepEqual(FakeWebSocket.last.of("input.activity"), []);
    FakeWebSocket.last.drop();
    devices.microphone.activity(false);
    await pass(500);
    FakeWebSocket.last.start({ resumed: true, seq: 3 });
    assert.deepEqual(FakeWebSocket.last.of("input.activity"), [{ type: "input.activity", active: false }]);
  });

  test("a session that is taken up has lost its audio clock", async () => {
    const session = await open({}, { resume_token: "rt_1" });
    frame();
    await reconnect({ resumed: true, seq: 2, resume_token: "rt_2" });
    await pass(4000);
    FakeWebSocket.last.audio();
    await pass(1000);
    const told = new Listener(session, "latency");
    FakeWebSocket.last.say({ type: "speech.stopped", seq: 3, turn: 1, audio_ms: 510, end_ms: 10 });
    FakeWebSocket.last.say({ type: "audio.start", seq: 4, turn: 1, item_id: "item_1" });
    const at = performance.now() + 500;
    devices.speaker.sounding({ item: "0 item_1", at, firstByteAt: at, cushionMs: 0 });
    FakeWebSocket.last.say({ type: "turn.ended", seq: 5, turn: 1, status: "completed", latency: { detection_ms: 400, provider_ms: 300, gateway_ms: 1 } });
    assert.equal(told.of("latency")[0]?.totalMs, 900, "of the capture nothing is known, 5 s ago");
  });
});

describe("the agent's state", () => {
  const item = (name: string) => ({ item: `0 ${name}`, at: 0, firstByteAt: 0, cushionMs: 0 });
  const over = (name: string) => ({ item: `0 ${name}`, playedMs: 100, done: true, at: 0 });

  test("speaking is what sounds, to its last sample", async () => {
    const session = await open();
    const told = new Listener(session, "agentState");
    FakeWebSocket.last.say({ type: "speech.stopped", seq: 2, turn: 1, audio_ms: 10 });
    FakeWebSocket.last.say({ type: "turn.started", seq: 3, turn: 1 });
    FakeWebSocket.last.say({ type: "audio.start", seq: 4, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.say({ type: "audio.end", seq: 5, turn: 1, item_id: "item_1", audio_ms: 100 });
    assert.equal(session.agentState, "thinking", "all of it has come, and nothing sounds");
    devices.speaker.sounding(item("item_1"));
    assert.equal(session.agentState, "speaking");
    devices.speaker.played({ ...over("item_1"), done: false });
    assert.equal(session.agentState, "speaking");
    devices.speaker.played(over("item_1"));
    FakeWebSocket.last.say({ type: "turn.ended", seq: 6, turn: 1, status: "completed" });
    assert.deepEqual(told.of("agentState"), ["thinking", "speaking", "listening"]);
  });

  test("a text that was sent is thought about, until the user wants silence", async () => {
    const session = await open();
    session.sendText("Hello");
    assert.equal(session.agentState, "thinking");
    session.interrupt();
    assert.equal(session.agentState, "listening");
  });

  test("is listening after the end, and in a new session", async () => {
    const session = await open();
    FakeWebSocket.last.say({ type: "turn.started", seq: 2, turn: 1 });
    await reconnect({ resumed: true });
    assert.equal(session.agentState, "thinking", "the same session goes on");
    await reconnect();
    assert.equal(session.agentState, "listening", "the turn of the last session has no end");
    devices.speaker.sounding(item("item_1"));
    void session.disconnect();
    assert.equal(session.agentState, "listening");
    session.sendText("Hello");
    assert.equal(session.agentState, "listening");
  });
});

describe("listeners", () => {
  test("are taken off by off, whether on or once was given them", async () => {
    const session = await open();
    const seen: string[] = [];
    const on = (): void => void seen.push("on");
    const once = (): void => void seen.push("once");
    session.on("turn.started", on);
    session.once("turn.started", once);
    session.once("turn.started", () => seen.push("kept"));
    session.off("turn.started", once);
    session.off("turn.ended", on);
    FakeWebSocket.last.say({ type: "turn.started", seq: 2, turn: 1 });
    session.off("turn.started", on);
    FakeWebSocket.last.say({ type: "turn.started", seq: 3, turn: 2 });
    assert.deepEqual(seen, ["on", "kept"]);
  });
});

test("muted is the microphone's", async () => {
  const session = await open();
  assert.equal(session.muted, false);
  session.muted = true;
  assert.deepEqual([session.muted, session.microphone.muted], [true, true]);
});

describe("what comes", () => {
  test("audio goes to the item that was begun last, and is told before it is played", async () => {
    const session = await open();
    FakeWebSocket.last.audio();
    const told = new Listener(session, "downlink");
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio(960);
    FakeWebSocket.last.audio(961);
    FakeWebSocket.last.say({ type: "audio.end", seq: 3, turn: 1, item_id: "item_1", audio_ms: 20 });
    FakeWebSocket.last.audio(960);
    assert.deepEqual(told.of("downlink").map((e) => [e.item, e.pcm.length]), [["item_1", 480]]);
    assert.deepEqual(devices.calls.map((call) => call.replace(/\d /, "")), ["start item_1", "audio item_1", "end item_1"]);
  });

  test("an unknown message is told as a message", async () => {
    const session = await open();
    const told = new Listener(session, "message");
    FakeWebSocket.last.say({ type: "weather.report", seq: 2, rain: true });
    assert.deepEqual(told.of("message"), [{ type: "weather.report", seq: 2, rain: true }]);
  });

  test("an error of the gateway is a message, and an error in words", async () => {
    const session = await open();
    const told = new Listener(session, "error");
    FakeWebSocket.last.say({ type: "error", seq: 2, code: "no_answer", message: "The voice model gave no answer; say it again, please.", retryable: true });
    assert.deepEqual(told.types, ["error"]);
    assert.equal(told.of("error")[0]?.gatewayCode, "no_answer");
    assert.equal(told.of("error")[0]?.gatewayMessage?.seq, 2);
  });

  test("an error that ends the session is told once, whether the gateway said it before or not", async () => {
    const said = await open();
    const first = new Listener(said, "error", "disconnected");
    FakeWebSocket.last.say({ type: "error", seq: 2, code: "limit", message: "…", retryable: false });
    FakeWebSocket.last.drop(4005);
    assert.deepEqual(first.types, ["error", "disconnected"]);
    assert.equal(first.of("disconnected")[0]?.error?.gatewayCode, "limit");

    const unsaid = await open();
    const second = new Listener(unsaid, "error", "disconnected");
    unsaid.on("error", () => assert.equal(unsaid.state, "disconnected"));
    FakeWebSocket.last.drop(4005);
    assert.deepEqual(second.types, ["error", "disconnected"]);
    assert.equal(second.of("error")[0], second.of("disconnected")[0]?.error);
  });

  test("a listener that throws stops neither the others nor the audio, and is heard of", async () => {
    const session = await open();
    const reported: unknown[] = [];
    vi.stubGlobal("queueMicrotask", (report: () => void) => {
      try {
        report();
      } catch (error) {
        reported.push(error);
      }
    });
    const mistake = new Error("a mistake");
    session.on("audio.start", () => {
      throw mistake;
    });
    const told = new Listener(session, "audio.start");
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio();
    assert.equal(told.types.length, 1);
    assert.equal(devices.calls.length, 2);
    assert.deepEqual(reported, [mistake]);
  });

  test("listeners go when they are told to, also while they are called", async () => {
    const session = await open();
    const calls: string[] = [];
    const off = session.on("turn.started", () => calls.push("always"));
    session.once("turn.started", () => calls.push("once"));
    session.on("turn.started", () => off());
    FakeWebSocket.last.say({ type: "turn.started", seq: 2, turn: 1 });
    FakeWebSocket.last.say({ type: "turn.started", seq: 3, turn: 2 });
    assert.deepEqual(calls, ["always", "once"]);
    off();
  });

  test("the round trip and the wait of a turn are told and counted", async () => {
    const session = await open();
    const told = new Listener(session, "network", "latency", "turn.ended");
    await pass(2000);
    const [ping] = FakeWebSocket.last.of("ping");
    await pass(30);
    FakeWebSocket.last.say({ type: "pong", seq: 2, t: ping!.t });
    session.sendText("Hello");
    const sent = performance.now();
    FakeWebSocket.last.say({ type: "transcript", seq: 3, turn: 1, id: "typed-1", role: "user", text: "Hello", final: true, started_at: "" });
    FakeWebSocket.last.say({ type: "audio.start", seq: 4, turn: 1, item_id: "item_1" });
    const item = devices.calls.at(-1)!.slice("start ".length);
    devices.speaker.sounding({ item, at: sent + 500, firstByteAt: sent + 440, cushionMs: 55 });
    FakeWebSocket.last.say({ type: "turn.ended", seq: 5, turn: 1, status: "completed", latency: { detection_ms: 0, provider_ms: 400, gateway_ms: 5 } });
    assert.deepEqual(told.types, ["network", "turn.ended", "latency"]);
    assert.equal(Math.round(told.of("network")[0]?.rttMs ?? 0), 30);
    const latency = told.of("latency")[0]!;
    assert.deepEqual([latency.totalMs, latency.cushionMs, latency.networkMs], [500, 60, 35]);
    const stats = session.stats();
    assert.deepEqual(stats.turns, [latency]);
    assert.equal(Math.round(stats.rttMs ?? 0), 30);
  });

  test("the statistics are of the moment, and hold the newest 100 turns", async () => {
    const session = await open();
    const before = session.stats();
    for (let turn = 1; turn <= 120; turn++) {
      const id = session.sendText("x");
      FakeWebSocket.last.say({ type: "transcript", seq: turn * 3, turn, id, role: "user", text: "x", final: true, started_at: "" });
      FakeWebSocket.last.say({ type: "audio.start", seq: turn * 3 + 1, turn, item_id: `i${turn}` });
      devices.speaker.sounding({ item: devices.calls.at(-1)!.slice("start ".length), at: 1, firstByteAt: 1, cushionMs: 0 });
      FakeWebSocket.last.say({ type: "turn.ended", seq: turn * 3 + 2, turn, status: "completed", latency: { detection_ms: 0, provider_ms: 1, gateway_ms: 1 } });
    }
    assert.deepEqual(before.turns, []);
    assert.deepEqual(session.stats().turns.map((t) => t.turn), Array.from({ length: 100 }, (_, i) => i + 21));
  });
});

describe("a connection that breaks", () => {
  test("is told, and told again when it is back", async () => {
    const session = await open();
    const told = new Listener(session, "state", "reconnecting", "reconnected", "session.started", "disconnected");
    await reconnect({ session_id: "voice-2" });
    assert.deepEqual(told.types, ["state", "reconnecting", "session.started", "state", "reconnected"]);
    assert.equal(told.of("reconnecting")[0]?.error.code, "lost");
    assert.deepEqual(told.of("reconnected"), [{ resumed: false, lostMs: 250 }]);
    assert.equal(session.info?.session_id, "voice-2");
    const { reconnects, resumes, lostMs } = session.stats();
    assert.deepEqual({ reconnects, resumes, lostMs }, { reconnects: 1, resumes: 0, lostMs: 250 });
    assert.deepEqual(devices.calls, [], "the devices stay as they are");
  });

  test("is tried again at once where the user wants it, and only then", async () => {
    const session = await open();
    session.retry();
    assert.equal(FakeWebSocket.all.length, 1, "nothing is broken");
    FakeWebSocket.last.drop();
    session.retry();
    session.retry();
    await settle();
    assert.equal(FakeWebSocket.all.length, 2);
    FakeWebSocket.last.start({ session_id: "voice-2" });
    await pass(1000);
    assert.equal(FakeWebSocket.all.length, 2, "the wait was over");
    assert.equal(session.info?.session_id, "voice-2");
  });

  test("drops what is said meanwhile, and counts it", async () => {
    const session = await open();
    FakeWebSocket.last.drop();
    const told = new Listener(session, "uplink", "error");
    frame();
    frame();
    await pass(250);
    FakeWebSocket.last.start();
    frame();
    assert.equal(FakeWebSocket.last.audioFrames, 1);
    assert.equal(session.stats().droppedOffline, 2);
    assert.deepEqual(told.types, ["uplink"]);
  });

  test("keeps what is typed meanwhile, in order, and says when it cannot", async () => {
    const session = await open();
    FakeWebSocket.last.drop();
    const told = new Listener(session, "error");
    for (let i = 1; i <= 33; i++) {
      session.sendText(`text ${i}`);
    }
    assert.deepEqual(told.of("error").map((e) => e.code), ["unsent"]);
    await pass(250);
    FakeWebSocket.last.start();
    assert.deepEqual(FakeWebSocket.last.of("input.text").map((m) => m.text), Array.from({ length: 32 }, (_, i) => `text ${i + 1}`));
  });

  test("before a session opens keeps what is typed too", async () => {
    const session = make();
    void session.open();
    session.sendText("Hello");
    await settle();
    FakeWebSocket.last.start();
    assert.deepEqual(FakeWebSocket.last.of("input.text").map((m) => m.text), ["Hello"]);
  });

  test("keeps an answer to a question for the same session alone", async () => {
    const resumed = await open({}, { resume_token: "rt_1" });
    FakeWebSocket.last.say(question("cf_1"));
    FakeWebSocket.last.drop();
    resumed.approve("cf_1");
    resumed.interrupt();
    resumed.interrupt();
    await pass(250);
    FakeWebSocket.last.start({ resumed: true, seq: 3 });
    assert.deepEqual(FakeWebSocket.last.texts.slice(1, -1), [{ type: "confirmation.resolve", token: "cf_1", approved: true }, { type: "interrupt" }]);

    const renewed = await open();
    FakeWebSocket.last.drop();
    renewed.approve("cf_2");
    renewed.interrupt();
    await pass(250);
    FakeWebSocket.last.start();
    assert.equal(FakeWebSocket.last.of("confirmation.resolve").length + FakeWebSocket.last.of("interrupt").length, 0);
  });

  test("sends the last report of each item in the session that is taken up", async () => {
    await open({}, { resume_token: "rt_1" });
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    const item = devices.calls[0]!.slice("start ".length);
    FakeWebSocket.last.drop();
    for (const playedMs of [200, 400, 600]) {
      devices.speaker.played({ item, playedMs, done: playedMs === 600, at: 1 });
    }
    await pass(250);
    FakeWebSocket.last.start({ resumed: true, seq: 3 });
    assert.deepEqual(FakeWebSocket.last.of("playback"), [{ type: "playback", item_id: "item_1", played_ms: 600, done: true, received_ms: 0, seq: 2 }]);
  });

  test("ends each open question once, with the session that asked it", async () => {
    const session = await open();
    FakeWebSocket.last.say(question("cf_1"));
    FakeWebSocket.last.say({ ...question("cf_2"), seq: 3 });
    FakeWebSocket.last.say({ type: "confirmation.ended", seq: 4, token: "cf_1", tool: "send", outcome: "denied" });
    const told = new Listener(session, "confirmation.ended", "message");
    await reconnect();
    assert.deepEqual(told.of("confirmation.ended"), [{ type: "confirmation.ended", seq: 0, turn: 1, token: "cf_2", tool: "send", outcome: "lost" }]);
    assert.deepEqual(told.of("message")[0], told.of("confirmation.ended")[0]);
    FakeWebSocket.last.say({ ...question("cf_3"), seq: 2 });
    FakeWebSocket.last.drop(4004);
    assert.deepEqual(told.of("confirmation.ended").map((e) => e.token), ["cf_2", "cf_3"]);
  });

  test("leaves the questions open where the session is taken up", async () => {
    const session = await open({}, { resume_token: "rt_1" });
    FakeWebSocket.last.say(question("cf_1"));
    const told = new Listener(session, "confirmation.ended");
    await reconnect({ resumed: true, seq: 3 });
    assert.deepEqual(told.types, []);
  });

  test("warns of a typed text that nobody has told back", async () => {
    const session = await open();
    const told = new Listener(session, "error");
    session.sendText("arrived");
    FakeWebSocket.last.say({ type: "transcript", seq: 2, turn: 1, id: "typed-1", role: "user", text: "arrived", final: true, started_at: "" });
    await reconnect();
    assert.deepEqual(told.types, []);
    session.sendText("lost");
    await reconnect();
    assert.deepEqual(told.of("error").map((e) => e.code), ["unsent"]);
    await reconnect();
    assert.equal(told.types.length, 1);
  });

  test("does not warn of a text whose turn has ended, though its transcript was withheld", async () => {
    const session = await open();
    const told = new Listener(session, "error");
    session.sendText("Hello");
    FakeWebSocket.last.say({ type: "turn.ended", seq: 2, turn: 1, status: "completed" });
    await reconnect();
    assert.deepEqual(told.types, []);
  });

  test("lets the old answer sound to its end, until the new session has something to say or hear", async () => {
    const session = await open();
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio();
    await reconnect();
    assert.deepEqual(devices.calls, ["start 0 item_1", "audio 0 item_1", "end 0 item_1"], "its end is where it broke off");
    const told = new Listener(session, "played");
    devices.speaker.played({ item: "0 item_1", playedMs: 200, done: false, at: 1 });
    assert.equal(told.of("played")[0]?.item, "item_1");
    assert.deepEqual(FakeWebSocket.last.of("playback"), [], "of no use to a session that does not know it");
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    assert.deepEqual(devices.calls.slice(3), ["flush null", "start 1 item_1"], "another item, whatever its name");
    FakeWebSocket.last.say({ type: "audio.start", seq: 3, turn: 1, item_id: "item_2" });
    assert.deepEqual(devices.calls.slice(5), ["start 1 item_2"]);
  });

  test("does not take the sound of the old session for an answer of the new one", async () => {
    const session = await open();
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    await reconnect();
    const told = new Listener(session, "latency");
    session.sendText("Hello");
    FakeWebSocket.last.say({ type: "transcript", seq: 2, turn: 1, id: "typed-1", role: "user", text: "Hello", final: true, started_at: "" });
    FakeWebSocket.last.say({ type: "audio.start", seq: 3, turn: 1, item_id: "item_1" });
    devices.speaker.sounding({ item: "0 item_1", at: performance.now(), firstByteAt: performance.now(), cushionMs: 0 });
    FakeWebSocket.last.say({ type: "turn.ended", seq: 4, turn: 1, status: "interrupted", latency: { detection_ms: 0, provider_ms: 1, gateway_ms: 1 } });
    assert.deepEqual(told.types, []);
  });

  for (const type of ["speech.started", "turn.started"]) {
    test(`is silent of the old session at ${type}`, async () => {
      await open();
      await reconnect();
      FakeWebSocket.last.say({ type, seq: 2, turn: 1, audio_ms: 0 });
      assert.deepEqual(devices.calls, ["flush null"]);
    });
  }

  test("complains of nothing that is said of a try: the next one may do", async () => {
    const session = await open();
    const told = new Listener(session, "error");
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    FakeWebSocket.last.say({ type: "error", seq: 1, code: "voice_active", message: "…", retryable: false });
    assert.deepEqual(told.types, []);
  });

  test("forgets what an earlier session said of its end", async () => {
    const session = await open();
    const told = new Listener(session, "disconnected");
    FakeWebSocket.last.say({ type: "session.ended", seq: 2, reason: "server_shutdown", handback: { conversation_id: "c-7", summary: "…" } });
    FakeWebSocket.last.drop(1001);
    await pass(250);
    FakeWebSocket.last.start();
    FakeWebSocket.last.drop(4005);
    assert.deepEqual([told.of("disconnected")[0]?.reason, told.of("disconnected")[0]?.handback], ["lost", undefined]);
  });

  test("ends with the reason when it cannot be restored", async () => {
    const session = await open({ reconnect: { tries: 1 } });
    const told = new Listener(session, "disconnected");
    FakeWebSocket.last.say({ type: "session.ended", seq: 2, reason: "server_shutdown" });
    FakeWebSocket.last.drop(1001);
    assert.deepEqual(told.types, [], "the gateway may be another one in a moment");
    await pass(250);
    FakeWebSocket.last.open();
    FakeWebSocket.last.drop(1001);
    assert.equal(told.of("disconnected")[0]?.error?.message, "The gateway is stopping.");
    assert.equal(session.state, "disconnected");
  });
});

test("two sessions on one page know nothing of each other", async () => {
  const first = await open();
  const one = FakeWebSocket.last;
  const told = new Listener(first, "turn.started", "disconnected");
  const second = await open();
  FakeWebSocket.last.say({ type: "turn.started", seq: 2, turn: 1 });
  void second.disconnect();
  FakeWebSocket.last.drop(1000);
  assert.deepEqual(told.types, []);
  assert.equal(first.state, "connected");
  one.say({ type: "turn.started", seq: 2, turn: 1 });
  assert.deepEqual(told.types, ["turn.started"]);
});
