import assert from "node:assert/strict";
import { test } from "vitest";
import { heardAt, outputLatency } from "../src/audio/clock.js";

test("the latency is what the browser tells, as far as it can be believed", () => {
  assert.equal(outputLatency({ currentTime: 0 }), 0);
  assert.equal(outputLatency({ currentTime: 0, baseLatency: 0.01 }), 0.01);
  assert.equal(outputLatency({ currentTime: 0, baseLatency: 0.01, outputLatency: 0.25 }), 0.26);
  for (const nonsense of [Number.NaN, -1, 30, Infinity]) {
    assert.equal(outputLatency({ currentTime: 0, outputLatency: nonsense }), 0);
  }
});

test("when a sample is heard comes from the output's own clock where there is one", () => {
  const clock = { currentTime: 10, baseLatency: 0.01, outputLatency: 0.05, getOutputTimestamp: () => ({ contextTime: 9.9, performanceTime: 5000 }) };
  assert.equal(Math.round(heardAt(clock, 10.1, 5004)), 5200);
});

test("else from the context's time and latency", () => {
  const clock = { currentTime: 10, baseLatency: 0.01, outputLatency: 0.05 };
  assert.equal(Math.round(heardAt(clock, 10.1, 5004)), 5164);
  for (const stamp of [{}, { contextTime: 0, performanceTime: 0 }, { contextTime: 9, performanceTime: 1000 }]) {
    assert.equal(Math.round(heardAt({ ...clock, getOutputTimestamp: () => stamp }, 10.1, 5004)), 5164);
  }
  const fresh = { ...clock, getOutputTimestamp: () => ({ contextTime: 0, performanceTime: 0 }) };
  assert.equal(Math.round(heardAt(fresh, 10.1, 300)), 460, "also in the page's first second");
});
