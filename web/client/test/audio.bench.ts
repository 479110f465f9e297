// The audio thread's work. Every run is one second of sound in blocks of 128, so hz is the speed relative to real time:
// npx vitest bench --run client
import { bench, describe } from "vitest";
import { Framer } from "../src/audio/framer.js";
import { PlayQueue } from "../src/audio/playqueue.js";
import { Resampler } from "../src/audio/resample.js";
import { noise, tone } from "./signal.js";

describe("one second through the resampler", () => {
  for (const [from, to] of [[44100, 16000], [48000, 16000], [24000, 44100], [24000, 48000]] as const) {
    const resampler = new Resampler(from, to);
    const input = noise(128, 1);
    const out = new Float32Array(512);
    bench(`${from} to ${to}`, () => {
      for (let i = 0; i < from; i += 128) {
        resampler.write(input);
        resampler.read(out);
      }
    });
  }
});

describe("one second of the microphone", () => {
  const framer = new Framer(44100, 16000, () => undefined);
  const stereo = [noise(128, 1), noise(128, 2)];
  bench("44100 Hz stereo to frames at 16000 Hz", () => {
    for (let i = 0; i < 44100; i += 128) {
      framer.push(stereo);
    }
  });
});

describe("one second of the loudspeaker", () => {
  const queue = new PlayQueue(48000, 24000, () => undefined);
  queue.start("a", 24000);
  const frame = tone(24000, 20);
  const out = new Float32Array(128);
  let at = 0;
  bench("24000 Hz in frames of 20 ms to 48000 Hz", () => {
    for (let i = 0; i < 50; i++) {
      queue.push("a", frame, 0);
    }
    for (const end = at + 48000; at < end; at += 128) {
      queue.pull(out, at);
    }
  });
});

describe("making a filter, once per context", () => {
  for (const [from, to] of [[44100, 16000], [24000, 44100], [24000, 48000]] as const) {
    bench(`${from} to ${to}`, () => void new Resampler(from, to));
  }
});
