import assert from "node:assert/strict";
import { test } from "vitest";
import { VoiceError, type Disconnected } from "@voicegw/client";
import { Conversation, type Standing } from "../src/model/conversation.js";
import { linesToKeep, readLines } from "../src/model/keptlines.js";
import type { Line } from "../src/model/lines.js";
import { activity, running, stoppable } from "../src/model/voice.js";
import { callLength, endedAdvice, endingNotice, handoffTitle, outcomeOf } from "../src/words.js";
import type { Happening } from "../src/model/feed.js";
import { Turns } from "../src/model/turns.js";
import { noticed, NOW, received, said, sent, started } from "./happenings.js";

const BYE: Disconnected = { reason: "client_ended", code: 1000, error: undefined, handback: { conversation_id: "c", summary: "2 turns over 41s." } };
const NO_USAGE = { input_tokens: 0, output_tokens: 0, input: { text: 0, audio: 0, cached_text: 0, cached_audio: 0 }, output: { text: 0, audio: 0 } };
const LATER = NOW + 60_000;
const expires_at = new Date(LATER).toISOString();

function kinds(conversation: Conversation): string[] {
  return conversation.transcript.lines.map((line) => (line.kind === "handoff" ? `to ${line.to}: ${line.state}` : line.kind));
}

function last<K extends Line["kind"]>(conversation: Conversation, kind: K): Extract<Line, { kind: K }> {
  const line = conversation.transcript.lines.findLast((other): other is Extract<Line, { kind: K }> => other.kind === kind);
  assert.ok(line !== undefined, `there is no ${kind}`);
  return line;
}

function trouble(conversation: Conversation): string {
  return conversation.voice.notice?.title ?? "";
}

/** A conversation with an open call. */
function inCall(): Conversation {
  const conversation = new Conversation();
  conversation.calling(false, null);
  conversation.take(started());
  conversation.take(noticed({ name: "state", event: "connected" }));
  conversation.take(noticed({ name: "microphone", event: { state: "live", deviceId: "m1", label: "Desk" } }));
  return conversation;
}

test("a switch of agents adds a line and changes the session's agent", () => {
  const conversation = inCall();
  conversation.take(received("voice", { type: "agent.switched", from: "reception", to: "billing", reason: "an invoice" }));
  assert.equal(last(conversation, "remark").text, "Switched from reception to billing: an invoice");
  assert.equal(conversation.voice.session?.agent, "billing");
  conversation.take(received("voice", { type: "agent.switched", from: "billing", to: "reception" }));
  assert.equal(last(conversation, "remark").text, "Switched from billing to reception.");
});

test("one timeline shows a conversation from text to voice and back", () => {
  const conversation = new Conversation();
  conversation.asking("Tell me by voice");
  conversation.take(
    received("text", { type: "voice_session_start", sessionId: "voice-a", pendingRequest: "the lab", ticket: "secret", url: "ws://x/v1/voice", expires_at }),
  );
  conversation.take(received("text", { type: "text.done", item_id: "t1", text: "I will answer there." }));
  conversation.take(received("text", { type: "done", conversation_id: "c", status: "completed" }));
  conversation.answered(null);
  assert.deepEqual(kinds(conversation), ["utterance", "to voice: offered", "utterance"]);
  assert.equal(last(conversation, "handoff").expires, LATER);
  assert.ok(!JSON.stringify(conversation.transcript.lines).includes("secret"), "a line contains the ticket");

  conversation.calling(false, "voice-a");
  conversation.take(started());
  conversation.take(noticed({ name: "state", event: "connected" }));
  conversation.take(received("voice", { type: "turn.started", turn: 1 }));
  conversation.take(received("voice", said("u1", "user", "the lab", 1, { turn: 1 })));
  conversation.take(received("voice", { type: "turn.started", turn: 2 }));
  conversation.take(noticed({ name: "disconnected", event: BYE }, NOW + 41_000));
  assert.deepEqual(kinds(conversation), ["utterance", "to voice: taken", "utterance", "utterance", "to text: taken"]);
  assert.equal(callLength(last(conversation, "handoff")), "2 turns, 41 s");
  assert.equal(last(conversation, "handoff").summary, "2 turns over 41s.");
  assert.equal(activity(conversation.voice), "ended");
});

