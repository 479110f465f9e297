import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { TICK_MS, Ticks } from "../src/ui/ticks.js";

let drawn: string[];
let frames: (() => void)[];
let ticks: Ticks;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  drawn = [];
  frames = [];
  ticks = new Ticks((draw) => frames.push(draw));
});
afterEach(() => vi.useRealTimers());

/** Advances the clock by ms and paints every requested frame. */
function pass(ms: number): void {
  vi.advanceTimersByTime(ms);
  frames.splice(0).forEach((draw) => draw());
}

test("all drawings share one frame, and are drawn at most once a tick", () => {
  const a = (): void => void drawn.push("a");
  ticks.ask(a);
  ticks.ask(a);
  ticks.ask(() => drawn.push("b"));
  vi.advanceTimersByTime(0);
  assert.equal(frames.length, 1);
  pass(0);
  assert.deepEqual(drawn, ["a", "b"]);
  ticks.ask(a);
  pass(TICK_MS - 1);
  assert.deepEqual(drawn, ["a", "b"]);
  pass(1);
  assert.deepEqual(drawn, ["a", "b", "a"]);
  pass(10 * TICK_MS);
  assert.equal(drawn.length, 3, "only requests are drawn");
});

test("a request during drawing is drawn in the next tick, a removed one is not", () => {
  const on = (): void => {
    drawn.push("on");
    ticks.ask(on);
  };
  ticks.ask(on);
  for (let i = 0; i < 5; i++) {
    pass(TICK_MS);
  }
  assert.equal(drawn.length, 5);
  ticks.drop(on);
  pass(TICK_MS);
  assert.equal(drawn.length, 5);
});
