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

/** The newest session's devices: their calls and events. */
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

describe("opening a session", () => {
  test("reports states and messages in order", async () => {
    const session = make();
    const reported = new Listener(session, "state", "message", "session.started", "sent", "disconnected");
    assert.equal(session.state, "connecting");
    assert.equal(session.info, null);
    const opened = session.open();
    await settle();
    FakeWebSocket.last.start({ conversation_id: "c-7" });
    await opened;
    assert.deepEqual(reported.types, ["sent", "message", "session.started", "state"]);
    assert.equal(session.state, "connected");
    assert.equal((session.info as { conversation_id?: string } | null)?.conversation_id, "c-7");
  });

  test("happens once", async () => {
    const session = make();
    const opened = session.open();
    assert.equal(session.open(), opened);
    await settle();
    FakeWebSocket.last.start();
    await opened;
    assert.equal(session.open(), opened);
    assert.equal(FakeWebSocket.all.length, 1);
  });

  test("continues without audio output or microphone", async () => {
    vi.stubGlobal("AudioContext", undefined);
    const mute = make();
    const reported = new Listener(mute, "error");
    void mute.open();
    await settle();
    FakeWebSocket.last.start();
    assert.deepEqual(reported.of("error").map((e) => e.code), ["audio_unavailable"]);
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

  test("fails with the gateway's reason, releases the devices and ends", async () => {
    const session = make();
    const reported = new Listener(session, "state", "error", "disconnected");
    const opened = session.open();
    await settle();
    FakeWebSocket.last.open();
    FakeWebSocket.last.say({ type: "error", seq: 1, code: "ticket_missing", message: "…", retryable: false });
    FakeWebSocket.last.drop(4501);
    const error = await opened.catch((e: unknown) => e);
    assert.ok(error instanceof VoiceError);
    assert.equal(error.gatewayCode, "ticket_missing");
    assert.deepEqual(reported.types, ["state", "error", "disconnected"]);
    assert.equal(reported.of("error")[0], error);
    assert.equal(reported.of("disconnected")[0]?.error, error);
    assert.deepEqual(devices.calls, ["speaker open", "microphone close", "speaker close", "context close"]);
  });

  test("reports connected once, with session.started", async () => {
    const session = make();
    const reported = new Listener(session, "connected");
    void session.open();
    await settle();
    FakeWebSocket.last.start({ session_id: "voice-7" });
    await reconnect({ resumed: true });
    await reconnect();
    assert.deepEqual(reported.of("connected").map((info) => info.session_id), ["voice-7"]);
  });

  test("by connect creates and opens a session", async () => {
    const connected = connect();
    await settle();
    FakeWebSocket.last.start();
    const session = await connected;
    assert.equal(session.state, "connected");
    all.push(session);
  });

  test("reports changes of devices until the end", async () => {
    const mediaDevices = new EventTarget();
    Object.defineProperty(navigator, "mediaDevices", { value: mediaDevices, configurable: true });
    const session = await open();
    const reported = new Listener(session, "devices");
    mediaDevices.dispatchEvent(new Event("devicechange"));
    void session.disconnect();
    mediaDevices.dispatchEvent(new Event("devicechange"));
    assert.deepEqual(reported.types, ["devices"]);
    Reflect.deleteProperty(navigator, "mediaDevices");
  });

  test("leaves the page's own audio context open", async () => {
    const session = await open({ audioContext: new FakeAudioContext() as unknown as AudioContext });
    void session.disconnect();
    assert.deepEqual(devices.calls, ["microphone close", "speaker close"]);
  });
});

describe("the end", () => {
  test("releases the devices at once and includes the gateway's messages", async () => {
    const session = await open();
    const reported = new Listener(session, "state", "session.ended", "disconnected");
    const ended = session.disconnect();
    assert.deepEqual(devices.calls, ["microphone close", "speaker close", "context close"]);
    assert.deepEqual(reported.types, ["state"]);
    FakeWebSocket.last.say({ type: "session.ended", seq: 2, reason: "client_ended", handback: { conversation_id: "c-7", summary: "…" } });
    FakeWebSocket.last.drop(1000);
    const expected: Disconnected = { reason: "client_ended", code: 1000, error: undefined, handback: { conversation_id: "c-7", summary: "…" } };
    assert.deepEqual(await ended, expected);
    assert.deepEqual(reported.types, ["state", "session.ended", "disconnected"]);
  });

  test("happens once for two calls", async () => {
    const session = await open();
    const reported = new Listener(session, "disconnected");
    const [first, second] = [session.disconnect(), session.disconnect()];
    FakeWebSocket.last.drop(1000);
    assert.equal(await first, await second);
    assert.equal(reported.types.length, 1);
    assert.equal(FakeWebSocket.last.of("session.end").length, 1);
    assert.equal((await session.disconnect()).reason, "client_ended");
  });

  test("before and during the opening is an abort", async () => {
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
    assert.ok(devices.calls.includes("microphone close"), "a microphone that opens after the end is released");

    const connecting = make();
    const later = connecting.open();
    devices.start = () => Promise.resolve();
    allow();
    await settle();
    FakeWebSocket.last.open();
    void connecting.disconnect();
    await assert.rejects(later, { code: "aborted" });
  });

  test("can come from a signal", async () => {
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

  test("of the page is sent to the gateway if no resume is possible, and is final for a restored page", async () => {
    const session = await open();
    const reported = new Listener(session, "disconnected");
    globalThis.dispatchEvent(new Event("pagehide"));
    assert.equal(FakeWebSocket.last.of("session.end").length, 1);
    assert.equal(FakeWebSocket.last.closedWith, 1000);
    assert.equal(reported.of("disconnected")[0]?.reason, "client_ended");
    globalThis.dispatchEvent(new Event("pagehide"));
    assert.equal(reported.types.length, 1);
  });

  test("leaves no listener on the page or a signal", async () => {
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

  test("by the gateway has its reason, and an error only for a failure", async () => {
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

  test("is final: later calls send, store and report nothing", async () => {
    const session = await open();
    void session.disconnect();
    FakeWebSocket.last.drop(1000);
    const reported = new Listener(session, "sent", "error", "uplink", "state");
    session.sendText("hello");
    session.interrupt();
    session.approve("cf_1");
    frame();
    await pass(60_000);
    assert.deepEqual(reported.types, []);
    assert.equal(session.stats().droppedOffline, 0);
  });
});

describe("sending", () => {
  test("an invisible text only reports an error", async () => {
    const session = await open();
    const reported = new Listener(session, "error", "sent");
    for (const text of ["", " \n", "\u200b\u2060", "\u2800"]) {
      session.sendText(text);
    }
    assert.deepEqual(reported.of("error").map((e) => e.code), ["empty", "empty", "empty", "empty"]);
    assert.deepEqual(FakeWebSocket.last.of("input.text"), []);
    assert.deepEqual(devices.calls, []);
    session.sendText("\u200b!");
    assert.equal(FakeWebSocket.last.of("input.text").length, 1);
  });

  test("a typed text has an id and silences playback", async () => {
    const session = await open();
    assert.equal(session.sendText("Hello"), "typed-1");
    assert.equal(session.sendText("Hello again"), "typed-2");
    assert.deepEqual(FakeWebSocket.last.of("input.text")[0], { type: "input.text", text: "Hello", id: "typed-1" });
    assert.deepEqual(devices.calls, ["flush null", "flush null"]);
  });

  test("sent events contain no secrets", async () => {
    const session = make({ ticket: "Zx3" });
    const reported = new Listener(session, "sent");
    void session.open();
    await settle();
    FakeWebSocket.last.start({ resume_token: "rt_1" });
    session.approve("cf_1");
    await reconnect({ resumed: true, seq: 5 });
    assert.equal(FakeWebSocket.all[0]?.of("session.start")[0]?.ticket, "Zx3");
    assert.equal(FakeWebSocket.all[0]?.of("confirmation.resolve")[0]?.token, "cf_1");
    assert.equal(FakeWebSocket.last.of("session.start")[0]?.resume?.token, "rt_1");
    assert.doesNotMatch(JSON.stringify(reported.events), /Zx3|cf_1|rt_1/);
    assert.match(JSON.stringify(reported.events), /"ticket":"\*\*\*".*"token":"\*\*\*"/);
  });

  test("uplink audio is reported with its bytes; a slow line drops it and reports that at intervals", async () => {
    const session = await open();
    const reported = new Listener(session, "uplink", "error");
    frame();
    assert.equal(FakeWebSocket.last.audioFrames, 1);
    assert.equal(reported.of("uplink")[0]?.pcm.length, 320);
    FakeWebSocket.last.bufferedAmount = 1e6;
    frame();
    frame();
    for (let i = 0; i < 90; i++) {
      await pass(100);
      FakeWebSocket.last.audio();
      FakeWebSocket.last.bufferedAmount -= 1; // slow, not stalled
      frame();
    }
    assert.deepEqual(reported.types, ["uplink", "error"]);
    assert.equal(reported.of("error")[0]?.code, "slow");
    await pass(1000);
    frame();
    assert.deepEqual(reported.types, ["uplink", "error", "error"]);
    assert.equal(session.stats().droppedSlow, 93);
  });

  test("a page that was blocked drops audio older than two seconds", async () => {
    const session = await open();
    const reported = new Listener(session, "error");
    for (const age of [5000, 2020, 2000, 1000, 0]) {
      frame(age);
    }
    assert.equal(FakeWebSocket.last.audioFrames, 3);
    assert.equal(session.stats().droppedSlow, 2);
    assert.equal(reported.of("error")[0]?.code, "slow");
  });

  test("playback is reported under the gateway's name", async () => {
    const session = await open();
    const reported = new Listener(session, "played", "silenced", "underrun");
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    const item = devices.calls[0]!.slice("start ".length);
    devices.speaker.played({ item, playedMs: 200, done: false, at: 1 });
    devices.speaker.silenced({ item, ms: 8, latencyMs: 20 });
    devices.speaker.underrun({ item, cushionMs: 90 });
    assert.deepEqual(FakeWebSocket.last.of("playback"), [{ type: "playback", item_id: "item_1", played_ms: 200, done: false }]);
    assert.deepEqual(reported.events.map(({ event }) => (event as { item: string }).item), ["item_1", "item_1", "item_1"]);
    assert.deepEqual([session.stats().underruns, session.stats().cushionMs], [1, 90]);
  });

  test("a pressed push-to-talk is pressed in the new session", async () => {
    await open({ turnDetection: "client" });
    devices.microphone.activity(true);
    await reconnect();
    assert.deepEqual(FakeWebSocket.last.of("input.activity"), [{ type: "input.activity", active: true }]);
    devices.microphone.activity(false);
    await reconnect();
    assert.deepEqual(FakeWebSocket.last.of("input.activity"), []);
  });

  test("a changed push-to-talk is sent to a resumed session", async () => {
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

  test("a resumed session has lost its audio clock", async () => {
    const session = await open({}, { resume_token: "rt_1" });
    frame();
    await reconnect({ resumed: true, seq: 2, resume_token: "rt_2" });
    await pass(4000);
    FakeWebSocket.last.audio();
    await pass(1000);
    const reported = new Listener(session, "latency");
    FakeWebSocket.last.say({ type: "speech.stopped", seq: 3, turn: 1, audio_ms: 510, end_ms: 10 });
    FakeWebSocket.last.say({ type: "audio.start", seq: 4, turn: 1, item_id: "item_1" });
    const at = performance.now() + 500;
    devices.speaker.sounding({ item: "0 item_1", at, firstByteAt: at, cushionMs: 0 });
    FakeWebSocket.last.say({ type: "turn.ended", seq: 5, turn: 1, status: "completed", latency: { detection_ms: 400, provider_ms: 300, gateway_ms: 1 } });
    assert.equal(reported.of("latency")[0]?.totalMs, 900, "the capture, 5 s ago, is unknown");
  });
});

describe("the agent's state", () => {
  const item = (name: string) => ({ item: `0 ${name}`, at: 0, firstByteAt: 0, cushionMs: 0 });
  const over = (name: string) => ({ item: `0 ${name}`, playedMs: 100, done: true, at: 0 });

  test("is speaking until the last sample", async () => {
    const session = await open();
    const reported = new Listener(session, "agentState");
    FakeWebSocket.last.say({ type: "speech.stopped", seq: 2, turn: 1, audio_ms: 10 });
    FakeWebSocket.last.say({ type: "turn.started", seq: 3, turn: 1 });
    FakeWebSocket.last.say({ type: "audio.start", seq: 4, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.say({ type: "audio.end", seq: 5, turn: 1, item_id: "item_1", audio_ms: 100 });
    assert.equal(session.agentState, "thinking", "all audio has arrived, and none sounds");
    devices.speaker.sounding(item("item_1"));
    assert.equal(session.agentState, "speaking");
    devices.speaker.played({ ...over("item_1"), done: false });
    assert.equal(session.agentState, "speaking");
    devices.speaker.played(over("item_1"));
    FakeWebSocket.last.say({ type: "turn.ended", seq: 6, turn: 1, status: "completed" });
    assert.deepEqual(reported.of("agentState"), ["thinking", "speaking", "listening"]);
  });

  test("is thinking after a text, until an interrupt", async () => {
    const session = await open();
    session.sendText("Hello");
    assert.equal(session.agentState, "thinking");
    session.interrupt();
    assert.equal(session.agentState, "listening");
  });

  test("is listening after the end and in a new session", async () => {
    const session = await open();
    FakeWebSocket.last.say({ type: "turn.started", seq: 2, turn: 1 });
    await reconnect({ resumed: true });
    assert.equal(session.agentState, "thinking", "the same session continues");
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
  test("can be removed by off, whether added by on or once", async () => {
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

test("muted is the microphone's state", async () => {
  const session = await open();
  assert.equal(session.muted, false);
  session.muted = true;
  assert.deepEqual([session.muted, session.microphone.muted], [true, true]);
});

describe("receiving", () => {
  test("audio goes to the newest item and is reported before playback", async () => {
    const session = await open();
    FakeWebSocket.last.audio();
    const reported = new Listener(session, "downlink");
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio(960);
    FakeWebSocket.last.audio(961);
    FakeWebSocket.last.say({ type: "audio.end", seq: 3, turn: 1, item_id: "item_1", audio_ms: 20 });
    FakeWebSocket.last.audio(960);
    assert.deepEqual(reported.of("downlink").map((e) => [e.item, e.pcm.length]), [["item_1", 480]]);
    assert.deepEqual(devices.calls.map((call) => call.replace(/\d /, "")), ["start item_1", "audio item_1", "end item_1"]);
  });

  test("an unknown message is reported as a message", async () => {
    const session = await open();
    const reported = new Listener(session, "message");
    FakeWebSocket.last.say({ type: "weather.report", seq: 2, rain: true });
    assert.deepEqual(reported.of("message"), [{ type: "weather.report", seq: 2, rain: true }]);
  });

  test("an error of the gateway is a message and a VoiceError", async () => {
    const session = await open();
    const reported = new Listener(session, "error");
    FakeWebSocket.last.say({ type: "error", seq: 2, code: "no_answer", message: "The voice model gave no answer; say it again, please.", retryable: true });
    assert.deepEqual(reported.types, ["error"]);
    assert.equal(reported.of("error")[0]?.gatewayCode, "no_answer");
    assert.equal(reported.of("error")[0]?.gatewayMessage?.seq, 2);
  });

  test("a final error is reported once, with or without an error message before it", async () => {
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

  test("a listener that throws stops neither other listeners nor audio, and is reported", async () => {
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
    const listener = new Listener(session, "audio.start");
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio();
    assert.equal(listener.types.length, 1);
    assert.equal(devices.calls.length, 2);
    assert.deepEqual(reported, [mistake]);
  });

  test("removed listeners are not called, also after removal within a call", async () => {
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

  test("the round trip and the latency of a turn are reported and counted", async () => {
    const session = await open();
    const reported = new Listener(session, "network", "latency", "turn.ended");
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
    assert.deepEqual(reported.types, ["network", "turn.ended", "latency"]);
    assert.equal(Math.round(reported.of("network")[0]?.rttMs ?? 0), 30);
    const latency = reported.of("latency")[0]!;
    assert.deepEqual([latency.totalMs, latency.cushionMs, latency.networkMs], [500, 60, 35]);
    const stats = session.stats();
    assert.deepEqual(stats.turns, [latency]);
    assert.equal(Math.round(stats.rttMs ?? 0), 30);
  });

  test("statistics are current and contain the newest 100 turns", async () => {
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

describe("a broken connection", () => {
  test("is reported, and its recovery too", async () => {
    const session = await open();
    const reported = new Listener(session, "state", "reconnecting", "reconnected", "session.started", "disconnected");
    await reconnect({ session_id: "voice-2" });
    assert.deepEqual(reported.types, ["state", "reconnecting", "session.started", "state", "reconnected"]);
    assert.equal(reported.of("reconnecting")[0]?.error.code, "lost");
    assert.deepEqual(reported.of("reconnected"), [{ resumed: false, lostMs: 250 }]);
    assert.equal(session.info?.session_id, "voice-2");
    const { reconnects, resumes, lostMs } = session.stats();
    assert.deepEqual({ reconnects, resumes, lostMs }, { reconnects: 1, resumes: 0, lostMs: 250 });
    assert.deepEqual(devices.calls, [], "the devices do not change");
  });

  test("is retried at once when the user asks, and only then", async () => {
    const session = await open();
    session.retry();
    assert.equal(FakeWebSocket.all.length, 1, "the connection works");
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

  test("drops audio and counts it", async () => {
    const session = await open();
    FakeWebSocket.last.drop();
    const reported = new Listener(session, "uplink", "error");
    frame();
    frame();
    await pass(250);
    FakeWebSocket.last.start();
    frame();
    assert.equal(FakeWebSocket.last.audioFrames, 1);
    assert.equal(session.stats().droppedOffline, 2);
    assert.deepEqual(reported.types, ["uplink"]);
  });

  test("keeps typed texts in order up to a limit", async () => {
    const session = await open();
    FakeWebSocket.last.drop();
    const reported = new Listener(session, "error");
    for (let i = 1; i <= 33; i++) {
      session.sendText(`text ${i}`);
    }
    assert.deepEqual(reported.of("error").map((e) => e.code), ["unsent"]);
    await pass(250);
    FakeWebSocket.last.start();
    assert.deepEqual(FakeWebSocket.last.of("input.text").map((m) => m.text), Array.from({ length: 32 }, (_, i) => `text ${i + 1}`));
  });

  test("before the first opening keeps typed texts too", async () => {
    const session = make();
    void session.open();
    session.sendText("Hello");
    await settle();
    FakeWebSocket.last.start();
    assert.deepEqual(FakeWebSocket.last.of("input.text").map((m) => m.text), ["Hello"]);
  });

  test("keeps an answer to a question for the same session only", async () => {
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

  test("sends the last report of each item in the resumed session", async () => {
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

  test("ends each open question once if its session is lost", async () => {
    const session = await open();
    FakeWebSocket.last.say(question("cf_1"));
    FakeWebSocket.last.say({ ...question("cf_2"), seq: 3 });
    FakeWebSocket.last.say({ type: "confirmation.ended", seq: 4, token: "cf_1", tool: "send", outcome: "denied" });
    const reported = new Listener(session, "confirmation.ended", "message");
    await reconnect();
    assert.deepEqual(reported.of("confirmation.ended"), [{ type: "confirmation.ended", seq: 0, turn: 1, token: "cf_2", tool: "send", outcome: "lost" }]);
    assert.deepEqual(reported.of("message")[0], reported.of("confirmation.ended")[0]);
    FakeWebSocket.last.say({ ...question("cf_3"), seq: 2 });
    FakeWebSocket.last.drop(4004);
    assert.deepEqual(reported.of("confirmation.ended").map((e) => e.token), ["cf_2", "cf_3"]);
  });

  test("leaves the questions open if the session is resumed", async () => {
    const session = await open({}, { resume_token: "rt_1" });
    FakeWebSocket.last.say(question("cf_1"));
    const reported = new Listener(session, "confirmation.ended");
    await reconnect({ resumed: true, seq: 3 });
    assert.deepEqual(reported.types, []);
  });

  test("warns of a typed text that was not confirmed", async () => {
    const session = await open();
    const reported = new Listener(session, "error");
    session.sendText("arrived");
    FakeWebSocket.last.say({ type: "transcript", seq: 2, turn: 1, id: "typed-1", role: "user", text: "arrived", final: true, started_at: "" });
    await reconnect();
    assert.deepEqual(reported.types, []);
    session.sendText("lost");
    await reconnect();
    assert.deepEqual(reported.of("error").map((e) => e.code), ["unsent"]);
    await reconnect();
    assert.equal(reported.types.length, 1);
  });

  test("does not warn of a text whose turn has ended, even with a withheld transcript", async () => {
    const session = await open();
    const reported = new Listener(session, "error");
    session.sendText("Hello");
    FakeWebSocket.last.say({ type: "turn.ended", seq: 2, turn: 1, status: "completed" });
    await reconnect();
    assert.deepEqual(reported.types, []);
  });

  test("plays the old answer to its end, until the new session begins an item or hears speech", async () => {
    const session = await open();
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio();
    await reconnect();
    assert.deepEqual(devices.calls, ["start 0 item_1", "audio 0 item_1", "end 0 item_1"], "it ends after its last sample");
    const reported = new Listener(session, "played");
    devices.speaker.played({ item: "0 item_1", playedMs: 200, done: false, at: 1 });
    assert.equal(reported.of("played")[0]?.item, "item_1");
    assert.deepEqual(FakeWebSocket.last.of("playback"), [], "the new session does not know the item");
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    assert.deepEqual(devices.calls.slice(3), ["flush null", "start 1 item_1"], "another item, despite its name");
    FakeWebSocket.last.say({ type: "audio.start", seq: 3, turn: 1, item_id: "item_2" });
    assert.deepEqual(devices.calls.slice(5), ["start 1 item_2"]);
  });

  test("does not take the old session's sound for an answer of the new one", async () => {
    const session = await open();
    FakeWebSocket.last.say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    await reconnect();
    const reported = new Listener(session, "latency");
    session.sendText("Hello");
    FakeWebSocket.last.say({ type: "transcript", seq: 2, turn: 1, id: "typed-1", role: "user", text: "Hello", final: true, started_at: "" });
    FakeWebSocket.last.say({ type: "audio.start", seq: 3, turn: 1, item_id: "item_1" });
    devices.speaker.sounding({ item: "0 item_1", at: performance.now(), firstByteAt: performance.now(), cushionMs: 0 });
    FakeWebSocket.last.say({ type: "turn.ended", seq: 4, turn: 1, status: "interrupted", latency: { detection_ms: 0, provider_ms: 1, gateway_ms: 1 } });
    assert.deepEqual(reported.types, []);
  });

  for (const type of ["speech.started", "turn.started"]) {
    test(`silences the old session at ${type}`, async () => {
      await open();
      await reconnect();
      FakeWebSocket.last.say({ type, seq: 2, turn: 1, audio_ms: 0 });
      assert.deepEqual(devices.calls, ["flush null"]);
    });
  }

  test("does not report errors of an attempt: the next one may succeed", async () => {
    const session = await open();
    const reported = new Listener(session, "error");
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    FakeWebSocket.last.say({ type: "error", seq: 1, code: "voice_active", message: "…", retryable: false });
    assert.deepEqual(reported.types, []);
  });

  test("forgets an earlier session's end", async () => {
    const session = await open();
    const reported = new Listener(session, "disconnected");
    FakeWebSocket.last.say({ type: "session.ended", seq: 2, reason: "server_shutdown", handback: { conversation_id: "c-7", summary: "…" } });
    FakeWebSocket.last.drop(1001);
    await pass(250);
    FakeWebSocket.last.start();
    FakeWebSocket.last.drop(4005);
    assert.deepEqual([reported.of("disconnected")[0]?.reason, reported.of("disconnected")[0]?.handback], ["lost", undefined]);
  });

  test("ends with the reason if it cannot be restored", async () => {
    const session = await open({ reconnect: { tries: 1 } });
    const reported = new Listener(session, "disconnected");
    FakeWebSocket.last.say({ type: "session.ended", seq: 2, reason: "server_shutdown" });
    FakeWebSocket.last.drop(1001);
    assert.deepEqual(reported.types, [], "another gateway may answer next");
    await pass(250);
    FakeWebSocket.last.open();
    FakeWebSocket.last.drop(1001);
    assert.equal(reported.of("disconnected")[0]?.error?.message, "The gateway is stopping.");
    assert.equal(session.state, "disconnected");
  });
});

test("two sessions on one page are independent", async () => {
  const first = await open();
  const one = FakeWebSocket.last;
  const reported = new Listener(first, "turn.started", "disconnected");
  const second = await open();
  FakeWebSocket.last.say({ type: "turn.started", seq: 2, turn: 1 });
  void second.disconnect();
  FakeWebSocket.last.drop(1000);
  assert.deepEqual(reported.types, []);
  assert.equal(first.state, "connected");
  one.say({ type: "turn.started", seq: 2, turn: 1 });
  assert.deepEqual(reported.types, ["turn.started"]);
});