test("an unused invitation expires", () => {
  const conversation = new Conversation();
  conversation.take(received("text", { type: "voice_session_start", sessionId: "voice-a", pendingRequest: "", ticket: "t", url: "", expires_at }));
  conversation.missed("voice-a");
  assert.deepEqual(kinds(conversation), ["to voice: over"]);
  conversation.calling(false, "voice-a");
  assert.deepEqual(kinds(conversation), ["to voice: over"], "it was used after its end");
});

test("the call's activity is the most important one", () => {
  const conversation = new Conversation();
  const now = (): string => activity(conversation.voice);
  assert.equal(now(), "none");
  conversation.calling(false, null);
  conversation.take(noticed({ name: "microphone", event: { state: "asking", deviceId: undefined, label: "" } }));
  assert.equal(now(), "asking");
  conversation.take(noticed({ name: "microphone", event: { state: "live", deviceId: "m1", label: "Desk" } }));
  assert.equal(now(), "connecting");
  conversation.take(started());
  conversation.take(noticed({ name: "state", event: "connected" }));
  assert.equal(now(), "listening");
  assert.ok(!stoppable(conversation.voice));
  conversation.take(received("voice", { type: "speech.started", turn: 1, audio_ms: 0 }));
  assert.equal(now(), "hearing");
  conversation.take(received("voice", { type: "speech.stopped", turn: 1, audio_ms: 900 }));
  assert.equal(now(), "thinking");
  assert.ok(stoppable(conversation.voice));
  conversation.take(noticed({ name: "sounding", event: { item: "i1", at: 0, firstByteAt: 0, cushionMs: 0 } }));
  assert.equal(now(), "speaking");
  conversation.take(received("voice", { type: "provider.reconnecting" }));
  assert.equal(now(), "speaking", "playback is more important");
  conversation.take(noticed({ name: "played", event: { item: "i1", playedMs: 900, done: true, at: 0 } }));
  assert.equal(now(), "restoring");
  conversation.take(received("voice", { type: "provider.reconnected" }));
  conversation.take(noticed({ name: "microphone", event: { state: "muted", deviceId: "m1", label: "Desk" } }));
  assert.equal(now(), "muted");
  conversation.take(noticed({ name: "microphone", event: { state: "lost", deviceId: undefined, label: "" } }));
  assert.equal(now(), "typing");
  conversation.take(noticed({ name: "state", event: "disconnected" }));
  assert.equal(now(), "ending");
  assert.ok(running(conversation.voice), "the gateway's last message is missing");
  conversation.take(noticed({ name: "disconnected", event: BYE }));
  assert.equal(now(), "ended");
  assert.ok(!running(conversation.voice));
});

test("with push-to-talk the button decides who speaks", () => {
  const conversation = new Conversation();
  conversation.calling(true, null);
  conversation.take(started());
  conversation.take(noticed({ name: "state", event: "connected" }));
  conversation.take(noticed({ name: "microphone", event: { state: "live", deviceId: "m1", label: "Desk" } }));
  assert.equal(activity(conversation.voice), "waiting");
  conversation.take(sent("voice", { type: "input.activity", active: true }));
  assert.equal(activity(conversation.voice), "hearing");
  conversation.take(sent("voice", { type: "input.activity", active: false }));
  assert.equal(activity(conversation.voice), "thinking");
});

test("an interrupted answer is marked up to the heard part", () => {
  const conversation = inCall();
  const pcm = new Int16Array(24_000);
  conversation.take(received("voice", { type: "audio.start", turn: 1, item_id: "i1" }));
  conversation.take(received("voice", said("i1", "assistant", "one two three four", 1, { turn: 1, final: false })));
  conversation.take({ at: 0, wall: NOW, kind: "downlink", side: "voice", item: "i1", pcm, rate: 24_000 });
  conversation.take({ at: 0, wall: NOW, kind: "downlink", side: "voice", item: "i1", pcm, rate: 24_000 });
  conversation.take(noticed({ name: "played", event: { item: "i1", playedMs: 600, done: false, at: 0 } }));
  assert.ok(!last(conversation, "utterance").cut);
  conversation.take(received("voice", { type: "audio.flush", turn: 1, item_id: "i1", reason: "user_speech" }));
  conversation.take(noticed({ name: "played", event: { item: "i1", playedMs: 1000, done: true, at: 0 } }));
  const line = last(conversation, "utterance");
  assert.ok(line.cut);
  assert.equal(line.text.slice(0, line.heard), "one two");
});

