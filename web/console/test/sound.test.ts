import assert from "node:assert/strict";
import { test } from "vitest";
import type { Happening } from "../src/model/feed.js";
import { Sound } from "../src/model/sound.js";
import { downlink as audio, ended, ms, opened, played, received, sounding, uplink } from "./feed.js";

function downlink(at: number, item: string, length: number): Happening {
  return audio(at, item, ms(length, 24000));
}

function sound(...happenings: Happening[]): Sound {
  const timeline = new Sound();
  for (const happening of happenings) {
    timeline.take(happening);
  }
  return timeline;
}

function spans(timeline: Sound, now: number): string[] {
  return timeline.spans(timeline.session, now).map(({ item, kind, at, from, to }) => `${item.id} ${kind} ${from}-${to} at ${at}`);
}

test("audio waits for playback and is then placed where it is heard", () => {
  const timeline = sound(opened(0), received(100, "audio.start", { item_id: "a", turn: 3 }), downlink(100, "a", 1000), downlink(120, "a", 1000));
  assert.equal(timeline.items[0]!.turn, 3);
  assert.deepEqual(spans(timeline, 150), ["a waiting 0-2000 at 150"]);
  timeline.take(sounding(200, "a"));
  assert.deepEqual(spans(timeline, 700), ["a heard 0-500 at 200", "a waiting 500-2000 at 700"]);
  timeline.take(played(400, "a", 200));
  timeline.take(played(2205, "a", 1998, true));
  assert.deepEqual(spans(timeline, 3000), ["a heard 0-2000 at 200"]);
});

test("flushed audio was not heard and ends where the next answer begins", () => {
  const timeline = sound(opened(0), downlink(100, "a", 5000), sounding(200, "a"), received(1190, "audio.flush", { item_id: "a", turn: 1 }), played(1200, "a", 1000, true));
  assert.deepEqual(spans(timeline, 1300), ["a heard 0-1000 at 200", "a lost 1000-5000 at 1200"]);
  assert.deepEqual(timeline.marks, [{ kind: "flush", at: 1190, turn: 1 }]);
  timeline.take(downlink(2000, "b", 1000));
  assert.deepEqual(spans(timeline, 2100).slice(1), ["a lost 1000-1900 at 1200", "b waiting 0-1000 at 2100"]);
  timeline.take(sounding(2200, "b"));
  assert.deepEqual(spans(timeline, 2300).slice(1), ["a lost 1000-2000 at 1200", "b heard 0-100 at 2200", "b waiting 100-1000 at 2300"]);
});

test("audio flushed before playback is lost completely", () => {
  const timeline = sound(opened(0), downlink(100, "a", 800), played(150, "a", 0, true));
  assert.deepEqual(spans(timeline, 200), ["a lost 0-800 at 150"]);
});

test("an ended answer does not change", () => {
  const timeline = sound(opened(0), downlink(100, "a", 800), sounding(200, "a"), played(700, "a", 500, true), played(900, "a", 0, true), played(950, "a", 700));
  assert.deepEqual(spans(timeline, 2000), ["a heard 0-500 at 200", "a lost 500-800 at 700"]);
});

test("a new session ends the old one's playback", () => {
  const timeline = sound(opened(0), downlink(100, "a", 5000), sounding(200, "a"), opened(1200));
  assert.deepEqual(timeline.spans(1, 9000).map(({ kind, to }) => [kind, to]), [["heard", 1000], ["lost", 5000]]);
});

test("two answers wait one after the other", () => {
  const timeline = sound(opened(0), downlink(100, "a", 1000), sounding(200, "a"), downlink(300, "b", 500));
  assert.deepEqual(spans(timeline, 400), ["a heard 0-200 at 200", "a waiting 200-1000 at 400", "b waiting 0-500 at 1200"]);
});

test("an underrun is drawn as a gap at its time", () => {
  const timeline = sound(opened(0), downlink(100, "a", 300), sounding(100, "a"), played(300, "a", 200));
  // No audio is left at 400; more arrives at 600 and plays from 700 on.
  assert.deepEqual(spans(timeline, 550), ["a heard 0-300 at 100"]);
  timeline.take(downlink(600, "a", 1000));
  timeline.take(played(800, "a", 400));
  timeline.take(played(1000, "a", 600));
  assert.deepEqual(spans(timeline, 1100), ["a heard 0-300 at 100", "a heard 300-700 at 700", "a waiting 700-1300 at 1100"]);
});

