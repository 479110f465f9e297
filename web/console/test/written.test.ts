import assert from "node:assert/strict";
import { test } from "vitest";
import type { Line } from "../src/model/lines.js";
import { asText, asVtt } from "../src/model/written.js";

const AT = Date.UTC(2026, 10, 26, 10);

function said(role: "user" | "assistant", text: string, ms: number, cut = false): Line {
  return { kind: "utterance", key: `${role}${ms}`, side: "voice", at: AT + ms, role, text, state: "final", turn: undefined, cut, heard: undefined, typed: false, pending: false };
}

function tool(ms: number, changes: object = {}): Line {
  return { kind: "tool", key: `t${ms}`, side: "voice", at: AT + ms, tool: "kb_search", state: "done", durationMs: 120, error: undefined, deduplicated: false, clamped: {}, ...changes } as Line;
}

const LINES: readonly Line[] = [
  said("user", "Who is <b>Ada</b> & Co?", 0),
  tool(1500),
  tool(1800, { state: "failed", durationMs: undefined, error: { type: "TRANSIENT", message: "Not\nnow." } }),
  said("assistant", "A mathematician.\n\nShe wrote --> notes.", 2250, true),
  { kind: "remark", key: "r", side: "voice", at: AT + 9, text: "not said" },
  said("user", "", 3000),
  said("user", "Thanks.", 3_725_001),
];

test("a transcript as text has a timed line for each utterance or call", () => {
  assert.equal(
    asText(LINES),
    [
      "[00:00:00] User: Who is <b>Ada</b> & Co?",
      "[00:00:01] Tool kb_search: done (120 ms)",
      "[00:00:01] Tool kb_search: failed: TRANSIENT, Not now.",
      "[00:00:02] Agent: A mathematician. She wrote --> notes. [cut off]",
      "[01:02:05] User: Thanks.",
      "",
    ].join("\n"),
  );
});

test("a transcript as WebVTT has a cue for each utterance, up to the next one or ten seconds", () => {
  assert.equal(
    asVtt(LINES),
    [
      "WEBVTT",
      "",
      "00:00:00.000 --> 00:00:02.250",
      "<v User>Who is &lt;b&gt;Ada&lt;/b&gt; &amp; Co?",
      "",
      "NOTE Tool kb_search: done (120 ms)",
      "",
      "NOTE Tool kb_search: failed: TRANSIENT, Not now.",
      "",
      "00:00:02.250 --> 00:00:12.250",
      "<v Agent>A mathematician. She wrote --&gt; notes.",
      "",
      "01:02:05.001 --> 01:02:06.001",
      "<v User>Thanks.",
      "",
    ].join("\n"),
  );
});

test("an empty transcript is an empty text and a valid WebVTT file", () => {
  assert.equal(asText([]), "");
  assert.equal(asVtt([]), "WEBVTT\n");
});