test("a flush of waiting audio does not mark an answer that was heard before it", () => {
  const conversation = inCall();
  const pcm = new Int16Array(24_000);
  for (const item of ["i1", "i2"]) {
    conversation.take(received("voice", { type: "audio.start", turn: 1, item_id: item }));
    conversation.take(received("voice", said(item, "assistant", `${item} says this`, 1, { turn: 1 })));
    conversation.take({ at: 0, wall: NOW, kind: "downlink", side: "voice", item, pcm, rate: 24_000 });
    conversation.take(received("voice", { type: "audio.end", turn: 1, item_id: item, audio_ms: 1000 }));
  }
  conversation.take(noticed({ name: "played", event: { item: "i1", playedMs: 1000, done: true, at: 0 } }));
  conversation.take(received("voice", { type: "audio.flush", turn: 1, item_id: "i2", reason: "user_stop" }));
  conversation.take(noticed({ name: "played", event: { item: "i2", playedMs: 0, done: true, at: 0 } }));
  const answers = conversation.transcript.lines.filter((line) => line.kind === "utterance" && line.role === "assistant");
  assert.deepEqual(
    answers.map((line) => line.kind === "utterance" && line.cut),
    [false, true],
  );
});

test("an answer that was heard completely is not marked when its turn is interrupted later", () => {
  const conversation = inCall();
  const pcm = new Int16Array(24_000);
  for (const item of ["i1", "i2"]) {
    conversation.take(received("voice", { type: "audio.start", turn: 1, item_id: item }));
    conversation.take(received("voice", said(item, "assistant", `${item} says this`, 1, { turn: 1 })));
    conversation.take({ at: 0, wall: NOW, kind: "downlink", side: "voice", item, pcm, rate: 24_000 });
    conversation.take(received("voice", { type: "audio.end", turn: 1, item_id: item, audio_ms: 1000 }));
  }
  conversation.take(noticed({ name: "played", event: { item: "i1", playedMs: 1000, done: true, at: 0 } }));
  conversation.take(noticed({ name: "played", event: { item: "i2", playedMs: 200, done: false, at: 0 } }));
  const usage = { input_tokens: 0, output_tokens: 0, input: { text: 0, audio: 0, cached_text: 0, cached_audio: 0 }, output: { text: 0, audio: 0 } };
  conversation.take(received("voice", { type: "turn.ended", turn: 1, status: "interrupted", usage }));
  const answers = conversation.transcript.lines.filter((line) => line.kind === "utterance" && line.role === "assistant");
  assert.deepEqual(
    answers.map((line) => line.kind === "utterance" && line.cut),
    [false, true],
  );
});

test("a connection restored in a new session continues below the old one", () => {
  const conversation = inCall();
  conversation.take(received("voice", said("i1", "assistant", "before", 1, { turn: 1 })));
  conversation.take(received("voice", { type: "tool.started", turn: 1, call_id: "call_1", tool: "kb_search" }));
  conversation.take(received("voice", { type: "confirmation.request", turn: 1, token: "cf_1", tool: "book", args: {}, args_source: "{}", preview: "Book it?", expires_at }));
  conversation.take(noticed({ name: "microphone", event: { state: "live", deviceId: "m", label: "Desk" } }));
  conversation.take(received("voice", { type: "speech.stopped", turn: 1, audio_ms: 900 }));
  conversation.take(noticed({ name: "reconnecting", event: { attempt: 1, delayMs: 2000, lostMs: 500, resumable: true, error: new VoiceError("lost") } }));
  assert.equal(activity(conversation.voice), "reconnecting");
  assert.deepEqual(conversation.voice.retry, { attempt: 1, at: NOW + 2000, lostAt: NOW - 500, keptUntil: NOW + 14_500 }, "15 s are stored, and half a second has passed");
  assert.ok(running(conversation.voice));
  conversation.take(started({ session_id: "voice-b" }, NOW + 3000));
  conversation.take(noticed({ name: "reconnected", event: { resumed: false, lostMs: 3000 } }));
  conversation.take(received("voice", said("i1", "assistant", "after", 9, { turn: 1 })));
  assert.deepEqual(kinds(conversation), ["to voice: taken", "utterance", "tool", "outcome", "remark", "utterance"]);
  assert.equal(last(conversation, "tool").state, "unfinished");
  assert.equal(last(conversation, "outcome").outcome, "unanswered");
  assert.equal(
    last(conversation, "remark").text,
    "Reconnected. The conversation continues in a new session. Lost: what you said in the last 4 s, the rest of the answer, the result of a running tool, an approval request.",
  );
  assert.equal(conversation.questions.list.length, 0);
  assert.equal(conversation.voice.retry, null);
  conversation.take(noticed({ name: "disconnected", event: BYE }, NOW + 10_000));
  assert.equal(last(conversation, "handoff").ms, 10_000, "the call began before the connection broke");
});

