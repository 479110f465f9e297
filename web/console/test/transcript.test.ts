import assert from "node:assert/strict";
import { test } from "vitest";
import type { ToolEnded } from "@voicegw/client";
import type { Utterance } from "../src/model/lines.js";
import { Transcript, type Source } from "../src/model/transcript.js";
import { toolStatus } from "../src/words.js";
import { said } from "./happenings.js";

const VOICE: Source = { side: "voice", id: "voice-1" };
const TEXT: Source = { side: "text", id: "text-1" };

/** The lines in a few words each. */
function shown(transcript: Transcript): string[] {
  return transcript.lines.map((line) => {
    switch (line.kind) {
      case "utterance":
        return line.text;
      case "tool":
        return line.tool;
      case "outcome":
        return line.preview;
      default:
        return line.kind;
    }
  });
}

function utterances(transcript: Transcript): Utterance[] {
  return transcript.lines.filter((line) => line.kind === "utterance");
}

test("the user's words precede an answer that arrived first", () => {
  const transcript = new Transcript();
  transcript.upsert(VOICE, said("a1", "assistant", "It is", 12, { final: false }));
  transcript.upsert(VOICE, said("u1", "user", "What time is it?", 10));
  transcript.upsert(VOICE, said("a1", "assistant", "It is ten.", 12));
  assert.deepEqual(shown(transcript), ["What time is it?", "It is ten."]);
});

test("a placeholder is shown while the user speaks, so lines do not move later", () => {
  const transcript = new Transcript();
  transcript.hearing(VOICE, 1);
  transcript.hearing(VOICE, 1); // Detectors may report an utterance more than once.
  transcript.upsert(VOICE, said("a1", "assistant", "It is", 12, { turn: 1, final: false }));
  const [kept] = transcript.lines;
  assert.deepEqual(shown(transcript), ["", "It is"]);
  transcript.upsert(VOICE, said("u1", "user", "What", 10, { turn: 1, final: false }));
  transcript.upsert(VOICE, said("u1", "user", "What time is it?", 10, { turn: 1 }));
  assert.deepEqual(shown(transcript), ["What time is it?", "It is"]);
  assert.equal(transcript.lines[0]!.key, kept!.key, "the line is another one");
});

test("a line stays below earlier events, whatever start is reported later", () => {
  const transcript = new Transcript();
  transcript.upsert(VOICE, said("a1", "assistant", "One moment.", 12, { turn: 1 }));
  transcript.toolStarted(VOICE, { type: "tool.started", seq: 1, call_id: "c1", tool: "kb_search" });
  transcript.hearing(VOICE, 2);
  transcript.upsert(VOICE, said("u2", "user", "Never mind", 11, { turn: 2 }));
  assert.deepEqual(shown(transcript), ["One moment.", "kb_search", "Never mind"]);
});

test("the placeholder of missing words disappears with its turn", () => {
  const transcript = new Transcript();
  transcript.hearing(VOICE, 1);
  transcript.hearing(VOICE, 2);
  transcript.unheard(VOICE, 1);
  assert.deepEqual(
    utterances(transcript).map((line) => line.turn),
    [2],
  );
  transcript.settle(VOICE);
  assert.equal(transcript.lines.length, 0);
});

test("a late answer stays before the next turn", () => {
  const transcript = new Transcript();
  transcript.upsert(VOICE, said("u1", "user", "one", 10, { turn: 1 }));
  transcript.hearing(VOICE, 2);
  transcript.upsert(VOICE, said("a1", "assistant", "the answer", 11, { turn: 1 }));
  assert.deepEqual(shown(transcript), ["one", "the answer", ""]);
});

test("a corrected start moves the line", () => {
  const transcript = new Transcript();
  transcript.upsert(VOICE, said("a", "assistant", "first", 10));
  transcript.upsert(VOICE, said("b", "assistant", "second", 11));
  transcript.upsert(VOICE, said("a", "assistant", "first", 12));
  assert.deepEqual(shown(transcript), ["second", "first"]);
});

test("a typed line is shown once, whether confirmed with its id or another", () => {
  for (const id of ["ours", "theirs"]) {
    const transcript = new Transcript();
    transcript.typed(VOICE, "ours", "Hello");
    transcript.upsert(VOICE, said(id, "user", "Hello", 10));
    transcript.upsert(VOICE, said(id, "user", "Hello there", 10));
    assert.deepEqual(shown(transcript), ["Hello there"], id);
  }
});

