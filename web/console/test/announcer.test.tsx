// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, test } from "vitest";
import type { Console } from "../src/control/console.js";
import type { Line } from "../src/model/lines.js";
import type { Question } from "../src/model/questions.js";
import { DEFAULTS, type Settings } from "../src/model/settings.js";
import { READY } from "../src/model/text.js";
import { Transcript, type Source } from "../src/model/transcript.js";
import { SILENT, type VoiceState } from "../src/model/voice.js";
import { Announcer } from "../src/panels/announcer.js";
import { NOW, said } from "./happenings.js";

const VOICE: Source = { side: "voice", id: "voice-1" };
const lines = signal<readonly Line[]>([]);
const settings = signal<Settings>(DEFAULTS);
const voice = signal<VoiceState>(SILENT);
const questions = signal<readonly Question[]>([]);
let transcript: Transcript;

beforeEach(() => {
  transcript = new Transcript();
  lines.value = [];
  settings.value = DEFAULTS;
  voice.value = SILENT;
  questions.value = [];
  document.body.innerHTML = `<div id="root"></div>`;
  const console = { lines, settings, voice, questions, text: signal(READY) } as unknown as Console;
  act(() => render(<Announcer console={console} />, document.getElementById("root")!));
});

afterEach(() => render(null, document.getElementById("root")!));

function tell(action: () => void): void {
  action();
  act(() => void (lines.value = transcript.lines));
}

function spoken(): string[] {
  return [...document.querySelectorAll("[role=log] p")].map((p) => p.textContent ?? "");
}

function urgent(): string {
  return [...document.querySelectorAll("[role=alert]")].map((p) => p.textContent).join("");
}

test("complete lines are read out once", () => {
  tell(() => transcript.upsert(VOICE, said("u1", "user", "What", 1, { final: false })));
  assert.deepEqual(spoken(), []);
  transcript = new Transcript();
  tell(() => {
    transcript.hearing(VOICE, 1);
    transcript.upsert(VOICE, said("u1", "user", "What time is it?", 1, { turn: 1 }));
  });
  tell(() => transcript.delta({ side: "text", id: "text-1" }, { type: "text.delta", seq: 1, item_id: "t", text: "Ten" }));
  tell(() => transcript.done({ side: "text", id: "text-1" }, { type: "text.done", seq: 2, item_id: "t", text: "Ten." }));
  assert.deepEqual(spoken(), ["You: What time is it?", "Text agent: Ten."]);
});

test("audible answers are not read out unless the user wants it", () => {
  tell(() => transcript.upsert(VOICE, said("a1", "assistant", "It is ten.", 1)));
  assert.deepEqual(spoken(), []);
  act(() => void (settings.value = { ...DEFAULTS, readOut: "all" }));
  tell(() => transcript.upsert(VOICE, said("a2", "assistant", "And now eleven.", 2)));
  assert.deepEqual(spoken(), ["Voice agent: And now eleven."]);
});

test("typed text and lines from before a reload are not announced", () => {
  tell(() => transcript.typed({ side: "text", id: "text-1" }, "user", "Hello"));
  tell(() => transcript.recall([{ ...transcript.lines[0]!, key: "recalled-0", kind: "remark", text: "old" } as Line]));
  assert.deepEqual(spoken(), []);
});

test("an invitation is announced when it arrives and when it ends", () => {
  tell(() => transcript.handoff("voice", { state: "offered", request: "the lab" }, "voice-a"));
  tell(() => transcript.settleHandoff("voice-a", "over"));
  assert.deepEqual(spoken(), ["Continue by voice. the lab", "Not continued by voice. the lab"]);
});

test("a question and an error are announced at once", () => {
  const question: Question = { token: "t", side: "voice", tool: "book", preview: "Book it?", args: "", expires: NOW, approved: null };
  act(() => void (questions.value = [question]));
  assert.match(urgent(), /^The voice agent needs your approval: Book it\?/);
  act(() => void (questions.value = [{ ...question, approved: true }]));
  assert.equal(urgent(), "");
  act(() => void (voice.value = { ...SILENT, phase: "open", notice: { title: "The microphone went away.", advice: "Connect it." } }));
  assert.equal(urgent(), "The microphone went away. Connect it.");
  act(() => void (voice.value = { ...SILENT, phase: "failed", notice: { title: "The gateway cannot be reached.", advice: "Start again." } }));
  assert.equal(urgent(), "The gateway cannot be reached. Start again.");
});

test("lines from before a reload are not announced", () => {
  const before = new Transcript();
  before.hearing(VOICE, 1);
  before.upsert(VOICE, said("u1", "user", "Hello", 1, { turn: 1 }));
  tell(() => transcript.restore(VOICE, before.keep(VOICE)));
  assert.equal(document.querySelector("[role=log]")?.textContent, "");
  transcript.hearing(VOICE, 2);
  tell(() => transcript.upsert(VOICE, said("u2", "user", "And now", 2, { turn: 2 })));
  assert.match(document.querySelector("[role=log]")?.textContent ?? "", /And now/);
});
