// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test, vi } from "vitest";
import { Line } from "../src/connection/line.js";
import { pause } from "../src/connection/retry.js";
import type { VoiceError } from "../src/errors.js";
import type { Kept } from "../src/kept.js";
import type { ConnectOptions } from "../src/options.js";
import type { AudioPosition } from "../src/protocol/messages.js";
import { newTally } from "../src/stats.js";
import { WORDS } from "../src/words.js";
import { FakeWebSocket, installNetwork, network, pass, removeNetwork, settle, show } from "./fakes.js";

/** A line and its events. */
class Caller {
  static all: Caller[] = [];
  readonly tally = newTally();
  readonly opened: ({ resumed: boolean; lostMs: number } | undefined)[] = [];
  readonly messages: string[] = [];
  readonly tries: { attempt: number; delayMs: number; code: string }[] = [];
  readonly roundTrips: number[] = [];
  readonly refusals: string[] = [];
  /** The received position of the newest item. */
  position: AudioPosition | undefined;
  over: { code: number; error: VoiceError | undefined } | undefined;
  readonly line: Line;

  constructor(options: ConnectOptions = {}, kept: Kept | null = null) {
    this.line = new Line(options, this.tally, {
      opened: (_, back) => this.opened.push(back),
      position: () => this.position,
      refused: (error) => this.refusals.push(error.code),
      message: (message) => this.messages.push(message.type),
      unknown: (message) => this.messages.push(message.type),
      audio: () => this.messages.push("audio"),
      sent: () => undefined,
      broke: (attempt, delayMs, error) => this.tries.push({ attempt, delayMs, code: error.code }),
      roundTrip: (ms) => this.roundTrips.push(ms),
      over: (code, error) => {
        assert.equal(this.over, undefined, "it ends once");
        this.over = { code, error };
      },
    });
    this.line.open(kept);
    Caller.all.push(this);
  }

  /** With a started session. */
  static async started(options: ConnectOptions = {}, fields: Record<string, unknown> = {}): Promise<Caller> {
    const caller = new Caller(options);
    await settle();
    FakeWebSocket.last.start(fields);
    return caller;
  }

  /** The final error. */
  get failure(): VoiceError {
    assert.ok(this.over?.error, "it ended with an error");
    return this.over.error;
  }
}

const error = (code: string, more: object = {}): { type: string; [field: string]: unknown } => ({ type: "error", code, message: "…", retryable: false, ...more });

/** Advances the clock with a gateway that answers pings. */
async function alive(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1000) {
    await pass(1000);
    FakeWebSocket.last.audio();
  }
}

beforeEach(installNetwork);
afterEach(() => {
  Caller.all.splice(0).forEach((caller) => caller.line.leave());
  removeNetwork();
});

