import assert from "node:assert/strict";
import { test } from "vitest";
import { Agent } from "../src/model/agent.js";
import { ended, received } from "./feed.js";

const STATE = { phase: "active", speaking: false, responding: true, awaiting: 1, questions: 0, muted: false, suppressed: { audio: false, transcript: false }, notices: 0 };
const BUDGET = { retrieval: { used: 1, limit: 2 }, total: { used: 1, limit: 3 } };

test("it keeps the session, its state and the tools' intents", () => {
  const agent = new Agent();
  agent.take(received(0, "session.started", { session_id: "voice-1", provider: "gemini", model: "m" }));
  agent.take(received(1, "inspect.state", { ...STATE, turn: 1, budget: BUDGET }));
  agent.take(received(2, "inspect.intent", { turn: 1, intent: { type: "END_VOICE_SESSION", after: "farewell_spoken" }, applied: true }));
  agent.take(received(3, "inspect.intent", { turn: 1, intent: { type: "SET_PENDING_MESSAGE", message: "x" }, applied: false, why: "the session is ending" }));
  assert.deepEqual([agent.running, agent.session?.session_id, agent.state?.awaiting, agent.budget], [true, "voice-1", 1, BUDGET]);
  assert.deepEqual(agent.intents.map(({ number, type, payload, applied, why }) => [number, type, payload, applied, why]), [
    [2, "SET_PENDING_MESSAGE", { message: "x" }, false, "the session is ending"],
    [1, "END_VOICE_SESSION", { after: "farewell_spoken" }, true, undefined],
  ]);
  agent.take(received(4, "inspect.state", STATE));
  assert.deepEqual(agent.budget, BUDGET);
  agent.take(ended(5));
  assert.deepEqual([agent.running, agent.session?.session_id], [false, "voice-1"]);
});

test("a resumed session is the same, a new one starts empty", () => {
  const agent = new Agent();
  agent.take(received(0, "session.started", { session_id: "voice-1" }));
  agent.take(received(1, "inspect.state", STATE));
  agent.take(received(2, "session.started", { session_id: "voice-1", resumed: true }));
  assert.ok(agent.state !== undefined);
  agent.take(received(3, "session.started", { session_id: "voice-2" }));
  assert.deepEqual([agent.state, agent.budget, agent.intents], [undefined, undefined, []]);
});

test("it ignores the text agent's messages and limits its list", () => {
  const agent = new Agent();
  agent.take(received(0, "session.started", { session_id: "voice-1" }, "text"));
  assert.equal(agent.session, undefined);
  for (let i = 0; i < 300; i++) {
    agent.take(received(i, "inspect.intent", { intent: { type: `I${i}` }, applied: true }));
  }
  assert.deepEqual([agent.intents.length, agent.intents[0]!.type], [100, "I299"]);
});
