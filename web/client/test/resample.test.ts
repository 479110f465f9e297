import assert from "node:assert/strict";
import { test } from "vitest";
import { Resampler } from "../src/audio/resample.js";
import { decibel, noise, purity, random, sine } from "./signal.js";

/** Converts in blocks with sizes from `next`, and ends the stream. */
function convert(input: Float32Array, from: number, to: number, next: () => number): Float32Array {
  const resampler = new Resampler(from, to);
  const out = new Float32Array(Math.ceil((input.length * to) / from) + 8);
  let n = 0;
  for (let i = 0; i < input.length; ) {
    const size = Math.min(next(), input.length - i);
    resampler.write(input.subarray(i, i + size));
    i += size;
    n += resampler.read(out, n);
  }
  resampler.finish();
  n += resampler.read(out, n);
  return out.subarray(0, n);
}

const quantum = (): number => 128;

/** Without the first and last tenth, where a tone that starts at full level is not pure. */
function steady(out: Float32Array): Float32Array {
  return out.subarray(Math.floor(out.length / 10), Math.ceil((out.length * 9) / 10));
}

// From microphones to the uplink's rates, and from the downlink to loudspeakers.
const PAIRS: [number, number][] = [
  [8000, 16000],
  [16000, 16000],
  [16000, 24000],
  [22050, 16000],
  [32000, 16000],
  [44100, 16000],
  [44100, 24000],
  [44100, 8000],
  [48000, 8000],
  [48000, 16000],
  [48000, 24000],
  [48000, 44100],
  [96000, 16000],
  [192000, 16000],
  [8000, 48000],
  [16000, 44100],
  [24000, 44100],
  [24000, 48000],
  [24000, 96000],
  [24000, 192000],
];

// The limits of the gateway's resampler (audio/resample_test.go) with 10 dB less aliasing, because no PCM16 is in
// between.
for (const [from, to] of PAIRS) {
  const lower = Math.min(from, to);
  const tone = (frequency: number): Float32Array => sine(frequency, from, from * 0.4, 0.9);

  test(`${from} to ${to} Hz keeps frequencies below the band's edge and removes others`, () => {
    for (const frequency of [300.7, 1000, 0.42 * lower]) {
      const out = convert(tone(frequency), from, to, quantum);
      assert.ok(Math.abs(out.length - to * 0.4) <= 1, `${out.length} samples for 0.4 s`);
      const snr = purity(steady(out), frequency, to);
      assert.ok(snr >= 90, `${frequency} Hz comes through with ${snr.toFixed(1)} dB`);
      const gain = decibel(steady(out)) - decibel(steady(tone(frequency)));
      assert.ok(Math.abs(gain) < 0.01, `${frequency} Hz changes by ${gain.toFixed(4)} dB`);
    }
    for (const part of [0.5005, 0.53, 0.6, 0.75, 0.99, 1.3]) {
      const frequency = part * lower;
      if (frequency < 0.499 * from && from > to) {
        const alias = decibel(steady(convert(tone(frequency), from, to, quantum))) - decibel(tone(frequency));
        assert.ok(alias <= -90, `${frequency} Hz folds back at ${alias.toFixed(1)} dB`);
      }
    }
  });
}

test("the block size changes no sample", () => {
  for (const [from, to] of PAIRS) {
    const input = noise(from * 0.1, 3);
    const whole = convert(input, from, to, () => 4000);
    assert.ok(Math.abs(whole.length - Math.ceil((input.length * to) / from)) <= 1, `${from} to ${to}: ${whole.length}`);
    const next = random(7);
    for (const cut of [quantum, () => 1, () => 441, () => Math.floor(next() * 1000)]) {
      assert.deepEqual(convert(input, from, to, cut), whole, `${from} to ${to}`);
    }
  }
});

test("after reset nothing of the earlier stream remains", () => {
  const input = noise(1000, 5);
  const want = convert(input, 44100, 16000, quantum);
  const resampler = new Resampler(44100, 16000);
  // More than fits, so that earlier data is at the start of the buffer.
  for (let i = 0; i < 3; i++) {
    resampler.write(noise(3777, 6));
    resampler.read(new Float32Array(4096));
  }
  resampler.reset();
  resampler.write(input);
  resampler.finish();
  const got = new Float32Array(want.length + 1);
  assert.equal(resampler.read(got), want.length);
  assert.deepEqual(got.subarray(0, want.length), want);
});

test("PCM16 and silence convert like other samples", () => {
  const pcm = Int16Array.from(noise(500, 1), (x) => Math.round(x * 32767));
  const floats = new Float32Array(600);
  floats.set(Float32Array.from(pcm, (x) => x / 32768), 0);
  const want = convert(floats, 24000, 48000, quantum);
  const resampler = new Resampler(24000, 48000);
  resampler.writePcm16(pcm, 0, 200);
  resampler.writePcm16(pcm, 200, 500);
  resampler.writeSilence(100);
  resampler.finish();
  const got = new Float32Array(want.length);
  resampler.read(got);
  assert.deepEqual(got, want);
});

test("the first output sample corresponds to the first input sample", () => {
  const impulse = new Float32Array(4800);
  impulse[2400] = 1;
  const out = convert(impulse, 48000, 16000, quantum);
  assert.equal(out.indexOf(Math.max(...out)), 800);
});

test("the look-ahead is under 7 ms", () => {
  for (const [from, to] of PAIRS) {
    const resampler = new Resampler(from, to);
    let read = 0;
    for (let i = 0; i < from; i += 100) {
      resampler.writeSilence(100);
      read += resampler.read(new Float32Array(2000));
    }
    const behind = 1000 - (read * 1000) / to;
    assert.ok(behind < 7, `${from} to ${to}: ${behind.toFixed(2)} ms behind`);
  }
});

test("refuses invalid rates", () => {
  assert.throws(() => new Resampler(0, 16000), RangeError);
  assert.throws(() => new Resampler(48000, Number.NaN), RangeError);
  assert.throws(() => new Resampler(48000, 16000).write(new Float32Array(100_000)), RangeError);
});
