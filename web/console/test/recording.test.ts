import assert from "node:assert/strict";
import { test } from "vitest";
import type { Happening } from "../src/model/feed.js";
import { fileName, Recording } from "../src/model/recording.js";
import { Sound } from "../src/model/sound.js";
import { anew, downlink, ms, opened, played, received, sounding, uplink } from "./feed.js";

function watched(limitMs?: number): { recording: Recording; take: (...happenings: Happening[]) => void } {
  const sound = new Sound();
  const recording = new Recording(sound, limitMs);
  return {
    recording,
    take: (...happenings) => {
      for (const happening of happenings) {
        sound.take(happening);
        recording.take(happening);
      }
    },
  };
}

/** A turn: the user speaks from 1 s to 2 s, the model is heard from 3 s to 3.5 s of its 2 s. */
function turn(take: (...happenings: Happening[]) => void, rate = 16000): void {
  take(opened(0));
  for (let at = 20; at <= 4000; at += 20) {
    take(uplink(at, ms(20, rate, at > 1000 && at <= 2000 ? 1000 : 1), rate));
  }
  take(
    received(1200, "speech.started", { turn: 1, audio_ms: 1000 }),
    received(2400, "speech.stopped", { turn: 1, audio_ms: 2000 }),
    received(2800, "audio.start", { turn: 1, item_id: "a" }),
    downlink(2800, "a", ms(1000, 24000, 2000)),
    downlink(2900, "a", ms(1000, 24000, 2000)),
    sounding(3000, "a"),
    received(3490, "audio.flush", { turn: 1, item_id: "a" }),
    played(3500, "a", 500, true),
  );
}

function read(file: ArrayBuffer | null): { rate: number; channels: Int16Array[] } {
  assert.ok(file !== null);
  const view = new DataView(file);
  const count = view.getUint16(22, true);
  const samples = new Int16Array(file.slice(44));
  const channels = Array.from({ length: count }, (_, c) => samples.filter((_, i) => i % count === c));
  return { rate: view.getUint32(24, true), channels };
}

test("the user alone, with a margin before and after", () => {
  const { recording, take } = watched();
  turn(take);
  assert.deepEqual(recording.of(1, 1), { userMs: 1600, modelMs: 2000 });
  const { rate, channels } = read(recording.wav(1, 1, "user", 9000));
  assert.deepEqual([rate, channels.length, channels[0]!.length], [16000, 1, 25_600]);
  // 300 ms before the speech, and 300 ms behind it.
  assert.deepEqual([0, 4799, 4800, 20_799, 20_800, 25_599].map((i) => channels[0]![i]), [1, 1, 1000, 1000, 1, 1]);
});

test("the model alone, with unheard audio", () => {
  const { recording, take } = watched();
  turn(take);
  const { rate, channels } = read(recording.wav(1, 1, "model", 9000));
  assert.deepEqual([rate, channels[0]!.length], [24000, 48_000]);
  assert.ok(channels[0]!.every((sample) => sample === 2000));
});

test("both sides as they were heard, at one rate", () => {
  const { recording, take } = watched();
  turn(take);
  const { rate, channels } = read(recording.wav(1, 1, "both", 9000));
  // From 0.7 s to 3.5 s.
  assert.deepEqual([rate, channels.length, channels[0]!.length], [24000, 2, 67_200]);
  const [left, right] = channels as [Int16Array, Int16Array];
  const at = (second: number): number => Math.round((second - 0.7) * 24000);
  assert.ok(Math.abs(left[at(1.5)]! - 1000) <= 2 && Math.abs(left[at(2.5)]! - 1) <= 1, "the user is resampled");
  assert.deepEqual([right[at(2.99)], right[at(3.01)], right[at(3.49)]], [0, 2000, 2000]);
});

test("a typed turn has the model's audio and the microphone during it", () => {
  const { recording, take } = watched();
  take(opened(0), received(100, "audio.start", { turn: 1, item_id: "a" }), downlink(100, "a", ms(500, 24000, 5)), sounding(200, "a"), played(700, "a", 500, true));
  assert.deepEqual(recording.of(1, 1), { userMs: 0, modelMs: 500 });
  assert.equal(recording.wav(1, 1, "user", 9000), null);
  assert.deepEqual(read(recording.wav(1, 1, "both", 9000)).channels.map(({ length }) => length), [12_000, 12_000]);
});

