import { toFloat } from "./pcm.js";
import { Resampler } from "./resample.js";

/** What the queue tells about the items that pass through it. */
export type PlayEvent =
  /** The first sample of the item sounds. */
  | { type: "sounding"; item: string }
  /** How much of the item was heard; done: nothing more of it will sound. */
  | { type: "report"; item: string; playedMs: number; done: boolean }
  /** The item ran dry and went on; the cushion has grown to cushionMs. */
  | { type: "underrun"; item: string; cushionMs: number }
  /** More audio waits than the queue holds; the rest of the item is lost. */
  | { type: "overflow"; item: string };

const CUSHION_MS = 60;
const MAX_CUSHION_MS = 400;
/** After so much sound without a gap the cushion shrinks again. */
const CALM_MS = 10_000;

const REPORT_MS = 200;
/** Fade at a flush: short enough to be "at once", long enough not to click. */
const FADE_MS = 10;
/** Ramp where sound stops for want of data or goes on after such a gap. */
const DECLICK_MS = 3;

/** Bound of what may wait: no answer of a voice model is that long. */
const MAX_QUEUED_MS = 300_000;
/** So many finished items are remembered, to answer a late flush correctly. */
const REMEMBERED = 32;

// Input samples handed to the resampler at a time, so that one call of pull
// costs about the same whatever the size of the frames that came in.
const FEED = 128;

class Item {
  readonly resampler: Resampler;
  chunks: Int16Array[] = [];
  /** Samples of chunks[0] that were handed on already. */
  used = 0;
  /** Samples in chunks, not handed on. */
  queued = 0;
  ended = false;
  finished = false;
  /** Waiting for the cushion: at the start and after running dry. */
  waiting = true;
  dry = false;
  overflowed = false;
  /** Output samples heard, and of those the ones not reported. */
  played = 0;
  unreported = 0;
  /** Samples left of the ramp after a gap. */
  ramp = 0;

  constructor(
    readonly id: string,
    readonly rate: number,
    outRate: number,
  ) {
    this.resampler = new Resampler(rate, outRate);
  }

  /** Fills out[from..to) as far as the data reaches; returns the count. */
  read(out: Float32Array, from: number, to: number, scratch: Float32Array): number {
    let n = from;
    for (;;) {
      n += this.resampler.read(out, n, to);
      if (n >= to || !this.feed(scratch)) {
        return n - from;
      }
    }
  }

  private feed(scratch: Float32Array): boolean {
    const chunk = this.chunks[0];
    if (chunk === undefined) {
      if (!this.ended || this.finished) {
        return false;
      }
      this.resampler.finish();
      this.finished = true;
      return true;
    }
    const count = Math.min(FEED, chunk.length - this.used);
    toFloat(chunk, this.used, count, scratch);
    this.resampler.write(scratch, 0, count);
    this.used += count;
    this.queued -= count;
    if (this.used === chunk.length) {
      this.chunks.shift();
      this.used = 0;
    }
    return true;
  }
}

/**
 * The downlink's queue, one entry per spoken item. Lives in the playback
 * worklet; pure, so that tests reach it. The clock is the pull of the audio
 * device: nothing here asks for the time.
 */
export class PlayQueue {
  private readonly items: Item[] = [];
  private readonly finished = new Map<string, number>();
  private readonly scratch = new Float32Array(FEED);
  private cushionMs = CUSHION_MS;
  private calm = 0;
  private fading: { item: Item; left: number } | null = null;
  private last = 0;
  private tail = 0;

  /** outRate in Hz. `emit` is called from within the methods. */
  constructor(
    private readonly outRate: number,
    private readonly emit: (event: PlayEvent) => void,
  ) {}

  /** A new item; rate in Hz. A known id is left as it is. */
  start(id: string, rate: number): void {
    if (!this.finished.has(id) && this.find(id) === undefined) {
      this.items.push(new Item(id, rate, this.outRate));
    }
  }

  /** More audio of an item. Of an unknown, ended or flushed one it is dropped. */
  push(id: string, pcm: Int16Array): void {
    const item = this.find(id);
    if (item === undefined || item.ended || item.overflowed || pcm.length === 0) {
      return;
    }
    if (this.queuedMs(item.rate) > MAX_QUEUED_MS) {
      item.overflowed = true;
      this.emit({ type: "overflow", item: id });
      return;
    }
    if (item.dry) {
      // Only now it is known that the item had not simply come to its end.
      item.dry = false;
      this.calm = 0;
      this.cushionMs = Math.min(MAX_CUSHION_MS, Math.round(this.cushionMs * 1.5));
      this.emit({ type: "underrun", item: id, cushionMs: this.cushionMs });
    }
    item.chunks.push(pcm);
    item.queued += pcm.length;
  }

