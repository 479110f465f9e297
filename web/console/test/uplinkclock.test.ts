import assert from "node:assert/strict";
import { test } from "vitest";
import { UplinkClock } from "../src/model/uplinkclock.js";

test("the user's clock counts what was sent, and forgives a page that is late", () => {
  const clock = new UplinkClock();
  assert.equal(clock.when(0), undefined);
  for (const [at, begun] of [
    [1020, 1000],
    [1040, 1020],
    // Three frames at once, after the page was busy.
    [1110, 1040],
    [1110, 1060],
    [1110, 1080],
    [1120, 1100],
  ]) {
    assert.equal(clock.push(20, at!), begun);
  }
  assert.equal(clock.when(0), 1000);
  assert.equal(clock.when(105), 1105);
});

test("a late first frame is put right by the next", () => {
  const clock = new UplinkClock();
  clock.push(20, 1050);
  assert.equal(clock.push(20, 1040), 1020);
  assert.equal(clock.when(0), 1000);
});

test("a gap in what was sent moves what comes after it, and nothing before", () => {
  const clock = new UplinkClock();
  clock.push(1000, 2000);
  clock.push(1000, 8000);
  assert.deepEqual([clock.when(500), clock.when(999), clock.when(1000), clock.when(1500)], [1500, 1999, 7000, 7500]);
});
