import assert from "node:assert/strict";
import { test } from "vitest";
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

const frame = (): ArrayBuffer => new ArrayBuffer(960);

test("binary frames belong to the item that was started last", () => {
  const log = new Log();
  const items = new Items(log);
  items.audio(frame());
  items.start("a", 24000);
  items.audio(frame());
  items.audio(new ArrayBuffer(3));
  items.end("a");
  items.audio(frame());
  assert.deepEqual(log.calls, ["start 0 a", "audio 0 a 960", "end 0 a"]);
});

test("after a flush no frame of the item reaches the player, until another one begins", () => {
  const log = new Log();
  const items = new Items(log);
  items.start("a", 24000);
  items.flush("a");
  items.audio(frame());
  items.start("b", 24000);
  items.audio(frame());
  assert.deepEqual(log.calls, ["start 0 a", "flush 0 a", "start 0 b", "audio 0 b 960"]);
});

test("a flush of another item leaves the current one alone", () => {
  const log = new Log();
  const items = new Items(log);
  items.start("b", 24000);
  items.flush("a");
  items.audio(frame());
  assert.deepEqual(log.calls, ["start 0 b", "flush 0 a", "audio 0 b 960"]);
});

test("stop silences at once and drops the rest of the item that still arrives", () => {
  const log = new Log();
  const items = new Items(log);
  items.start("a", 24000);
  items.stop();
  items.audio(frame());
  items.flush("a");
  assert.deepEqual(log.calls, ["start 0 a", "flush null", "flush 0 a"]);
});