test("a new session without losses reports that", () => {
  const conversation = inCall();
  conversation.take(noticed({ name: "microphone", event: { state: "muted", deviceId: "m", label: "Desk" } }));
  conversation.take(noticed({ name: "reconnecting", event: { attempt: 1, delayMs: 200, lostMs: 500, resumable: true, error: new VoiceError("lost") } }));
  conversation.take(started({ session_id: "voice-b" }));
  assert.equal(last(conversation, "remark").text, "Reconnected. The conversation continues in a new session. Nothing was lost.");
});

test("a resumed session continues", () => {
  const conversation = inCall();
  conversation.take(received("voice", { type: "confirmation.request", turn: 1, token: "cf_1", tool: "book", args: {}, args_source: "{}", preview: "Book it?", expires_at }));
  conversation.take(noticed({ name: "reconnecting", event: { attempt: 1, delayMs: 200, lostMs: 500, resumable: false, error: new VoiceError("lost") } }));
  assert.equal(conversation.voice.retry?.keptUntil, 0, "nothing is stored for a session without resume");
  conversation.take(started({ resumed: true }));
  conversation.take(noticed({ name: "reconnected", event: { resumed: true, lostMs: 300 } }));
  assert.equal(conversation.questions.list.length, 1);
  assert.deepEqual(kinds(conversation), ["to voice: taken"]);
});

test("a resumed session reports the amount of lost speech", () => {
  const conversation = inCall();
  conversation.take(noticed({ name: "microphone", event: { state: "live", deviceId: "m", label: "Desk" } }));
  conversation.take(noticed({ name: "reconnecting", event: { attempt: 1, delayMs: 200, lostMs: 500, resumable: true, error: new VoiceError("lost") } }));
  const { keptUntil } = conversation.voice.retry!;
  conversation.take(started({ resumed: true }, keptUntil + 4000));
  assert.equal(last(conversation, "remark").text, "Reconnected. 4 s of what you said was lost.");
});

test("after a takeover the new gateway's snapshot counts", () => {
  const conversation = inCall();
  conversation.take(received("voice", { type: "turn.started", turn: 1 }));
  conversation.take(received("voice", { type: "tool.started", turn: 1, call_id: "call_1", tool: "kb_search" }));
  conversation.take(received("voice", { type: "tool.started", turn: 1, call_id: "call_2", tool: "kb_get" }));
  conversation.take(received("voice", { type: "speech.started", turn: 2, audio_ms: 900 }));
  conversation.take(received("voice", { type: "confirmation.request", turn: 1, token: "cf_1", tool: "book", args: {}, args_source: "{}", preview: "Book it?", expires_at }));
  conversation.take(received("voice", { type: "confirmation.request", turn: 1, token: "cf_2", tool: "book", args: {}, args_source: "{}", preview: "Book more?", expires_at }));
  conversation.take(noticed({ name: "sounding", event: { item: "i1", at: 0, firstByteAt: 0, cushionMs: 0 } }));
  conversation.take(started({ resumed: true, snapshot: true }));
  conversation.take(received("voice", { type: "confirmation.request", turn: 1, token: "cf_2", tool: "book", args: {}, args_source: "{}", preview: "Book more?", expires_at }));
  conversation.take(received("voice", { type: "tool.started", turn: 1, call_id: "call_2", tool: "kb_get" }));
  conversation.take(received("voice", { type: "turn.started", turn: 1 }));
  conversation.take(received("voice", { type: "provider.reconnected", reason: "taken_over", how: "replayed" }));
  conversation.take(received("voice", { type: "confirmation.ended", token: "cf_1", tool: "book", outcome: "unknown" }));
  const tools = conversation.transcript.lines.filter((line) => line.kind === "tool");
  assert.deepEqual(tools.map(({ state }) => state), ["unfinished", "running"]);
  assert.deepEqual(conversation.questions.list.map(({ token }) => token), ["cf_2"]);
  assert.equal(outcomeOf(last(conversation, "outcome")), "ended while the connection was lost");
  assert.equal(activity(conversation.voice), "speaking", "queued audio plays on, and no user speech is expected");
  assert.equal(conversation.voice.userSpeaking, false);
  assert.equal(conversation.voice.turns, 1);
  conversation.take(noticed({ name: "disconnected", event: BYE }));
  assert.equal(last(conversation, "handoff").turns, 1);
});

