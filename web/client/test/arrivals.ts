import { Cushion } from "../src/audio/cushion.js";
import { Device } from "./device.js";
import { random } from "./signal.js";

/** The timing of a conversation's audio. */
export interface Arrivals {
  /** Audio sent per second of time: 1 is real time. */
  pace: number;
  /** Each frame is late by up to this many ms and delays the frames behind it, as on TCP. */
  jitterMs: number;
  /** In addition, pauses of this length at random moments. */
  stallMs?: number;
  stallsPerMinute?: number;
  frameMs?: number;
  seed?: number;
}

/** The listener's experience. */
export interface Outcome {
  /** Gaps per minute of sound. */
  underruns: number;
  /** From an item's first byte to its first sound, mean and longest, in ms. */
  startMs: number;
  longestStartMs: number;
  cushionMs: number;
}

const ITEM_MS = 5000;

/** Plays items of 5 s with pauses of a second. fixedMs: the buffer's size instead of an adaptive one. */
export function listen(arrivals: Arrivals, items: number, fixedMs?: number): Outcome {
  const { pace, jitterMs, stallMs = 0, stallsPerMinute = 0, frameMs = 20, seed = 1 } = arrivals;
  const next = random(seed);
  const nothing = (): void => undefined;
  const fixed = { ms: fixedMs ?? 0, begin: nothing, arrived: nothing, sounded: nothing };
  const device = new Device(24000, fixedMs === undefined ? new Cushion() : fixed);
  const frame = new Int16Array((24000 * frameMs) / 1000).fill(1000);
  for (let i = 0; i < items; i++) {
    const id = `item ${i}`;
    const from = device.seconds * 1000;
    let arrival = 0;
    device.queue.start(id, 24000);
    for (let sent = 0; sent < ITEM_MS; sent += frameMs) {
      const stall = next() < (stallsPerMinute * frameMs) / pace / 60_000 ? stallMs : 0;
      arrival = Math.max(arrival, from + sent / pace + next() * jitterMs + stall);
      device.play(Math.max(0, arrival - device.seconds * 1000));
      device.queue.push(id, frame, device.seconds * 1000);
    }
    device.queue.end(id);
    device.play(ITEM_MS + 1000 + from - device.seconds * 1000);
  }
  const starts = device.of("sounding").map((event) => (event.frame / device.rate) * 1000 - event.firstByteAt);
  const gaps = device.of("underrun");
  return {
    underruns: (gaps.length * 60_000) / (items * ITEM_MS),
    startMs: starts.reduce((sum, ms) => sum + ms, 0) / starts.length,
    longestStartMs: Math.max(...starts),
    cushionMs: device.cushion.ms,
  };
}
