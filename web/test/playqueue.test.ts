import assert from "node:assert/strict";
import { test } from "node:test";
import { PlayQueue, type PlayEvent } from "../page/playqueue.js";
import { tone } from "./signal.js";

const RATE = 48000;
const BLOCK = 128;

/** A queue with the audio device that pulls from it. */
class Device {
  readonly events: PlayEvent[] = [];
  readonly queue = new PlayQueue(RATE, (event) => this.events.push(event));

  /** Plays so many milliseconds and returns what sounded. */
  play(ms: number): Float32Array {
    const blocks = Math.round((ms * RATE) / 1000 / BLOCK);
    const heard = new Float32Array(blocks * BLOCK);
    for (let i = 0; i < blocks; i++) {
      this.queue.pull(heard.subarray(i * BLOCK, (i + 1) * BLOCK));
    }
    return heard;
  }

  item(id: string, ms: number): void {
    this.queue.start(id, 24000);
    this.queue.push(id, tone(24000, ms));
    this.queue.end(id);
  }

  reports(item: string): { playedMs: number; done: boolean }[] {
    return this.events
      .filter((event) => event.type === "report" && event.item === item)
      .map((event) => event as Extract<PlayEvent, { type: "report" }>)
      .map(({ playedMs, done }) => ({ playedMs, done }));
  }

  count(type: PlayEvent["type"]): number {
    return this.events.filter((event) => event.type === type).length;
  }
}

function soundingMs(heard: Float32Array): number {
  const last = heard.findLastIndex((x) => Math.abs(x) > 1e-4);
  return ((last + 1) * 1000) / RATE;
}

/** The largest step between neighbours: a click is a large one. */
function largestStep(heard: Float32Array): number {
  let largest = 0;
  for (let i = 1; i < heard.length; i++) {
    largest = Math.max(largest, Math.abs(heard[i]! - heard[i - 1]!));
  }
  return largest;
}

// A 440 Hz sine of amplitude 0.5 at 48 kHz moves by 0.029 per sample at most.
const SMOOTH = 0.04;

test("an item sounds as long as it is, and is reported every 200 ms and once at its end", () => {
  const device = new Device();
  device.item("a", 500);
  const heard = device.play(700);
  assert.ok(Math.abs(soundingMs(heard) - 500) < 4, `${soundingMs(heard)} ms`);
  assert.ok(largestStep(heard) < SMOOTH);
  const reports = device.reports("a");
  assert.deepEqual(reports.map((report) => report.done), [false, false, true]);
  assert.deepEqual(reports.at(-1), { playedMs: 500, done: true });
  assert.ok(Math.abs(reports[0]!.playedMs - 200) <= 3);
  assert.equal(device.count("sounding"), 1);
});

test("a flush silences within 10 ms, without a click, and later bytes are dropped", () => {
  const device = new Device();
  device.queue.start("a", 24000);
  device.queue.push("a", tone(24000, 5000));
  const before = device.play(300);
  device.queue.flush("a");
  device.queue.push("a", tone(24000, 1000));
  device.queue.end("a");
  const after = device.play(1000);
  assert.ok(soundingMs(after) <= 10, `sounds for ${soundingMs(after)} ms after the flush`);
  assert.ok(largestStep(Float32Array.from([...before, ...after])) < SMOOTH);
  const done = device.reports("a").filter((report) => report.done);
  assert.equal(done.length, 1);
  assert.ok(Math.abs(done[0]!.playedMs - 300) < 5, `${done[0]!.playedMs} ms heard`);
});

test("a flush of an item that ended before is answered with what was heard", () => {
  const device = new Device();
  device.item("a", 100);
  device.play(200);
  device.queue.flush("a");
  device.queue.flush("never seen");
  assert.deepEqual(device.reports("a"), [
    { playedMs: 100, done: true },
    { playedMs: 100, done: true },
  ]);
  assert.deepEqual(device.reports("never seen"), [{ playedMs: 0, done: true }]);
});

test("a flushed item that had not begun was not heard, and the one before it plays on", () => {
  const device = new Device();
  device.item("a", 300);
  device.item("b", 300);
  device.play(100);
  device.queue.flush("b");
  const heard = device.play(400);
  assert.ok(Math.abs(soundingMs(heard) - 200) < 5);
  assert.deepEqual(device.reports("b"), [{ playedMs: 0, done: true }]);
});

test("the next item begins right after the flushed one", () => {
  const device = new Device();
  device.item("a", 1000);
  device.play(100);
  device.queue.flush("a");
  device.item("b", 300);
  device.play(400);
  assert.deepEqual(device.reports("b").at(-1), { playedMs: 300, done: true });
});

test("flush of everything reports every item once", () => {
  const device = new Device();
  device.item("a", 300);
  device.item("b", 300);
  device.play(100);
  device.queue.flush(null);
  assert.ok(soundingMs(device.play(300)) <= 10);
  assert.equal(device.reports("a").filter((report) => report.done).length, 1);
  assert.equal(device.reports("b").filter((report) => report.done).length, 1);
});

test("sound waits for the cushion of 60 ms, or for the end of a short item", () => {
  const device = new Device();
  device.queue.start("a", 24000);
  device.queue.push("a", tone(24000, 40));
  assert.equal(soundingMs(device.play(100)), 0);
  device.queue.push("a", tone(24000, 20));
  assert.ok(soundingMs(device.play(40)) > 30);

  const short = new Device();
  short.item("b", 40);
  assert.ok(Math.abs(soundingMs(short.play(100)) - 40) < 4);
});

test("an underrun grows the cushion and does not click; a late end is none", () => {
  const device = new Device();
  device.queue.start("a", 24000);
  device.queue.push("a", tone(24000, 100));
  const heard = [...device.play(150)];
  assert.equal(device.count("underrun"), 0, "it may have been the end");
  device.queue.push("a", tone(24000, 60));
  assert.equal(device.count("underrun"), 1);
  heard.push(...device.play(50));
  device.queue.push("a", tone(24000, 60));
  heard.push(...device.play(100));
  assert.ok(soundingMs(Float32Array.from(heard)) > 200, "it goes on with a cushion of 90 ms");
  // Each push begins a new sine: only the gap's edges are looked at.
  const edge = Math.round(0.1 * RATE);
  assert.ok(largestStep(Float32Array.from(heard.slice(edge - 480, edge + 480))) < SMOOTH);

  const late = new Device();
  late.queue.start("b", 24000);
  late.queue.push("b", tone(24000, 100));
  late.play(150);
  late.queue.end("b");
  assert.equal(late.count("underrun"), 0);
  assert.deepEqual(late.reports("b").at(-1)?.done, true);
  assert.equal(soundingMs(late.play(50)), 0);
});

test("the queue is bounded: what is beyond five minutes is lost, and said once", () => {
  const device = new Device();
  device.queue.start("a", 24000);
  for (let i = 0; i < 40; i++) {
    device.queue.push("a", tone(24000, 10_000));
  }
  assert.equal(device.count("overflow"), 1);
});

test("other device rates play to the end too", () => {
  for (const rate of [44100, 96000]) {
    const events: PlayEvent[] = [];
    const queue = new PlayQueue(rate, (event) => events.push(event));
    queue.start("a", 24000);
    queue.push("a", tone(24000, 250));
    queue.end("a");
    const out = new Float32Array(BLOCK);
    for (let i = 0; i < rate / BLOCK; i++) {
      queue.pull(out);
    }
    assert.deepEqual(events.at(-1), { type: "report", item: "a", playedMs: 250, done: true });
  }
});