test("an answer that plays during a reported outage is shown as playing", () => {
  const conversation = inCall();
  conversation.take(noticed({ name: "sounding", event: { item: "i1", at: 0, firstByteAt: 0, cushionMs: 0 } }));
  conversation.take(noticed({ name: "reconnecting", event: { attempt: 1, delayMs: 200, lostMs: 2000, resumable: true, error: new VoiceError("lost") } }));
  assert.equal(activity(conversation.voice), "reconnecting");
  conversation.take(started({ resumed: true }));
  conversation.take(noticed({ name: "reconnected", event: { resumed: true, lostMs: 2300 } }));
  assert.equal(activity(conversation.voice), "speaking");
  conversation.take(noticed({ name: "played", event: { item: "i1", playedMs: 900, done: true, at: 0 } }));
  assert.notEqual(activity(conversation.voice), "speaking");
});

test("an unnoticed outage leaves no trace", () => {
  const conversation = inCall();
  const before = conversation.voice;
  conversation.take(received("voice", { type: "session.moving", reason: "server_shutdown" }));
  conversation.take(started({ resumed: true }));
  assert.deepEqual(kinds(conversation), ["to voice: taken"]);
  assert.equal(conversation.voice.notice, null);
  assert.deepEqual([conversation.voice.phase, conversation.voice.turns], [before.phase, before.turns]);
});

test("a call continues in a reloaded page with stored lines and the gateway's messages", () => {
  const before = inCall();
  before.take(received("voice", { type: "speech.started", turn: 1, audio_ms: 10 }));
  before.take(received("voice", said("u1", "user", "Tell me", 1, { turn: 1 })));
  before.take(received("voice", { type: "tool.started", turn: 1, call_id: "call_1", tool: "kb_search" }));
  before.take(received("voice", { type: "tool.started", turn: 1, call_id: "call_2", tool: "kb_get" }));
  before.take(received("voice", said("i1", "assistant", "Once there", 2, { turn: 1, final: false })));
  before.take(received("voice", { type: "speech.started", turn: 2, audio_ms: 900 }));
  const standing = JSON.parse(JSON.stringify(before.standing)) as Standing;
  assert.equal(standing.lines.length, 4, "a line without words is not stored");

  const after = new Conversation();
  after.goingOn(false, { ...standing, lines: readLines(standing.lines, standing.source) });
  assert.equal(activity(after.voice), "connecting");
  after.take(started({ resumed: true }));
  after.take(received("voice", said("u1", "user", "Tell me", 1, { turn: 1 })));
  after.take(received("voice", said("i1", "assistant", "Once there was a lighthouse.", 2, { turn: 1 })));
  after.take(received("voice", { type: "tool.started", turn: 1, call_id: "call_2", tool: "kb_get" }));
  assert.deepEqual(kinds(after), ["utterance", "tool", "tool", "utterance", "remark"]);
  const { lines } = after.transcript;
  assert.deepEqual(lines.map((line) => (line.kind === "utterance" ? line.text : line.kind === "tool" ? line.state : "")), ["Tell me", "unfinished", "running", "Once there was a lighthouse.", ""]);
  assert.equal(new Set(lines.map((line) => line.key)).size, lines.length);
  assert.ok(lines.every((line) => line.kind === "remark" || line.restored));

  after.take(started({ session_id: "voice-b" }));
  after.take(received("voice", said("i1", "assistant", "Another one", 9, { turn: 1 })));
  assert.equal(after.transcript.lines.length, 7, "another session has its own lines");
  after.take(noticed({ name: "disconnected", event: BYE }, NOW + 41_000));
  assert.equal(callLength(last(after, "handoff")), "0 turns, 41 s", "the call began before the reload");
});

test("a restored page has its lines without duplicates", () => {
  const conversation = inCall();
  conversation.take(received("voice", said("i1", "assistant", "Hello", 2, { turn: 1 })));
  const standing = conversation.standing;
  conversation.take(noticed({ name: "disconnected", event: { ...BYE, reason: "page_left" } }));
  conversation.goingOn(false, standing);
  conversation.take(started({ resumed: true }));
  assert.deepEqual(kinds(conversation), ["to voice: taken", "utterance", "remark"]);
});