test("a question from before the call was not spoken", () => {
  const transcript = new Transcript();
  transcript.upsert(VOICE, said("pending", "user", "Where is the lab?", 10, { turn: 1 }));
  transcript.hearing(VOICE, 2);
  transcript.upsert(VOICE, said("u2", "user", "And when", 20, { turn: 2 }));
  transcript.upsert(VOICE, said("u3", "user", "is it open?", 21, { turn: 2 }));
  assert.deepEqual(
    utterances(transcript).map((line) => line.typed),
    [true, false, false],
  );
});

test("repeated words make two lines", () => {
  const transcript = new Transcript();
  transcript.upsert(VOICE, said("u1", "user", "Yes", 10));
  transcript.upsert(VOICE, said("u2", "user", "Yes", 20));
  assert.deepEqual(shown(transcript), ["Yes", "Yes"]);
});

test("sessions use the same ids and turns for different lines", () => {
  const transcript = new Transcript();
  const second: Source = { side: "voice", id: "voice-2" };
  transcript.upsert(VOICE, said("item_1", "assistant", "before", 10, { turn: 1 }));
  transcript.upsert(second, said("item_1", "assistant", "after", 20, { turn: 1 }));
  transcript.cutOff(second, 1);
  assert.deepEqual(
    utterances(transcript).map(({ text, cut }) => [text, cut]),
    [
      ["before", false],
      ["after", true],
    ],
  );
});

test("an answer that was cut off is marked, and only that one", () => {
  const transcript = new Transcript();
  transcript.upsert(VOICE, said("a1", "assistant", "one", 10, { turn: 1 }));
  transcript.upsert(VOICE, said("u2", "user", "two", 11, { turn: 2 }));
  transcript.upsert(VOICE, said("a2", "assistant", "three", 12, { turn: 2 }));
  assert.ok(transcript.cutOff(VOICE, 2));
  assert.deepEqual(
    utterances(transcript).map((line) => line.cut),
    [false, false, true],
  );
  assert.ok(!transcript.cutOff(TEXT, undefined), "there is no text");
});

test("the heard part of an answer ends with a whole word, also if its text arrives late", () => {
  const transcript = new Transcript();
  transcript.upsert(VOICE, said("a1", "assistant", "one two three", 10, { turn: 1, final: false }));
  transcript.heard(VOICE, "a1", 0.5, "one two three".length);
  transcript.upsert(VOICE, said("a1", "assistant", "one two three four", 10, { turn: 1 }));
  const [line] = utterances(transcript);
  assert.equal(line!.text.slice(0, line!.heard), "one");
  assert.ok(line!.cut && line!.text === "one two three four");
  for (const [share, heard] of [
    [0, ""],
    [0.01, ""],
    [0.54, "one two"],
    [1, "one two three"],
    [1.4, "one two three"],
  ] as const) {
    transcript.heard(VOICE, "a1", share, "one two three".length);
    const [again] = utterances(transcript);
    assert.equal(again!.text.slice(0, again!.heard), heard, `${share}`);
  }
});

test("the text agent's answer grows until it is complete", () => {
  const transcript = new Transcript();
  transcript.typed(TEXT, "user", "Hello");
  transcript.delta(TEXT, { type: "text.delta", seq: 1, item_id: "t1", text: "Good " });
  transcript.delta(TEXT, { type: "text.delta", seq: 2, item_id: "t1", text: "mor" });
  assert.deepEqual(shown(transcript), ["Hello", "Good mor"]);
  transcript.done(TEXT, { type: "text.done", seq: 3, item_id: "t1", text: "Good morning.", cut: true });
  transcript.done(TEXT, { type: "text.done", seq: 4, item_id: "t2", text: "How are you?" });
  assert.deepEqual(shown(transcript), ["Hello", "Good morning.", "How are you?"]);
  assert.deepEqual(
    utterances(transcript).map(({ cut, state }) => [cut, state]),
    [
      [false, "final"],
      [true, "final"],
      [false, "final"],
    ],
  );
});

