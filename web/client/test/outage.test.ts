import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { Outage } from "../src/connection/outage.js";
import { VoiceError } from "../src/errors.js";
import type { LocalEvents } from "../src/events.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("an outage is reported after exactly two seconds", () => {
  const reported: LocalEvents["reconnecting"][] = [];
  const outage = new Outage((event) => reported.push(event));
  const since = performance.now() - 500.6;
  outage.tried({ attempt: 1, delayMs: 20, resumable: true, since, error: new VoiceError("closed") }, true);
  vi.advanceTimersByTime(1499);
  assert.equal(reported.length, 0);
  vi.advanceTimersByTime(1);
  assert.equal(reported.length, 1);
  assert.ok(reported[0]!.lostMs >= 2000);
});
