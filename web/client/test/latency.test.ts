import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { TurnLatencies, UplinkClock, type TurnLatency } from "../src/latency.js";
import type { ServerMessage } from "../src/protocol/messages.js";

/** A conversation with given times. */
class Trace {
  readonly uplink = new UplinkClock(16000);
  readonly latencies = new TurnLatencies(this.uplink);
  readonly reported: TurnLatency[] = [];
  /** The known wait when each answer began to play. */
  readonly waited: (number | undefined)[] = [];
  rtt: number | null = null;

  /** The microphone was on from 0 to `to`, in frames of 20 ms, each delivered when its last sample was captured. */
  speak(to: number): this {
    for (let end = 20; end <= to; end += 20) {
      this.uplink.sent(320, end);
    }
    return this;
  }

  at(ms: number, message: object): this {
    return this.tell(this.latencies.message({ seq: 1, ...message } as ServerMessage, ms, this.rtt));
  }

  sounds(item: string, at: number, cushionMs: number): this {
    return this.tell(this.latencies.sounding(item, at, cushionMs));
  }

  tell(latency: TurnLatency | undefined): this {
    if (latency !== undefined) {
      this.reported.push(latency);
    }
    return this;
  }

  /** The answer arrives and plays, and the turn ends with the gateway's measurements. */
  answer(turn: number, sounding: number, cushion: number, parts: { detection_ms?: number; provider_ms: number; gateway_ms: number }): this {
    this.at(sounding - cushion, { type: "audio.start", turn, item_id: `item_${turn}` });
    this.latencies.sounding(`item_${turn}`, sounding, cushion);
    this.waited.push(this.latencies.waited(`item_${turn}`)?.totalMs);
    return this.at(sounding + 2000, { type: "turn.ended", turn, status: "completed", latency: parts });
  }
}

test("a spoken turn counts from the capture of the last voiced sample to the first sound", () => {
  const { reported } = new Trace()
    .speak(4000)
    // The last voiced sample was captured at 3500. Uplink 30 ms, detection 500, provider 400, gateway 2, downlink 30,
    // buffer 80.
    .at(4060, { type: "speech.stopped", turn: 1, audio_ms: 4000, end_ms: 3500 })
    .at(4061, { type: "turn.started", turn: 1 })
    .answer(1, 4542, 80, { detection_ms: 500, provider_ms: 400, gateway_ms: 2 });
  assert.deepEqual(reported, [
    { turn: 1, by: "speech", totalMs: 1042, detectionMs: 500, providerMs: 400, gatewayMs: 2, cushionMs: 80, networkMs: 60 },
  ]);
});

test("silence that a provider counts as speech does not shorten the wait, from the first turn on", () => {
  const trace = new Trace().speak(9000);
  // The provider reports the end of speech after waiting 500 or 800 ms.
  trace.at(4060, { type: "speech.stopped", turn: 1, audio_ms: 4000, end_ms: 3500 }).answer(1, 4542, 80, { detection_ms: 500, provider_ms: 400, gateway_ms: 2 });
  trace.at(8360, { type: "speech.stopped", turn: 2, audio_ms: 8300, end_ms: 7500 }).answer(2, 8642, 80, { detection_ms: 800, provider_ms: 200, gateway_ms: 2 });
  assert.deepEqual(trace.waited, [1042, 1142]);
  assert.deepEqual(trace.reported.map(({ totalMs }) => totalMs), [1042, 1142]);
});

test("a late report of the end of speech counts", () => {
  const { reported } = new Trace()
    .speak(4000)
    .at(3000, { type: "turn.started", turn: 1 })
    .at(3001, { type: "audio.start", turn: 1, item_id: "item_1" })
    .at(3500, { type: "speech.stopped", turn: 1, audio_ms: 3500, end_ms: 2600 })
    .answer(1, 3100, 50, { detection_ms: 380, provider_ms: 0, gateway_ms: 1 });
  assert.equal(reported[0]?.totalMs, 500);
});

test("a user who pauses and continues waits from the last word", () => {
  const { reported } = new Trace()
    .speak(4000)
    .at(1600, { type: "speech.stopped", turn: 1, audio_ms: 1500, end_ms: 1000 })
    .at(3600, { type: "speech.stopped", turn: 1, audio_ms: 3500, end_ms: 3000 })
    .answer(1, 4000, 50, { detection_ms: 500, provider_ms: 300, gateway_ms: 1 });
  assert.equal(reported[0]?.totalMs, 1000);
});

test("speech during an answer belongs to the next turn", () => {
  const { reported } = new Trace()
    .speak(9000)
    .at(1500, { type: "speech.stopped", turn: 1, audio_ms: 1500, end_ms: 1000 })
    .at(2000, { type: "audio.start", turn: 1, item_id: "item_1" })
    .at(3600, { type: "speech.stopped", turn: 1, audio_ms: 4000, end_ms: 3500 })
    .answer(1, 2100, 100, { detection_ms: 400, provider_ms: 500, gateway_ms: 1 });
  assert.equal(reported[0]?.totalMs, 1100);
});

