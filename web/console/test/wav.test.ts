import assert from "node:assert/strict";
import { test } from "vitest";
import { wavFile } from "../src/model/wav.js";

function hex(file: ArrayBuffer): string {
  return Buffer.from(file).toString("hex");
}

test("one channel, byte for byte", () => {
  const want = [
    "52494646", "2a000000", "57415645", // RIFF, 42 bytes follow, WAVE
    "666d7420", "10000000", "0100", "0100", "803e0000", "007d0000", "0200", "1000", // fmt: PCM, 1 channel, 16000 Hz, 32000 bytes a second, 2 a frame, 16 bits
    "64617461", "06000000", "0100", "ff7f", "0080", // data: 1, 32767, -32768
  ].join("");
  assert.equal(hex(wavFile([Int16Array.of(1, 32767, -32768)], 16000)), want);
});

test("two channels are interleaved", () => {
  const file = wavFile([Int16Array.of(1, 2), Int16Array.of(-1, -2)], 24000);
  const view = new DataView(file);
  assert.deepEqual([view.getUint16(22, true), view.getUint32(28, true), view.getUint16(32, true), view.getUint32(40, true), view.getUint32(4, true)], [2, 96_000, 4, 8, file.byteLength - 8]);
  assert.deepEqual([...new Int16Array(file.slice(44))], [1, -1, 2, -2]);
});

test("empty audio is a valid file, unequal channels are not", () => {
  assert.equal(wavFile([new Int16Array(0)], 8000).byteLength, 44);
  assert.throws(() => wavFile([new Int16Array(1), new Int16Array(2)], 8000), RangeError);
});
