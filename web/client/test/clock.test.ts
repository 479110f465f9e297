import assert from "node:assert/strict";
import { test } from "vitest";
import { heardAt, outputLatency } from "../src/audio/clock.js";

test("the latency is the browser's, within plausible limits", () => {
  assert.equal(outputLatency({ currentTime: 0 }), 0);
  assert.equal(outputLatency({ currentTime: 0, baseLatency: 0.01 }), 0.01);
  assert.equal(outputLatency({ currentTime: 0, baseLatency: 0.01, outputLatency: 0.25 }), 0.26);
  for (const nonsense of [Number.NaN, -1, 30, Infinity]) {
    assert.equal(outputLatency({ currentTime: 0, outputLatency: nonsense }), 0);
  }
});

test("the output's clock gives the time a sample is heard", () => {
  const clock = { currentTime: 10, baseLatency: 0.01, outputLatency: 0.05, getOutputTimestamp: () => ({ contextTime: 9.9, performanceTime: 5000 }) };
  assert.equal(Math.round(heardAt(clock, 10.1, 5004)), 5200);
});

test("without it, the context's time and latency do", () => {
  const clock = { currentTime: 10, baseLatency: 0.01, outputLatency: 0.05 };
  assert.equal(Math.round(heardAt(clock, 10.1, 5004)), 5164);
  for (const stamp of [{}, { contextTime: 0, performanceTime: 0 }, { contextTime: 9, performanceTime: 1000 }]) {
    assert.equal(Math.round(heardAt({ ...clock, getOutputTimestamp: () => stamp }, 10.1, 5004)), 5164);
  }
  const fresh = { ...clock, getOutputTimestamp: () => ({ contextTime: 0, performanceTime: 0 }) };
  assert.equal(Math.round(heardAt(fresh, 10.1, 300)), 460, "also in the page's first second");
});
