import assert from "node:assert/strict";
import { beforeEach, test } from "vitest";
import { Instruments } from "../src/instruments.js";
import type { Happening } from "../src/model/feed.js";
import { pictureOf } from "../src/panels/picture.js";
import type { Run, WavePicture } from "../src/ui/paint.js";
import { downlink, ms, opened, played, received, sounding, uplink } from "./feed.js";

/** Two columns of sound for each pixel: from 1000 ms, 200 pixels are 4 s, and the time is 3000 ms. */
const WIDTH = 200;
let instruments: Instruments;

beforeEach(() => {
  instruments = new Instruments(() => undefined);
  take(opened(1000));
});

function take(...happenings: Happening[]): void {
  happenings.forEach((happening) => instruments.take(happening));
}

function picture(from = 1000, now = 3000): WavePicture {
  return pictureOf(instruments, { from, ms: 4000, now }, WIDTH);
}

/** The highest samples of a run's pixels. */
function highs({ from, to, samples }: Run): number[] {
  assert.equal(samples.length, 2 * (to - from));
  return [...samples].filter((_, i) => i % 2 === 1);
}

/** Pixels of the picture in which a run has sound. */
function sounds(run: Run): [number, number] | null {
  const all = highs(run);
  const first = all.findIndex((high) => high > 0);
  return first < 0 ? null : [run.from + first, run.from + all.findLastIndex((high) => high > 0) + 1];
}

test("the user's sound is drawn at its time, up to now", () => {
  // Two frames of 100 ms that ended at 1600 and 1700 ms.
  take(uplink(1600, ms(100, 16_000, 500)), uplink(1700, ms(100, 16_000, 900)));
  const { user, now } = picture();
  assert.equal(now, 100);
  assert.deepEqual([user.from, user.to], [0, 100]);
  assert.deepEqual(sounds(user), [25, 35]);
  assert.deepEqual(highs(user).slice(29, 31), [500, 900]);
  assert.equal(user.samples[2 * 27], 0, "nothing is below zero");
  // A later window without a part of it.
  assert.deepEqual(sounds(picture(1600, 3600).user), [0, 5]);
});

test("a picture ends at its right edge", () => {
  take(uplink(1600, ms(100, 16_000, 500)));
  const { user, now } = picture(1000, 9000);
  assert.deepEqual([user.to, now], [WIDTH, WIDTH]);
});

test("an answer is heard up to now, and its waiting part follows", () => {
  take(received(2000, "audio.start", { item_id: "a", turn: 1 }), downlink(2000, "a", ms(1500, 24_000, 700)), sounding(2400, "a"));
  const { model } = picture();
  const [heard, waiting] = model.map((part) => [sounds(part.heard), sounds(part.unheard), part.lostAt]);
  assert.deepEqual(heard, [[70, 100], null, null]);
  assert.deepEqual(waiting, [null, [100, 145], null]);
});

test("the rest of an answer that was cut off is lost", () => {
  take(received(2000, "audio.start", { item_id: "a", turn: 1 }), downlink(2000, "a", ms(1500, 24_000, 700)), sounding(2000, "a"));
  take(received(2600, "audio.flush", { item_id: "a", turn: 1 }), played(2600, "a", 600, true));
  const { model, marks } = picture();
  assert.deepEqual(
    model.map(({ heard, unheard, lostAt }) => [sounds(heard), sounds(unheard), lostAt]),
    [
      [[50, 80], null, null],
      [null, [80, 125], 80],
    ],
  );
  assert.deepEqual(marks, [{ x: 80, cut: true, label: "cut off" }]);
});

test("in a paused picture, audio that was heard since then still waits", () => {
  take(received(2000, "audio.start", { item_id: "a", turn: 1 }), downlink(2000, "a", ms(1500, 24_000, 700)), sounding(2400, "a"), played(3400, "a", 1000, true));
  const [part] = picture(1000, 2600).model;
  assert.deepEqual([sounds(part!.heard), part!.unheard.from], [[70, 80], 80]);
});

test("visible speeches are drawn up to their end, at most up to now", () => {
  take(...Array.from({ length: 30 }, (_, i) => uplink(1100 + 100 * i, ms(100, 16_000))));
  take(received(1600, "speech.started", { turn: 1, audio_ms: 200 }), received(1800, "speech.stopped", { turn: 1, audio_ms: 600 }));
  take(received(2600, "speech.started", { turn: 2, audio_ms: 1500 }));
  assert.deepEqual(picture().speeches, [{ from: 10, to: 30 }, { from: 75, to: 100 }]);
  assert.deepEqual(picture(1700, 3700).speeches.map(({ to }) => to), [100], "the first has left");
});

test("marks show turns, and the times below show their age", () => {
  take(received(1500, "turn.started", { turn: 1 }), received(2500, "turn.started", { turn: 2 }));
  assert.deepEqual(picture().marks, [
    { x: 25, cut: false, label: "turn 1" },
    { x: 75, cut: false, label: "turn 2" },
  ]);
  const { times } = pictureOf(instruments, { from: 1000, ms: 20_000, now: 17_000 }, WIDTH);
  assert.deepEqual(times, [
    { x: 160, label: "now" },
    { x: 110, label: "−5 s" },
    { x: 60, label: "−10 s" },
    { x: 10, label: "−15 s" },
  ]);
});
