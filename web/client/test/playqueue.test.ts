import assert from "node:assert/strict";
import { test } from "vitest";
import { Device, largestStep, SMOOTH, soundingMs } from "./device.js";
import { random, tone } from "./signal.js";

const joined = (...parts: Float32Array[]): Float32Array => Float32Array.from(parts.flatMap((part) => [...part]));

test("an item plays for its whole length, with a report every 200 ms and one at its end", () => {
  const device = new Device();
  device.item("a", 500);
  const heard = device.play(700);
  assert.ok(Math.abs(soundingMs(heard) - 500) < 4, `${soundingMs(heard)} ms`);
  assert.ok(largestStep(heard) < SMOOTH);
  const reports = device.reports("a");
  assert.deepEqual(reports.map((report) => report.done), [false, false, true]);
  assert.deepEqual(reports.at(-1), { playedMs: 500, done: true });
  assert.ok(Math.abs(reports[0]!.playedMs - 200) <= 3);
  assert.equal(device.of("sounding").length, 1);
});

test("the first sound is reported with its frame, its first byte and the wait for the cushion", () => {
  const device = new Device();
  device.queue.start("a", 24000);
  device.play(100);
  // The audio thread was busy.
  device.frame += 4800;
  device.queue.push("a", tone(24000, 20), 4711);
  device.play(40);
  device.queue.push("a", tone(24000, 60), 4751);
  const before = device.frame;
  device.play(20);
  const [sounding] = device.of("sounding", "a");
  assert.equal(sounding?.firstByteAt, 4711);
  assert.equal(sounding.frame, before);
  assert.ok(Math.abs(sounding.cushionMs - 40) <= 3, `${sounding.cushionMs} ms`);
});

test("an item behind another one does not wait for the cushion", () => {
  const device = new Device();
  device.item("a", 500);
  device.item("b", 200);
  device.play(1000);
  assert.equal(device.of("sounding", "b")[0]?.cushionMs, 0);
});

test("with a latency, reports and the end follow the audible sound", () => {
  const device = new Device();
  device.queue.setLatency(0.1);
  device.item("a", 500);
  device.play(550);
  const reports = device.reports("a");
  assert.ok(reports.every((report) => !report.done), "the last 50 ms are still inside the device");
  assert.ok(Math.abs(reports[0]!.playedMs - 200) <= 3);
  device.play(60);
  assert.deepEqual(device.reports("a").at(-1), { playedMs: 500, done: true });
});

test("with a latency, a flush reports the audible part, not the rendered part", () => {
  const device = new Device();
  device.queue.setLatency(0.1);
  device.begin("a", 1000);
  device.play(300);
  device.flush("a");
  const done = device.reports("a").filter((report) => report.done);
  assert.equal(done.length, 1);
  assert.ok(Math.abs(done[0]!.playedMs - 200) < 4, `${done[0]!.playedMs} ms`);

  device.item("b", 300);
  device.play(360);
  device.flush("b");
  const early = device.reports("b").at(-1)!;
  assert.ok(early.done && early.playedMs > 200 && early.playedMs < 300, `${early.playedMs} ms of 300`);
  device.play(300);
  assert.equal(device.reports("b").filter((report) => report.done).length, 1);
  assert.deepEqual(device.of("silenced", "b"), [], "it had played to its end");
});

test("with a latency, a flush of everything also ends items inside the device", () => {
  const device = new Device();
  device.queue.setLatency(0.1);
  device.item("a", 100);
  device.item("b", 300);
  device.play(150);
  device.flush(null);
  assert.deepEqual(device.of("report").filter((report) => report.done).map((report) => report.item), ["a", "b"]);
  assert.ok(device.reports("a")[0]!.playedMs < 100);
});

test("a growing latency does not reduce the reported time", () => {
  const device = new Device();
  device.begin("a", 1000);
  device.play(210);
  device.queue.setLatency(0.3);
  device.flush("a");
  const played = device.reports("a").map((report) => report.playedMs);
  assert.ok(played.at(-1)! >= played.at(-2)!, played.join());
});

test("a flush silences within 10 ms without a click and drops later bytes", () => {
  const device = new Device();
  device.begin("a", 5000);
  const before = device.play(300);
  device.flush("a");
  device.queue.push("a", tone(24000, 1000), 0);
  device.queue.end("a");
  const after = device.play(1000);
  assert.ok(soundingMs(after) <= 10, `sounds for ${soundingMs(after)} ms after the flush`);
  assert.ok(largestStep(joined(before, after)) < SMOOTH);
  const done = device.reports("a").filter((report) => report.done);
  assert.equal(done.length, 1);
  assert.ok(Math.abs(done[0]!.playedMs - 300) < 5, `${done[0]!.playedMs} ms heard`);
});

