import assert from "node:assert/strict";
import { test } from "node:test";
import { readProviders } from "../page/gateway.js";
import { parseServerMessage } from "../page/protocol.js";
import { activity, IDLE, onMessage, onPlayback, type State } from "../page/state.js";
import * as words from "../page/words.js";
import { closeNotice, endedHint, type Notice } from "../page/words.js";

test("a message is read; unknown, incomplete and broken ones are ignored", () => {
  const flush = parseServerMessage('{"type":"audio.flush","seq":7,"item_id":"i1","reason":"barge_in","later":1}');
  assert.ok(flush?.type === "audio.flush" && flush.item_id === "i1");
  for (const frame of [
    "",
    "{",
    "null",
    "[]",
    "7",
    '{"type":"audio.sparkle","item_id":"i1"}',
    '{"type":"toString"}',
    '{"type":7}',
    '{"type":"audio.flush"}',
    '{"type":"audio.flush","item_id":7}',
    '{"type":"tool.progress","call_id":"c","tool":"t"}',
    '{"type":"confirmation.request","tool":"t"}',
    '{"type":"confirmation.ended","token":"t"}',
    '{"type":"transcript","id":"t","role":"user","text":"x","started_at":"now"}',
  ]) {
    assert.equal(parseServerMessage(frame), null, frame);
  }
});

test("the states of a conversation, in the order they come", () => {
  let state: State = { ...IDLE, phase: "connecting", mic: "live" };
  const seen: string[] = [];
  const step = (next: State): void => {
    state = next;
    seen.push(activity(state));
  };
  step(onMessage(state, { type: "session.started", session_id: "s", provider: "sim", model: "m", output_rate: 24000 }));
  step(onMessage(state, { type: "speech.started" }));
  step(onMessage(state, { type: "speech.stopped" }));
  step(onPlayback(state, { type: "sounding", item: "i1" }));
  step(onMessage(state, { type: "turn.ended", turn: 1, status: "completed", latency: { speech_end_to_first_audio_ms: 640 } }));
  step(onPlayback(state, { type: "report", item: "i1", playedMs: 200, done: false }));
  step(onPlayback(state, { type: "report", item: "i1", playedMs: 900, done: true }));
  assert.deepEqual(seen, ["listening", "hearing", "thinking", "speaking", "speaking", "speaking", "listening"]);
  assert.equal(state.answeredInMs, 640);
});

test("an interruption shows the user speaking, and then thinking", () => {
  let state: State = { ...IDLE, phase: "open", mic: "live", sounding: "i1" };
  state = onMessage(state, { type: "speech.started" });
  assert.equal(activity(state), "hearing");
  state = onMessage(state, { type: "audio.flush", item_id: "i1" });
  state = onMessage(state, { type: "speech.stopped" });
  assert.equal(activity(state), "thinking");
});

test("without a microphone the page waits for typing, not for speech", () => {
  assert.equal(activity({ ...IDLE, phase: "open" }), "typing");
  assert.equal(activity({ ...IDLE, phase: "open", mic: "muted" }), "muted");
});

test("every close code of the protocol has words, and unknown ones say whether to try again", () => {
  assert.equal(closeNotice({ code: 1000, opened: true }, null), null);
  for (const code of [1001, 1006, 1008, 1009, 1011, 4001, 4002, 4003, 4004, 4005, 4029, 4500, 4501, 4502, 4503, 4504, 4505]) {
    const notice = closeNotice({ code, opened: true }, null);
    assert.ok(notice !== null && notice.advice !== "" && !notice.advice.includes("code"), String(code));
  }
  assert.match(closeNotice({ code: 4123, opened: true }, null)!.advice, /may help \(code 4123\)/);
  assert.match(closeNotice({ code: 4777, opened: true }, null)!.advice, /will not help \(code 4777\)/);
  const said = { title: "Out of memory", advice: "" };
  assert.equal(closeNotice({ code: 1011, opened: true }, said), said);
  assert.notEqual(closeNotice({ code: 4003, opened: true }, said), said);
});

test("who is blocked is told until when, also when the connection closes", () => {
  const until = new Date(Date.now() + 60_000).toISOString();
  const said = words.errorNotice({ type: "error", code: "blocked", message: "no", until });
  assert.match(said.title, /^You are blocked until .*\d\.?.*\.$/);
  assert.equal(closeNotice({ code: 4503, opened: true }, said), said);
  assert.equal(words.errorNotice({ type: "error", code: "blocked", message: "no" }), words.CLOSE[4503]);
});

test("an unknown reason for the end is no sentence of its own", () => {
  assert.equal(endedHint("constructor"), endedHint(undefined));
  assert.notEqual(endedHint("server_shutdown"), endedHint(undefined));
});

test("the list of providers is taken only in the shape that was agreed", () => {
  assert.deepEqual(readProviders({ default: "gemini", providers: [{ name: "gemini", model: "m" }, { name: "openai" }, null, {}] }), {
    default: "gemini",
    providers: [
      { name: "gemini", model: "m" },
      { name: "openai", model: "" },
    ],
  });
  for (const value of [null, [], "x", {}, { default: "a", providers: [] }, { default: 1, providers: [{ name: "a" }] }]) {
    assert.equal(readProviders(value), null);
  }
});

test("what goes wrong is said in so few words that nothing on the page has to move", () => {
  const { MICROPHONE, MICROPHONE_LOST, NO_AUDIO, SLOW_LINE, TOO_LONG, MOVING, NO_START, UNOPENED, CLOSE } = words;
  const notices: Notice[] = [
    ...[MICROPHONE, UNOPENED, CLOSE].flatMap((table) => Object.values<Notice>(table)),
    ...[MICROPHONE_LOST, NO_AUDIO, SLOW_LINE, TOO_LONG, MOVING, NO_START],
    ...["confirmation_unknown", "confirmation_used", "confirmation_expired", "store_unavailable", "session_ending"].map((code) =>
      words.errorNotice({ type: "error", code, message: "x ".repeat(99) }),
    ),
    words.errorNotice({ type: "error", code: "blocked", message: "", until: "2099-12-31T23:59:59.000Z" }),
    words.endingNotice("length_limit", 60_000),
    words.endingNotice(undefined, undefined),
    closeNotice({ code: 4499, opened: true }, null)!,
    closeNotice({ code: 4999, opened: true }, null)!,
  ];
  for (const { title, advice } of notices) {
    assert.ok(title.length + advice.length < 120, `${title.length + advice.length} characters: ${title}`);
    assert.match(title, /^[A-Z].*\.$/);
    assert.match(advice, /^[A-Z].*\.$/);
  }
});