describe("opening", () => {
  test("session.start is the first message and contains only requested fields", async () => {
    const caller = new Caller({
      url: "https://gateway.example.org/v1/voice?key=1#x",
      ticket: "Zx3",
      provider: "gemini",
      voice: "Puck",
      pendingRequest: "When?",
      turnDetection: "client",
      inspect: true,
      outputRate: 48000,
      client: { id: "ada" },
      timeZone: "Asia/Kolkata",
    });
    await settle();
    assert.equal(FakeWebSocket.last.url, "wss://gateway.example.org/v1/voice");
    assert.deepEqual(FakeWebSocket.last.protocols, ["voicegw.v1"]);
    FakeWebSocket.last.start();
    assert.deepEqual(FakeWebSocket.last.texts, [
      {
        type: "session.start",
        ticket: "Zx3",
        provider: "gemini",
        voice: "Puck",
        turn_detection: "client",
        pending_request: "When?",
        inspect: true,
        input_rate: 16000,
        output_rate: 48000,
        client: { name: "@voicegw/client", version: "0.0.0", id: "ada" },
        time_zone: "Asia/Kolkata",
      },
    ]);
    assert.deepEqual(caller.opened, [undefined]);
  });

  test("without a ticket the conversation has a random name", async () => {
    await Caller.started();
    await Caller.started();
    const names = FakeWebSocket.all.map((ws) => ws.of("session.start")[0]?.conversation_id);
    assert.match(names[0] ?? "", /^conv-[0-9a-f]{32}$/);
    assert.notEqual(names[0], names[1]);
  });

  test("a failed first connection is not retried", async () => {
    for (const code of [1001, 1011, 4001, 4502]) {
      const caller = new Caller();
      await settle();
      FakeWebSocket.last.open();
      FakeWebSocket.last.drop(code);
      await pass(60_000);
      assert.equal(caller.over?.code, code);
      assert.equal(caller.failure.closeCode, code);
      assert.deepEqual(caller.tries, []);
    }
  });

  test("the gateway's reason for a refusal is the error", async () => {
    const caller = new Caller({ conversationId: "c-7" });
    await settle();
    FakeWebSocket.last.open();
    FakeWebSocket.last.say(error("voice_active", { seq: 1, message: "Another voice session runs." }));
    FakeWebSocket.last.drop(4502);
    assert.deepEqual(caller.messages, ["error"]);
    assert.equal(caller.failure.code, "gateway");
    assert.equal(caller.failure.gatewayCode, "voice_active");
    assert.equal(caller.failure.message, "Another voice session runs.");
  });

  const refusal = (code: string) => JSON.stringify({ error: { code, message: "The gateway says why." } });
  for (const [status, body, code, gatewayCode] of [
    [426, "WebSocket protocol violation", "no_websocket", undefined],
    [403, refusal("origin"), "origin", "origin"],
    [429, refusal("limit"), "refused", "limit"],
    [421, refusal("host"), "refused", "host"],
    [503, refusal("draining"), "full", "draining"],
    [502, "<h1>Bad Gateway</h1>", "full", undefined],
    [404, refusal("not_found"), "wrong_path", undefined],
    [404, "<h1>Not Found</h1>", "wrong_path", undefined],
    [200, "<h1>Welcome</h1>", "wrong_path", undefined],
    [403, "<h1>Forbidden</h1>", "refused", undefined],
  ] as const) {
    test(`a GET explains a failed handshake: ${status} ${body.slice(0, 30)} means ${code}`, async () => {
      const asked: [string, RequestInit][] = [];
      vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
        asked.push([url, init]);
        return new Response(body, { status });
      });
      const caller = new Caller({ url: "/base/v1/voice" });
      await settle();
      FakeWebSocket.last.drop();
      await settle();
      assert.deepEqual([caller.failure.code, caller.failure.gatewayCode, caller.failure.closeCode], [code, gatewayCode, 1006]);
      assert.equal(caller.failure.message, gatewayCode !== undefined && code === "refused" ? "The gateway says why." : WORDS[code].message);
      assert.equal(asked.length, 1);
      assert.deepEqual([new URL(asked[0]![0]).pathname, new URL(asked[0]![0]).protocol], ["/base/v1/voice", "http:"]);
    });
  }

  for (const [online, there, code] of [
    [true, true, "wrong_path"],
    [true, false, "unreachable"],
    [false, false, "offline"],
    [false, true, "wrong_path"],
  ] as const) {
    test(`an unreadable response means ${code}, with ${there ? "a" : "no"} server and the browser ${online ? "online" : "offline"}`, async () => {
      const modes: unknown[] = [];
      vi.stubGlobal("navigator", { ...navigator, onLine: online });
      vi.stubGlobal("fetch", async (url: string, { mode }: RequestInit) => {
        modes.push(mode);
        assert.equal(url, "https://gateway.example.org/v1/voice");
        return there && mode === "no-cors" ? new Response() : Promise.reject(new TypeError("Failed to fetch"));
      });
      const caller = new Caller({ url: "wss://gateway.example.org/v1/voice" });
      await settle();
      FakeWebSocket.last.drop();
      await settle();
      assert.deepEqual([caller.failure.code, modes], [code, ["cors", "no-cors"]]);
    });
  }

  for (const blockedURI of ["ws://gateway/v1/voice", "ws://gateway", "ws"]) {
    test(`a socket blocked by the page's policy ends at once, reported as ${blockedURI}`, async () => {
      const caller = new Caller({ url: "ws://gateway/v1/voice" });
      await settle();
      const violation = (more: object): boolean => document.dispatchEvent(Object.assign(new Event("securitypolicyviolation"), { disposition: "enforce", blockedURI, ...more }));
      violation({ disposition: "report" });
      violation({ blockedURI: "https://elsewhere/" });
      violation({ blockedURI: "" });
      assert.equal(caller.over, undefined);
      violation({});
      assert.equal(caller.failure.code, "socket_blocked");
      assert.equal(caller.failure.retryable, false);
    });
  }

  test("a silent gateway is given up", async () => {
    const give = new AbortController();
    const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(give.signal);
    vi.stubGlobal("fetch", (_: string, { signal }: RequestInit) => new Promise((_, reject) => (signal!.aborted ? reject(signal!.reason) : signal!.addEventListener("abort", () => reject(signal!.reason)))));
    const caller = new Caller();
    await settle();
    FakeWebSocket.last.drop();
    await settle();
    assert.equal(caller.over, undefined);
    assert.deepEqual(timeout.mock.calls, [[3000]]);
    give.abort();
    await settle();
    assert.equal(caller.failure.code, "unreachable");
  });

  test("a gateway that opens no session in 15 s is given up", async () => {
    const caller = new Caller();
    await settle();
    FakeWebSocket.last.open();
    await pass(14_999);
    assert.equal(caller.over, undefined);
    await pass(1);
    assert.equal(caller.failure.code, "no_start");
    assert.equal(FakeWebSocket.last.closedWith, 4000);
  });

  test("a failed or missing ticket ends the line", async () => {
    const cause = new Error("401");
    const refused = new Caller({ ticket: () => Promise.reject(cause) });
    await settle();
    assert.equal(refused.failure.code, "ticket_failed");
    assert.equal(refused.failure.cause, cause);
    const none = new Caller({ ticket: async () => ({}) as unknown as string });
    await settle();
    assert.equal(none.failure.code, "ticket_failed", "an answer without a ticket is not forwarded");
    const silent = new Caller({ ticket: () => new Promise<string>(() => undefined) });
    await pass(15_000);
    assert.equal(silent.failure.code, "no_start");
    assert.equal(FakeWebSocket.all.length, 0);
  });

  test("an address that the browser refuses is an ordinary error", async () => {
    vi.stubGlobal("WebSocket", function () {
      throw new DOMException("mixed content", "SecurityError");
    });
    vi.stubGlobal("location", { protocol: "https:" });
    const mixed = new Caller();
    await settle();
    assert.equal(mixed.failure.code, "mixed_content");
    vi.stubGlobal("location", { protocol: "http:" });
    const blocked = new Caller();
    await settle();
    assert.equal(blocked.failure.code, "socket_blocked", "the browser throws because of the page's policy");
    const wrong = new Caller({ url: "http://:0:0/" });
    await settle();
    assert.equal(wrong.failure.code, "invalid_url");
  });
});

