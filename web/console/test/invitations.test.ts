import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import type { VoiceSessionStart } from "@voicegw/client";
import { Invitations } from "../src/control/invitations.js";
import { NOW } from "./happenings.js";

function invitation(sessionId: string, ms: number): VoiceSessionStart {
  return { type: "voice_session_start", seq: 1, sessionId, pendingRequest: "", ticket: `ticket of ${sessionId}`, url: "", expires_at: new Date(NOW + ms).toISOString() };
}

beforeEach(() => void vi.useFakeTimers({ now: NOW }));
afterEach(() => void vi.useRealTimers());

test("an invitation is used once and expires after a minute", () => {
  const over: string[] = [];
  const invitations = new Invitations((name) => over.push(name));
  invitations.came(invitation("a", 60_000), NOW);
  assert.equal(invitations.take("a"), "ticket of a");
  assert.equal(invitations.take("a"), undefined);
  invitations.came(invitation("b", 60_000), NOW);
  vi.advanceTimersByTime(59_999);
  assert.deepEqual(over, []);
  vi.advanceTimersByTime(1);
  assert.deepEqual(over, ["b"]);
  assert.equal(invitations.take("b"), undefined);
});

test("a newer invitation replaces the previous one", () => {
  const over: string[] = [];
  const invitations = new Invitations((name) => over.push(name));
  invitations.came(invitation("a", 60_000), NOW);
  invitations.came(invitation("b", 60_000), NOW);
  assert.deepEqual(over, ["a"]);
  assert.equal(invitations.take("b"), "ticket of b");
});

test("with a wrong clock on this machine, a minute is still a minute", () => {
  const over: string[] = [];
  const invitations = new Invitations((name) => over.push(name));
  invitations.came(invitation("a", -3600_000), NOW);
  vi.advanceTimersByTime(59_999);
  assert.deepEqual(over, []);
  vi.advanceTimersByTime(1);
  assert.deepEqual(over, ["a"]);
});