  /** No more audio of the item comes. */
  end(id: string): void {
    const item = this.find(id);
    if (item === undefined) {
      return;
    }
    item.ended = true;
    if (item.dry && this.items[0] === item) {
      // It has sounded to its end; the last millisecond inside the filter
      // would only click after the gap.
      this.close(item);
    }
  }

  /**
   * Drops the item (null: all of them): within 10 ms nothing of it sounds.
   * Answers with exactly one report per item, also when it had ended before.
   */
  flush(id: string | null): void {
    if (id === null) {
      for (const item of [...this.items]) {
        this.flush(item.id);
      }
      return;
    }
    const item = this.find(id);
    if (item === undefined) {
      this.emit({ type: "report", item: id, playedMs: this.finished.get(id) ?? 0, done: true });
      return;
    }
    if (item === this.items[0] && !item.waiting) {
      this.fading = { item, left: this.samples(FADE_MS) };
    }
    this.close(item);
  }

  /** Fills one block of output. */
  pull(out: Float32Array): void {
    let n = this.pullFade(out);
    while (n < out.length) {
      const item = this.items[0];
      if (item === undefined || !this.ready(item)) {
        break;
      }
      n = this.pullItem(item, out, n);
    }
    for (; n < out.length; n++) {
      out[n] = this.tail > 0 ? (this.last * this.tail--) / this.samples(DECLICK_MS) : 0;
    }
  }

  private pullItem(item: Item, out: Float32Array, from: number): number {
    const count = item.read(out, from, out.length, this.scratch);
    if (count > 0) {
      this.heard(item, out, from, from + count);
    }
    if (from + count < out.length) {
      if (item.ended) {
        this.close(item);
      } else {
        item.dry = true;
        item.waiting = true;
        item.ramp = this.samples(DECLICK_MS);
      }
    }
    return from + count;
  }

  private heard(item: Item, out: Float32Array, from: number, to: number): void {
    const rampLength = this.samples(DECLICK_MS);
    for (let i = from; item.ramp > 0 && i < to; i++) {
      out[i]! *= 1 - item.ramp-- / rampLength;
    }
    this.last = out[to - 1]!;
    this.tail = rampLength;
    if (item.played === 0) {
      this.emit({ type: "sounding", item: item.id });
    }
    const count = to - from;
    item.played += count;
    item.unreported += count;
    if (item.unreported >= this.samples(REPORT_MS)) {
      item.unreported = 0;
      this.report(item, false);
    }
    this.calm += count;
    if (this.calm >= this.samples(CALM_MS)) {
      this.calm = 0;
      this.cushionMs = Math.max(CUSHION_MS, Math.round(this.cushionMs * 0.8));
    }
  }

  private pullFade(out: Float32Array): number {
    const fade = this.fading;
    if (fade === null) {
      return 0;
    }
    const length = this.samples(FADE_MS);
    const count = fade.item.read(out, 0, Math.min(fade.left, out.length), this.scratch);
    for (let i = 0; i < count; i++) {
      out[i]! *= fade.left-- / length;
    }
    if (fade.left === 0) {
      this.fading = null;
      this.tail = 0;
    } else if (count < out.length) {
      this.fading = null;
      this.last = count > 0 ? out[count - 1]! : this.last;
      this.tail = this.samples(DECLICK_MS);
    }
    return count;
  }

  private ready(item: Item): boolean {
    if (item.waiting && !item.ended && (item.queued * 1000) / item.rate < this.cushionMs) {
      return false;
    }
    item.waiting = false;
    return true;
  }

  private close(item: Item): void {
    this.items.splice(this.items.indexOf(item), 1);
    this.finished.set(item.id, this.playedMs(item));
    if (this.finished.size > REMEMBERED) {
      const oldest = this.finished.keys().next();
      if (!oldest.done) {
        this.finished.delete(oldest.value);
      }
    }
    this.report(item, true);
  }

  private report(item: Item, done: boolean): void {
    this.emit({ type: "report", item: item.id, playedMs: this.playedMs(item), done });
  }

  private playedMs(item: Item): number {
    return Math.round((item.played * 1000) / this.outRate);
  }

  private queuedMs(rate: number): number {
    const queued = this.items.reduce((sum, item) => sum + item.queued, 0);
    return (queued * 1000) / rate;
  }

  private find(id: string): Item | undefined {
    return this.items.find((item) => item.id === id);
  }

  private samples(ms: number): number {
    return Math.round((ms * this.outRate) / 1000);
  }
}
