// @vitest-environment happy-dom
// A session after a short loss of its connection, or a reload of its page.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test, vi } from "vitest";
import type { MicrophoneHandlers } from "../src/audio/microphone.js";
import type { SpeakerHandlers } from "../src/audio/speaker.js";
import { VoiceError } from "../src/errors.js";
import type { VoiceEvents } from "../src/events.js";
import { keptSession } from "../src/kept.js";
import type { ConnectOptions } from "../src/options.js";
import { VoiceSession } from "../src/session.js";
import { FakeWebSocket, installNetwork, pass, removeNetwork, settle } from "./fakes.js";

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
    open = async (): Promise<void> => undefined;
    resume = (): void => undefined;
    start = (item: string): void => void devices.calls.push(`start ${item}`);
    audio = (item: string, pcm: ArrayBuffer): void => void devices.calls.push(`audio ${item} ${pcm.byteLength / 48}`);
    end = (item: string): void => void devices.calls.push(`end ${item}`);
    flush = (item: string | null): void => void devices.calls.push(`flush ${item}`);
    close = (): void => undefined;
  },
}));
vi.mock("../src/audio/microphone.js", () => ({
  Microphone: class {
    constructor(_: unknown, handlers: MicrophoneHandlers) {
      devices.microphone = handlers;
    }
    ready = (): void => undefined;
    start = (): Promise<void> => devices.start();
    close = (): void => undefined;
  },
}));
vi.mock("../src/audio/worklets/load.js", () => ({ loadWorklets: async () => undefined, packagedWorklets: () => ({}) }));

/** A session's own events, without the gateway's messages and the sent ones. */
const OWN = ["state", "reconnecting", "reconnected", "error", "disconnected"] as const;

class Listener {
  readonly events: { type: keyof VoiceEvents; event: unknown }[] = [];