test("a call that moved to another tab ends here without a handback", () => {
  const conversation = inCall();
  conversation.take(noticed({ name: "disconnected", event: { ...BYE, reason: "moved", code: 4506, error: new VoiceError("moved") } }));
  assert.deepEqual(kinds(conversation), ["to voice: taken", "remark"]);
  assert.equal(activity(conversation.voice), "ended");
  assert.equal(trouble(conversation), "The conversation moved to another tab.");
});

test("the newest lines of a long call are stored, and invalid ones are ignored", () => {
  const line = (i: number, text = "x"): Line => ({ kind: "utterance", key: `voice-1:i${i}`, side: "voice", role: "user", text, state: "final", turn: 1, cut: false, heard: undefined, typed: false, pending: false, at: i });
  const many = Array.from({ length: 500 }, (_, i) => line(i));
  assert.deepEqual(linesToKeep(many).map(({ at }) => at), Array.from({ length: 200 }, (_, i) => i + 300));
  assert.deepEqual(linesToKeep([line(0), line(1, "x".repeat(250_000)), line(2)]).map(({ at }) => at), [2]);
  const odd = [null, 7, {}, { ...line(1), key: "voice-2:i1" }, { ...line(1), side: "text" }, { ...line(1), at: "1" }, { ...line(1), text: 7 }, { ...line(1), role: "system" },
    { kind: "tool", key: "voice-1:c", side: "voice", at: 1, tool: "t" }, { kind: "picture", key: "voice-1:p", side: "voice", at: 1, prompt: "p", url: "https://elsewhere/x" },
    { kind: "remark", key: "voice-1:r", side: "voice", at: 1, text: "r" }];
  assert.deepEqual(readLines([...odd, line(1)], "voice-1"), [line(1)]);
  assert.deepEqual(readLines("no list", "voice-1"), []);
});

test("an error is shown until an event resolves it", () => {
  const conversation = inCall();
  conversation.take(noticed({ name: "error", event: new VoiceError("gateway", "The model gave no answer.", { gatewayCode: "no_answer" }) }));
  assert.equal(trouble(conversation), "The model gave no answer.");
  conversation.take(received("voice", { type: "turn.started", turn: 2 }));
  assert.equal(trouble(conversation), "");
  conversation.take(noticed({ name: "microphone", event: { state: "lost", deviceId: undefined, label: "" } }));
  conversation.take(noticed({ name: "error", event: new VoiceError("microphone_lost") }));
  conversation.take(received("voice", { type: "turn.started", turn: 3 }));
  assert.match(trouble(conversation), /microphone/);
  conversation.take(noticed({ name: "microphone", event: { state: "live", deviceId: "m1", label: "Desk" } }));
  assert.equal(trouble(conversation), "");
  conversation.take(noticed({ name: "error", event: new VoiceError("audio_suspended") }));
  conversation.take(received("voice", { type: "turn.started", turn: 4 }));
  assert.match(trouble(conversation), /sound/);
  conversation.take(noticed({ name: "speaker", event: { state: "playing", deviceId: undefined } }));
  assert.equal(trouble(conversation), "");
  conversation.take(received("voice", { type: "session.ending", reason: "length_limit", after: 30_000 }));
  conversation.take(received("voice", { type: "turn.started", turn: 5 }));
  assert.equal(trouble(conversation), "The call ends in 30 s.");
  const lost = new VoiceError("lost", undefined, { retryable: true });
  conversation.take(noticed({ name: "disconnected", event: { ...BYE, code: 1006, error: lost, handback: undefined } }));
  assert.equal(trouble(conversation), lost.message);
});

test("the timeline shows the start and end of each call", () => {
  const conversation = inCall();
  conversation.take(noticed({ name: "disconnected", event: BYE }));
  conversation.calling(false, null);
  conversation.take(started());
  conversation.take(noticed({ name: "disconnected", event: BYE }));
  assert.deepEqual(kinds(conversation), ["to voice: taken", "to text: taken", "to voice: taken", "to text: taken"]);
});

test("a lost microphone ends the user's utterance", () => {
  const conversation = inCall();
  conversation.take(received("voice", { type: "speech.started", turn: 1, audio_ms: 0 }));
  conversation.take(noticed({ name: "microphone", event: { state: "lost", deviceId: undefined, label: "" } }));
  assert.equal(activity(conversation.voice), "typing");
});

