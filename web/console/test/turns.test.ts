import assert from "node:assert/strict";
import { test } from "vitest";
import type { Happening } from "../src/model/feed.js";
import { history, percentile, percentiles, Turns } from "../src/model/turns.js";
import { used, usedByCall } from "../src/panels/words-instruments.js";
import { anew, ended, moment, opened, received } from "./feed.js";

const TOLD = { speech_end_to_first_audio_ms: 905, detection_ms: 512, provider_ms: 391, gateway_ms: 2 };

function latency(at: number, turn: number, totalMs: number): Happening {
  const event = { turn, by: "speech" as const, totalMs, detectionMs: 512, providerMs: 391, gatewayMs: 2, cushionMs: 60, networkMs: 35 };
  return { ...moment(at), kind: "noticed", side: "voice", name: "latency", event };
}

function watched(...happenings: Happening[]): Turns {
  const turns = new Turns();
  for (const happening of happenings) {
    turns.take(happening);
  }
  return turns;
}

test("the response time is the gateway's figure, and the page's is separate, in any order of their reports", () => {
  const end = received(2000, "turn.ended", { turn: 1, status: "completed", latency: TOLD });
  for (const order of [[latency(1500, 1, 1000), end], [end, latency(2100, 1, 1000)]]) {
    const [turn] = watched(opened(0), received(1000, "turn.started", { turn: 1 }), ...order).list;
    assert.deepEqual([turn!.status, turn!.by, turn!.totalMs, turn!.heardMs, turn!.startedAt], ["completed", "speech", 905, 1000, 1000]);
    assert.deepEqual(turn!.parts, { detection: 512, provider: 391, gateway: 2, network: 35, cushion: 60 });
  }
});

test("until playback is reported, the gateway's part is shown alone", () => {
  const [turn] = watched(opened(0), received(2000, "turn.ended", { turn: 1, status: "interrupted", latency: TOLD })).list;
  assert.deepEqual([turn!.totalMs, turn!.heardMs, turn!.parts], [905, undefined, { detection: 512, provider: 391, gateway: 2 }]);
});

test("a turn without spoken answer has no wait", () => {
  const turns = watched(opened(0), received(1000, "turn.started", { turn: 1 }), received(2000, "turn.ended", { turn: 1, status: "failed" }), received(3000, "turn.ended", { turn: 2, status: "completed", latency: TOLD }));
  assert.deepEqual([turns.list.length, turns.answered.map(({ turn }) => turn)], [2, [2]]);
});

test("each session counts its turns anew, and an old turn does not continue", () => {
  const turns = watched(opened(0), received(1000, "turn.started", { turn: 1 }), ended(1100), opened(2000), received(2100, "turn.started", { turn: 1 }));
  assert.deepEqual(turns.list.map(({ key, status }) => [key, status]), [["1.1", "unfinished"], ["2.1", "running"]]);
  turns.take(anew(3000));
  assert.equal(turns.list.length, 0);
});

test("the newest 500 turns are stored", () => {
  const turns = watched(opened(0));
  for (let i = 1; i <= 800; i++) {
    turns.take(received(i, "turn.started", { turn: i }));
  }
  assert.deepEqual([turns.list.length, turns.list[0]!.turn], [500, 301]);
});

test("percentiles are measured waits", () => {
  assert.equal(percentiles([]), null);
  assert.deepEqual(percentiles([7]), { n: 1, p50: 7, p90: 7, p95: 7, max: 7 });
  assert.deepEqual(percentiles([30, 10, 20, 40]), { n: 4, p50: 20, p90: 40, p95: 40, max: 40 });
  const hundred = Array.from({ length: 100 }, (_, i) => i + 1);
  assert.deepEqual(percentiles(hundred), { n: 100, p50: 50, p90: 90, p95: 95, max: 100 });
  assert.equal(percentile(hundred, 0), 1);
});

test("the history's lines cover recent waits", () => {
  assert.deepEqual(history([100, 300, 200, 1000], 3), { p50: [100, 100, 200, 300], p95: [100, 300, 300, 1000] });
  assert.deepEqual(history([], 3), { p50: [], p95: [] });
});

test("after a snapshot only the repeated turn is open", () => {
  const turns = watched(
    opened(0),
    received(1000, "turn.started", { turn: 1 }),
    received(2000, "turn.started", { turn: 2 }),
    received(9000, "session.started", { resumed: true, snapshot: true }),
    received(9001, "turn.started", { turn: 2 }),
  );
  assert.deepEqual(turns.list.map(({ turn, status, startedAt }) => [turn, status, startedAt]), [[1, "unfinished", 1000], [2, "running", 2000]]);
});

test("a call's usage and cost are its own", () => {
  const usage = (input_tokens: number, more: object = {}): object => ({ input_tokens, output_tokens: 10, input: {}, output: {}, ...more });
  const end = (at: number, turn: number, used: object): Happening => received(at, "turn.ended", { turn, status: "completed", usage: used });
  const turns = watched(opened(0));
  assert.equal(turns.spent, null);
  turns.take(end(10, 1, usage(100)));
  assert.deepEqual([turns.ofThisCall, turns.spent], [1, { input_tokens: 100, output_tokens: 10 }]);
  assert.equal(usedByCall(1, turns.spent!), "This call: 1 turn, 100 tokens in, 10 out");
  turns.take(opened(20));
  assert.equal(turns.spent, null, "a new call has used nothing");
  turns.take(end(30, 1, usage(100, { cost: { usd_micros: 1200 } })));
  turns.take(end(40, 2, usage(200, { estimated: true, cost: { usd_micros: 300, unpriced: 1 } })));
  turns.take(received(50, "inspect.state", { phase: "active", cost: { usd_micros: 1500 } }));
  turns.take(received(60, "inspect.state", { phase: "active", cost: { usd_micros: 1700, unpriced: 1 } })); // a later report
  assert.deepEqual([turns.ofThisCall, turns.spent], [2, { input_tokens: 300, output_tokens: 20, estimated: true, cost: { usd_micros: 1700, unpriced: 1 } }]);
  assert.equal(usedByCall(2, turns.spent!), "This call: 2 turns, about 300 tokens in, 20 out, $0.0017 plus usage without a known price");
  turns.take(opened(70));
  turns.take(end(80, 1, usage(1)));
  assert.deepEqual(turns.spent, { input_tokens: 1, output_tokens: 10 }, "the previous call's cost does not count");
  assert.equal(used({ input_tokens: 1, output_tokens: 2, cost: { usd_micros: 0, unpriced: 1 } }), "1 token in, 2 out, price unknown");
  assert.equal(used({ input_tokens: 1, output_tokens: 2, cost: { usd_micros: 0 } }), "1 token in, 2 out, $0.0000");
});