  constructor(session: VoiceSession, ...types: (keyof VoiceEvents)[]) {
    for (const type of types.length > 0 ? types : OWN) {
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
const TOKEN = { resume_token: "rt_1", conversation_id: "c-7" };

function make(options: ConnectOptions = {}): VoiceSession {
  const session = new VoiceSession(options);
  all.push(session);
  return session;
}

/** An open session that can be resumed. */
async function open(options: ConnectOptions = {}, fields: Record<string, unknown> = TOKEN): Promise<VoiceSession> {
  const session = make(options);
  const opened = session.open();
  await settle();
  FakeWebSocket.last.start(fields);
  await opened;
  devices.calls.length = 0;
  return session;
}

/** Starts opening it; an end before the opening is no error. */
function begin(session: VoiceSession): void {
  session.open().catch(() => undefined);
}

const resumed = (seq: number, more: object = {}): Record<string, unknown> => ({ seq, resumed: true, resume_token: `rt_${seq}`, conversation_id: "c-7", ...more });
const frame = (n = 0): void => devices.microphone.frame({ pcm: Int16Array.from({ length: 320 }, () => n).buffer, at: Date.now(), clockMs: 0 });
const say = (message: { type: string; [field: string]: unknown }): void => FakeWebSocket.last.say(message);
const stored = (): string => JSON.stringify({ ...sessionStorage });

/** The page closes; only the tab's storage remains. */
function leave(): void {
  globalThis.dispatchEvent(new Event("pagehide"));
}

beforeEach(() => {
  installNetwork();
  sessionStorage.clear();
  localStorage.clear();
  vi.stubGlobal("AudioContext", class { close = async (): Promise<void> => undefined; });
  devices.calls.length = 0;
  devices.start = () => Promise.resolve();
});

afterEach(async () => {
  all.splice(0).forEach((session) => void session.disconnect());
  await pass(5000);
  removeNetwork();
});

describe("an unnoticed outage", () => {
  test("appears only in the statistics", async () => {
    const session = await open();
    const reported = new Listener(session);
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio(4800);
    FakeWebSocket.last.drop();
    frame();
    await pass(1999);
    assert.equal(session.state, "connected");
    FakeWebSocket.last.start(resumed(5));
    say({ type: "audio.start", seq: 6, turn: 1, item_id: "item_1", from_ms: 100 });
    FakeWebSocket.last.audio(4800);
    say({ type: "audio.end", seq: 7, turn: 1, item_id: "item_1", audio_ms: 200 });
    await pass(4000);
    assert.deepEqual(reported.types, []);
    assert.deepEqual(devices.calls, ["start 0 item_1", "audio 0 item_1 100", "start 0 item_1", "audio 0 item_1 100", "end 0 item_1"], "the queue continues: no flush, no gap, no repeat");
    const { reconnects, resumes, unnoticed, lostMs, audioFramesKept, droppedOffline, gaps } = session.stats();
    assert.deepEqual({ reconnects, resumes, unnoticed, lostMs, audioFramesKept, droppedOffline, gaps }, { reconnects: 1, resumes: 1, unnoticed: 1, lostMs: 1999, audioFramesKept: 1, droppedOffline: 0, gaps: 2 });
  });

  test("is reported from two seconds on", async () => {
    const session = await open({ reconnect: { firstMs: 3000 } });
    const reported = new Listener(session);
    FakeWebSocket.last.drop();
    await pass(1999);
    assert.deepEqual(reported.types, []);
    await pass(1);
    assert.deepEqual(reported.types, ["state", "reconnecting"]);
    const [{ error, ...tried }] = reported.of("reconnecting") as [VoiceEvents["reconnecting"]];
    assert.deepEqual({ ...tried, code: error.code }, { attempt: 1, delayMs: 1000, lostMs: 2000, resumable: true, code: "lost" });
    await pass(1000);
    FakeWebSocket.last.start(resumed(5));
    assert.deepEqual(reported.types.slice(2), ["state", "reconnected"]);
    assert.deepEqual(reported.of("reconnected"), [{ resumed: true, lostMs: 3000 }]);
    assert.equal(session.stats().unnoticed, 0);
  });

  test("is reported for each later attempt", async () => {
    const session = await open();
    const reported = new Listener(session, "reconnecting");
    FakeWebSocket.last.drop();
    for (let i = 0; i < 4; i++) {
      await pass(250 * 2 ** i);
      FakeWebSocket.last.drop();
    }
    await settle();
    assert.deepEqual(reported.of("reconnecting").map((e) => [e.attempt, e.lostMs]), [[4, 2000], [5, 3750]]);
  });

  test("is reported at once when playback runs dry", async () => {
    const session = await open({ reconnect: { firstMs: 1500 } });
    const reported = new Listener(session);
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio();
    FakeWebSocket.last.drop();
    await pass(300);
    assert.deepEqual(reported.types, []);
    devices.speaker.dry("0 item_1");
    assert.deepEqual(reported.types, ["state", "reconnecting"]);
    assert.equal(reported.of("reconnecting")[0]?.lostMs, 300);
    devices.speaker.dry("0 item_1");
    await pass(1200);
    FakeWebSocket.last.start(resumed(5));
    assert.deepEqual(reported.types, ["state", "reconnecting", "state", "reconnected"]);
  });

  test("is reported at once if playback was dry before or no resume is possible", async () => {
    const dry = await open();
    const one = new Listener(dry);
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio();
    devices.speaker.dry("0 item_1");
    FakeWebSocket.last.drop();
    assert.deepEqual(one.types, ["state", "reconnecting"]);

    const without = await open({}, {});
    const two = new Listener(without);
    FakeWebSocket.last.drop();
    assert.deepEqual(two.types, ["state", "reconnecting"]);
    assert.deepEqual([one, two].map((reported) => reported.of("reconnecting")[0]?.resumable), [true, false]);
  });

  test("is not reported for an item that ran dry and then ended", async () => {
    const session = await open();
    const reported = new Listener(session);
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio();
    devices.speaker.dry("0 item_1");
    say({ type: "audio.end", seq: 3, turn: 1, item_id: "item_1", audio_ms: 20 });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start(resumed(5));
    assert.deepEqual(reported.types, []);
  });

  test("is reported at once if the line had been dead for long", async () => {
    const session = await open();
    const reported = new Listener(session);
    await pass(5000);
    assert.deepEqual(reported.types, ["state", "reconnecting"]);
    assert.equal(reported.of("reconnecting")[0]?.lostMs, 5000);
  });

  test("is reported if another session must continue", async () => {
    const session = await open();
    const reported = new Listener(session);
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    say({ type: "error", seq: 1, code: "resume_refused", message: "…", retryable: false });
    FakeWebSocket.last.drop(4501);
    await settle();
    FakeWebSocket.last.start({ session_id: "voice-2" });
    assert.deepEqual(reported.types, ["state", "reconnecting", "state", "reconnected"]);
    assert.deepEqual(reported.of("reconnected"), [{ resumed: false, lostMs: 250 }]);
    assert.equal(session.stats().unnoticed, 0);
  });

  test("can be a move by the gateway", async () => {
    const session = await open();
    const reported = new Listener(session);
    say({ type: "session.moving", seq: 2, reason: "server_shutdown", deadline: new Date(Date.now() + 500).toISOString() });
    await settle();
    assert.equal(FakeWebSocket.all.length, 2);
    FakeWebSocket.last.start(resumed(3));
    assert.deepEqual(reported.types, []);
    assert.equal(session.stats().unnoticed, 1);
  });

  test("leaves nothing behind if the session ends during it", async () => {
    const session = await open();
    const reported = new Listener(session);
    FakeWebSocket.last.drop();
    void session.disconnect();
    assert.equal(vi.getTimerCount(), 0);
    await pass(60_000);
    assert.deepEqual(reported.types, ["state", "disconnected"]);
  });
});

describe("a resumed session", () => {
  test("reports the received part of the newest item and of all messages", async () => {
    await open();
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio(4802);
    devices.speaker.played({ item: "0 item_1", playedMs: 40, done: false, at: 1 });
    assert.deepEqual(FakeWebSocket.last.of("playback"), [{ type: "playback", item_id: "item_1", played_ms: 40, done: false, received_ms: 100, seq: 2 }]);
    await pass(2000);
    assert.deepEqual(FakeWebSocket.last.of("ping").map(({ seq }) => seq), [2]);
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    assert.deepEqual(FakeWebSocket.last.of("session.start")[0]?.resume, { session_id: "voice-1", token: "rt_1", last_seq: 2, audio: { item_id: "item_1", received_ms: 100 } });
  });

  test("reports an answer that was heard to its end during the outage: it is not cut off", async () => {
    await open();
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio(4800);
    say({ type: "audio.end", seq: 3, turn: 1, item_id: "item_1", audio_ms: 100 });
    FakeWebSocket.last.drop();
    devices.speaker.played({ item: "0 item_1", playedMs: 100, done: true, at: 1 });
    await pass(250);
    FakeWebSocket.last.open();
    assert.deepEqual(FakeWebSocket.last.of("session.start")[0]?.resume, { session_id: "voice-1", token: "rt_1", last_seq: 3, audio: { item_id: "item_1", received_ms: 100 } });
  });

  test("receives stored audio first, then the rest, in order", async () => {
    const session = await open();
    const reported = new Listener(session, "uplink");
    FakeWebSocket.last.drop();
    frame(1);
    await pass(20);
    frame(2);
    await pass(230);
    FakeWebSocket.last.start(resumed(5));
    frame(3);
    assert.deepEqual(FakeWebSocket.last.audio16.map((pcm) => pcm[0]), [1, 2, 3]);
    const heard = reported.of("uplink");
    assert.deepEqual(heard.map(({ pcm }) => pcm[0]), [1, 2, 3]);
    assert.ok(Math.abs(heard[2]!.at - heard[1]!.at - 230) < 1 && Math.abs(heard[1]!.at - heard[0]!.at - 20) < 1, "each at its own time");
  });

  test("receives a press before its audio, and its release after it", async () => {
    await open({ turnDetection: "client" });
    const order = (): string[] => {
      const { last } = FakeWebSocket;
      const seen: string[] = [];
      const send = last.send.bind(last);
      last.send = (data) => {
        seen.push(typeof data === "string" ? (JSON.parse(data) as { type: string; active?: boolean }).type : "audio");
        send(data);
      };
      return seen;
    };
    FakeWebSocket.last.drop();
    devices.microphone.activity(true);
    frame();
    await pass(250);
    let seen = order();
    FakeWebSocket.last.start(resumed(5));
    assert.deepEqual(seen, ["session.start", "input.activity", "audio", "ping"]);
    FakeWebSocket.last.drop();
    frame();
    devices.microphone.activity(false);
    await pass(500);
    seen = order();
    FakeWebSocket.last.start(resumed(6));
    assert.deepEqual(seen, ["session.start", "audio", "input.activity", "ping"]);
  });

  test("receives the last playback report again: it may have been lost", async () => {
    await open();
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    devices.speaker.played({ item: "0 item_1", playedMs: 40, done: true, at: 1 });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start(resumed(5));
    assert.deepEqual(FakeWebSocket.last.of("playback").map((m) => [m.item_id, m.played_ms, m.done]), [["item_1", 40, true]]);
  });

  test("assigns no frame to the old item before the gateway announces it", async () => {
    await open();
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start(resumed(5));
    devices.calls.length = 0;
    FakeWebSocket.last.audio();
    assert.deepEqual(devices.calls, []);
  });

  test("flushes an item that the gateway cannot continue", async () => {
    await open();
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start(resumed(5));
    say({ type: "audio.flush", seq: 6, turn: 1, item_id: "item_1", reason: "connection_lost" });
    assert.equal(devices.calls.at(-1), "flush 0 item_1");
  });

  test("receives a lost answer to a question and a lost text again", async () => {
    const session = await open();
    say({ type: "confirmation.request", seq: 2, turn: 1, token: "cf_1", tool: "send", args: {}, preview: "Send?", expires_at: "" });
    session.approve("cf_1");
    session.sendText("Hello");
    FakeWebSocket.last.drop();
    await pass(250);
    const reported = new Listener(session, "error");
    FakeWebSocket.last.start(resumed(5));
    assert.deepEqual(FakeWebSocket.last.of("confirmation.resolve"), [], "it may have arrived");
    say({ type: "pong", seq: 6, t: FakeWebSocket.last.of("ping")[0]!.t });
    assert.deepEqual(FakeWebSocket.last.of("confirmation.resolve").map((m) => [m.token, m.approved]), [["cf_1", true]]);
    assert.deepEqual(FakeWebSocket.last.of("input.text").map((m) => m.text), ["Hello"]);
    assert.deepEqual(reported.types, []);
    await pass(5000);
    say({ type: "pong", seq: 7, t: FakeWebSocket.last.of("ping")[1]!.t });
    assert.equal(FakeWebSocket.last.of("confirmation.resolve").length, 1, "once");
    assert.equal(FakeWebSocket.last.of("input.text").length, 1, "once");
  });

  test.each([
    ["repeats a text that only the dead gateway had shown", false],
    ["does not repeat a text that the snapshot contains", true],
  ])("%s", async (_, known) => {
    const session = await open();
    say({ type: "turn.started", seq: 2, turn: 1 });
    say({ type: "turn.ended", seq: 3, turn: 1, status: "completed", usage: {} });
    const id = session.sendText("Hello");
    say({ type: "turn.started", seq: 4, turn: 2 });
    const transcript = { type: "transcript", turn: 2, id, role: "user", text: "Hello", final: true, started_at: "" };
    say({ ...transcript, seq: 5 });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start({ ...resumed(1000), snapshot: true });
    say({ type: "turn.started", seq: 1001, turn: known ? 2 : 1 });
    say(known ? { ...transcript, seq: 1002 } : { type: "turn.started", seq: 1002, turn: 1 });
    say({ type: "turn.ended", seq: 1003, turn: 1, status: "completed", usage: {} });
    say({ type: "pong", seq: 1004, t: FakeWebSocket.last.of("ping")[0]!.t });
    assert.deepEqual(FakeWebSocket.last.of("input.text").map((m) => m.text), known ? [] : ["Hello"]);
  });

  test("receives a lost interrupt again, once", async () => {
    const session = await open();
    say({ type: "turn.started", seq: 2, turn: 1 });
    session.interrupt();
    for (const round of [0, 1]) {
      FakeWebSocket.last.drop();
      await pass(500);
      FakeWebSocket.last.start(resumed(round * 10 + 5));
      assert.deepEqual(FakeWebSocket.last.of("interrupt"), [], "it may have arrived");
      say({ type: "pong", seq: round * 10 + 6, t: FakeWebSocket.last.of("ping")[0]!.t });
      assert.equal(FakeWebSocket.last.of("interrupt").length, 1 - round);
      say({ type: "audio.flush", seq: round * 10 + 7, turn: 1, item_id: "item_1", reason: "user_stop" });
    }
  });

  test.each(["audio.flush", "turn.ended", "turn.started"])("receives no second interrupt after %s", async (type) => {
    const session = await open();
    say({ type: "turn.started", seq: 2, turn: 1 });
    session.interrupt();
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start(resumed(5));
    say({ type, seq: 3, turn: 2, item_id: "item_1", reason: "user_stop", status: "interrupted", usage: {} });
    say({ type: "pong", seq: 6, t: FakeWebSocket.last.of("ping")[0]!.t });
    assert.deepEqual(FakeWebSocket.last.of("interrupt"), []);
  });

  test("receives no message twice", async () => {
    const session = await open();
    say({ type: "confirmation.request", seq: 2, turn: 1, token: "cf_1", tool: "send", args: {}, preview: "Send?", expires_at: "" });
    session.approve("cf_1");
    const id = session.sendText("Hello");
    FakeWebSocket.last.drop();
    await pass(250);
    const reported = new Listener(session, "error");
    FakeWebSocket.last.start(resumed(5));
    say({ type: "confirmation.ended", seq: 3, token: "cf_1", tool: "send", outcome: "approved" });
    say({ type: "transcript", seq: 4, turn: 1, id, role: "user", text: "Hello", final: true, started_at: "" });
    say({ type: "pong", seq: 6, t: FakeWebSocket.last.of("ping")[0]!.t });
    assert.deepEqual([FakeWebSocket.last.of("confirmation.resolve"), reported.types], [[], []]);
  });

  describe("after the gateway's death", () => {
    /** The values of the newest connection's frames, with the button's changes between them. */
    const heard = (): unknown[] =>
      FakeWebSocket.last.sent.flatMap((one): (number | boolean | undefined)[] => {
        if (typeof one !== "string") {
          return [new Int16Array(one)[0]];
        }
        const message = JSON.parse(one) as { type: string; active?: boolean };
        return message.type === "input.activity" ? [message.active] : [];
      });
    const frames = (from: number, to: number): void => {
      for (let n = from; n <= to; n++) {
        frame(n);
      }
    };
    /** Loses the gateway, runs `during`, and resumes at another one. Returns the offer of session.start. */
    const resume = async (fields: object, during = (): void => undefined): Promise<unknown> => {
      FakeWebSocket.last.drop();
      during();
      await pass(2000);
      FakeWebSocket.last.start(resumed(1009, fields));
      return FakeWebSocket.last.of("session.start")[0]!.resume?.input;
    };
    const again = (ms: number): object => ({ snapshot: true, input_ms: ms, input_again: true });

    test("sends unanswered speech again, before newer audio, once", async () => {
      await open();
      frames(1, 10);
      assert.deepEqual(await resume(again(100), () => frames(11, 12)), { from_ms: 0, to_ms: 240 });
      frames(13, 13);
      assert.deepEqual(heard(), [6, 7, 8, 9, 10, 11, 12, 13]);
      assert.deepEqual(await resume({ input_ms: 240 }), { from_ms: 100, to_ms: 260 });
      frames(14, 14);
      assert.deepEqual(heard(), [13, 14], "the frames in transit");
      assert.deepEqual(await resume(again(220)), { from_ms: 100, to_ms: 280 });
      assert.deepEqual(heard(), [12, 13, 14]);
    });

    test("sends missing audio to the same gateway before newer audio", async () => {
      const session = await open();
      frames(1, 10);
      await resume({ input_ms: 100 }, () => frames(11, 12));
      assert.deepEqual(heard(), [6, 7, 8, 9, 10, 11, 12]);
      await resume({ input_ms: 240 }, () => frames(13, 14));
      assert.deepEqual(heard(), [13, 14], "all has arrived");
      frames(15, 20);
      await resume({ input_ms: 280 }, () => frames(21, 768));
      assert.deepEqual([heard()[0], heard().length, session.stats().droppedOffline], [19, 750, 4], "15 s at most");
      frames(769, 770);
      await resume({}, () => frames(771, 771));
      assert.deepEqual(heard(), [771], "a gateway that reports no count may have all of it");
    });

    test("presses the button again if the press was lost", async () => {
      await open({ turnDetection: "client" });
      frames(1, 2);
      devices.microphone.activity(true);
      frames(3, 4);
      await resume({ input_ms: 40 }, () => frames(5, 5));
      assert.deepEqual(heard(), [true, 3, 4, 5]);
      await resume({ input_ms: 60 });
      assert.deepEqual(heard(), [4, 5], "the press has arrived");
      devices.microphone.activity(false);
      await resume({ input_ms: 100 });
      assert.deepEqual(heard(), [false]);
    });

    test("sends a lost press again completely, before the next one", async () => {
      await open({ turnDetection: "client" });
      frames(1, 2);
      devices.microphone.activity(true);
      frames(3, 4);
      devices.microphone.activity(false);
      frames(5, 5);
      await resume({ input_ms: 40 }, () => {
        devices.microphone.activity(true);
        frames(6, 6);
      });
      assert.deepEqual(heard(), [true, 3, 4, false, 5, true, 6]);
      devices.microphone.activity(false);
      await resume({ input_ms: 120 }, () => frames(7, 760));
      assert.deepEqual([heard().slice(0, 2), heard().length], [[false, 11], 751], "at any age");
    });

    test("keeps no answered speech, and at most ten seconds", async () => {
      await open();
      frames(1, 100);
      say({ type: "speech.stopped", seq: 2, turn: 1, audio_ms: 1500 });
      say({ type: "turn.ended", seq: 3, turn: 1, status: "completed", usage: {} });
      assert.deepEqual(await resume(again(1500)), { from_ms: 1500, to_ms: 2000 });
      assert.equal(heard().length, 25);
      frames(101, 700);
      assert.deepEqual(await resume(again(13_000)), { from_ms: 4000, to_ms: 14_000 });
      assert.equal(heard().length, 50);
      say({ type: "error", seq: 1010, code: "audio_too_fast", message: "", retryable: true });
      frames(701, 702);
      assert.equal(await resume({}), undefined, "both sides count differently");
    });

    test("sends the button's presses again in order", async () => {
      await open({ turnDetection: "client" });
      frames(1, 2);
      devices.microphone.activity(true);
      frames(3, 4);
      devices.microphone.activity(false);
      frames(5, 5);
      devices.microphone.activity(true);
      frames(6, 6);
      await resume(again(60), () => frames(7, 7));
      assert.deepEqual(heard(), [true, 4, false, 5, true, 6, 7]);
    });
  });

  describe("with a snapshot", () => {
    const question = (seq: number, token: string): { type: string; [field: string]: unknown } => ({
      type: "confirmation.request", seq, turn: 1, token, tool: "send", args: {}, preview: "Send?", expires_at: "",
    });
    const moved = async (): Promise<void> => {
      FakeWebSocket.last.drop(4007);
      await settle();
      FakeWebSocket.last.start(resumed(1009, { snapshot: true }));
    };
    /** The answer to the first ping follows the snapshot. */
    const caughtUp = (seq: number): void => say({ type: "pong", seq, t: FakeWebSocket.last.of("ping")[0]!.t });

    test("ends the questions that are not repeated, once, and no others", async () => {
      const session = await open();
      const reported = new Listener(session, "confirmation.request", "confirmation.ended");
      say(question(2, "cf_1"));
      say(question(3, "cf_2"));
      await moved();
      say(question(1010, "cf_2"));
      assert.deepEqual(reported.of("confirmation.ended"), [], "the rest of the snapshot may contain it");
      caughtUp(1011);
      assert.deepEqual(reported.of("confirmation.ended").map((e) => [e.token, e.outcome]), [["cf_1", "unknown"]]);
      await pass(2000);
      say({ type: "pong", seq: 1012, t: FakeWebSocket.last.of("ping")[1]!.t });
      assert.equal(reported.of("confirmation.ended").length, 1);
      session.approve("cf_2");
      say({ type: "confirmation.ended", seq: 1013, token: "cf_2", tool: "send", outcome: "approved" });
      void session.disconnect();
      FakeWebSocket.last.drop(1000);
      assert.deepEqual(reported.of("confirmation.ended").map((e) => e.outcome), ["unknown", "approved"]);
    });

    test("does not repeat an answer to a question that is no longer open", async () => {
      const session = await open();
      say(question(2, "cf_1"));
      session.approve("cf_1");
      await moved();
      caughtUp(1010);
      assert.deepEqual(FakeWebSocket.last.of("confirmation.resolve"), []);
    });

    test("ends an abandoned answer: its received part plays, and playback waits for no more", async () => {
      const session = await open();
      const reported = new Listener(session);
      say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
      FakeWebSocket.last.audio(4800);
      await moved();
      say({ type: "audio.start", seq: 1010, turn: 2, item_id: "l2.item_1" });
      caughtUp(1011);
      assert.deepEqual(devices.calls.filter((call) => !call.startsWith("audio")), ["start 0 item_1", "start 0 l2.item_1", "end 0 item_1"]);
      // The item has no position now: the next loss asks for the new one.
      FakeWebSocket.last.drop();
      await pass(500);
      FakeWebSocket.last.open();
      assert.deepEqual(FakeWebSocket.last.of("session.start")[0]?.resume?.audio, { item_id: "l2.item_1", received_ms: 0 });
      assert.deepEqual(reported.types, [], "the outage was not noticeable");
    });

    test("continues the answer that it announces again", async () => {
      await open();
      say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
      FakeWebSocket.last.audio(4800);
      await moved();
      say({ type: "audio.start", seq: 1010, turn: 1, item_id: "item_1", from_ms: 100 });
      caughtUp(1011);
      FakeWebSocket.last.audio(4800);
      say({ type: "audio.end", seq: 1012, turn: 1, item_id: "item_1", audio_ms: 200 });
      assert.deepEqual(devices.calls.slice(-2), ["audio 0 item_1 100", "end 0 item_1"]);
    });
  });

  test("by another tab ends here, with an error", async () => {
    const session = await open();
    const reported = new Listener(session);
    FakeWebSocket.last.drop(4506);
    await pass(60_000);
    assert.deepEqual(reported.types, ["state", "error", "disconnected"]);
    const [{ reason, code, error }] = reported.of("disconnected") as [VoiceEvents["disconnected"]];
    assert.deepEqual([reason, code, error?.code, error?.message], ["moved", 4506, "moved", "The conversation moved to another tab."]);
    assert.equal(FakeWebSocket.all.length, 1);
    assert.equal(stored(), "{}");
  });
});

describe("the resume token", () => {
  test("is stored in this tab only, the newest one, and never shown", async () => {
    const session = make();
    const reported = new Listener(session, "message", "session.started", "sent");
    begin(session);
    await settle();
    FakeWebSocket.last.start(TOKEN);
    assert.match(stored(), /rt_1/);
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start(resumed(5));
    assert.match(stored(), /rt_5/);
    assert.doesNotMatch(stored(), /rt_1/);
    assert.equal(JSON.stringify({ ...localStorage }), "{}");
    assert.doesNotMatch(JSON.stringify([reported.events, session.info, keptSession()]), /rt_[15]/);
    assert.equal(session.info?.resume_token, "***");
  });

  test("is stored before a message that invalidates the previous one", async () => {
    await open();
    FakeWebSocket.last.drop();
    frame();
    await pass(250);
    let first: string | undefined;
    const { last } = FakeWebSocket;
    const send = last.send.bind(last);
    FakeWebSocket.last.open();
    last.send = (data) => {
      first ??= stored();
      send(data);
    };
    say({ type: "session.started", session_id: "voice-1", output_rate: 24000, ...resumed(5) });
    assert.match(first ?? "", /rt_5/);
  });

  for (const [how, end] of Object.entries<(session: VoiceSession) => void>({
    "hang-up": (session) => void session.disconnect(),
    "end of the session": () => {
      say({ type: "session.ended", seq: 2, reason: "tool_ended" });
      FakeWebSocket.last.drop(1000);
    },
    "permanent close": () => FakeWebSocket.last.drop(4004),
  })) {
    test(`is deleted at a ${how}`, async () => {
      const session = await open();
      assert.notEqual(stored(), "{}");
      end(session);
      await pass(5000);
      assert.equal(stored(), "{}");
      assert.equal(keptSession(), null);
    });
  }

  test("is deleted if the session has none, or the page stores none", async () => {
    await open();
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start({ seq: 5, resumed: true });
    assert.equal(stored(), "{}");
    await open({ keep: false });
    assert.equal(stored(), "{}");
  });

  test("that the browser cannot store does not affect the session", async () => {
    vi.stubGlobal("sessionStorage", { getItem: () => { throw new Error("no"); }, setItem: () => { throw new Error("full"); }, removeItem: () => { throw new Error("no"); } });
    const session = await open();
    assert.equal(session.state, "connected");
    leave();
    assert.equal(FakeWebSocket.last.of("session.end").length, 1, "no page could resume it");
    assert.equal(keptSession(), null);
  });
});

describe("a reloaded page", () => {
  test("ends no session and releases the devices", async () => {
    const session = await open();
    const reported = new Listener(session);
    leave();
    leave();
    assert.deepEqual(FakeWebSocket.last.of("session.end"), []);
    assert.equal(FakeWebSocket.last.closedWith, 4000);
    assert.deepEqual(reported.types, ["state", "disconnected"]);
    assert.deepEqual([reported.of("disconnected")[0]?.reason, reported.of("disconnected")[0]?.error], ["page_left", undefined]);
    assert.deepEqual(keptSession(), { sessionId: "voice-1", conversationId: "c-7", leftAt: Date.now() });
  });

  test("continues the session", async () => {
    await open();
    leave();
    const session = make();
    const reported = new Listener(session);
    const opened = session.open();
    await settle();
    FakeWebSocket.last.start(resumed(9, { snapshot: true }));
    await opened;
    assert.deepEqual(FakeWebSocket.last.of("session.start")[0]?.resume, { session_id: "voice-1", token: "rt_1", last_seq: 0 }, "no position: the page has no audio");
    assert.deepEqual(reported.types, ["state"]);
    assert.equal(session.info?.resumed, true);
    assert.match(stored(), /rt_9/);
    const { reconnects, unnoticed } = session.stats();
    assert.deepEqual({ reconnects, unnoticed }, { reconnects: 0, unnoticed: 0 });
  });

  test("keeps its state if it is reloaded before it opens", async () => {
    await open();
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio();
    devices.speaker.played({ item: "0 item_1", playedMs: 3200, done: false, at: 1 });
    leave();
    begin(make());
    await settle();
    leave();
    const session = make();
    begin(session);
    await settle();
    FakeWebSocket.last.start(resumed(9));
    say({ type: "audio.flush", seq: 10, turn: 1, item_id: "item_1", reason: "connection_lost" });
    assert.deepEqual(FakeWebSocket.last.of("playback").map((m) => [m.item_id, m.played_ms, m.done]), [["item_1", 3200, true]]);
  });

  test("reports the heard part of items that it cannot continue, and leaves the rest to the player", async () => {
    await open();
    say({ type: "audio.start", seq: 2, turn: 1, item_id: "item_1" });
    FakeWebSocket.last.audio();
    devices.speaker.played({ item: "0 item_1", playedMs: 400, done: false, at: 1 });
    leave();
    await open({}, resumed(9));
    for (const [seq, item_id] of [[10, "item_1"], [11, "item_1"], [12, "item_2"]] as const) {
      say({ type: "audio.flush", seq, turn: 1, item_id, reason: "connection_lost" });
    }
    assert.deepEqual(FakeWebSocket.last.of("playback"), [{ type: "playback", item_id: "item_1", played_ms: 400, done: true }]);
    assert.deepEqual(devices.calls, ["flush 0 item_1", "flush 0 item_2"]);
  });

  test("gives each text a new id", async () => {
    const first = await open();
    const ids = [first.sendText("a")];
    for (let page = 1; page <= 2; page++) {
      leave();
      ids.push((await open({}, resumed(9 * page))).sendText("b"));
    }
    assert.equal(new Set(ids).size, 3);
  });

  test("ends a press that can no longer be released", async () => {
    await open({ turnDetection: "client" });
    devices.microphone.activity(true);
    leave();
    await open({ turnDetection: "client" }, resumed(9));
    assert.deepEqual(FakeWebSocket.last.of("input.activity").map((m) => m.active), [false]);
  });

  test("has a clock that knows nothing of earlier audio", async () => {
    await open();
    leave();
    const session = await open({}, resumed(9));
    frame();
    await pass(3000);
    const reported = new Listener(session, "latency");
    say({ type: "speech.stopped", seq: 10, turn: 1, audio_ms: 10, end_ms: 10 });
    say({ type: "audio.start", seq: 11, turn: 1, item_id: "item_1" });
    const at = performance.now() + 500;
    devices.speaker.sounding({ item: "0 item_1", at, firstByteAt: at, cushionMs: 0 });
    say({ type: "turn.ended", seq: 12, turn: 1, status: "completed", latency: { detection_ms: 0, provider_ms: 300, gateway_ms: 1 } });
    assert.equal(reported.of("latency")[0]?.totalMs, 500);
  });

  test("continues in a new session if the old one is refused, and reports it", async () => {
    await open();
    leave();
    const session = make();
    const reported = new Listener(session);
    begin(session);
    await settle();
    FakeWebSocket.last.open();
    FakeWebSocket.last.drop(4501);
    await settle();
    FakeWebSocket.last.start({ session_id: "voice-2", resume_token: "rt_2" });
    assert.deepEqual(reported.types, ["state", "error"]);
    const [warning] = reported.of("error");
    assert.deepEqual([warning?.code, warning?.advice], ["resume_refused", "The conversation continues in a new one."]);
    assert.equal(FakeWebSocket.last.of("session.start")[0]?.conversation_id, "c-7");
    assert.match(stored(), /voice-2.*rt_2/);
    assert.equal(session.stats().reconnects, 0);
  });

  test("continues only the old session if requested", async () => {
    await assert.rejects(make({ resume: "only" }).open(), { code: "resume_refused", advice: "You can start again." });
    assert.equal(FakeWebSocket.all.length, 0, "nothing was stored");
    await open();
    leave();
    const opened = make({ resume: "only" }).open();
    const refused = assert.rejects(opened, { code: "resume_refused" });
    await settle();
    FakeWebSocket.last.open();
    FakeWebSocket.last.drop(4501);
    await refused;
    assert.equal(stored(), "{}");
  });

  test("starts anew if requested", async () => {
    await open();
    leave();
    await open({ resume: false }, { session_id: "voice-2", ...TOKEN });
    assert.equal(FakeWebSocket.last.of("session.start")[0]?.resume, undefined);
    assert.match(stored(), /voice-2/);
  });

  const same: Record<string, [ConnectOptions, ConnectOptions]> = {
    "no options are set": [{ provider: "gemini", voice: "Puck" }, {}],
    "the options are the same": [{ provider: "gemini", pendingRequest: "When?" }, { provider: "gemini", pendingRequest: "When?" }],
    "the conversation is named": [{}, { conversationId: "c-7" }],
    "the ticket is the used one": [{ ticket: "Zx3" }, { ticket: "Zx3" }],
    "tickets come from a function": [{ ticket: () => "Zx3" }, { ticket: () => "Zx4" }],
    "the name is the same": [{ keep: "left" }, { keep: "left" }],
  };
  const other: Record<string, [ConnectOptions, ConnectOptions]> = {
    "another conversation is requested": [{}, { conversationId: "c-8" }],
    "the ticket differs": [{ ticket: "Zx3" }, { ticket: "Zx4" }],
    "there is a ticket, without one before": [{}, { ticket: "Zx4" }],
    "another provider is requested": [{}, { provider: "openai" }],
    "the pending request differs": [{ pendingRequest: "When?" }, { pendingRequest: "Where?" }],
    "the rates differ": [{}, { outputRate: 48000 }],
    "the turn detection differs": [{}, { turnDetection: "client" }],
    "the gateway differs": [{ url: "wss://a.example.org/v1/voice" }, { url: "wss://b.example.org/v1/voice" }],
    "the name differs": [{ keep: "left" }, { keep: "right" }],
  };
  for (const [verdict, cases] of [["continues it", same], ["ignores it", other]] as const) {
    for (const [where, [before, now]] of Object.entries(cases)) {
      test(`${verdict} if ${where}`, async () => {
        await open(before);
        leave();
        begin(make(now));
        await settle();
        FakeWebSocket.last.open();
        assert.equal(FakeWebSocket.last.of("session.start")[0]?.resume !== undefined, verdict === "continues it");
        assert.doesNotMatch(stored(), /Zx/, "a ticket is a secret");
      });
    }
  }

  test("keeps the stored state if it ends before it reads it", async () => {
    await open();
    leave();
    let allow = (): void => undefined;
    devices.start = () => new Promise((resolve) => (allow = resolve));
    const given = make();
    const opened = given.open();
    await settle();
    void given.disconnect();
    allow();
    await assert.rejects(opened, { code: "aborted" });
    assert.equal(keptSession()?.sessionId, "voice-1", "as in React's StrictMode");
  });

  test("does not affect another session's state, and ends with the page", async () => {
    await open();
    assert.equal(keptSession(), null, "it is open on this page");
    const kept = stored();
    await open({}, { session_id: "voice-2", ...TOKEN });
    assert.equal(stored(), kept);
    const second = FakeWebSocket.last;
    leave();
    assert.deepEqual(second.of("session.end").length, 1);
    assert.equal(FakeWebSocket.all[0]?.of("session.end").length, 0);
  });

  for (const nonsense of ["", "{", "null", "7", "[]", "{}", '{"sessionId":7}', '{"sessionId":"a","conversationId":"c","url":"u","token":"t","leftAt":null,"pages":1,"pressed":false,"wishes":[],"heard":[[1,2]]}']) {
    test(`ignores ${JSON.stringify(nonsense)}`, async () => {
      sessionStorage.setItem("voicegw.session.session", nonsense);
      assert.equal(keptSession(), null);
      await open({}, {});
      assert.equal(FakeWebSocket.last.of("session.start")[0]?.resume, undefined);
    });
  }

  test("stores little: larger values of a gateway are ignored", async () => {
    await open({}, { ...TOKEN, resume_token: "x".repeat(9000) });
    assert.equal(stored(), "{}");
    for (let i = 0; i < 2; i++) {
      const session = await open({ keep: `k${i}` });
      for (let n = 0; n < 40; n++) {
        say({ type: "audio.start", seq: n + 2, turn: 1, item_id: `item_${n}` });
      }
      assert.equal(session.state, "connected");
    }
    leave();
    const heard = (name: string): unknown[] => (JSON.parse(sessionStorage.getItem(`voicegw.session.${name}`) ?? "{}") as { heard: unknown[] }).heard;
    assert.deepEqual([heard("k0").length, heard("k1").length], [8, 8]);
  });

  test("waits for a briefly unreachable gateway and reports it", async () => {
    await open();
    leave();
    const session = make();
    const reported = new Listener(session);
    const opened = session.open();
    await settle();
    FakeWebSocket.last.drop();
    assert.deepEqual(reported.types, ["state", "reconnecting"]);
    await pass(250);
    FakeWebSocket.last.start(resumed(9));
    await opened;
    assert.deepEqual(reported.types, ["state", "reconnecting", "state", "reconnected"]);
    assert.ok(reported.of("reconnecting")[0]?.error instanceof VoiceError);
  });
});
