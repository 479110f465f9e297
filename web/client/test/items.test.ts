import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { PlayQueue } from "../src/audio/playqueue.js";
import { Items, type ItemSink } from "../src/items.js";

class Log implements ItemSink {
  readonly calls: string[] = [];
  start(item: string): void {
    this.calls.push(`start ${item}`);
  }
  audio(item: string, pcm: ArrayBuffer): void {
    this.calls.push(`audio ${item} ${pcm.byteLength}`);
  }
  end(item: string): void {
    this.calls.push(`end ${item}`);
  }
  flush(item: string | null): void {
    this.calls.push(`flush ${item}`);
  }
}

const RATE = 24000;
const frame = (): ArrayBuffer => new ArrayBuffer(960);

/** Passes on a binary frame, as a session does. */
function come(items: Items, pcm = frame()): void {
  const fresh = items.fresh(pcm);
  if (fresh !== null) {
    items.audio(fresh);
  }
}

test("binary frames belong to the newest item", () => {
  const log = new Log();
  const items = new Items(log);
  come(items);
  items.start("a", RATE);
  come(items);
  come(items, new ArrayBuffer(3));
  items.end("a");
  come(items);
  assert.deepEqual(log.calls, ["start 0 a", "audio 0 a 960", "end 0 a"]);
});

test("after a flush no frame of the item reaches the player before another one begins", () => {
  const log = new Log();
  const items = new Items(log);
  items.start("a", RATE);
  items.flush("a");
  come(items);
  items.start("b", RATE);
  come(items);
  assert.deepEqual(log.calls, ["start 0 a", "flush 0 a", "start 0 b", "audio 0 b 960"]);
});

test("a flush of another item does not affect the current one", () => {
  const log = new Log();
  const items = new Items(log);
  items.start("b", RATE);
  items.flush("a");
  come(items);
  assert.deepEqual(log.calls, ["start 0 b", "flush 0 a", "audio 0 b 960"]);
});

test("stop silences at once and drops the rest of the item", () => {
  const log = new Log();
  const items = new Items(log);
  items.start("a", RATE);
  items.stop();
  come(items);
  items.flush("a");
  assert.deepEqual(log.calls, ["start 0 a", "flush null", "flush 0 a"]);
});

/** Audio of an item; each sample has its own value, from `from` up. */
function numbered(ms: number, from = 0): ArrayBuffer {
  return Int16Array.from({ length: (ms * RATE) / 1000 }, (_, i) => from + i).buffer;
}

/** A player that keeps the samples of each item. */
class Ear extends Log {
  readonly heard = new Map<string, number[]>();
  override audio(item: string, pcm: ArrayBuffer): void {
    this.heard.set(item, [...(this.heard.get(item) ?? []), ...new Int16Array(pcm)]);
  }
}

test("after a reconnect an item continues with its next sample, wherever the gateway begins", () => {
  for (const fromMs of [undefined, 0, 10, 35, 36]) {
    const ear = new Ear();
    const items = new Items(ear);
    items.start("a", RATE);
    // 36.5 ms: not a whole number.
    const whole = numbered(100);
    come(items, whole.slice(0, 2 * 876));
    assert.deepEqual(items.position, { item_id: "a", received_ms: 36 });
    items.broken();
    come(items);
    items.start("a", RATE, fromMs);
    for (let at = (fromMs ?? 0) * 48; at < whole.byteLength; at += 480) {
      come(items, whole.slice(at, at + 480));
    }
    assert.deepEqual(ear.heard.get("0 a"), [...new Int16Array(whole)], `from ${fromMs}`);
    assert.deepEqual(items.position, { item_id: "a", received_ms: 100 });
  }
});

test("an item that begins later than expected is reported at its own time", () => {
  const items = new Items(new Log());
  items.start("a", RATE, 1500);
  come(items, numbered(100));
  assert.deepEqual(items.position, { item_id: "a", received_ms: 1600 });
  assert.deepEqual(items.played("0 a", 60, false), { item: "a", own: true, playedMs: 1560, receivedMs: 1600 });
  assert.deepEqual(items.heard, [["a", 1560]]);
});

test("an invalid position counts as the beginning", () => {
  for (const from of [NaN, -5, Infinity, "x" as unknown as number]) {
    const items = new Items(new Log());
    items.start("a", RATE, from);
    come(items, numbered(100));
    assert.deepEqual(items.position, { item_id: "a", received_ms: 100 });
  }
});

test("the newest item has a position until it is silenced", () => {
  const items = new Items(new Log());
  assert.equal(items.position, undefined);
  items.start("a", RATE);
  come(items, numbered(100));
  items.end("a");
  assert.deepEqual(items.position, { item_id: "a", received_ms: 100 }, "it may still play");
  items.start("b", RATE);
  assert.deepEqual(items.position, { item_id: "b", received_ms: 0 });
  items.flush("b");
  assert.equal(items.position, undefined);
  items.start("c", RATE);
  items.stop();
  assert.equal(items.position, undefined, "the user stopped it");
  items.start("d", RATE);
  items.played("0 d", 0, true);
  assert.equal(items.position, undefined, "it ended before all of it arrived");
  items.start("e", RATE);
  items.renew();
  assert.equal(items.position, undefined, "it belongs to another session");
});

