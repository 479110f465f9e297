import assert from "node:assert/strict";
import { test } from "vitest";
import { Recording } from "../src/model/recording.js";
import type { Happening } from "../src/model/feed.js";
import { Sound } from "../src/model/sound.js";
import { WholeCall } from "../src/model/wholecall.js";
import { anew, downlink, ended, moment, ms, opened, played, received, sounding, uplink } from "./feed.js";

const RATE = 24_000;

function watched(limitMs?: number): { call: WholeCall; take: (...happenings: Happening[]) => void } {
  const sound = new Sound();
  const recording = new Recording(sound);
  const call = new WholeCall(recording, limitMs);
  return {
    call,
    take: (...happenings) => {
      for (const happening of happenings) {
        for (const watcher of [sound, recording, call]) {
          watcher.take(happening);
        }
      }
    },
  };
}

function begins(at: number, session = "s1", fields: object = {}): Happening[] {
  return [received(at, "session.started", { session_id: session, conversation_id: "c1", resumed: false, ...fields }), opened(at)];
}

/** The user says a value during this time, in frames. */
function says(from: number, to: number, value: number, rate = 16_000): Happening[] {
  return Array.from({ length: (to - from) / 20 }, (_, i) => uplink(from + 20 * (i + 1), ms(20, rate, value), rate));
}

async function read(call: WholeCall, now: number): Promise<{ seconds: number; left: (second: number) => number; right: (second: number) => number; channels: Int16Array[] }> {
  const file = await (await call.wav(now))!.arrayBuffer();
  const view = new DataView(file);
  assert.deepEqual([view.getUint16(22, true), view.getUint32(24, true), view.getUint32(4, true), view.getUint32(40, true)], [2, RATE, file.byteLength - 8, file.byteLength - 44]);
  const samples = new Int16Array(file, 44);
  const channels = [0, 1].map((c) => Int16Array.from({ length: samples.length / 2 }, (_, i) => samples[2 * i + c]!));
  const at = (c: number) => (second: number): number => channels[c]![Math.round(second * RATE)]!;
  return { seconds: channels[0]!.length / RATE, left: at(0), right: at(1), channels };
}

test("the user is on the left and the model on the right at their times, and flushed audio is missing", async () => {
  const { call, take } = watched();
  take(
    ...begins(1000),
    ...says(2000, 3000, 1000),
    received(3400, "audio.start", { turn: 1, item_id: "a" }),
    downlink(3400, "a", ms(4000, 24_000, 2000)),
    sounding(3600, "a"),
    received(4900, "audio.flush", { turn: 1, item_id: "a" }),
    // It was silent before a piece ended, which is known only afterwards.
    played(5100, "a", 1300, true),
    ...says(5200, 6000, 3000),
    received(6400, "audio.start", { turn: 2, item_id: "b" }),
    downlink(6400, "b", ms(500, 24_000, 4000)),
    sounding(6500, "b"),
    played(7000, "b", 500, true),
    ...says(8000, 15_000, 0),
    ended(15_000),
  );
  const { seconds, left, right } = await read(call, 99_000);
  assert.equal(seconds, 14);
  const close = (got: number, want: number): void => assert.ok(Math.abs(got - want) <= want / 100, `${got}, not ${want}`);
  assert.deepEqual([left(0.98), left(2.02), left(4.1), left(5.1)], [0, 0, 0, 0]);
  [1.02, 1.5, 1.98].forEach((second) => close(left(second), 1000));
  [4.22, 4.6, 4.98].forEach((second) => close(left(second), 3000));
  assert.deepEqual([right(2.59), right(2.61), right(3.89), right(3.91), right(5.49), right(5.51), right(5.99), right(6.01)], [0, 2000, 2000, 0, 0, 4000, 4000, 0]);
});

test("a recording in pieces equals one in a whole", async () => {
  const wave = (from: number, count: number, rate: number): Int16Array => Int16Array.from({ length: count }, (_, i) => Math.round(8000 * Math.sin((2 * Math.PI * 310.3 * (from + i)) / rate)));
  for (const rate of [16_000, 24_000, 44_100]) {
    const { call, take } = watched();
    take(...begins(1000), received(1000, "audio.start", { turn: 1, item_id: "a" }));
    const frame = rate / 50;
    for (let i = 0; i < 500; i++) {
      const pcm = wave(i * frame, frame, rate);
      take(uplink(1020 + 20 * i, pcm, rate), downlink(1020 + 20 * i, "a", pcm, rate));
      if (i === 0) {
        take(sounding(1020, "a"));
      } else if (i % 10 === 0) {
        take(played(1020 + 20 * i, "a", 20 * i));
      }
    }
    take(ended(11_000));
    const { channels } = await read(call, 99_000);
    for (const [channel, begin] of [[channels[0]!, 0], [channels[1]!, 20]] as const) {
      let worst = 0;
      for (let i = RATE / 10; i < 9 * RATE; i++) {
        const want = 8000 * Math.sin((2 * Math.PI * 310.3 * (i - (begin * RATE) / 1000)) / RATE);
        worst = Math.max(worst, Math.abs(want - channel[i]!));
      }
      assert.ok(worst < 100, `${rate} Hz: a sample is ${worst} off`);
    }
  }
});