test("a typed turn counts from its sending", () => {
  const trace = new Trace();
  trace.latencies.acted("typed-1", 1000);
  trace
    .at(1020, { type: "turn.started", turn: 1 })
    .at(1021, { type: "transcript", turn: 1, id: "typed-1", role: "user", text: "…", final: true, started_at: "" })
    .answer(1, 1500, 60, { detection_ms: 0, provider_ms: 400, gateway_ms: 1 });
  assert.deepEqual(trace.reported, [
    { turn: 1, by: "text", totalMs: 500, detectionMs: 0, providerMs: 400, gatewayMs: 1, cushionMs: 60, networkMs: 39 },
  ]);
});

test("an approved action counts from the button", () => {
  const trace = new Trace();
  trace.latencies.acted("cf_1", 1000);
  trace
    .at(1020, { type: "confirmation.ended", token: "cf_1", tool: "t", outcome: "approved" })
    .at(1021, { type: "turn.started", turn: 2 })
    .answer(2, 2000, 60, { detection_ms: 0, provider_ms: 700, gateway_ms: 200 })
    .at(9000, { type: "turn.started", turn: 3 })
    .answer(3, 9900, 60, { detection_ms: 0, provider_ms: 700, gateway_ms: 1 });
  assert.deepEqual(trace.reported.map(({ turn, by, totalMs }) => [turn, by, totalMs]), [[2, "approval", 1000]]);
});

test("another client's approval does not count", () => {
  const trace = new Trace()
    .at(1020, { type: "confirmation.ended", token: "cf_1", tool: "t", outcome: "approved" })
    .at(1021, { type: "turn.started", turn: 2 })
    .answer(2, 2000, 60, { detection_ms: 0, provider_ms: 700, gateway_ms: 200 });
  assert.deepEqual(trace.reported, []);
});

test("a busy page that learns of the sound after the turn's end reports the wait then", () => {
  const parts = { detection_ms: 0, provider_ms: 400, gateway_ms: 1 };
  const trace = new Trace();
  trace.latencies.acted("typed-1", 1000);
  trace
    .at(1020, { type: "turn.started", turn: 1 })
    .at(1021, { type: "transcript", turn: 1, id: "typed-1", role: "user", text: "…", final: true, started_at: "" })
    .at(1440, { type: "audio.start", turn: 1, item_id: "item_1" })
    .at(1445, { type: "turn.ended", turn: 1, status: "completed", latency: parts });
  assert.deepEqual(trace.reported, []);
  trace.sounds("item_1", 1500, 60).sounds("item_1", 1500, 60);
  assert.deepEqual(trace.reported, [
    { turn: 1, by: "text", totalMs: 500, detectionMs: 0, providerMs: 400, gatewayMs: 1, cushionMs: 60, networkMs: 39 },
  ]);
});

describe("no latency is reported", () => {
  const spoken = (): Trace => new Trace().speak(2000).at(1500, { type: "speech.stopped", turn: 1, audio_ms: 1500, end_ms: 1000 });
  const ended = { type: "turn.ended", turn: 1, status: "interrupted", latency: { detection_ms: 400, provider_ms: 300, gateway_ms: 1 } };

  test("for an answer without sound", () => {
    assert.deepEqual(spoken().at(1800, { type: "audio.start", turn: 1, item_id: "item_1" }).at(1900, ended).reported, []);
  });

  test("for a turn without the gateway's measurements", () => {
    const trace = spoken().at(1800, { type: "audio.start", turn: 1, item_id: "item_1" });
    trace.latencies.sounding("item_1", 1900, 50);
    assert.deepEqual(trace.at(1950, { ...ended, latency: undefined }).reported, []);
  });

  test("for speech with an unknown end", () => {
    const trace = new Trace().speak(2000).at(1500, { type: "speech.stopped", turn: 1, audio_ms: 1500 });
    assert.deepEqual(trace.answer(1, 1900, 50, { detection_ms: 0, provider_ms: 300, gateway_ms: 1 }).reported, []);
  });

  test("for a turn that no user began, such as a greeting", () => {
    assert.deepEqual(new Trace().answer(1, 500, 60, { detection_ms: 0, provider_ms: 400, gateway_ms: 1 }).reported, []);
  });

  test("twice for a turn", () => {
    const trace = spoken().answer(1, 1900, 50, { detection_ms: 400, provider_ms: 300, gateway_ms: 1 });
    assert.equal(trace.at(5000, ended).reported.length, 1);
  });
});

test("the turn's second item and the sound of another turn do not count", () => {
  const trace = new Trace()
    .speak(2000)
    .at(1500, { type: "speech.stopped", turn: 1, audio_ms: 1500, end_ms: 1000 })
    .at(1800, { type: "audio.start", turn: 1, item_id: "a" })
    .at(1810, { type: "audio.start", turn: 1, item_id: "b" });
  trace.latencies.sounding("old", 1850, 0);
  trace.latencies.sounding("b", 1890, 10);
  trace.latencies.sounding("a", 1900, 50);
  trace.at(4000, { type: "turn.ended", turn: 1, status: "completed", latency: { detection_ms: 400, provider_ms: 300, gateway_ms: 1 } });
  assert.equal(trace.reported[0]?.totalMs, 900);
});