test("late reports of a busy page are not gaps", () => {
  const timeline = sound(opened(0), downlink(0, "a", 60_000), sounding(0, "a"));
  for (const [at, ms] of [[200, 200], [540, 400], [605, 600], [800, 800], [1130, 1000], [1200, 1200]]) {
    timeline.take(played(at!, "a", ms!));
  }
  assert.deepEqual(spans(timeline, 1200)[0], "a heard 0-1200 at 0");
});

test("after a pause in playback the rest is later", () => {
  const timeline = sound(opened(0), downlink(0, "a", 60_000), sounding(0, "a"));
  for (const [at, ms] of [[200, 200], [500, 400], [710, 600], [905, 800]]) {
    timeline.take(played(at!, "a", ms!));
  }
  assert.deepEqual(spans(timeline, 905).slice(0, 2), ["a heard 0-400 at 0", "a heard 400-805 at 500"]);
});

test("a clock of another speed is followed", () => {
  const timeline = sound(opened(0), downlink(0, "a", 60_000), sounding(0, "a"));
  timeline.take(played(10_000, "a", 10_100));
  assert.deepEqual(spans(timeline, 10_000)[0], "a heard 0-10100 at -100");
  const none = sound(opened(0), downlink(0, "a", 1000), played(300, "a", 200));
  assert.deepEqual(spans(none, 400)[0], "a heard 0-300 at 100");
});

test("speech is placed at its time, not at its report", () => {
  const timeline = sound(opened(0));
  for (let sent = 20; sent <= 4000; sent += 20) {
    timeline.take(uplink(5000 + sent, ms(20, 16000)));
  }
  timeline.take(received(7000, "speech.started", { audio_ms: 1160 }));
  timeline.take(received(9300, "speech.stopped", { audio_ms: 3500 }));
  timeline.take(received(9310, "turn.started", { turn: 4 }));
  assert.deepEqual(timeline.speeches, [{ session: 1, turn: 4, from: 6160, to: 8500 }]);
});

test("repeated reports are one speech, and a speech without an end ends with its turn", () => {
  const timeline = sound(opened(0));
  for (let sent = 20; sent <= 9000; sent += 20) {
    timeline.take(uplink(sent, ms(20, 16000)));
  }
  timeline.take(received(3000, "speech.started", { turn: 1, audio_ms: 2000 }));
  timeline.take(received(3000, "speech.started", { turn: 1, audio_ms: 2300 }));
  timeline.take(received(5000, "turn.started", { turn: 1 }));
  timeline.take(received(6000, "speech.started", { audio_ms: 5500 }));
  timeline.take(received(8000, "speech.started", { turn: 3, audio_ms: 7500 }));
  assert.deepEqual(timeline.speeches.map(({ turn, from, to }) => [turn, from, to]), [[1, 2000, 5000], [undefined, 5500, 7500], [3, 7500, undefined]]);
});

test("the end of a session ends playback", () => {
  const timeline = sound(opened(0), downlink(100, "a", 5000), sounding(200, "a"), received(300, "speech.started", { turn: 2 }));
  timeline.take(ended(1200));
  assert.deepEqual(spans(timeline, 9000), ["a heard 0-1000 at 200", "a lost 1000-5000 at 1200"]);
  assert.equal(timeline.speeches[0]!.to, 1200);
  assert.deepEqual([timeline.running, timeline.stoppedAt], [false, 1200]);
  timeline.take(opened(10_000));
  assert.ok(timeline.running);
  assert.deepEqual(spans(timeline, 10_000), []);
  assert.equal(timeline.item("a"), undefined);
});

test("an endless call uses limited memory", () => {
  const timeline = sound(opened(0));
  for (let i = 0; i < 2000; i++) {
    timeline.take(received(i, "audio.start", { item_id: `i${i}` }));
    timeline.take(received(i, "speech.started", { turn: i, audio_ms: i }));
    timeline.take(received(i, "turn.started", { turn: i }));
  }
  assert.deepEqual([timeline.items.length, timeline.speeches.length, timeline.marks.length], [400, 400, 400]);
});
