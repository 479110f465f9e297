import assert from "node:assert/strict";
import { test } from "vitest";
import type { Line } from "../src/model/lines.js";
import { recalled } from "../src/model/history.js";

const at = "2026-11-20T10:00:00.000Z";

function short(line: Line): string {
  switch (line.kind) {
    case "utterance":
      return `${line.side} ${line.role}: ${line.text}${line.cut ? " (cut)" : ""}`;
    case "tool":
      return `${line.tool} ${line.state} ${line.durationMs ?? "?"}`;
    case "handoff":
      return `to ${line.to}`;
    case "outcome":
      return `${line.preview} ${line.outcome}`;
    case "picture":
      return `${line.url} ${line.prompt}`;
    default:
      return line.kind;
  }
}

test("a conversation is loaded with its tools, pictures, answers and handoffs", () => {
  const entries = [
    { at, side: "text", role: "user", text: "Draw a fox", turn: 1 },
    {
      at,
      side: "text",
      role: "assistant",
      calls: [
        {
          id: "c1",
          tool: "image_generate",
          ok: true,
          args: { prompt: "a fox" },
          envelope: { ok: true, data: { images: [{ url: "/v1/images/abc", width: 8, height: 8 }, { url: "https://example.org/x" }] }, meta: { duration: 44 } },
        },
      ],
    },
    { at, side: "text", role: "assistant", text: "Here it is." },
    { at, side: "voice", role: "user", text: "And now?", session_id: "voice-a" },
    { at, side: "voice", role: "assistant", text: "It opens", session_id: "voice-a", interrupted: true, calls: [{ id: "c", tool: "kb_search", ok: false }] },
    { at, side: "voice", role: "notice", text: "The user was asked to approve book: expired.", session_id: "voice-a" },
    { at, side: "voice", role: "user", text: "Once more", session_id: "voice-b" },
    { at, side: "text", role: "notice", text: '[voicegw] The user approved book (ref AB): {"ok":true}' },
    { at, side: "text", role: "notice", text: "[voicegw] something for the model" },
  ];
  assert.deepEqual(recalled({ entries }).map(short), [
    "text user: Draw a fox",
    "image_generate done 44",
    "v1/images/abc a fox",
    "text assistant: Here it is.",
    "to voice",
    "voice user: And now?",
    "kb_search failed ?",
    "voice assistant: It opens (cut)",
    "book expired",
    "to text",
    "to voice",
    "voice user: Once more",
    "to text",
    "book approved",
  ]);
});

test("a conversation that ended by voice continues in text", () => {
  const lines = recalled({ entries: [{ at, side: "voice", role: "user", text: "Hello", session_id: "voice-a" }] });
  assert.deepEqual(lines.map(short), ["to voice", "voice user: Hello", "to text"]);
  assert.equal(new Set(lines.map(({ key }) => key)).size, 3);
});

test("an answer of another shape is not a conversation", () => {
  for (const value of [null, 7, "x", [], {}, { entries: 7 }, { entries: [null, 7, {}] }]) {
    assert.deepEqual(recalled(value), []);
  }
});

test("a session that continues here is not loaded: the page has it", () => {
  const entries = [
    { at, side: "text", role: "user", text: "Hello", turn: 1 },
    { at, side: "voice", role: "user", text: "before", turn: 1, session_id: "voice-a" },
    { at, side: "voice", role: "user", text: "now", turn: 1, session_id: "voice-b" },
  ];
  assert.deepEqual(recalled({ entries }, "voice-b").map(short), ["text user: Hello", "to voice", "voice user: before", "to text"]);
  assert.equal(recalled({ entries }).length, recalled({ entries }, "voice-c").length);
});
