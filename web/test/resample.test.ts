import assert from "node:assert/strict";
import { test } from "node:test";
import { Resampler } from "../page/resample.js";
import { decibel, purity, sine } from "./signal.js";

/** Converts in blocks of the given sizes, in turn, and ends the stream. */
function convert(input: Float32Array, from: number, to: number, blocks: number[]): Float32Array {
  const resampler = new Resampler(from, to);
  const out = new Float32Array(Math.ceil((input.length * to) / from) + 8);
  let n = 0;
  for (let i = 0, k = 0; i < input.length; k++) {
    const size = Math.min(blocks[k % blocks.length]!, input.length - i);
    resampler.write(input, i, i + size);
    i += size;
    n += resampler.read(out, n);
  }
  resampler.finish();
  n += resampler.read(out, n);
  return out.subarray(0, n);
}

const PAIRS: [number, number][] = [
  [44100, 16000],
  [48000, 16000],
  [96000, 16000],
  [16000, 16000],
  [22050, 16000],
  [8000, 16000],
  [24000, 44100],
  [24000, 48000],
  [24000, 96000],
  [24000, 192000],
];

for (const [from, to] of PAIRS) {
  test(`${from} to ${to} Hz keeps speech and the length`, () => {
    const passband = 0.4 * Math.min(from, to);
    for (const frequency of [200, 1000, passband]) {
      const input = sine(frequency, from, from);
      const out = convert(input, from, to, [128]);
      assert.ok(Math.abs(out.length - to) <= 1, `${out.length} samples for one second`);
      // Half a second holds whole periods of each of these frequencies.
      const inner = out.subarray(to / 4, to / 4 + to / 2);
      const snr = purity(inner, frequency, to);
      assert.ok(snr > 70, `${frequency} Hz comes out with ${snr.toFixed(1)} dB`);
      const gain = decibel(inner) - decibel(input);
      assert.ok(Math.abs(gain) < 0.1, `${frequency} Hz changes by ${gain.toFixed(2)} dB`);
    }
  });

  test(`${from} to ${to} Hz is the same for every block size`, () => {
    const input = Float32Array.from({ length: 6000 }, (_, i) => Math.sin(i * i * 1e-4));
    const whole = convert(input, from, to, [4000]);
    assert.deepEqual(convert(input, from, to, [1, 128, 7, 441]), whole);
  });
}

for (const [from, to] of PAIRS.filter(([from, to]) => from > to)) {
  test(`${from} to ${to} Hz lets nothing fold back`, () => {
    for (const frequency of [to / 2 + 50, 0.7 * to, 0.45 * from].filter((f) => f > to / 2 && f < from / 2)) {
      const input = sine(frequency, from, from);
      const out = convert(input, from, to, [128]);
      const inner = out.subarray(out.length >> 3, out.length - (out.length >> 3));
      const alias = decibel(inner) - decibel(input);
      assert.ok(alias < -75, `${frequency} Hz leaves ${alias.toFixed(1)} dB`);
    }
  });
}

test("the first output stands for the first input", () => {
  const impulse = new Float32Array(4800);
  impulse[2400] = 1;
  const out = convert(impulse, 48000, 16000, [128]);
  assert.equal(out.indexOf(Math.max(...out)), 800);
});

test("refuses what it cannot do", () => {
  assert.throws(() => new Resampler(0, 16000), RangeError);
  assert.throws(() => new Resampler(48000, Number.NaN), RangeError);
  assert.throws(() => new Resampler(48000, 16000).write(new Float32Array(100_000)), RangeError);
});