describe("a broken connection", () => {
  test("without resume becomes a new session of the same conversation", async () => {
    const caller = await Caller.started({ provider: "gemini" });
    const first = FakeWebSocket.last;
    FakeWebSocket.last.drop();
    assert.deepEqual(caller.tries, [{ attempt: 1, delayMs: 250, code: "lost" }]);
    await pass(250);
    assert.notEqual(FakeWebSocket.last, first);
    FakeWebSocket.last.start();
    const [start] = FakeWebSocket.last.of("session.start");
    assert.equal(start?.conversation_id, first.of("session.start")[0]?.conversation_id);
    assert.equal(start?.resume, undefined);
    assert.equal(start?.provider, "gemini");
    assert.deepEqual(caller.opened, [undefined, { resumed: false, lostMs: 250 }]);
  });

  test("continues the conversation that the gateway named", async () => {
    await Caller.started({ ticket: () => "Zx3" }, { conversation_id: "c-7" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    assert.equal(FakeWebSocket.last.of("session.start")[0]?.ticket, "Zx3");
    await Caller.started({}, { conversation_id: "c-8" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    assert.equal(FakeWebSocket.last.of("session.start")[0]?.conversation_id, "c-8");
  });

  test("is resumed with its token; repeated messages are delivered once", async () => {
    const caller = await Caller.started({ ticket: "Zx3" }, { resume_token: "rt_1" });
    FakeWebSocket.last.say({ type: "turn.started", seq: 2, turn: 1 });
    FakeWebSocket.last.say({ type: "turn.started", seq: 3, turn: 2 });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start({ seq: 6, resumed: true, resume_token: "rt_2" });
    const [start] = FakeWebSocket.last.of("session.start");
    assert.deepEqual(start?.resume, { session_id: "voice-1", token: "rt_1", last_seq: 3 });
    assert.equal(start?.ticket, undefined, "a used ticket is invalid");
    assert.deepEqual(caller.opened[1], { resumed: true, lostMs: 250 });
    for (const seq of [3, 4, 5, 7]) {
      FakeWebSocket.last.say({ type: "turn.started", seq, turn: seq });
    }
    assert.equal(caller.messages.length, 2 + 3);
    assert.deepEqual([caller.tally.gaps, caller.tally.repeats], [0, 1]);
    FakeWebSocket.last.drop();
    await pass(500);
    FakeWebSocket.last.open();
    assert.equal(FakeWebSocket.last.of("session.start")[0]?.resume?.token, "rt_2");
  });

  test("during a resume is complete up to the first message that was not repeated", async () => {
    await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.say({ type: "turn.started", seq: 2, turn: 1 });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start({ seq: 6, resumed: true, resume_token: "rt_2" });
    assert.deepEqual(FakeWebSocket.last.of("ping").map((m) => m.seq), [2], "only the answer has arrived");
    FakeWebSocket.last.say({ type: "turn.started", seq: 3, turn: 2 });
    FakeWebSocket.last.say({ type: "audio.start", seq: 7, turn: 2, item_id: "i", from_ms: 20 });
    FakeWebSocket.last.drop();
    await pass(500);
    FakeWebSocket.last.open();
    assert.equal(FakeWebSocket.last.of("session.start")[0]?.resume?.last_seq, 3, "4 and 5 are missing");
  });

  test("does not wait for missing numbers after the gateway's pong", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.say({ type: "turn.started", seq: 2, turn: 1 });
    FakeWebSocket.last.drop();
    await pass(250);
    // 3 was the response to a lost attempt.
    FakeWebSocket.last.start({ seq: 4, resumed: true, resume_token: "rt_2" });
    assert.equal(caller.line.seq, 2);
    const [ping] = FakeWebSocket.last.of("ping");
    FakeWebSocket.last.say({ type: "pong", seq: 5, t: ping!.t });
    assert.equal(caller.line.seq, 5);
  });

  test("reports the position of the newest item", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    caller.position = { item_id: "item_3", received_ms: 1860 };
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    const [start] = FakeWebSocket.last.of("session.start");
    assert.deepEqual(start?.resume?.audio, { item_id: "item_3", received_ms: 1860 });
    assert.deepEqual(Object.keys(start ?? {}).sort(), ["client", "input_rate", "output_rate", "resume", "time_zone", "type"], "the rest was sent when it opened");
  });

  test("is complete without messages that the gateway no longer stores", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start({ seq: 1200, resumed: true, snapshot: true, resume_token: "rt_2" });
    FakeWebSocket.last.say({ type: "turn.started", seq: 1201, turn: 9 });
    assert.equal(caller.line.seq, 1201);
  });

  test("ignores a repeated session.started of an earlier connection", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start({ seq: 5, resumed: true, resume_token: "rt_3" });
    FakeWebSocket.last.say({ type: "session.started", seq: 3, session_id: "voice-1", output_rate: 24000, resumed: true, resume_token: "rt_2" });
    assert.deepEqual([caller.messages, caller.line.resume?.token, caller.opened.length], [[], "rt_3", 2]);
  });

  test("uses only its own pings for the round trip", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    await pass(5000);
    const [old] = FakeWebSocket.last.of("ping");
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start({ seq: 9, resumed: true, resume_token: "rt_2" });
    FakeWebSocket.last.say({ type: "pong", seq: 2, t: old!.t });
    FakeWebSocket.last.say({ type: "pong", seq: 3, t: -5e6 });
    assert.deepEqual(caller.roundTrips, []);
    assert.equal(caller.line.seq, 3);
    await pass(7);
    FakeWebSocket.last.say({ type: "pong", seq: 10, t: FakeWebSocket.last.of("ping")[0]!.t });
    assert.deepEqual(caller.roundTrips.map(Math.round), [7]);
  });

  test("that another tab has resumed is over, also during a reconnect", async () => {
    const open = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop(4506);
    const restored = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    FakeWebSocket.last.say(error("resumed_elsewhere", { seq: 1 }));
    FakeWebSocket.last.drop(4506);
    const sockets = FakeWebSocket.all.length;
    await pass(60_000);
    network(true);
    await pass(60_000);
    assert.equal(FakeWebSocket.all.length, sockets, "two tabs must not compete for it");
    assert.deepEqual([open.failure.code, restored.failure.code], ["moved", "moved"]);
  });

  test("with too many attempts waits until the gateway accepts attempts again", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    FakeWebSocket.last.say(error("limit", { seq: 1 }));
    FakeWebSocket.last.drop(4029);
    network(true);
    await pass(9999);
    assert.equal(FakeWebSocket.all.length, 2);
    await pass(1);
    FakeWebSocket.last.start({ seq: 4, resumed: true });
    assert.deepEqual(caller.opened[1]?.resumed, true);
  });

  test("that floods is over, even with a resume token", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop(4029);
    assert.equal(caller.over?.code, 4029);
  });

  test("with a refused resume continues in a new session at once", async () => {
    const caller = await Caller.started({ conversationId: "c-7" }, { resume_token: "rt_1" });
    FakeWebSocket.last.drop();
    await pass(250);
    const second = FakeWebSocket.last;
    second.open();
    second.say(error("not_available", { seq: 1, ref: "resume" }));
    second.drop(4500);
    await settle();
    assert.notEqual(FakeWebSocket.last, second);
    FakeWebSocket.last.start();
    const [start] = FakeWebSocket.last.of("session.start");
    assert.equal(start?.resume, undefined);
    assert.equal(start?.conversation_id, "c-7");
    assert.deepEqual(caller.opened[1], { resumed: false, lostMs: 250 });
    assert.equal(caller.tries.length, 1);
    assert.deepEqual(caller.refusals, ["resume_refused"]);
  });

  test("with a refused resume and a used ticket ends with an error", async () => {
    const caller = await Caller.started({ ticket: "Zx3" }, { resume_token: "rt_1" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    FakeWebSocket.last.drop(4500);
    assert.equal(caller.failure.code, "ticket");
    assert.equal(FakeWebSocket.all.length, 2);
  });

  test("of a blocked user is not restored, with or without resume", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    FakeWebSocket.last.say(error("blocked", { seq: 1 }));
    FakeWebSocket.last.drop(4503);
    assert.equal(caller.failure.gatewayCode, "blocked");
    await pass(60_000);
    assert.equal(FakeWebSocket.all.length, 2);
  });

  test("with only a used ticket ends the conversation", async () => {
    const caller = await Caller.started({ ticket: "Zx3" });
    FakeWebSocket.last.drop();
    assert.equal(caller.failure.code, "ticket");
    assert.equal(caller.failure.closeCode, 1006);
    await pass(60_000);
    assert.equal(FakeWebSocket.all.length, 1);
  });

  test("is restored with a new ticket each time if a function supplies them", async () => {
    let given = 0;
    await Caller.started({ ticket: async () => `ticket-${++given}` });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start();
    assert.equal(FakeWebSocket.last.of("session.start")[0]?.ticket, "ticket-2");
  });

  test("is retried after a failed ticket: the network is down", async () => {
    let works = true;
    const caller = await Caller.started({ ticket: async () => (works ? "t" : Promise.reject(new TypeError("no network"))) });
    works = false;
    FakeWebSocket.last.drop();
    await pass(250);
    assert.deepEqual(caller.tries.map((t) => t.code), ["lost", "ticket_failed"]);
    works = true;
    await pass(500);
    FakeWebSocket.last.start();
    assert.equal(caller.opened.length, 2);
  });

  test("is given up after all attempts, with growing pauses and the reason", async () => {
    vi.stubGlobal("fetch", async () => new Response("", { status: 503 }));
    const caller = await Caller.started();
    FakeWebSocket.last.drop();
    for (let i = 0; i < 10; i++) {
      await pass(8000);
      FakeWebSocket.last.drop();
    }
    await settle();
    assert.deepEqual(
      caller.tries.map((t) => t.delayMs),
      [250, 500, 1000, 2000, 4000, 8000, 8000, 8000, 8000, 8000],
    );
    assert.equal(FakeWebSocket.all.length, 11);
    assert.equal(caller.failure.code, "full");
  });

  test("has the configured number of attempts", async () => {
    const three = await Caller.started({ reconnect: { tries: 3, firstMs: 10, longestMs: 20 } });
    FakeWebSocket.last.drop();
    for (let i = 0; i < 3; i++) {
      await pass(20);
      FakeWebSocket.last.open();
      FakeWebSocket.last.drop(1011);
    }
    assert.deepEqual(three.tries.map((t) => t.delayMs), [10, 20, 20]);
    assert.equal(three.failure.closeCode, 1011);
    const none = await Caller.started({ reconnect: false });
    FakeWebSocket.last.drop();
    await settle();
    assert.equal(none.failure.code, "lost");
    assert.deepEqual(none.tries, []);
  });

  test("that breaks again and again is given up; a long connection restores all attempts", async () => {
    const caller = await Caller.started({ reconnect: { tries: 2 } });
    for (let i = 0; i < 2; i++) {
      FakeWebSocket.last.drop(4001);
      await pass(8000);
      FakeWebSocket.last.start();
    }
    await alive(30_000);
    FakeWebSocket.last.drop(4001);
    assert.deepEqual(caller.tries.map((t) => t.attempt), [1, 2, 1]);
    for (let i = 0; i < 2; i++) {
      await pass(8000);
      FakeWebSocket.last.start();
      FakeWebSocket.last.drop(4001);
    }
    assert.equal(caller.failure.closeCode, 4001);
  });

  test("is retried while the gateway considers the old session active", async () => {
    const caller = await Caller.started({ conversationId: "c-7" });
    FakeWebSocket.last.drop();
    for (let i = 0; i < 3; i++) {
      await pass(8000);
      FakeWebSocket.last.open();
      FakeWebSocket.last.say(error("voice_active", { seq: 1 }));
      FakeWebSocket.last.drop(4502);
    }
    await pass(8000);
    FakeWebSocket.last.start();
    assert.equal(caller.opened.length, 2);
    assert.equal(caller.over, undefined);
  });

  test("reports the reason of its latest attempt", async () => {
    const caller = await Caller.started();
    FakeWebSocket.last.say(error("no_answer", { seq: 2 }));
    FakeWebSocket.last.say({ type: "turn.ended", seq: 3, turn: 1, status: "failed" });
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    FakeWebSocket.last.say(error("voice_active", { seq: 1 }));
    FakeWebSocket.last.drop(4502);
    await pass(500);
    FakeWebSocket.last.open();
    FakeWebSocket.last.drop(1011);
    assert.deepEqual(caller.tries.map((t) => t.code), ["lost", "gateway", "closed"]);
  });

  test("is retried if the gateway opens no session", async () => {
    const caller = await Caller.started();
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    await pass(15_000);
    assert.deepEqual(caller.tries.map((t) => t.code), ["lost", "no_start"]);
  });

  const verdicts: Record<string, number[]> = {
    restored: [1001, 1005, 1006, 1011, 1012, 1013, 1014, 4001, 4002, 4003, 4007, 4400],
    over: [1000, 1002, 1008, 1009, 4004, 4005, 4029, 4500, 4501, 4502, 4503, 4504, 4505, 4506, 4999],
  };
  for (const [verdict, codes] of Object.entries(verdicts)) {
    test(`after ${codes.join(", ")} is ${verdict}`, async () => {
      for (const code of codes) {
        const caller = await Caller.started();
        FakeWebSocket.last.drop(code);
        await settle();
        assert.equal(caller.over === undefined, verdict === "restored", `${code}`);
        assert.equal(caller.over?.error === undefined, code === 1000 || verdict === "restored", `${code}`);
      }
    });
  }

  test("is retried sooner when the network returns or the page becomes visible", async () => {
    const caller = await Caller.started({ reconnect: { firstMs: 8000 } });
    network(false);
    FakeWebSocket.last.drop();
    await pass(100);
    network(true);
    await settle();
    assert.equal(FakeWebSocket.all.length, 2);
    FakeWebSocket.last.start();
    show(false);
    FakeWebSocket.last.drop();
    await pass(100);
    assert.equal(FakeWebSocket.all.length, 2);
    show(true);
    await settle();
    assert.equal(FakeWebSocket.all.length, 3);
    assert.deepEqual(caller.opened[1], { resumed: false, lostMs: 100 });
  });

  test("without a network waits longest and is still retried: the gateway may be on this machine", async () => {
    const caller = await Caller.started();
    network(false);
    FakeWebSocket.last.drop();
    assert.equal(caller.tries[0]?.delayMs, 8000);
    await pass(8000);
    FakeWebSocket.last.start();
    assert.equal(caller.opened.length, 2);
  });
});

