import assert from "node:assert/strict";
import { test } from "vitest";
import { Instruments } from "../src/instruments.js";
import { downlink, ms, opened, played, received, sent, uplink } from "./feed.js";

function instruments(): { all: Instruments; paint: () => number } {
  let waiting: (() => void)[] = [];
  const all = new Instruments((show) => waiting.push(show));
  const paint = (): number => {
    const due = waiting;
    waiting = [];
    due.forEach((show) => show());
    return due.length;
  };
  return { all, paint };
}

test("many events are shown in one frame, audio in none", () => {
  const { all, paint } = instruments();
  all.take(opened(0));
  all.take(received(1, "turn.started", { turn: 1 }));
  assert.deepEqual([paint(), all.changed.value, all.logged.value], [1, 1, 1]);
  all.take(uplink(20, ms(20, 16000)));
  all.take(downlink(20, "a", ms(20, 24000)));
  assert.equal(paint(), 0);
});

test("playback reports update only the log, unless another event arrives", () => {
  const { all, paint } = instruments();
  all.take(played(1, "a", 200));
  all.take(sent(1, "playback", { item_id: "a", played_ms: 200 }));
  paint();
  assert.deepEqual([all.changed.value, all.logged.value], [0, 1]);
  all.take(received(2, "turn.started", { turn: 1 }));
  all.take(played(3, "a", 400));
  paint();
  assert.deepEqual([all.changed.value, all.logged.value], [1, 2]);
});