test("unheard words are marked after the call, too", () => {
  const conversation = inCall();
  conversation.take(received("voice", said("i1", "assistant", "One two three four", 2, { turn: 1 })));
  conversation.take(received("voice", said("i2", "assistant", "Five six", 3, { turn: 1 })));
  const audio = { kind: "downlink", side: "voice", pcm: new Int16Array(24_000), rate: 24_000, at: 0, wall: NOW } as const;
  conversation.take({ ...audio, item: "i1" });
  conversation.take(received("voice", { type: "audio.end", turn: 1, item_id: "i1", audio_ms: 1000 }));
  conversation.take({ ...audio, item: "i2" });
  conversation.take(noticed({ name: "played", event: { item: "i1", playedMs: 1000, done: true, at: 0 } }));
  conversation.take(noticed({ name: "played", event: { item: "i2", playedMs: 500, done: true, at: 0 } }));
  conversation.take(noticed({ name: "disconnected", event: BYE }));
  const heard = conversation.transcript.lines.flatMap((line) => (line.kind === "utterance" ? [[line.cut, line.heard]] : []));
  assert.deepEqual(heard, [[false, undefined], [true, 4]]);
});

test("an invitation without a resulting call is marked, and its question stays", () => {
  const conversation = new Conversation();
  conversation.take(received("text", { type: "voice_session_start", sessionId: "voice-a", pendingRequest: "the lab", ticket: "t", url: "", expires_at }));
  conversation.calling(false, "voice-a");
  conversation.take(noticed({ name: "disconnected", event: { reason: "lost", code: 1006, error: new VoiceError("unreachable"), handback: undefined } }));
  assert.deepEqual(kinds(conversation), ["to voice: failed"]);
  assert.equal(handoffTitle(last(conversation, "handoff")), "Not handed over");
  assert.equal(last(conversation, "handoff").request, "the lab");
});

test("a call whose gateway died is not shown as handed back", () => {
  const conversation = inCall();
  conversation.take(noticed({ name: "disconnected", event: { ...BYE, code: 1006, error: new VoiceError("lost"), handback: undefined } }, NOW + 5000));
  assert.deepEqual(kinds(conversation), ["to voice: taken", "to text: failed"]);
  assert.equal(handoffTitle(last(conversation, "handoff")), "Call lost");
});

test("a turn's wait is the gateway's figure, in the call and in the instruments", () => {
  const conversation = inCall();
  const turns = new Turns();
  const both = (happening: Happening): void => {
    conversation.take(happening);
    turns.take(happening);
  };
  both({ kind: "opened", side: "voice", inputRate: 16_000, outputRate: 24_000, at: 0, wall: NOW });
  both(noticed({ name: "answered", event: { turn: 1, by: "speech", totalMs: 812 } }));
  const shown = (): unknown[] => [conversation.voice.answeredInMs, turns.answered[0]?.totalMs];
  assert.deepEqual(shown(), [null, undefined], "the page's measurement includes its network and buffer");
  both(received("voice", { type: "turn.ended", turn: 1, status: "completed", usage: NO_USAGE, latency: { speech_end_to_first_audio_ms: 700, detection_ms: 500, provider_ms: 190, gateway_ms: 10 } }));
  both(noticed({ name: "latency", event: { turn: 1, by: "speech", totalMs: 812, detectionMs: 500, providerMs: 190, gatewayMs: 10, cushionMs: 60, networkMs: 52 } }));
  assert.deepEqual(shown(), [700, 700]);
  both(received("voice", { type: "turn.ended", turn: 2, status: "completed", usage: NO_USAGE }));
  assert.deepEqual(shown(), [700, 700], "a turn without audio has no wait");
});

test("a call that the user cancels is not a failure", () => {
  const conversation = new Conversation();
  conversation.calling(false, null);
  conversation.take(noticed({ name: "disconnected", event: { ...BYE, error: new VoiceError("aborted"), handback: undefined } }));
  assert.equal(trouble(conversation), "");
});

test("a call that never opened leaves only its error", () => {
  const conversation = new Conversation();
  conversation.calling(false, null);
  conversation.take(noticed({ name: "disconnected", event: { reason: "lost", code: 1006, error: new VoiceError("unreachable"), handback: undefined } }));
  assert.equal(activity(conversation.voice), "failed");
  assert.deepEqual(kinds(conversation), []);
});