test("an item that has played to its end keeps its position for the gateway and does not play again", () => {
  const log = new Log();
  const items = new Items(log);
  items.start("a", RATE);
  come(items, numbered(100));
  items.end("a");
  items.played("0 a", 100, true);
  assert.deepEqual(items.position, { item_id: "a", received_ms: 100 });
  assert.deepEqual(items.heard, [], "a reloaded page does not report it");
  items.broken();
  items.start("a", RATE, 99);
  come(items, numbered(1));
  items.end("a");
  assert.deepEqual(log.calls, ["start 0 a", "audio 0 a 4800", "end 0 a", "end 0 a"]);
  items.start("b", RATE);
  items.played("0 b", 0, true);
  assert.equal(items.position, undefined, "a newer item has begun");
});

test("an item waits for audio from its underrun until more arrives or it ends", () => {
  const overs: ((items: Items) => void)[] = [(i) => come(i), (i) => i.end("a"), (i) => i.flush("a"), (i) => i.stop(), (i) => void i.played("0 a", 20, true)];
  for (const over of overs) {
    const items = new Items(new Log());
    items.start("a", RATE);
    assert.equal(items.waiting, false);
    items.ranDry("0 a");
    assert.equal(items.waiting, true);
    over(items);
    assert.equal(items.waiting, false);
  }
  const items = new Items(new Log());
  items.start("a", RATE);
  items.end("a");
  items.ranDry("0 a");
  assert.equal(items.waiting, false, "it had ended");
});

test("the number of known items is limited", () => {
  const items = new Items(new Log());
  for (let i = 0; i < 1000; i++) {
    items.start(`i${i}`, RATE);
  }
  assert.equal(items.heard.length, 32);
});

describe("an answer of a fractional number of ms", () => {
  /** 100.5 ms: 12 samples more than its rounded position. */
  const SAMPLES = 2412;

  /** Items with the real queue on a fake clock. */
  function playing(): { items: Items; reports: { ms: number; done: boolean }[]; play: (ms: number) => void } {
    const reports: { ms: number; done: boolean }[] = [];
    let frame = 0;
    const queue = new PlayQueue(RATE, RATE, (event) => {
      if (event.type === "report") {
        items.played(event.item, event.playedMs, event.done);
        reports.push({ ms: event.playedMs, done: event.done });
      } else if (event.type === "dry") {
        items.ranDry(event.item);
      }
    });
    const items: Items = new Items({
      start: (item, rate) => queue.start(item, rate),
      audio: (item, pcm) => queue.push(item, new Int16Array(pcm), 0),
      end: (item) => queue.end(item),
      flush: (item) => queue.flush(item, 0),
    });
    const play = (ms: number): void => {
      for (const to = frame + (ms * RATE) / 1000; frame < to; frame += 120) {
        queue.pull(new Float32Array(120), frame);
      }
    };
    return { items, reports, play };
  }

  for (const { when, before, after } of [
    { when: "has not begun to play", before: 0, after: 300 },
    { when: "plays", before: 70, after: 300 },
    { when: "has played", before: 300, after: 0 },
  ]) {
    for (const endsAgain of [true, false]) {
      test(`and ${when} plays once if its last part is announced again${endsAgain ? "" : ", even without another end"}`, () => {
        const { items, reports, play } = playing();
        items.start("a", RATE);
        come(items, new ArrayBuffer(2 * SAMPLES));
        items.end("a");
        play(before);
        assert.deepEqual(items.position, { item_id: "a", received_ms: 100 });
        items.broken();
        items.start("a", RATE, 100);
        come(items, new ArrayBuffer(2 * (SAMPLES - 2400)));
        if (endsAgain) {
          items.end("a");
        }
        play(after);
        assert.deepEqual(reports.filter(({ done }) => done), [{ ms: 101, done: true }]);
        assert.equal(items.waiting, false, "nothing waits for more");
        assert.deepEqual(items.heard.filter(([, ms]) => ms < 100), []);
        items.start("b", RATE);
        come(items, new ArrayBuffer(2 * SAMPLES));
        items.end("b");
        play(300);
        assert.equal(reports.filter(({ done }) => done).length, 2, "the next answer plays");
      });
    }
  }

  test("continues within its last ms if its end is missing", () => {
    const { items, reports, play } = playing();
    items.start("a", RATE);
    come(items, new ArrayBuffer(2 * 2406));
    play(300);
    assert.equal(items.waiting, true);
    items.broken();
    items.start("a", RATE, 100);
    come(items, new ArrayBuffer(2 * (SAMPLES - 2400)));
    items.end("a");
    play(300);
    assert.deepEqual(reports.filter(({ done }) => done).length, 1);
    assert.equal(items.waiting, false);
  });
});
