import assert from "node:assert/strict";
import { test } from "vitest";
import { Framer } from "../src/audio/framer.js";
import { purity, sine } from "./signal.js";

function frames(channels: Float32Array[], rate: number): { frames: Int16Array[]; levels: number[] } {
  const out: Int16Array[] = [];
  const levels: number[] = [];
  const framer = new Framer(rate, 16000, (pcm, level) => {
    out.push(pcm);
    levels.push(level);
  });
  for (let i = 0; i + 128 <= channels[0]!.length; i += 128) {
    framer.push(channels.map((channel) => channel.subarray(i, i + 128)));
  }
  return { frames: out, levels };
}

for (const rate of [44100, 48000, 96000]) {
  test(`a second at ${rate} Hz becomes frames of exactly 20 ms`, () => {
    const { frames: got, levels } = frames([sine(500, rate, rate)], rate);
    assert.equal(got.length, 49, "one frame waits for the filter's look-ahead");
    assert.ok(got.every((frame) => frame.length === 320));
    const joined = Float32Array.from(got.slice(5).flatMap((frame) => [...frame]));
    assert.ok(purity(joined, 500, 16000) > 60, "500 Hz survives the frame edges");
    assert.ok(Math.abs(levels.at(-1)! - 0.5 / Math.SQRT2) < 0.01);
  });
}

test("channels are mixed: opposite ones cancel, a single one halves", () => {
  const left = sine(500, 48000, 9600);
  const opposite = left.map((x) => -x);
  assert.ok(frames([left, opposite], 48000).levels.every((level) => level < 1e-6));
  const half = frames([left, new Float32Array(left.length)], 48000).levels.at(-1)!;
  assert.ok(Math.abs(half - 0.25 / Math.SQRT2) < 0.01, `level ${half}`);
});

test("loud samples are clipped, not wrapped around", () => {
  const { frames: got } = frames([new Float32Array(9600).fill(3)], 48000);
  assert.ok(got[2]!.every((sample) => sample === 32767));
});

test("without channels there is no frame", () => {
  const framer = new Framer(48000, 16000, () => assert.fail("a frame out of nothing"));
  framer.push([]);
});