describe("the microphone without a connection", () => {
  const frame = (n: number): ArrayBuffer => Int16Array.from({ length: 320 }, () => n).buffer;

  /** Sends frames of 20 ms with consecutive values. */
  function say(caller: Caller, from: number, count: number): string[] {
    return Array.from({ length: count }, (_, i) => caller.line.sendAudio({ pcm: frame(from + i), at: Date.now(), clockMs: 0 }));
  }

  test("is stored for 15 s and sent before newer audio", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop();
    assert.deepEqual(new Set(say(caller, 1, 780)), new Set(["kept"]));
    await pass(5000);
    FakeWebSocket.last.start({ seq: 4, resumed: true });
    assert.deepEqual(caller.line.sendHeld().length, 750);
    say(caller, 781, 2);
    assert.deepEqual(FakeWebSocket.last.audio16.map((pcm) => pcm[0]), Array.from({ length: 752 }, (_, i) => i + 31));
    assert.deepEqual([caller.tally.droppedOffline, caller.tally.audioFramesKept, caller.tally.audioFramesSent], [30, 750, 752]);
    assert.deepEqual(caller.line.sendHeld(), [], "once");
  });

  test("does not delay newer audio: both may wait in the socket", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop();
    say(caller, 1, 100);
    await pass(250);
    FakeWebSocket.last.start({ seq: 4, resumed: true });
    FakeWebSocket.last.bufferedAmount = 64_000;
    caller.line.sendHeld();
    FakeWebSocket.last.bufferedAmount = 128_000;
    assert.deepEqual(say(caller, 101, 1), ["sent"]);
    FakeWebSocket.last.bufferedAmount = 128_001;
    assert.deepEqual(say(caller, 102, 1), ["slow"]);
    FakeWebSocket.last.bufferedAmount = 10;
    assert.deepEqual(say(caller, 103, 1), ["sent"]);
    FakeWebSocket.last.bufferedAmount = 64_011;
    assert.deepEqual(say(caller, 104, 1), ["slow"], "the stored audio is sent: the limit is two seconds again");
  });

  test("is dropped and counted if no resume is possible", async () => {
    const caller = await Caller.started();
    FakeWebSocket.last.drop();
    assert.deepEqual(say(caller, 1, 3), ["offline", "offline", "offline"]);
    const refused = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop();
    say(refused, 1, 120);
    await pass(250);
    FakeWebSocket.last.open();
    FakeWebSocket.last.drop(4501);
    await settle();
    FakeWebSocket.last.start();
    assert.deepEqual(refused.line.sendHeld(), []);
    assert.deepEqual([caller.tally.droppedOffline, refused.tally.droppedOffline], [3, 120]);
  });
});

