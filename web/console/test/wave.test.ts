import assert from "node:assert/strict";
import { test } from "vitest";
import type { Happening } from "../src/model/feed.js";
import { Sound } from "../src/model/sound.js";
import { COLUMN_MS, KEPT_MS, Wave, type Columns } from "../src/model/wave.js";
import { downlink, ms, opened, played, uplink } from "./feed.js";

function watched(): { wave: Wave; take: (...happenings: Happening[]) => void } {
  const sound = new Sound();
  const wave = new Wave(sound);
  return {
    wave,
    take: (...happenings) => {
      for (const happening of happenings) {
        sound.take(happening);
        wave.take(happening);
      }
    },
  };
}

const OPENED = opened(0);

function highs(columns: Columns, from: number, to: number): number[] {
  const each = Array.from({ length: to - from }, (_, i) => [columns.low(from + i), columns.high(from + i)]);
  const [lows, highs] = [new Int16Array(to - from).fill(9), new Int16Array(to - from).fill(9)];
  columns.copy(from, lows, highs);
  assert.deepEqual(Array.from(lows, (low, i) => [low, highs[i]]), each, "all at once");
  return Array.from(highs);
}

/** One column of each height. */
function steps(rate: number, ...heights: number[]): Int16Array {
  const each = (rate * COLUMN_MS) / 1000;
  const pcm = new Int16Array(heights.length * each);
  heights.forEach((height, i) => {
    pcm[i * each] = -height;
    pcm[(i + 1) * each - 1] = height;
  });
  return pcm;
}

test("every column has the minimum and maximum of its samples", () => {
  for (const rate of [8000, 16000, 24000, 44100, 48000]) {
    const { wave, take } = watched();
    take(OPENED, uplink(1040, steps(rate, 1, 2, 3, 4), rate));
    // At 44.1 kHz a column ends within a sample.
    assert.deepEqual(highs(wave.user, 99, 105), [0, 1, 2, 3, 4, 0], `${rate}`);
    assert.deepEqual([wave.user.low(100), wave.user.low(103)], [-1, -4], `${rate}`);
  }
});

test("an item's columns follow its own time, whatever its frames", () => {
  const pcm = steps(24000, 1, 2, 3, 4, 5, 6);
  const whole = watched();
  whole.take(OPENED, downlink(1000, "a", pcm));
  const parts = watched();
  parts.take(OPENED);
  for (let i = 0; i < pcm.length; i += 100) {
    parts.take(downlink(1000 + i, "a", pcm.subarray(i, i + 100)));
  }
  for (const { wave } of [whole, parts]) {
    assert.deepEqual(highs(wave.item("a")!, 0, 7), [1, 2, 3, 4, 5, 6, 0]);
  }
});

test("two minutes are stored, and earlier times are silent", () => {
  const { wave, take } = watched();
  take(OPENED, uplink(300, ms(300, 16000, 7)));
  assert.deepEqual(highs(wave.user, 0, 31), [...Array(30).fill(7), 0]);
  const later = KEPT_MS / COLUMN_MS;
  take(uplink(KEPT_MS + 10, ms(10, 16000, 5)));
  assert.deepEqual(highs(wave.user, 0, 3), [0, 7, 7]);
  // Audio after a gap follows silence, not audio of two minutes ago.
  take(uplink(KEPT_MS + 200, ms(10, 16000, 4)));
  assert.deepEqual(highs(wave.user, later, later + 20), [5, ...Array(18).fill(0), 4]);
  take(uplink(10 * KEPT_MS, steps(16000, 5)));
  assert.deepEqual(highs(wave.user, KEPT_MS / COLUMN_MS, KEPT_MS / COLUMN_MS + 1), [0]);
});

test("audio from before the page's start causes no error", () => {
  const { wave, take } = watched();
  take(OPENED, uplink(10, steps(16000, 1, 2, 3)));
  assert.deepEqual(highs(wave.user, 0, 2), [3, 0]);
});

test("a new session starts empty", () => {
  const { wave, take } = watched();
  take(OPENED, uplink(1010, steps(16000, 3)), downlink(1020, "a", steps(24000, 4)));
  take(opened(2000));
  assert.deepEqual([wave.user.high(100), wave.item("a")], [0, undefined]);
});

test("items that ended long ago are removed", () => {
  const { wave, take } = watched();
  take(OPENED, downlink(100, "a", steps(24000, 1)));
  take(played(200, "a", 10, true));
  take(downlink(KEPT_MS + 1000, "b", steps(24000, 1)));
  assert.equal(wave.item("a"), undefined);
  assert.ok(wave.item("b") !== undefined);
});

test("an endless answer is drawn for ten minutes", () => {
  const { wave, take } = watched();
  take(OPENED);
  for (let i = 0; i < 700; i++) {
    take(downlink(i, "a", new Int16Array(8000).fill(1), 8000));
  }
  assert.equal(wave.item("a")!.high(59_999), 1);
  assert.equal(wave.item("a")!.high(60_000), 0);
});