test("a turn without a recording is null", () => {
  const { recording, take } = watched();
  turn(take);
  assert.equal(recording.of(1, 2), null);
  assert.equal(recording.of(2, 1), null);
  assert.deepEqual((["user", "model", "both"] as const).map((which) => recording.wav(1, 2, which, 9000)), [null, null, null]);
});

test("sessions and their turns are separate until a new conversation begins", () => {
  const { recording, take } = watched();
  turn(take);
  take(opened(5000), received(5100, "audio.start", { turn: 1, item_id: "a" }), downlink(5100, "a", ms(100, 24000)));
  assert.deepEqual([recording.of(1, 1)?.modelMs, recording.of(2, 1)?.modelMs], [2000, 100]);
  assert.equal(fileName(2, 1, "both"), "voicegw-2-turn-1-both.wav");
  take(anew(6000));
  assert.deepEqual([recording.of(1, 1), recording.of(2, 1)], [null, null]);
});

test("the newest minutes of both sides are stored", () => {
  const { recording, take } = watched(10_000);
  take(opened(0));
  for (let second = 1; second <= 60; second++) {
    take(uplink(second * 1000, ms(1000, 8000, second), 8000));
    take(received(second * 1000, "audio.start", { turn: second, item_id: `i${second}` }), downlink(second * 1000, `i${second}`, ms(1000, 8000), 8000));
    take(received(second * 1000, "speech.started", { turn: second, audio_ms: (second - 1) * 1000 }), received(second * 1000, "speech.stopped", { turn: second, audio_ms: second * 1000 }));
  }
  const kept = Array.from({ length: 60 }, (_, i) => recording.of(1, i + 1)).map((turn) => turn?.modelMs ?? 0);
  assert.equal(kept.reduce((sum, length) => sum + length, 0), 10_000);
  assert.ok(kept[49] === 0 && kept[50] === 1000);
  assert.deepEqual([recording.of(1, 40), recording.of(1, 51)!.userMs, recording.of(1, 55)!.userMs], [null, 1300, 1600]);
  // One answer may be longer than the limit.
  for (let second = 61; second <= 80; second++) {
    take(downlink(second * 1000, "i60", ms(1000, 8000, second), 8000));
  }
  assert.equal(recording.of(1, 60)!.modelMs, 10_000);
  assert.equal(read(recording.wav(1, 60, "model", 99_000)).channels[0]![0], 71);
});

test("the user's audio is complete and in order after the page was busy", () => {
  const { recording, take } = watched();
  take(opened(0));
  for (let clock = 20; clock <= 4000; clock += 20) {
    // For 400 ms the page is blocked, and then all frames arrive at once.
    const at = clock > 1200 && clock < 1600 ? 1600 : clock;
    take(uplink(at, ms(20, 16000, clock), 16000, clock));
  }
  take(received(1200, "speech.started", { turn: 1, audio_ms: 1000 }), received(2400, "speech.stopped", { turn: 1, audio_ms: 2000 }));
  const [channel] = read(recording.wav(1, 1, "user", 9000)).channels;
  const frames = Array.from({ length: channel!.length / 320 }, (_, i) => channel![i * 320]);
  assert.deepEqual(frames, Array.from({ length: frames.length }, (_, i) => 720 + 20 * i));
});

test("a gap in the sent audio is silence", () => {
  const { recording, take } = watched();
  take(opened(0), uplink(1000, ms(1000, 16000, 5)), uplink(3000, ms(1000, 16000, 6)));
  take(received(3000, "speech.started", { turn: 1, audio_ms: 0 }), received(3000, "speech.stopped", { turn: 1, audio_ms: 2000 }));
  const [channel] = read(recording.wav(1, 1, "user", 9000)).channels;
  const at = (second: number): number => channel![Math.round((second + 0.3) * 16000)]!;
  assert.deepEqual([at(0.5), at(1.5), at(2.5)], [5, 0, 6]);
});
