import assert from "node:assert/strict";
import { test } from "vitest";
import { Downlink, type ItemSink } from "../src/audio/downlink.js";

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
  const downlink = new Downlink(log);
  downlink.audio(frame());
  downlink.start("a", 24000);
  downlink.audio(frame());
  downlink.audio(new ArrayBuffer(3));
  downlink.end("a");
  downlink.audio(frame());
  assert.deepEqual(log.calls, ["start a", "audio a 960", "end a"]);
});

test("after a flush nothing of the item reaches the player, also when it is started again", () => {
  const log = new Log();
  const downlink = new Downlink(log);
  downlink.start("a", 24000);
  downlink.flush("a");
  downlink.audio(frame());
  downlink.start("a", 24000);
  downlink.audio(frame());
  downlink.start("b", 24000);
  downlink.audio(frame());
  assert.deepEqual(log.calls, ["start a", "flush a", "start b", "audio b 960"]);
});

test("a flush of another item leaves the current one alone", () => {
  const log = new Log();
  const downlink = new Downlink(log);
  downlink.start("b", 24000);
  downlink.flush("a");
  downlink.audio(frame());
  assert.deepEqual(log.calls, ["start b", "flush a", "audio b 960"]);
});

test("stop silences at once and drops the rest of the item that still arrives", () => {
  const log = new Log();
  const downlink = new Downlink(log);
  downlink.start("a", 24000);
  downlink.stop();
  downlink.audio(frame());
  downlink.flush("a");
  assert.deepEqual(log.calls, ["start a", "flush null", "flush a"]);
});

test("flushed items are remembered for a while, not for ever", () => {
  const log = new Log();
  const downlink = new Downlink(log);
  for (let i = 0; i <= 64; i++) {
    downlink.flush(`${i}`);
  }
  log.calls.length = 0;
  downlink.start("1", 24000);
  downlink.start("0", 24000);
  assert.deepEqual(log.calls, ["start 0"]);
});