test("late first frames lose nothing between pieces and have their time after a silence", async () => {
  const { call, take } = watched();
  const tone = (i: number): number => Math.round(8000 * Math.sin((2 * Math.PI * 310.3 * i) / 16_000));
  const silent = (i: number): boolean => i >= 7.5 * 16_000 && i < 8.5 * 16_000;
  const late = (frame: number): number => (frame < 350 ? 60 : 0);
  take(...begins(1000));
  for (let i = 0; i < 900; i++) {
    take(uplink(1020 + 20 * i + late(i), Int16Array.from({ length: 320 }, (_, k) => (silent(320 * i + k) ? 0 : tone(320 * i + k))), 16_000, 1020 + 20 * i));
  }
  take(ended(19_500));
  const user = (await read(call, 99_000)).channels[0]!;
  // Each second is compared with the spoken tone, shifted by ms.
  const off = (second: number, ms: number): number => {
    let worst = 0;
    for (let i = second * RATE; i < (second + 0.5) * RATE; i++) {
      worst = Math.max(worst, Math.abs(user[i]! - 8000 * Math.sin(2 * Math.PI * 310.3 * (i / RATE - ms / 1000))));
    }
    return worst;
  };
  for (const second of [1, 3, 3.75, 5, 6.5]) {
    assert.ok(off(second, 60) < 100, `at ${second} s a sample is ${off(second, 60)} off, 60 ms late`);
  }
  for (const second of [9, 11.75, 13, 15.75]) {
    assert.ok(off(second, 0) < 100, `at ${second} s a sample is ${off(second, 0)} off`);
  }
});

test("a running call is saved up to now", async () => {
  const { call, take } = watched();
  assert.deepEqual([call.newest, await call.wav(0)], [null, null]);
  take(...begins(0), ...says(0, 7000, 5));
  const { seconds, left } = await read(call, 7500);
  assert.deepEqual([seconds, left(6.9), left(7.2)], [7.5, 5, 0]);
  assert.equal((await read(call, 8500)).seconds, 8.5);
});

test("a lost connection is silence: with or without resume it is the same call", async () => {
  const { call, take } = watched();
  take(...begins(0), ...says(0, 5000, 5));
  // Resumed: no session opens.
  take(received(8000, "session.started", { session_id: "s1", resumed: true }), ...says(8000, 10_000, 6));
  take(...begins(14_000, "s2"), ...says(14_000, 16_000, 7), ended(16_000));
  const { seconds, left } = await read(call, 99_000);
  assert.deepEqual([seconds, ...[4.5, 6.5, 9, 12, 15].map(left)], [16, 5, 0, 6, 0, 7]);
  assert.deepEqual(["s1", "s2", "c1"].map((id) => call.of(id)), Array(3).fill({ full: false, continued: false }));
  assert.equal(call.of("s3"), null);
});

test("a silent call is silence of its length, even with few events", async () => {
  const { call, take } = watched();
  take(...begins(0), received(60_000, "speech.started", {}), ended(600_000.5));
  assert.equal((await call.wav(0))!.size, 44 + 4 * Math.round(600.0005 * RATE));
});

test("after its limit recording ends, which is reported", async () => {
  const { call, take } = watched(10_000);
  take(...begins(0), ...says(0, 9000, 5));
  assert.deepEqual(call.newest, { full: false, continued: false });
  take(...says(9000, 14_000, 6));
  assert.deepEqual(call.newest, { full: true, continued: false });
  take(...says(14_000, 20_000, 7), ended(20_000));
  const { seconds, left } = await read(call, 99_000);
  assert.deepEqual([seconds, left(9.9)], [10, 6]);
});

test("the newest call is stored until a new conversation begins", async () => {
  const { call, take } = watched();
  take(...begins(0), ...says(0, 5000, 5), ended(5000), ...begins(6000, "s2", { conversation_id: "c2" }), ...says(6000, 7000, 6), ended(7000));
  assert.deepEqual([(await read(call, 99_000)).seconds, call.of("s1"), call.of("c2")?.full], [1, null, false]);
  take(anew(8000));
  assert.deepEqual([call.newest, await call.wav(9000)], [null, null]);
});

test("a call that continues after a reload reports that its beginning is missing", () => {
  const { call, take } = watched();
  take(...begins(0, "s1", { resumed: true }), { ...moment(100), kind: "noticed", side: "voice", name: "reconnected", event: undefined as never });
  assert.deepEqual(call.newest, { full: false, continued: true });
});
