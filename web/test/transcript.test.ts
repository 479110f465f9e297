import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToolEnded, TranscriptUpsert } from "../page/protocol.js";
import { Transcript } from "../page/transcript.js";
import { toolStatus } from "../page/words.js";

function said(id: string, role: "user" | "assistant", text: string, second: number, more: Partial<TranscriptUpsert> = {}): TranscriptUpsert {
  const started_at = `2026-11-20T10:00:${String(second).padStart(2, "0")}.000Z`;
  return { type: "transcript", id, role, text, final: true, started_at, ...more };
}

function shown(transcript: Transcript): string[] {
  return transcript.lines.map((line) => (line.kind === "utterance" ? line.text : line.id));
}

test("the words of the user go before the answer that came first", () => {
  const transcript = new Transcript();
  transcript.upsert(said("a1", "assistant", "It is", 12, { final: false }));
  transcript.upsert(said("u1", "user", "What time is it?", 10));
  transcript.upsert(said("a1", "assistant", "It is ten.", 12));
  assert.deepEqual(shown(transcript), ["What time is it?", "It is ten."]);
});

test("a corrected start moves the line", () => {
  const transcript = new Transcript();
  transcript.upsert(said("a", "assistant", "first", 10));
  transcript.upsert(said("b", "assistant", "second", 11));
  transcript.upsert(said("a", "assistant", "first", 12));
  assert.deepEqual(shown(transcript), ["second", "first"]);
});

test("a typed line is shown once, whether told back with its id or another", () => {
  for (const id of ["ours", "theirs"]) {
    const transcript = new Transcript();
    transcript.typed("ours", "Hello");
    transcript.upsert(said(id, "user", "Hello", 10));
    transcript.upsert(said(id, "user", "Hello there", 10));
    assert.deepEqual(shown(transcript), ["Hello there"]);
  }
});

test("saying the same twice makes two lines", () => {
  const transcript = new Transcript();
  transcript.upsert(said("u1", "user", "Yes", 10));
  transcript.upsert(said("u2", "user", "Yes", 20));
  assert.deepEqual(shown(transcript), ["Yes", "Yes"]);
});

test("an answer that was cut off is marked, and only that", () => {
  const transcript = new Transcript();
  transcript.upsert(said("a1", "assistant", "one", 10, { turn: 1 }));
  transcript.upsert(said("u2", "user", "two", 11, { turn: 2 }));
  transcript.upsert(said("a2", "assistant", "three", 12, { turn: 2 }));
  transcript.cutOff(2);
  const cut = transcript.lines.map((line) => line.kind === "utterance" && line.cut);
  assert.deepEqual(cut, [false, false, true]);
});

test("a late word of an answer that was cut off leaves the mark", () => {
  const transcript = new Transcript();
  transcript.upsert(said("a1", "assistant", "one", 10, { turn: 1, final: false }));
  transcript.cutOff(1);
  transcript.upsert(said("a1", "assistant", "one and", 10, { turn: 1 }));
  const [line] = transcript.lines;
  assert.ok(line?.kind === "utterance" && line.cut && line.text === "one and");
});

test("tool lines and outcomes take their place, and are settled at the end", () => {
  const transcript = new Transcript();
  transcript.upsert(said("u1", "user", "Find Ada", 10));
  transcript.toolStarted({ type: "tool.started", call_id: "c1", tool: "kb_search" });
  transcript.toolStarted({ type: "tool.started", call_id: "c2", tool: "kb_get" });
  transcript.toolEnded({ type: "tool.ended", call_id: "c1", tool: "kb_search", ok: true, duration_ms: 12 });
  transcript.outcome("t", "Book it?", "denied");
  transcript.upsert(said("a1", "assistant", "Found.", 12));
  assert.deepEqual(shown(transcript), ["Find Ada", "c1", "c2", "t", "Found."]);
  transcript.settle();
  const [, done, open, outcome] = transcript.lines;
  assert.ok(done?.kind === "tool" && done.status === "done" && done.durationMs === 12);
  assert.ok(open?.kind === "tool" && toolStatus(open) === "not finished");
  assert.ok(outcome?.kind === "outcome" && outcome.outcome === "denied" && outcome.preview === "Book it?");
});

test("a tool line tells how the call goes, in words", () => {
  const transcript = new Transcript();
  const status = (): string => {
    const [line] = transcript.lines;
    assert.ok(line?.kind === "tool");
    return toolStatus(line);
  };
  const about = { call_id: "c1", tool: "kb_search" };
  transcript.toolStarted({ type: "tool.started", ...about });
  assert.equal(status(), "working");
  transcript.toolProgress({ type: "tool.progress", ...about, duration_ms: 810 });
  assert.equal(status(), "still at work, 1 s");
  transcript.toolProgress({ type: "tool.progress", ...about, duration_ms: 3200 });
  assert.equal(status(), "still at work, 3 s");
  const ends: [Partial<ToolEnded>, string][] = [
    [{ ok: true, duration_ms: 118 }, "done in 118 ms"],
    [{ ok: true, duration_ms: 118, deduplicated: true }, "given from memory"],
    [{ ok: true, duration_ms: 9, clamped: { top_k: { requested: 10, applied: 3 } } }, "done in 9 ms, top_k 10 → 3"],
    [{ ok: false, error: { type: "VALIDATION", message: "query is missing" } }, "failed: wrong arguments"],
    [{ ok: false, error: { type: "CONFIRMATION_REQUIRED" } }, "needs your answer first"],
    [{ ok: false, error: { type: "CONFLICT", partialSideEffects: true } }, "not run: it may have been done before; part of it may have been done"],
    [{ ok: false, error: { type: "toString" } }, "failed"],
    [{ ok: false }, "failed"],
  ];
  for (const [end, want] of ends) {
    transcript.toolEnded({ type: "tool.ended", ...about, ...end });
    assert.equal(status(), want);
  }
  // What comes after the end does not open the line again.
  transcript.toolProgress({ type: "tool.progress", ...about, duration_ms: 9000 });
  assert.equal(status(), "failed");
});

test("the page keeps the newest 500 lines", () => {
  const transcript = new Transcript();
  for (let i = 0; i < 600; i++) {
    transcript.upsert({ type: "transcript", id: `u${i}`, role: "user", text: `${i}`, final: true, started_at: new Date(i * 1000).toISOString() });
  }
  assert.equal(transcript.lines.length, 500);
  assert.equal(shown(transcript).at(-1), "599");
});
