import assert from "node:assert/strict";
import { test } from "vitest";
import { CallsControl } from "../src/control/calls.js";
import { readPrompt } from "../src/model/prompt.js";
import { readRunning } from "../src/model/running.js";
import { turns } from "../src/panels/words-calls.js";
import { dollars } from "../src/words.js";

const HERE = { id: "voice-1", user: "ada", agent: "billing", conversation_id: "c-7", provider: "openai", model: "gpt", started_at: "2026-11-26T10:00:00.000Z", turn: 3, phase: "active", cost_usd_micros: 1250 };

test("calls are listed from the newest on, with their known fields", () => {
  const there = { id: "voice-2", user: "", agent: "default", provider: "gemini", model: "live", started_at: "2026-11-26T11:00:00Z", node: "node-b", node_gone: true };
  const found = readRunning({ sessions: [HERE, there, { user: "without an id" }, "nonsense"], incomplete: true });
  assert.deepEqual(found, {
    incomplete: true,
    calls: [
      { id: "voice-2", user: "", agent: "default", provider: "gemini", model: "live", conversation: "", startedAt: Date.UTC(2026, 10, 26, 11), turns: undefined, state: "lost", node: "node-b", costMicros: undefined },
      { id: "voice-1", user: "ada", agent: "billing", provider: "openai", model: "gpt", conversation: "c-7", startedAt: Date.UTC(2026, 10, 26, 10), turns: 3, state: "active", node: "", costMicros: 1250 },
    ],
  });
});

test("the state of a call is its worst known state", () => {
  for (const [fields, state] of [
    [{ phase: "connecting" }, "connecting"],
    [{ phase: "ending" }, "ending"],
    [{ phase: "something new" }, "active"],
    [{ phase: "active", away: true }, "away"],
    [{ away: true, moving: true }, "moving"],
    [{ moving: true, node_gone: true }, "lost"],
  ] as const) {
    assert.equal(readRunning({ sessions: [{ ...HERE, ...fields }] })?.calls[0]?.state, state, JSON.stringify(fields));
  }
});

test("a call has no cost if a part has no price", () => {
  assert.equal(readRunning({ sessions: [{ ...HERE, unpriced: 1 }] })?.calls[0]?.costMicros, undefined);
});

test("an answer of another shape lists nothing", () => {
  for (const answer of [null, {}, { sessions: {} }, "x"]) {
    assert.equal(readRunning(answer), null);
  }
});

test("a prompt is read with its tools, and an answer without a prompt gives null", () => {
  const answer = { agent: "billing", instructions: "You are billing.", tools: [{ name: "kb_search", description: "Searches.", parameters: {} }, {}] };
  assert.deepEqual(readPrompt(answer), { agent: "billing", instructions: "You are billing.", tools: [{ name: "kb_search", description: "Searches." }] });
  assert.equal(readPrompt({ error: { code: "not_found" } }), null);
});

test("money and turns are formatted", () => {
  assert.deepEqual([0, 1250, 12_345_678].map(dollars), ["$0.0000", "$0.0013", "$12.3457"]);
  assert.deepEqual([0, 1, 2].map(turns), ["0 turns", "1 turn", "2 turns"]);
});

test("requests use the operator's token, and a failed end of a call gives the reason", async () => {
  const asked: string[] = [];
  const control = new CallsControl(((to: string, init?: RequestInit) => {
    asked.push(`${init?.method ?? "GET"} ${to}`);
    if (init?.method === "DELETE") {
      return Promise.resolve(asked.length === 1 ? new Response(null, { status: 204 }) : Response.json({ error: { code: "session_unknown", message: "It has ended." } }, { status: 404 }));
    }
    return asked.length < 5 ? Promise.resolve(Response.json({ sessions: [HERE], entries: [] })) : Promise.reject(new TypeError("no network"));
  }) as typeof fetch);
  assert.equal(await control.end("voice/1"), null);
  assert.equal(await control.end("voice/1"), "It has ended.");
  assert.equal((await control.list())?.calls.length, 1);
  const transcript = await control.transcript("c 7");
  assert.deepEqual(typeof transcript === "object" ? transcript?.lines : transcript, []);
  assert.equal(await control.list(), null);
  assert.equal(await control.transcript("c 7"), null);
  assert.deepEqual(asked.slice(0, 4), ["DELETE v1/sessions/voice%2F1", "DELETE v1/sessions/voice%2F1", "GET v1/sessions", "GET v1/conversations/c%207"]);
});
