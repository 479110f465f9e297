import assert from "node:assert/strict";
import { beforeAll, test, vi } from "vitest";
import type { CaptureCommand, CapturedFrame, PlayCommand, PlayNotice } from "../src/audio/worklets/messages.js";
import { sine, tone } from "./signal.js";

const RATE = 48_000;
const QUANTUM = 128;

interface Processor {
  port: { onmessage: (event: { data: unknown }) => void; posted: unknown[] };
  process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean;
}

const registered = new Map<string, new (options: unknown) => Processor>();

beforeAll(async () => {
  vi.stubGlobal("sampleRate", RATE);
  vi.stubGlobal("currentFrame", 0);
  vi.stubGlobal("AudioWorkletProcessor", class {
    port = { posted: [] as unknown[], postMessage: (message: unknown) => void this.port.posted.push(message) };
  });
  vi.stubGlobal("registerProcessor", (name: string, processor: new (options: unknown) => Processor) => registered.set(name, processor));
  await import("../src/audio/worklets/capture.js");
  await import("../src/audio/worklets/playback.js");
  return () => vi.unstubAllGlobals();
});

/** The audio thread with one node. */
class Thread<Command, Notice> {
  private readonly processor: Processor;
  private frame = 0;
  running = true;

  constructor(name: string, rate: number, pair = Math.random()) {
    this.processor = new (registered.get(name)!)({ processorOptions: { rate, pair } });
  }

  send(command: Command): void {
    this.processor.port.onmessage({ data: command });
  }

  /** The messages since the last call. */
  reported(): Notice[] {
    return this.processor.port.posted.splice(0) as Notice[];
  }

  /** Runs for this long and returns the output. */
  run(ms: number, input: (frame: number) => Float32Array[] = () => []): Float32Array {
    const blocks = Math.round((ms * RATE) / 1000 / QUANTUM);
    const out = new Float32Array(blocks * QUANTUM);
    for (let i = 0; i < blocks && this.running; i++) {
      vi.stubGlobal("currentFrame", this.frame);
      this.running = this.processor.process([input(this.frame)], [[out.subarray(i * QUANTUM, (i + 1) * QUANTUM)]]);
      this.frame += QUANTUM;
    }
    return out;
  }
}

const recording = sine(500, RATE, 4 * RATE);
const voice = (frame: number): Float32Array[] => [recording.subarray(frame, frame + QUANTUM)];

test("capture makes frames of 20 ms from its input, and from silence without input", () => {
  const capture = new Thread<CaptureCommand, CapturedFrame>("voicegw-capture", 16000);
  capture.run(200, voice);
  const spoken = capture.reported();
  assert.ok(spoken.length >= 9);
  assert.ok(spoken.every(({ at }) => Math.abs(Date.now() - at) < 60_000), "each has its time");
  assert.ok(spoken.slice(1).every(({ pcm, level }) => pcm.byteLength === 640 && level > 0.3));
  const out = capture.run(200);
  const silent = capture.reported();
  assert.equal(spoken.length + silent.length, 19, "one frame waits for the filter's look-ahead");
  assert.ok(silent.slice(2).every(({ level }) => level < 1e-6));
  assert.ok(out.every((x) => x === 0), "its output is silent");
  const clock = [...spoken, ...silent].map(({ clockMs }) => clockMs);
  assert.ok(clock.slice(1).every((ms, i) => Math.abs(ms - clock[i]! - 20) < 10), "the audio clock shows consecutive frames");
});

test("off, capture sends one more second of silence, and it continues when it is on again", () => {
  const capture = new Thread<CaptureCommand, CapturedFrame>("voicegw-capture", 16000);
  capture.run(200, voice);
  capture.reported();
  capture.send("off");
  capture.run(3000, voice);
  const tail = capture.reported();
  assert.ok(Math.abs(tail.length - 50) <= 1, `${tail.length} frames`);
  assert.ok(tail.slice(2).every(({ level }) => level < 1e-6));
  capture.send("on");
  capture.run(200, voice);
  const again = capture.reported();
  assert.ok(again.length >= 9);
  assert.ok(again[0]!.clockMs - tail.at(-1)!.clockMs > 1900, "the audio clock has continued");
});

test("capture ends when it is closed", () => {
  const capture = new Thread<CaptureCommand, CapturedFrame>("voicegw-capture", 16000);
  capture.send("close");
  capture.run(20, voice);
  assert.equal(capture.running, false);
});

