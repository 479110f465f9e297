import assert from "node:assert/strict";
import { test } from "vitest";
import { spokenAt, UplinkClock } from "../src/model/uplinkclock.js";

test("the user's clock counts sent audio and tolerates a late page", () => {
  const clock = new UplinkClock();
  assert.equal(clock.when(0), undefined);
  for (const [at, clockMs, begun] of [
    [1020, 20, 1000],
    [1040, 40, 1020],
    // Three frames at once, after the page was busy; the audio clock advances in steps.
    [1110, 61, 1040],
    [1110, 79, 1060],
    [1110, 100, 1080],
    [1120, 120, 1100],
  ]) {
    assert.equal(spokenAt(clock.push(20, at!, clockMs!)), begun);
  }
  assert.equal(clock.when(0), 1000);
  assert.equal(clock.when(105), 1105);
});

test("the next frame corrects a late first one", () => {
  const clock = new UplinkClock();
  clock.push(20, 1050, 20);
  assert.equal(spokenAt(clock.push(20, 1040, 40)), 1020);
  assert.equal(clock.when(0), 1000);
});

test("a gap in the sent audio moves only later audio", () => {
  const clock = new UplinkClock();
  clock.push(1000, 2000, 1000);
  clock.push(1000, 8000, 7000);
  assert.deepEqual([clock.when(500), clock.when(999), clock.when(1000), clock.when(1500)], [1500, 1999, 7000, 7500]);
});

test("one missing frame is a gap, one frame that is a second late is not", () => {
  const clock = new UplinkClock();
  const first = clock.push(20, 1020, 20).stretch;
  assert.equal(clock.push(20, 2100, 40).stretch, first);
  assert.equal(clock.push(20, 2100, 60).stretch, first);
  assert.notEqual(clock.push(20, 2110, 100).stretch, first);
});

test("while the microphone's clock stands still, time continues", () => {
  const clock = new UplinkClock();
  let made = 0;
  const frames = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => spokenAt(clock.push(20, from + 20 * i, (made += 20))));
  frames(1020, 10);
  // The computer slept for a minute.
  const after = frames(61_220, 200);
  assert.equal(after[0], 1200);
  assert.equal(after.at(-1), 61_200 + 199 * 20);
});
