import assert from "node:assert/strict";
import { test } from "vitest";
import { Cushion, MAX_CUSHION_MS, MIN_CUSHION_MS } from "../src/audio/cushion.js";
import { listen, type Arrivals } from "./arrivals.js";

/** Frames of 20 ms in real time with these delays; the queue is never empty or full. */
function feed(cushion: Cushion, lateness: readonly number[], dryAt = -1): void {
  cushion.begin();
  lateness.forEach((late, i) => cushion.arrived(1000 + 20 * i + late, 20 * i, 20, 50, i === dryAt));
}

const second = (late: number): number[] => Array.from({ length: 50 }, (_, i) => (i === 25 ? late : 0));

test("it begins at 60 ms and stays there while audio is on time", () => {
  const cushion = new Cushion();
  assert.equal(cushion.ms, MIN_CUSHION_MS);
  feed(cushion, [...second(0), ...second(30), ...second(30), ...second(0)]);
  assert.equal(cushion.ms, MIN_CUSHION_MS);
});

test("one late frame is ignored, two in different seconds count", () => {
  const cushion = new Cushion();
  feed(cushion, [...second(150), ...second(0)]);
  assert.equal(cushion.ms, MIN_CUSHION_MS);
  feed(cushion, [...second(150)]);
  assert.equal(cushion.ms, 180, "150 ms late, a frame of 20 ms, and 10 ms for the device");
});

test("frames that arrive while enough audio waits are not late", () => {
  const cushion = new Cushion();
  for (let i = 0; i < 4; i++) {
    cushion.begin();
    cushion.arrived(1000, 0, 2000, 0, false);
    cushion.arrived(1900, 2000, 1000, 1100, false);
  }
  assert.equal(cushion.ms, MIN_CUSHION_MS);
});

test("audio that arrives faster than real time needs only its own gaps", () => {
  const cushion = new Cushion();
  for (let i = 0; i < 4; i++) {
    cushion.begin();
    cushion.arrived(1000, 0, 200, 0, false);
    cushion.arrived(1080, 200, 200, 120, false);
    cushion.arrived(1160, 400, 200, 240, false);
  }
  assert.equal(cushion.ms, 90);
});

test("an underrun raises it by half at once, up to 400 ms", () => {
  const cushion = new Cushion();
  feed(cushion, [0, 0, 70], 2);
  assert.equal(cushion.ms, 90);
  for (let i = 0; i < 10; i++) {
    feed(cushion, [0, 70], 1);
  }
  assert.equal(cushion.ms, MAX_CUSHION_MS);
});

test("the gap after an underrun does not count as jitter", () => {
  const cushion = new Cushion();
  // From the third frame on, everything is 300 ms late.
  feed(cushion, [0, 0, ...Array.from({ length: 200 }, () => 300)], 2);
  assert.equal(cushion.ms, 90);
});

test("after ten calm seconds it shrinks towards the current need", () => {
  const cushion = new Cushion();
  feed(cushion, [...second(200), ...second(200), 0, 300], 101);
  const grown = cushion.ms;
  assert.equal(grown, 345, "half as much again as the 230 ms that were measured");
  cushion.sounded(9_999);
  assert.equal(cushion.ms, grown);
  cushion.sounded(1);
  assert.equal(cushion.ms, Math.round(grown * 0.8));
  for (let i = 0; i < 20; i++) {
    cushion.sounded(10_000);
  }
  assert.equal(cushion.ms, MIN_CUSHION_MS);
});

test("an underrun resets the calm time", () => {
  const cushion = new Cushion();
  cushion.sounded(9_999);
  feed(cushion, [0, 70], 1);
  cushion.sounded(9_999);
  assert.equal(cushion.ms, 90);
});

test("it does not shrink below the need of a bad line", () => {
  const cushion = new Cushion();
  for (let i = 0; i < 60; i++) {
    feed(cushion, second(100));
    cushion.sounded(1000);
  }
  assert.equal(cushion.ms, 130);
});

const LINES: [string, Arrivals, { underruns: number; startMs: number }][] = [
  ["real time, no jitter", { pace: 1, jitterMs: 0 }, { underruns: 0, startMs: 45 }],
  ["real time, 30 ms", { pace: 1, jitterMs: 30 }, { underruns: 0, startMs: 65 }],
  ["real time, 100 ms", { pace: 1, jitterMs: 100 }, { underruns: 1, startMs: 140 }],
  ["three times as fast, no jitter", { pace: 3, jitterMs: 0 }, { underruns: 0, startMs: 20 }],
  ["three times as fast, 30 ms", { pace: 3, jitterMs: 30 }, { underruns: 0, startMs: 25 }],
  ["three times as fast, 100 ms", { pace: 3, jitterMs: 100 }, { underruns: 1, startMs: 60 }],
  ["real time, frames of 200 ms, 30 ms", { pace: 1, jitterMs: 30, frameMs: 200 }, { underruns: 2, startMs: 220 }],
  ["real time, a stall of 250 ms every 10 s", { pace: 1, jitterMs: 0, stallMs: 250, stallsPerMinute: 6 }, { underruns: 3, startMs: 250 }],
];

test("over simulated lines: few gaps and little delay", () => {
  const rows = LINES.map(([name, arrivals, most]) => {
    const adaptive = listen(arrivals, 24);
    const fixed = listen(arrivals, 24, MIN_CUSHION_MS);
    assert.ok(adaptive.underruns <= most.underruns, `${name}: ${adaptive.underruns} gaps a minute`);
    assert.ok(adaptive.startMs <= most.startMs, `${name}: starts after ${adaptive.startMs.toFixed(0)} ms`);
    return {
      line: name,
      "gaps/min": adaptive.underruns,
      "start ms": Math.round(adaptive.startMs),
      "cushion ms": adaptive.cushionMs,
      "gaps/min at 60 ms": fixed.underruns,
      "start ms at 60 ms": Math.round(fixed.startMs),
    };
  });
  console.table(rows);
}, 30_000);