test("without a detection part, the provider's part contains it", () => {
  const { reported } = new Trace()
    .speak(2000)
    .at(1500, { type: "speech.stopped", turn: 1, audio_ms: 1500, end_ms: 1000 })
    .answer(1, 1900, 50, { provider_ms: 700, gateway_ms: 1 });
  assert.equal(reported[0]?.detectionMs, 0);
  assert.equal(reported[0]?.networkMs, 149);
});

test("reported parts are integers and add up to the total", () => {
  const trace = new Trace();
  trace.latencies.acted("typed-1", 1000.26);
  trace
    .at(1021.9, { type: "transcript", turn: 1, id: "typed-1", role: "user", text: "…", final: true, started_at: "" })
    .answer(1, 1500.81, 60.44, { detection_ms: 0, provider_ms: 400, gateway_ms: 1 });
  assert.deepEqual([trace.reported[0]?.totalMs, trace.reported[0]?.cushionMs, trace.reported[0]?.networkMs], [501, 60, 40]);
});

test("no part is negative", () => {
  const { reported } = new Trace().speak(2000).at(1100, { type: "speech.stopped", turn: 1, audio_ms: 1500, end_ms: 1000 }).answer(1, 1200, 50, { provider_ms: 700, gateway_ms: 1 });
  assert.equal(reported[0]?.networkMs, 0);
});

test("turns that never end are removed", () => {
  const trace = new Trace().speak(2000).at(1500, { type: "speech.stopped", turn: 1, audio_ms: 1500, end_ms: 1000 });
  trace.latencies.acted("typed-1", 1000);
  trace.latencies.acted("cf_1", 1000);
  for (let turn = 2; turn <= 9; turn++) {
    trace.at(1500, { type: "audio.start", turn, item_id: `i${turn}` });
    trace.latencies.acted(`typed-${turn}`, 1500);
  }
  const parts = { detection_ms: 400, provider_ms: 300, gateway_ms: 1 };
  trace.answer(1, 1900, 50, parts);
  trace.at(1900, { type: "transcript", turn: 10, id: "typed-1", role: "user", text: "…", final: true, started_at: "" }).answer(10, 2000, 50, parts);
  trace.at(1900, { type: "confirmation.ended", token: "cf_1", tool: "t", outcome: "approved" }).at(1900, { type: "turn.started", turn: 11 }).answer(11, 2000, 50, parts);
  assert.deepEqual(trace.reported, []);
  trace.at(1900, { type: "transcript", turn: 12, id: "typed-9", role: "user", text: "…", final: true, started_at: "" }).answer(12, 2000, 50, parts);
  assert.equal((trace.reported as TurnLatency[]).at(-1)?.turn, 12);
});

describe("the uplink's clock", () => {
  test("gives the capture time of a sample within a frame", () => {
    const clock = new UplinkClock(16000);
    clock.sent(320, 1000);
    clock.sent(320, 1020);
    assert.deepEqual([0, 10, 20, 30, 40].map((ms) => clock.at(ms)), [980, 990, 1000, 1010, 1020]);
  });

  test("does not count dropped audio, as in the gateway", () => {
    const clock = new UplinkClock(8000);
    clock.sent(160, 1000);
    clock.sent(160, 5020); // four seconds were dropped
    assert.equal(clock.at(20), 1000);
    assert.equal(clock.at(21), 5001);
  });

  test("uses the newest frame for the future, and knows nothing before its start", () => {
    const clock = new UplinkClock(16000);
    assert.equal(clock.at(0), null);
    clock.sent(320, 1000);
    assert.equal(clock.at(500), 1000);
  });

  test("remembers 20 s, and older times are unknown", () => {
    const clock = new UplinkClock(16000);
    for (let end = 20; end <= 3600_000; end += 20) {
      clock.sent(320, end);
    }
    assert.equal(clock.at(3600_000 - 20_000), 3600_000 - 20_000);
    assert.equal(clock.at(3600_000 - 41_000), null);
  });

  test("is unknown after a resume: the amount of lost audio is unknown", () => {
    const clock = new UplinkClock(16000);
    clock.sent(320, 1000);
    clock.lose();
    clock.sent(320, 9000);
    assert.equal(clock.at(20), null);
  });
});

test("a turn in a resumed session counts from the arrival of speech.stopped", () => {
  const trace = new Trace().speak(4000);
  trace.uplink.lose();
  trace.rtt = 60;
  trace.at(4060, { type: "speech.stopped", turn: 1, audio_ms: 1000, end_ms: 500 }).answer(1, 4542, 80, { detection_ms: 500, provider_ms: 400, gateway_ms: 2 });
  assert.equal(trace.reported[0]?.totalMs, 1042);
});