describe("a gateway that moves its sessions", () => {
  const moving = (seq: number): { type: string; [field: string]: unknown } => ({
    type: "session.moving", seq, reason: "server_shutdown", deadline: new Date(Date.now() + 20_000).toISOString(),
  });

  test("is left at once, and the session is resumed at another one", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    const first = FakeWebSocket.last;
    first.say(moving(2));
    await settle();
    assert.equal(first.closedWith, 4000, "the session continues");
    assert.equal(FakeWebSocket.all.length, 2);
    // Another gateway's numbers are far above the first one's.
    FakeWebSocket.last.start({ seq: 1002, resumed: true, snapshot: true, resume_token: "rt_2" });
    FakeWebSocket.last.say({ type: "provider.reconnected", seq: 1003, reason: "moved", lost_ms: 80, how: "replayed" });
    assert.deepEqual(caller.opened[1], { resumed: true, lostMs: 0 });
    assert.deepEqual(caller.messages.filter((m) => m !== "audio"), ["session.moving", "provider.reconnected"]);
    assert.deepEqual([caller.line.seq, caller.tally.gaps, caller.tally.repeats], [1003, 0, 0]);
  });

  test("is left at once if only its close code shows the move", async () => {
    await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.drop(4007);
    await settle();
    assert.equal(FakeWebSocket.all.length, 2);
    FakeWebSocket.last.open();
    assert.equal(FakeWebSocket.last.of("session.start")[0]?.resume?.token, "rt_1");
  });

  test("that moves new arrivals on at once is retried with pauses and a limit", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.say(moving(2));
    await settle();
    FakeWebSocket.last.start({ seq: 1002, resumed: true, snapshot: true, resume_token: "rt_2" });
    FakeWebSocket.last.say(moving(1003));
    await settle();
    assert.equal(FakeWebSocket.all.length, 2);
    await pass(500);
    assert.equal(FakeWebSocket.all.length, 3);
    for (let i = 0; i < 20 && caller.over === undefined; i++) {
      FakeWebSocket.last.start({ seq: 2000 + i, resumed: true, snapshot: true, resume_token: "rt_3" });
      FakeWebSocket.last.drop(4007);
      await pass(8000);
    }
    assert.equal(FakeWebSocket.all.length, 11);
    assert.equal(caller.over?.code, 4007);
  });

  test("that closes first is left once; after disconnect it is not left", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    FakeWebSocket.last.say(moving(2));
    FakeWebSocket.all[0]!.drop(4007);
    await settle();
    FakeWebSocket.last.start({ seq: 3, resumed: true, resume_token: "rt_2" });
    await alive(40_000);
    assert.equal(FakeWebSocket.all.length, 2);
    caller.line.end();
    FakeWebSocket.last.say(moving(4));
    await pass(20_000);
    assert.equal(FakeWebSocket.all.length, 2);
  });

  test("without a token is left when it closes", async () => {
    await Caller.started();
    FakeWebSocket.last.say(moving(2));
    await alive(5000);
    assert.equal(FakeWebSocket.all.length, 1);
  });
});

