import { Cushion } from "../src/audio/cushion.js";
import { PlayQueue, type PlayEvent } from "../src/audio/playqueue.js";
import { tone } from "./signal.js";

const BLOCK = 128;

/** A queue and the audio device that reads it. */
export class Device {
  readonly events: PlayEvent[] = [];
  readonly queue: PlayQueue;
  /** The next frame of the output. */
  frame = 0;

  constructor(
    readonly rate = 48000,
    readonly cushion: Pick<Cushion, "ms" | "begin" | "arrived" | "sounded"> = new Cushion(),
  ) {
    this.queue = new PlayQueue(rate, 24000, (event) => this.events.push(event), cushion);
  }

  get seconds(): number {
    return this.frame / this.rate;
  }

  /** Plays this many milliseconds and returns the sound. */
  play(ms: number): Float32Array {
    const blocks = Math.round((ms * this.rate) / 1000 / BLOCK);
    const heard = new Float32Array(blocks * BLOCK);
    for (let i = 0; i < blocks; i++, this.frame += BLOCK) {
      this.queue.pull(heard.subarray(i * BLOCK, (i + 1) * BLOCK), this.frame);
    }
    return heard;
  }

  /** Begins an item of a tone. */
  begin(id: string, ms: number): void {
    this.queue.start(id, 24000);
    this.queue.push(id, tone(24000, ms), 0);
  }

  /** A whole item. */
  item(id: string, ms: number): void {
    this.begin(id, ms);
    this.queue.end(id);
  }

  flush(id: string | null): void {
    this.queue.flush(id, this.seconds);
  }

  of<T extends PlayEvent["type"]>(type: T, item?: string): Extract<PlayEvent, { type: T }>[] {
    return this.events.filter((e): e is Extract<PlayEvent, { type: T }> => e.type === type && (item === undefined || e.item === item));
  }

  reports(item: string): { playedMs: number; done: boolean }[] {
    return this.of("report", item).map(({ playedMs, done }) => ({ playedMs, done }));
  }
}

/** When the last sound ends, in ms. */
export function soundingMs(heard: Float32Array, rate = 48000): number {
  const last = heard.findLastIndex((x) => Math.abs(x) > 1e-4);
  return ((last + 1) * 1000) / rate;
}

/** The largest step between neighbours; a click is a large one. */
export function largestStep(heard: Float32Array): number {
  let largest = 0;
  for (let i = 1; i < heard.length; i++) {
    largest = Math.max(largest, Math.abs(heard[i]! - heard[i - 1]!));
  }
  return largest;
}

// A 440 Hz sine of amplitude 0.5 at 48 kHz moves by at most 0.029 per sample.
export const SMOOTH = 0.04;