test("tool lines and outcomes are in order and are settled at the end", () => {
  const transcript = new Transcript();
  transcript.upsert(VOICE, said("u1", "user", "Find Ada", 10));
  transcript.toolStarted(VOICE, { type: "tool.started", seq: 1, call_id: "c1", tool: "kb_search" });
  transcript.toolStarted(VOICE, { type: "tool.started", seq: 2, call_id: "c2", tool: "kb_get" });
  transcript.toolEnded(VOICE, { type: "tool.ended", seq: 3, call_id: "c1", tool: "kb_search", ok: true, duration_ms: 12 });
  transcript.outcome("voice", { preview: "Book it?", outcome: "denied", elsewhere: false });
  transcript.upsert(VOICE, said("a1", "assistant", "Found.", 12));
  assert.deepEqual(shown(transcript), ["Find Ada", "kb_search", "kb_get", "Book it?", "Found."]);
  transcript.settle(VOICE);
  const [, done, open] = transcript.lines;
  assert.ok(done?.kind === "tool" && done.state === "done" && done.durationMs === 12);
  assert.ok(open?.kind === "tool" && toolStatus(open) === "not finished");
});

test("a tool line describes the call's progress", () => {
  const transcript = new Transcript();
  const status = (): string => {
    const [line] = transcript.lines;
    assert.ok(line?.kind === "tool");
    return toolStatus(line);
  };
  const about = { seq: 1, call_id: "c1", tool: "kb_search" };
  transcript.toolStarted(VOICE, { type: "tool.started", ...about });
  assert.equal(status(), "running");
  transcript.toolProgress(VOICE, { type: "tool.progress", ...about, duration_ms: 810 });
  assert.equal(status(), "still running, 1 s");
  transcript.toolProgress(VOICE, { type: "tool.progress", ...about, duration_ms: 3200 });
  assert.equal(status(), "still running, 3 s");
  const message = "for the model";
  const ends: [Partial<ToolEnded>, string][] = [
    [{ ok: true, duration_ms: 118 }, "done in 118 ms"],
    [{ ok: true, duration_ms: 2118 }, "done in 2.1 s"],
    [{ ok: true, duration_ms: 118, deduplicated: true }, "already done, not repeated"],
    [{ ok: true, duration_ms: 9, clamped: { top_k: { requested: 10, applied: 3 } } }, "done in 9 ms, top_k lowered from 10 to 3"],
    [{ ok: false, error: { type: "VALIDATION", message } }, "failed: wrong arguments"],
    [{ ok: false, error: { type: "CONFIRMATION_REQUIRED", message } }, "needs your approval"],
    [{ ok: false, error: { type: "CONFLICT", message, partialSideEffects: true } }, "not run: it may have been done before; part of it may be done"],
    [{ ok: false, error: { type: "toString", message } }, "failed"],
    [{ ok: false }, "failed"],
  ];
  for (const [end, want] of ends) {
    transcript.toolEnded(VOICE, { type: "tool.ended", ok: true, duration_ms: 0, ...about, ...end });
    assert.equal(status(), want);
  }
  // Messages after the end do not change the line.
  transcript.toolProgress(VOICE, { type: "tool.progress", ...about, duration_ms: 9000 });
  assert.equal(status(), "failed");
});

test("only the gateway's own pictures are shown", () => {
  const transcript = new Transcript();
  const picture = { type: "ui.image", seq: 1, id: "p", prompt: "a fox", width: 8, height: 8, expires_at: "" } as const;
  for (const url of ["https://example.org/a.png", "javascript:alert(1)", "//example.org/v1/images/a", "/v1/images/../providers", "/v1/images/a?b"]) {
    transcript.picture(TEXT, { ...picture, url });
  }
  assert.equal(transcript.lines.length, 0);
  transcript.picture(TEXT, { ...picture, url: "/v1/images/Ab-_9" });
  const [line] = transcript.lines;
  assert.ok(line?.kind === "picture" && line.url === "v1/images/Ab-_9");
});

test("an unchanged line stays the same object", () => {
  const transcript = new Transcript();
  transcript.upsert(VOICE, said("u1", "user", "one", 10));
  transcript.upsert(VOICE, said("a1", "assistant", "two", 11, { final: false }));
  const [before] = transcript.lines;
  transcript.upsert(VOICE, said("a1", "assistant", "two three", 11));
  assert.equal(transcript.lines[0], before);
});

test("the page keeps the newest 500 lines", () => {
  const transcript = new Transcript();
  for (let i = 0; i < 600; i++) {
    transcript.upsert(VOICE, said(`u${i}`, "user", `${i}`, i));
  }
  assert.equal(transcript.lines.length, 500);
  assert.equal(shown(transcript).at(-1), "599");
});