describe("a session of the previous page", () => {
  const kept: Kept = { sessionId: "voice-7", conversationId: "c-7", leftAt: 1, url: "", token: "rt_7", wishes: [], pages: 1, pressed: false, heard: [] };

  test("is resumed with all stored messages", async () => {
    const caller = new Caller({ ticket: "Zx3" }, kept);
    await settle();
    FakeWebSocket.last.open();
    assert.deepEqual(FakeWebSocket.last.of("session.start")[0]?.resume, { session_id: "voice-7", token: "rt_7", last_seq: 0 });
    FakeWebSocket.last.start({ seq: 9, resumed: true, snapshot: true, resume_token: "rt_8" });
    assert.deepEqual(caller.opened, [undefined]);
    assert.equal(caller.line.seq, 9);
  });

  test("is complete up to the first message that was not repeated", async () => {
    const caller = new Caller({}, kept);
    await settle();
    FakeWebSocket.last.start({ seq: 9, resumed: true, resume_token: "rt_8" });
    FakeWebSocket.last.say({ type: "turn.started", seq: 1, turn: 1 });
    FakeWebSocket.last.say({ type: "turn.started", seq: 2, turn: 2 });
    assert.equal(caller.line.seq, 2);
  });

  test("is retried while the gateway is briefly unreachable", async () => {
    const caller = new Caller({}, kept);
    await settle();
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.start({ seq: 9, resumed: true });
    assert.deepEqual(caller.opened, [{ resumed: true, lostMs: 250 }]);
  });

  test("is followed by a new one of the same conversation if refused", async () => {
    const caller = new Caller({}, kept);
    await settle();
    FakeWebSocket.last.open();
    FakeWebSocket.last.drop(4501);
    await settle();
    FakeWebSocket.last.start();
    const [start] = FakeWebSocket.last.of("session.start");
    assert.deepEqual([start?.resume, start?.conversation_id], [undefined, "c-7"]);
    assert.deepEqual([caller.refusals, caller.opened], [["resume_refused"], [{ resumed: false, lostMs: 0 }]]);
  });

  test("ends if refused and no other session is wanted", async () => {
    const caller = new Caller({ resume: "only" }, kept);
    await settle();
    FakeWebSocket.last.open();
    FakeWebSocket.last.drop(4501);
    await pass(60_000);
    assert.equal(FakeWebSocket.all.length, 1);
    assert.equal(caller.failure.code, "resume_refused");
  });
});

test("half of each pause is random", () => {
  assert.deepEqual([0, 0.5, 1].map((random) => pause(1, {}, random)), [125, 188, 250]);
  assert.deepEqual([4, 5, 6, 7, 1000].map((attempt) => pause(attempt, {}, 1)), [2000, 4000, 8000, 8000, 8000]);
  assert.equal(pause(3, { firstMs: 100, longestMs: 300 }, 1), 300);
});