test("silence is reported once, with the time since the flush", () => {
  const device = new Device();
  device.begin("a", 5000);
  device.play(300);
  device.queue.flush("a", device.seconds - 0.004);
  device.play(100);
  assert.deepEqual(device.of("silenced"), [{ type: "silenced", item: "a", ms: 14 }]);
});

test("a flush is fast and never clicks, at every moment of an item", () => {
  const next = random(11);
  for (let round = 0; round < 100; round++) {
    const device = new Device();
    device.begin("a", 100 + Math.floor(next() * 60));
    const before = device.play(20 + next() * 160);
    device.flush("a");
    const after = device.play(100);
    assert.ok(soundingMs(after) <= 10, `round ${round}: ${soundingMs(after)} ms`);
    assert.ok(largestStep(joined(before, after)) < SMOOTH, `round ${round}: a step of ${largestStep(joined(before, after))}`);
    assert.ok((device.of("silenced")[0]?.ms ?? 0) <= 13);
  }
});

test("a flush right after a gap does not click", () => {
  // At this rate the ramp after the gap takes three blocks.
  const device = new Device(96000);
  for (let blocks = 0; blocks < 4; blocks++) {
    const id = `item ${blocks}`;
    device.begin(id, 100);
    device.play(150);
    device.queue.push(id, tone(24000, 500), 0);
    const before = device.play(blocks * (128 / 96));
    device.flush(id);
    const heard = joined(before, device.play(100));
    assert.ok(largestStep(heard) < SMOOTH / 2, `${blocks} blocks after the gap: ${largestStep(heard)}`);
  }
});

test("a flush of an ended item reports its played time", () => {
  const device = new Device();
  device.item("a", 100);
  device.play(200);
  device.flush("a");
  device.flush("never seen");
  assert.deepEqual(device.reports("a"), [
    { playedMs: 100, done: true },
    { playedMs: 100, done: true },
  ]);
  assert.deepEqual(device.reports("never seen"), [{ playedMs: 0, done: true }]);
  assert.deepEqual(device.of("silenced"), []);
});

test("a flushed item that had not begun was not heard, and the current one continues", () => {
  const device = new Device();
  device.item("a", 300);
  device.item("b", 300);
  device.play(100);
  device.flush("b");
  const heard = device.play(400);
  assert.ok(Math.abs(soundingMs(heard) - 200) < 5);
  assert.deepEqual(device.reports("b"), [{ playedMs: 0, done: true }]);
  assert.deepEqual(device.of("silenced"), []);
});

test("an item and its successor are flushed one after another", () => {
  const device = new Device();
  device.item("a", 300);
  device.item("b", 300);
  device.play(100);
  device.flush("a");
  device.flush("b");
  assert.ok(soundingMs(device.play(300)) <= 10);
  assert.deepEqual(device.reports("a").at(-1)?.done, true);
  assert.deepEqual(device.reports("b"), [{ playedMs: 0, done: true }]);
  assert.deepEqual(device.of("sounding", "b"), []);
  device.item("c", 100);
  device.play(300);
  assert.deepEqual(device.reports("c").at(-1), { playedMs: 100, done: true });
});

test("the next item begins right after the flushed one, from its start", () => {
  const device = new Device();
  device.item("a", 1000);
  device.play(100);
  device.flush("a");
  device.item("b", 300);
  const heard = device.play(400);
  assert.deepEqual(device.reports("b").at(-1), { playedMs: 300, done: true });

  const alone = new Device();
  alone.item("b", 300);
  const want = alone.play(320);
  const from = device.of("sounding", "b")[0]!.frame - device.of("sounding", "a")[0]!.frame - Math.round(0.1 * 48000 / 128) * 128;
  assert.deepEqual(heard.subarray(from, from + want.length - 128), want.subarray(0, want.length - 128));
});

test("a flush of everything reports every item once", () => {
  const device = new Device();
  device.item("a", 300);
  device.item("b", 300);
  device.play(100);
  device.flush(null);
  assert.ok(soundingMs(device.play(300)) <= 10);
  assert.equal(device.reports("a").filter((report) => report.done).length, 1);
  assert.equal(device.reports("b").filter((report) => report.done).length, 1);
  assert.deepEqual(device.of("silenced").map((event) => event.item), ["a"]);
});

test("playback waits for the cushion of 60 ms, or for the end of a short item", () => {
  const device = new Device();
  device.begin("a", 40);
  assert.equal(soundingMs(device.play(100)), 0);
  device.queue.push("a", tone(24000, 20), 0);
  assert.ok(soundingMs(device.play(40)) > 30);

  const short = new Device();
  short.item("b", 40);
  assert.ok(Math.abs(soundingMs(short.play(100)) - 40) < 4);
});

