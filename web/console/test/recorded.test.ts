import assert from "node:assert/strict";
import { test } from "vitest";
import { Instruments } from "../src/instruments.js";
import { axisOf, segmentsOf } from "../src/model/calls.js";
import { GROUPS, Search } from "../src/model/log.js";
import { percentiles } from "../src/model/turns.js";
import { chipsOf, duration, outcomeOf, tookOf, turnRemark } from "../src/panels/words-instruments.js";
import { recorded } from "./recorded.js";

const happenings = recorded();
const END = happenings.at(-1)!.at;
const instruments = new Instruments(() => {});
for (const happening of happenings) {
  instruments.take(happening);
}

test("the conversation's calls as shown", () => {
  const rows = instruments.tools.turns.map(({ side, turn, calls, budget }) => [
    `${side} turn ${turn}, ${budget === undefined ? "no budget" : `${budget.total.used} of ${budget.total.limit}`}, ${axisOf(calls, END).ms} ms`,
    ...calls.map((call) => [call.tool, outcomeOf(call), tookOf(call, END), ...chipsOf(call).map(({ text }) => text)].join(" | ")),
  ]);
  assert.deepEqual(rows, [
    ["voice turn 3, 3 of 3, 20 ms", "kb_search | done | < 1 ms | top_k 10 → 3", "kb_search | done | < 1 ms", "kb_search | failed | – | call limit reached"],
    ["voice turn 4, 1 of 3, 20 ms", "kb_search | done | 2 ms", "kb_search | done | – | joined a running call | not delivered"],
    ["voice turn 6, 1 of 3, 5000 ms", "kb_get | answered | 3.10 s | you approved"],
    ["voice turn 7, 1 of 3, 20 ms", "kb_get | done | < 1 ms | approved by button"],
    ["text turn 1, no budget, 20 ms", "extract_contacts | done | 2 ms"],
    ["voice turn 8, 1 of 3, 20 ms", "end_voice_session | done | < 1 ms"],
  ]);
  const [clamped] = instruments.tools.turns[0]!.calls;
  assert.deepEqual((clamped!.args as { top_k: number }).top_k, 3);
  assert.deepEqual(segmentsOf(instruments.tools.turns[2]!.calls[0]!, END).map(({ kind }) => kind), ["asked"]);
});

test("the conversation's waits and their causes", () => {
  const rows = instruments.turns.list.map((turn) => `${turn.turn} ${turnRemark(turn)}, ${duration(turn.totalMs!)}, heard after ${duration(turn.heardMs!)}, ${Math.round(turn.parts.detection!)}`);
  assert.deepEqual(rows, [
    "1 spoken, cut off, 722 ms, heard after 758 ms, 519",
    "2 spoken, cut off, 714 ms, heard after 779 ms, 511",
    "3 typed, cut off, 204 ms, heard after 249 ms, 0",
    "4 typed, completed, 230 ms, heard after 316 ms, 0",
    "5 typed, cut off, 203 ms, heard after 253 ms, 0",
    "6 typed, completed, 280 ms, heard after 330 ms, 0",
    "7 approved, completed, 203 ms, heard after 249 ms, 0",
    "8 typed, completed, 207 ms, heard after 257 ms, 0",
  ]);
  assert.deepEqual(percentiles(instruments.turns.answered.map(({ totalMs }) => Math.round(totalMs!))), { n: 8, p50: 207, p90: 722, p95: 722, max: 722 });
});

test("heard and lost audio at its time", () => {
  const { sound, wave } = instruments;
  assert.deepEqual([sound.running, sound.speeches.map(({ turn, from, to }) => [turn, Math.round((to! - from) / 100)])], [false, [[1, 22], [2, 16]]]);
  // The machine was busy: in the fourth and the sixth answer the sound paused.
  const kinds = sound.items.map((item) => sound.spans(1, END).filter((span) => span.item === item).map(({ kind }) => kind).join(" "));
  assert.deepEqual(kinds, ["heard lost", "heard lost", "heard", "heard heard lost", "heard", "heard heard lost", "heard", "heard", "heard"]);
  // The user's sound is where the gateway heard speech, and nearly nowhere else.
  const loud = (from: number, to: number): number => Math.max(...Array.from({ length: Math.round((to - from) / 10) }, (_, i) => wave.user.high(Math.round(from / 10) + i)));
  for (const { from, to } of sound.speeches) {
    assert.ok(loud(from, to!) > 3000 && loud(from - 600, from - 400) < 300, `${from}`);
  }
});

test("a turn can be played again", () => {
  const { recording } = instruments;
  assert.deepEqual([1, 3].map((turn) => Object.values(recording.of(1, turn)!).map((ms) => Math.round(ms / 100))), [[28, 96], [0, 107]]);
  const seconds = (which: "user" | "both", turn: number): number => {
    const file = recording.wav(1, turn, which, END)!;
    return Math.round((file.byteLength - 44) / new DataView(file).getUint32(28, true) * 10) / 10;
  };
  assert.equal(seconds("user", 1), 2.8);
  // From before the user spoke until the answer was interrupted.
  assert.equal(seconds("both", 1), 6.4);
});

test("the final state and a tool's intent", () => {
  const { agent } = instruments;
  assert.deepEqual([agent.running, agent.session?.provider, agent.state?.phase, agent.budget?.total.used], [false, "openai", "ended", 1]);
  assert.deepEqual(agent.intents.map(({ type, applied }) => [type, applied]), [["END_VOICE_SESSION", true]]);
});

test("the log contains everything except audio and secrets", () => {
  const entries = new Search(instruments.log, { text: "", side: "", direction: "", groups: new Set(GROUPS) }).now();
  assert.equal(entries.length, happenings.filter(({ kind }) => kind !== "uplink" && kind !== "downlink").length);
  const all = entries.map(({ json }) => json).join("\n");
  assert.doesNotMatch(all, /cf_[A-Z2-7]{16}/);
  const asked = entries.filter(({ type }) => type.startsWith("confirmation.") && type !== "confirmation.resolve").map(({ json }) => /hidden \d+/.exec(json)?.[0]);
  assert.deepEqual(asked, ["hidden 1", "hidden 1"]);
});