test("playback plays its input and reports it, and its level until silence", () => {
  const playback = new Thread<PlayCommand, PlayNotice>("voicegw-playback", 24000);
  playback.send({ type: "latency", seconds: 0.1 });
  playback.send({ type: "start", item: "a", rate: 24000 });
  playback.send({ type: "audio", item: "a", pcm: tone(24000, 300).buffer as ArrayBuffer, at: 5 });
  playback.send({ type: "end", item: "a" });
  assert.ok(playback.run(320).some((x) => x > 0.4));
  const reported = playback.reported();
  assert.ok(!reported.some((notice) => notice.type === "report" && notice.done), "its end is still inside the device");
  playback.run(400);
  reported.push(...playback.reported());
  assert.deepEqual(reported.find(({ type }) => type === "sounding"), { type: "sounding", item: "a", frame: 0, firstByteAt: 5, cushionMs: 0 });
  assert.deepEqual(reported.findLast(({ type }) => type === "report"), { type: "report", item: "a", playedMs: 300, done: true });
  const levels = reported.flatMap((notice) => (notice.type === "level" ? [notice.level] : []));
  assert.ok(Math.abs(levels[2]! - 0.5 / Math.SQRT2) < 0.02, `${levels[2]}`);
  assert.ok(levels.length >= 8 && levels.length <= 9, "25 a second, and one zero after the sound");
  assert.equal(levels.at(-1), 0);
  assert.equal(levels.filter((level) => level === 0).length, 1);
});

test("playback becomes silent at a flush, and ends when it is closed", () => {
  const playback = new Thread<PlayCommand, PlayNotice>("voicegw-playback", 24000);
  playback.send({ type: "start", item: "a", rate: 24000 });
  playback.send({ type: "audio", item: "a", pcm: tone(24000, 3000).buffer as ArrayBuffer, at: 5 });
  playback.run(200);
  playback.send({ type: "flush", item: "a", at: 0.2 });
  assert.ok(playback.run(100).findLastIndex((x) => x !== 0) <= 0.01 * RATE);
  assert.ok(playback.reported().some((notice) => notice.type === "silenced" && notice.ms >= 9 && notice.ms <= 13));
  playback.send({ type: "close" });
  playback.run(20);
  assert.equal(playback.running, false);
});

test("the loudspeaker's level is sent with the microphone's frames if there are any, and its end separately", () => {
  const capture = new Thread<CaptureCommand, CapturedFrame>("voicegw-capture", 16000, 7);
  const playback = new Thread<PlayCommand, PlayNotice>("voicegw-playback", 24000, 7);
  const alone = new Thread<PlayCommand, PlayNotice>("voicegw-playback", 24000, 8);
  const levels = (reported: PlayNotice[]): number[] => reported.flatMap((notice) => (notice.type === "level" ? [notice.level] : []));
  const along = (reported: CapturedFrame[]): number[] => reported.flatMap(({ played }) => (played === undefined ? [] : [played]));
  const sound = new Int16Array(24_000).fill(8000);
  for (const speaker of [playback, alone]) {
    speaker.send({ type: "start", item: "a", rate: 24_000 });
    speaker.send({ type: "audio", item: "a", pcm: sound.slice().buffer, at: 0 });
  }
  const both = (ms: number): void => {
    // In blocks, as an audio thread does.
    for (let done = 0; done < ms; done += 8) {
      capture.run(8);
      playback.run(8);
      alone.run(8);
    }
  };
  both(400);
  const [carried, own] = [along(capture.reported()), levels(alone.reported())];
  assert.deepEqual(levels(playback.reported()), []);
  assert.ok(own.length >= 7 && Math.abs(carried.length - own.length) <= 1, `${carried.length} levels and ${own.length}`);
  assert.deepEqual(carried.slice(0, 7), own.slice(0, 7));
  // Without frames it stops early, even in the last milliseconds.
  capture.send("off");
  both(1000);
  assert.ok(along(capture.reported()).length > 0);
  playback.send({ type: "audio", item: "a", pcm: sound.slice().buffer, at: 0 });
  playback.reported();
  both(400);
  assert.deepEqual([along(capture.reported()).length, levels(playback.reported()).length >= 7], [0, true]);
  capture.send("on");
  playback.send({ type: "flush", item: null, at: 0 });
  both(400);
  assert.equal(levels(playback.reported()).at(-1), 0);
  capture.send("close");
  playback.send({ type: "start", item: "b", rate: 24_000 });
  playback.send({ type: "audio", item: "b", pcm: sound.slice().buffer, at: 0 });
  both(400);
  assert.ok(levels(playback.reported()).length >= 7, "after its end it reads no more");
});