test("a question ends in its line, which shows an answer from elsewhere", () => {
  const conversation = inCall();
  for (const token of ["a", "b", "c"]) {
    conversation.take(received("voice", { type: "confirmation.request", turn: 1, token, tool: "book", args: {}, args_source: "{}", preview: `Book ${token}?`, expires_at }));
  }
  conversation.questions.answer("a", true, NOW);
  for (const [token, outcome] of [
    ["a", "approved"],
    ["b", "denied"],
    ["c", "expired"],
  ] as const) {
    conversation.take(received("voice", { type: "confirmation.ended", turn: 1, token, tool: "book", outcome }));
  }
  const outcomes = conversation.transcript.lines.flatMap((line) => (line.kind === "outcome" ? [[line.preview, line.outcome, line.elsewhere]] : []));
  assert.deepEqual(outcomes, [
    ["Book a?", "approved", false],
    ["Book b?", "denied", true],
    ["Book c?", "expired", false],
  ]);
});

test("an answer that the gateway could not store may be given again", () => {
  const conversation = inCall();
  conversation.take(received("voice", { type: "confirmation.request", turn: 1, token: "a", tool: "book", args: {}, args_source: "{}", preview: "Book it?", expires_at }));
  assert.ok(conversation.questions.answer("a", true, NOW));
  conversation.take(received("voice", { type: "error", code: "no_answer", message: "x", retryable: true }));
  assert.equal(conversation.questions.answer("a", true, NOW), undefined);
  conversation.take(received("voice", { type: "error", code: "store_unavailable", message: "x", retryable: true }));
  assert.ok(conversation.questions.answer("a", true, NOW));
});

test("a failed request can be sent again if a retry may help", () => {
  const conversation = new Conversation();
  conversation.asking("Hello");
  conversation.answered(new VoiceError("gateway", "Busy.", { retryable: true }));
  assert.equal(last(conversation, "trouble").again, "Hello");
  conversation.asking("Hello");
  conversation.answered(new VoiceError("gateway", "Blocked.", { retryable: false }));
  assert.equal(last(conversation, "trouble").again, "");
  assert.equal(conversation.text.phase, "ready");
});

test("an error in the stream is one line", () => {
  const conversation = new Conversation();
  conversation.asking("Hello");
  conversation.take(received("text", { type: "error", code: "provider_unavailable", message: "The model cannot be reached.", retryable: true }));
  conversation.take(received("text", { type: "done", conversation_id: "c", status: "failed" }));
  conversation.answered(null);
  assert.deepEqual(kinds(conversation), ["utterance", "trouble"]);
  assert.equal(last(conversation, "trouble").title, "The model cannot be reached.");
  assert.equal(last(conversation, "trouble").again, "Hello");
});

test("a stopped answer is cut off, or marked as stopped before it began", () => {
  const conversation = new Conversation();
  conversation.asking("Hello");
  conversation.take(received("text", { type: "text.delta", item_id: "t1", text: "Good mor" }));
  assert.ok(conversation.text.writing);
  conversation.stopping();
  conversation.answered(new VoiceError("aborted"));
  assert.ok(last(conversation, "utterance").cut && last(conversation, "utterance").text === "Good mor");
  conversation.asking("Hello again");
  conversation.stopping();
  conversation.answered(null);
  assert.deepEqual(kinds(conversation), ["utterance", "utterance", "utterance", "remark"]);
});

test("both agents use the same ids for different calls", () => {
  const conversation = inCall();
  conversation.asking("Find Ada");
  conversation.take(received("text", { type: "tool.started", call_id: "call_1", tool: "kb_get" }));
  conversation.take(received("voice", { type: "tool.started", call_id: "call_1", tool: "kb_search" }));
  conversation.take(received("voice", { type: "tool.ended", call_id: "call_1", tool: "kb_search", ok: true, duration_ms: 5 }));
  const states = conversation.transcript.lines.flatMap((line) => (line.kind === "tool" ? [`${line.tool} ${line.state}`] : []));
  assert.deepEqual(states, ["kb_get running", "kb_search done"]);
});

test("each cause of an automatic end has its own text", () => {
  for (const reason of ["length_limit", "budget", "credentials_expired"]) {
    assert.match(endingNotice(reason, 30_000).title, /in 30 s/);
    assert.notEqual(endingNotice(reason, 30_000).advice, endingNotice("other", 30_000).advice, reason);
    assert.notEqual(endedAdvice(reason), endedAdvice("other"), reason);
  }
  assert.match(endedAdvice("budget"), /limit/);
  assert.match(endedAdvice("operator_ended"), /operator/);
  assert.equal(endingNotice("constructor", 0).advice, endingNotice(undefined, 0).advice);
});