describe("a pending request", () => {
  async function lostAfter(...messages: { type: string; [field: string]: unknown }[]): Promise<string | undefined> {
    await Caller.started({ pendingRequest: "When?" });
    messages.forEach((message) => FakeWebSocket.last.say(message));
    FakeWebSocket.last.drop();
    await pass(250);
    FakeWebSocket.last.open();
    return FakeWebSocket.last.of("session.start")[0]?.pending_request;
  }

  test("is sent again if the connection broke before an answer", async () => {
    assert.equal(await lostAfter({ type: "turn.started", seq: 2, turn: 1 }), "When?");
  });

  for (const type of ["audio.start", "tool.started", "turn.ended"]) {
    test(`is not sent again after ${type}`, async () => {
      assert.equal(await lostAfter({ type, seq: 2, turn: 1, item_id: "i", call_id: "c", tool: "t", status: "completed" }), undefined);
    });
  }
});

describe("a dead connection", () => {
  test("is noticed after 5 s of silence and restored", async () => {
    const caller = await Caller.started();
    await pass(4000);
    FakeWebSocket.last.audio();
    const dead = FakeWebSocket.last;
    const before = dead.of("ping").length;
    await pass(5000);
    assert.ok(dead.of("ping").length - before >= 3);
    assert.equal(dead.closedWith, 4000, "the code allows a resume");
    assert.equal(caller.tries[0]?.code, "lost");
    await pass(250);
    FakeWebSocket.last.start();
    assert.deepEqual(caller.opened[1], { resumed: false, lostMs: 5250 }, "lost since the last sign of the gateway");
    dead.say({ type: "turn.started", seq: 9, turn: 9 });
    assert.deepEqual(caller.messages, ["audio"], "its late messages are ignored");
  });

  test("differs from a gateway that answers: the round trip is measured", async () => {
    const caller = await Caller.started();
    await pass(2000);
    const [ping] = FakeWebSocket.last.of("ping");
    await pass(42);
    FakeWebSocket.last.say({ type: "pong", seq: 2, t: ping!.t });
    assert.deepEqual(caller.roundTrips.map(Math.round), [42]);
    await pass(9000);
    assert.equal(caller.over, undefined);
  });
});

describe("the end", () => {
  test("waits for the gateway's last message", async () => {
    const caller = await Caller.started();
    caller.line.end();
    assert.equal(FakeWebSocket.last.of("session.end").length, 1);
    FakeWebSocket.last.say({ type: "session.ended", seq: 2, reason: "client_ended" });
    assert.equal(caller.over, undefined);
    FakeWebSocket.last.drop(1000);
    assert.deepEqual(caller.over, { code: 1000, error: undefined });
    assert.deepEqual(caller.messages, ["session.ended"]);
  });

  test("waits for a limited time, and a connection that breaks then is not restored", async () => {
    const slow = await Caller.started();
    slow.line.end();
    await pass(4999);
    assert.equal(slow.over, undefined);
    await pass(1);
    assert.deepEqual(slow.over, { code: 1000, error: undefined });
    assert.equal(FakeWebSocket.last.closedWith, 1000);
    const broken = await Caller.started();
    broken.line.end();
    FakeWebSocket.last.drop();
    assert.deepEqual(broken.over, { code: 1006, error: undefined });
    await pass(60_000);
    assert.deepEqual(broken.tries, []);
  });

  test("of a page with a continuing session sends no session.end", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    caller.line.depart();
    assert.deepEqual(FakeWebSocket.last.of("session.end"), []);
    assert.equal(FakeWebSocket.last.closedWith, 4000);
    assert.deepEqual(caller.over, { code: 4000, error: undefined });
  });

  test("of a closing page waits for nothing", async () => {
    const caller = await Caller.started();
    caller.line.leave();
    assert.equal(FakeWebSocket.last.of("session.end").length, 1);
    assert.equal(FakeWebSocket.last.closedWith, 1000);
    assert.deepEqual(caller.over, { code: 1000, error: undefined });
  });

  test("may come at any time and is final", async () => {
    const stages: Record<string, () => Promise<Caller>> = {
      "while the ticket is got": async () => new Caller({ ticket: () => new Promise((resolve) => setTimeout(() => resolve("t"), 100)) }),
      "during the handshake": async () => {
        const caller = new Caller();
        await settle();
        return caller;
      },
      "before the session": async () => {
        const caller = new Caller();
        await settle();
        FakeWebSocket.last.open();
        return caller;
      },
      "between two tries": async () => {
        const caller = await Caller.started();
        FakeWebSocket.last.drop();
        return caller;
      },
      "while the reason is asked for": async () => {
        vi.stubGlobal("fetch", () => new Promise((resolve) => setTimeout(() => resolve(new Response()), 100)));
        const caller = new Caller();
        await settle();
        FakeWebSocket.last.drop();
        return caller;
      },
    };
    for (const [stage, reach] of Object.entries(stages)) {
      const caller = await reach();
      const sockets = FakeWebSocket.all.length;
      caller.line.end();
      assert.deepEqual(caller.over, { code: 1000, error: undefined }, stage);
      caller.line.end();
      network(true);
      show(true);
      await pass(60_000);
      assert.equal(FakeWebSocket.all.length, sockets, stage);
      assert.equal(caller.line.send({ type: "interrupt" }), false);
    }
    assert.equal(vi.getTimerCount(), 0, "no timer is left");
  });
});