test("an underrun increases the cushion without a click; a late end is not an underrun", () => {
  const device = new Device();
  device.begin("a", 100);
  const heard = [...device.play(150)];
  assert.equal(device.of("underrun").length, 0, "it may have been the end");
  assert.deepEqual(device.of("dry"), [{ type: "dry", item: "a" }], "once, however long it lasts");
  device.queue.push("a", tone(24000, 60), 0);
  const [underrun] = device.of("underrun");
  assert.ok(underrun!.cushionMs >= 90, `${underrun!.cushionMs} ms`);
  heard.push(...device.play(50));
  device.queue.push("a", tone(24000, 60), 0);
  heard.push(...device.play(100));
  assert.ok(soundingMs(Float32Array.from(heard)) > 200, "it continues with a cushion of 90 ms");
  // Each push begins a new sine, so only the gap's edges are checked.
  const edge = Math.round(0.1 * 48000);
  assert.ok(largestStep(Float32Array.from(heard.slice(edge - 480, edge + 480))) < SMOOTH);

  const late = new Device();
  late.begin("b", 100);
  late.play(150);
  late.queue.end("b");
  assert.equal(soundingMs(late.play(50)), 0, "the rest in the filter would click");
  assert.equal(late.of("underrun").length, 0);
  assert.equal(late.reports("b").at(-1)?.done, true);
});

test("an item that plays to its end is not dry", () => {
  const device = new Device();
  device.item("a", 100);
  device.play(200);
  assert.deepEqual(device.of("dry"), []);
});

test("a gap in the middle of a wave does not click at either edge", () => {
  const device = new Device();
  const wave = tone(24000, 400);
  const peak = 2414;
  device.queue.start("a", 24000);
  device.queue.push("a", wave.slice(0, peak), 0);
  const before = device.play(150);
  device.queue.push("a", wave.slice(peak), 0);
  const heard = joined(before, device.play(400));
  assert.equal(device.of("underrun").length, 1);
  assert.ok(largestStep(heard) < SMOOTH, `a step of ${largestStep(heard)}`);
});

test("a flushed item stays silent, also after another start", () => {
  const device = new Device();
  device.queue.start("a", 24000);
  device.queue.push("a", tone(24000, 300), 0);
  device.play(150);
  device.flush("a");
  device.play(50);
  device.item("a", 300);
  assert.equal(soundingMs(device.play(400)), 0);
  device.item("b", 100);
  assert.ok(soundingMs(device.play(300)) > 90);
});

test("audio for an ended item or a used name is dropped", () => {
  const device = new Device();
  device.item("a", 100);
  device.queue.push("a", tone(24000, 100), 0);
  assert.ok(soundingMs(device.play(300)) < 104);
  assert.deepEqual(device.reports("a"), [{ playedMs: 100, done: true }]);
  device.item("a", 100);
  assert.equal(soundingMs(device.play(300)), 0);

  // Names are remembered for a limited time.
  for (let i = 0; i < 32; i++) {
    device.item(`${i}`, 10);
    device.play(20);
  }
  device.flush("a");
  assert.deepEqual(device.reports("a").at(-1), { playedMs: 0, done: true });
});

test("the queue is limited: audio beyond five minutes is dropped, with one report", () => {
  const device = new Device();
  device.queue.start("a", 24000);
  const tenSeconds = new Int16Array(240_000);
  for (let i = 0; i < 40; i++) {
    device.queue.push("a", tenSeconds, 0);
  }
  assert.equal(device.of("overflow").length, 1);
});

test("other device rates and item rates play to the end", () => {
  for (const rate of [44100, 96000]) {
    const device = new Device(rate);
    device.item("a", 250);
    device.queue.start("b", 8000);
    device.queue.push("b", tone(8000, 250), 0);
    device.queue.end("b");
    device.play(1000);
    assert.deepEqual(device.reports("a").at(-1), { playedMs: 250, done: true });
    assert.deepEqual(device.reports("b").at(-1), { playedMs: 250, done: true });
  }
});

test("the division of an item into frames does not change its sound", () => {
  const pcm = tone(24000, 600);
  const heard = (next: () => number): Float32Array => {
    const device = new Device(44100);
    device.queue.start("a", 24000);
    for (let i = 0; i < pcm.length; ) {
      const size = Math.min(pcm.length - i, next());
      device.queue.push("a", pcm.slice(i, i + size), 0);
      i += size;
    }
    device.queue.end("a");
    return device.play(700);
  };
  const want = heard(() => pcm.length);
  const next = random(3);
  for (const size of [() => 480, () => 1, () => 1 + Math.floor(next() * 2000)]) {
    assert.deepEqual(heard(size), want);
  }
});