describe("traffic", () => {
  test("is counted both ways, and a slow line drops audio", async () => {
    const caller = await Caller.started({ inputRate: 8000 });
    FakeWebSocket.last.audio(960);
    FakeWebSocket.last.say({ type: "weather.report", seq: 2, rain: true });
    assert.equal(caller.line.sendAudio({ pcm: new ArrayBuffer(320), at: Date.now(), clockMs: 0 }), "sent");
    FakeWebSocket.last.bufferedAmount = 2 * 8000 * 2;
    assert.equal(caller.line.sendAudio({ pcm: new ArrayBuffer(320), at: Date.now(), clockMs: 0 }), "sent", "two seconds may wait");
    FakeWebSocket.last.bufferedAmount++;
    assert.equal(caller.line.sendAudio({ pcm: new ArrayBuffer(320), at: Date.now(), clockMs: 0 }), "slow");
    FakeWebSocket.last.drop();
    assert.equal(caller.line.sendAudio({ pcm: new ArrayBuffer(320), at: Date.now(), clockMs: 0 }), "offline");
    const stats = caller.tally;
    const { messagesSent, messagesReceived, audioFramesSent, audioFramesReceived, droppedSlow, droppedOffline, unknownMessages } = stats;
    assert.deepEqual(
      { messagesSent, messagesReceived, audioFramesSent, audioFramesReceived, droppedSlow, droppedOffline, unknownMessages },
      { messagesSent: 1, messagesReceived: 2, audioFramesSent: 2, audioFramesReceived: 1, droppedSlow: 1, droppedOffline: 1, unknownMessages: 1 },
    );
    assert.ok(stats.bytesSent > 640 && stats.bytesReceived > 960);
    assert.deepEqual(caller.messages, ["audio", "weather.report"]);
  });

  test("is counted in bytes of UTF-8", async () => {
    const caller = await Caller.started();
    const before = caller.tally.bytesReceived;
    FakeWebSocket.last.say({ type: "x", seq: 2, t: "€" });
    assert.equal(caller.tally.bytesReceived - before, '{"type":"x","seq":2,"t":"€"}'.length + 2);
  });

  test("keeps unknown messages in order", async () => {
    const caller = await Caller.started();
    FakeWebSocket.last.say({ type: "weather.report", seq: 2 });
    FakeWebSocket.last.say({ type: "weather.report", seq: 2 });
    FakeWebSocket.last.say({ type: "turn.started", seq: 3, turn: 1 });
    assert.deepEqual(caller.messages, ["weather.report", "turn.started"]);
    assert.equal(caller.tally.gaps, 0);
  });
});

describe("turns", () => {
  test("the end of a turn counts once: a gateway after a takeover may repeat it", async () => {
    const caller = await Caller.started({}, { resume_token: "t1" });
    FakeWebSocket.last.say({ type: "turn.ended", seq: 5, turn: 1, status: "completed" });
    FakeWebSocket.last.say({ type: "turn.started", seq: 1005, turn: 1 });
    FakeWebSocket.last.say({ type: "turn.ended", seq: 1006, turn: 1, status: "completed" });
    FakeWebSocket.last.say({ type: "turn.started", seq: 1007, turn: 2 });
    FakeWebSocket.last.say({ type: "turn.ended", seq: 1008, turn: 2, status: "completed" });
    assert.equal(caller.messages.filter((type) => type === "turn.ended").length, 2);
    // Otherwise the agent would seem to think until the next turn.
    assert.equal(caller.messages.filter((type) => type === "turn.started").length, 1);
  });
});

describe("the handshake", () => {
  test("announces a resume, so that a full gateway accepts it", async () => {
    const caller = await Caller.started({}, { resume_token: "t1" });
    assert.deepEqual(FakeWebSocket.last.protocols, ["voicegw.v1"]);
    FakeWebSocket.last.drop();
    await pass(1000);
    assert.deepEqual(FakeWebSocket.last.protocols, ["voicegw.v1", "voicegw.resume"]);
    assert.equal(caller.over, undefined);
  });
});

describe("a stalled line", () => {
  test("keeps audio and recovers: only a slow line drops audio", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    const socket = FakeWebSocket.last;
    const frame = { pcm: new ArrayBuffer(640), clockMs: 0 };
    // Packets are lost for 4 s, in both directions.
    for (let i = 0; i < 200; i++) {
      await pass(20);
      assert.equal(caller.line.sendAudio({ ...frame, at: Date.now() }), "sent");
      socket.bufferedAmount += 640;
    }
    // The network recovers and the queue empties.
    for (let i = 0; i < 200; i++) {
      await pass(20);
      socket.audio();
      socket.bufferedAmount = Math.max(0, socket.bufferedAmount - 1300);
      assert.equal(caller.line.sendAudio({ ...frame, at: Date.now() }), "sent");
      socket.bufferedAmount += 640;
    }
    assert.deepEqual([caller.tally.droppedSlow, caller.tally.audioFramesSent], [0, 400]);
  });

  test("loses none of 11 s of audio when its connection is given up", async () => {
    const caller = await Caller.started({}, { resume_token: "rt_1" });
    let said = 0;
    const speak = async (ms: number): Promise<void> => {
      for (let i = 0; i < ms / 20; i++) {
        await pass(20);
        assert.notEqual(caller.line.sendAudio({ pcm: new ArrayBuffer(640), clockMs: 0, at: Date.now() }), "slow");
        said++;
        FakeWebSocket.last.bufferedAmount += 640;
      }
    };
    await speak(11_000);
    FakeWebSocket.last.bufferedAmount = 0;
    FakeWebSocket.last.start({ resumed: true, seq: 4, input_ms: 100 });
    caller.line.sendAgain();
    caller.line.sendHeld();
    assert.equal(FakeWebSocket.last.audioFrames, said - 5, "all audio that has not arrived");
    assert.equal(caller.tally.droppedOffline + caller.tally.droppedSlow, 0);
  });
});
