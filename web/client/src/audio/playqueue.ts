import { Cushion } from "./cushion.js";
import { Fifo } from "./fifo.js";
import { Resampler } from "./resample.js";

/** Events about the queued items. */
export type PlayEvent =
  /** The item's first sample is this output frame; it waited cushionMs for the buffer to fill. */
  | { type: "sounding"; item: string; frame: number; firstByteAt: number; cushionMs: number }
  /** How much of the item was heard. done: no more of it will play. */
  | { type: "report"; item: string; playedMs: number; done: boolean }
  /** The item was playing and is now silent, `ms` after the flush was requested. */
  | { type: "silenced"; item: string; ms: number }
  /** The item has run dry but not ended. */
  | { type: "dry"; item: string }
  /** The item ran dry and resumed; the buffer has grown to cushionMs. */
  | { type: "underrun"; item: string; cushionMs: number }
  /** The queue is full; the rest of the item is lost. */
  | { type: "overflow"; item: string };

const REPORT_MS = 200;
/** Fade-out at a flush: short enough to feel immediate, long enough not to click. */
const FADE_MS = 10;
/** Ramp where audio runs out or resumes after a gap. */
const DECLICK_MS = 3;

/** The most audio queued; answers of voice models are shorter. */
const MAX_QUEUED_MS = 300_000;
/** The number of finished items remembered, to answer a late flush correctly. */
const REMEMBERED = 32;

// Input samples per call of the resampler, so that pull costs about the same for frames of any size.
const FEED = 128;

class Item {
  readonly chunks = new Fifo<Int16Array>();
  /** Samples of the oldest chunk already consumed. */
  used = 0;
  /** Samples received, and those not yet consumed. */
  came = 0;
  queued = 0;
  /** Arrival time of the first audio, reported when it plays. */
  firstByteAt = 0;
  ended = false;
  drained = false;
  overflowed = false;
  /** Waiting for the buffer to fill: at the start and after running dry. */
  waiting = true;
  /** The frame at which it began to wait with audio queued; -1 before. */
  waitingSince = -1;
  dry = false;
  /** Samples left of the ramp after a gap. */
  ramp = 0;
  /** Frames rendered, the output frame they reach, and the frames reported as heard. */
  rendered = 0;
  until = 0;
  reported = 0;

  constructor(
    readonly id: string,
    readonly rate: number,
  ) {}

  /** The duration of `samples` samples of the item in ms. */
  ms(samples: number): number {
    return (samples * 1000) / this.rate;
  }
}

/**
 * The downlink's queue, one entry per spoken item. Runs in the playback worklet, without using its globals,
 * so that tests can run it. The device's pulls are its only clock.
 *
 * It allocates nothing per block or frame, only a few objects per item and one per report. Rendered audio is
 * not heard at once; see setLatency.
 */
export class PlayQueue {
  readonly #outRate: number;
  readonly #emit: (event: PlayEvent) => void;
  readonly #cushion: Pick<Cushion, "ms" | "begin" | "arrived" | "sounded">;
  readonly #items: Item[] = [];
  /** Items fully rendered but not fully heard. */
  readonly #leaving: Item[] = [];
  readonly #finished = new Map<string, number>();
  /** The next output frame. */
  #clock = 0;
  #latency = 0;

  #resampler: Resampler;
  #resamplerRate: number;
  /** The item whose samples are in the resampler. */
  #feeding: Item | null = null;

  /** The last 10 ms of a flushed item, rendered at the flush. */
  readonly #fade: Float32Array;
  #fadeAt = 0;
  #fadeEnd = 0;
  #fadeItem = "";
  #fadeAskedAt = 0;

  /** The last sample output, and the samples left of the ramp from it to silence. */
  #last = 0;
  #tail = 0;

  /** Rates in Hz; items may have rates other than `rate`. The methods call `emit`. */
  constructor(
    outRate: number,
    rate: number,
    emit: (event: PlayEvent) => void,
    cushion: Pick<Cushion, "ms" | "begin" | "arrived" | "sounded"> = new Cushion(),
  ) {
    this.#outRate = outRate;
    this.#emit = emit;
    this.#cushion = cushion;
    this.#resampler = new Resampler(rate, outRate);
    this.#resamplerRate = rate;
    this.#fade = new Float32Array(this.#frames(FADE_MS));
  }

  /** Sets the output latency. Reports count audio as heard, and items as done, after it. */
  setLatency(seconds: number): void {
    this.#latency = Math.round(seconds * this.#outRate);
  }

  /** Begins an item; rate in Hz. Does nothing for a known id. */
  start(id: string, rate: number): void {
    if (!this.#finished.has(id) && find(this.#items, id) === undefined && find(this.#leaving, id) === undefined) {
      this.#items.push(new Item(id, rate));
    }
  }

  /** Adds audio to an item, or drops it if the item is unknown, ended or flushed. `at` is a time of any clock. */
  push(id: string, pcm: Int16Array, at: number): void {
    const item = find(this.#items, id);
    if (item === undefined || item.ended || item.overflowed || pcm.length === 0) {
      return;
    }
    const waiting = this.#queuedMs();
    if (waiting > MAX_QUEUED_MS) {
      item.overflowed = true;
      this.#emit({ type: "overflow", item: id });
      return;
    }
    if (item.came === 0) {
      item.firstByteAt = at;
      this.#cushion.begin();
    }
    const now = (this.#clock * 1000) / this.#outRate;
    this.#cushion.arrived(now, item.ms(item.came), item.ms(pcm.length), waiting, item.dry);
    if (item.dry) {
      // Only now is it clear that the item had not ended.
      item.dry = false;
      this.#emit({ type: "underrun", item: id, cushionMs: this.#cushion.ms });
    }
    item.chunks.push(pcm);
    item.came += pcm.length;
    item.queued += pcm.length;
  }

  /** The item's audio is complete. */
  end(id: string): void {
    const item = find(this.#items, id);
    if (item === undefined) {
      return;
    }
    item.ended = true;
    if (item.dry && this.#items[0] === item) {
      // It has played to the end. The last milliseconds in the filter would only click after the gap.
      this.#leave(item);
    }
  }

  /**
   * Drops the item, or all if null. It is silent within 10 ms. Emits one report per item, also for one that
   * had ended before. askedAt is in seconds on the output's clock.
   */
  flush(id: string | null, askedAt: number): void {
    if (id === null) {
      for (const item of [...this.#leaving, ...this.#items]) {
        this.flush(item.id, askedAt);
      }
      return;
    }
    const item = find(this.#items, id) ?? find(this.#leaving, id);
    if (item === undefined) {
      this.#emit({ type: "report", item: id, playedMs: this.#finished.get(id) ?? 0, done: true });
      return;
    }
    if (item === this.#items[0] && !item.waiting) {
      this.#renderFade(item, askedAt);
    }
    // Audio inside the device still plays, but under the user's voice, so it does not count as heard.
    this.#finish(item);
  }

  /** Fills one output block that begins at this frame. */
  pull(out: Float32Array, frame: number): void {
    this.#clock = frame;
    let n = this.#pullFade(out);
    while (n < out.length) {
      const item = this.#items[0];
      if (item === undefined || !this.#ready(item)) {
        break;
      }
      n = this.#pullItem(item, out, n);
    }
    const ramp = this.#frames(DECLICK_MS);
    for (; n < out.length; n++) {
      out[n] = this.#tail > 0 ? (this.#last * this.#tail--) / ramp : 0;
    }
    this.#clock = frame + out.length;
    this.#tellHeard();
  }

  #ready(item: Item): boolean {
    if (!item.waiting) {
      return true;
    }
    if (item.waitingSince < 0 && item.queued > 0) {
      item.waitingSince = this.#clock;
    }
    if (!item.ended && item.ms(item.queued) < this.#cushion.ms) {
      return false;
    }
    item.waiting = false;
    return true;
  }

  #pullItem(item: Item, out: Float32Array, from: number): number {
    const to = from + this.#read(item, out, from, out.length);
    if (to > from) {
      this.#rendered(item, out, from, to);
    }
    if (to < out.length) {
      if (item.ended) {
        this.#leave(item);
      } else {
        item.dry = true;
        item.waiting = true;
        item.ramp = this.#frames(DECLICK_MS);
        this.#emit({ type: "dry", item: item.id });
      }
    }
    return to;
  }

  #rendered(item: Item, out: Float32Array, from: number, to: number): void {
    this.#rampUp(item, out, from, to);
    this.#last = out[to - 1]!;
    this.#tail = this.#frames(DECLICK_MS);
    if (item.rendered === 0) {
      this.#emit({
        type: "sounding",
        item: item.id,
        frame: this.#clock + from,
        firstByteAt: item.firstByteAt,
        cushionMs: this.#ms(Math.max(0, this.#clock - item.waitingSince)),
      });
    }
    item.rendered += to - from;
    item.until = this.#clock + to;
    this.#cushion.sounded(((to - from) * 1000) / this.#outRate);
  }

  /** Fills out[from..to) from the item, up to its available data, and returns the count. */
  #read(item: Item, out: Float32Array, from: number, to: number): number {
    if (this.#feeding !== item) {
      this.#feeding = item;
      if (this.#resamplerRate !== item.rate) {
        this.#resampler = new Resampler(item.rate, this.#outRate);
        this.#resamplerRate = item.rate;
      }
      this.#resampler.reset();
    }
    let n = from;
    for (;;) {
      n += this.#resampler.read(out, n, to);
      if (n >= to || !this.#feed(item)) {
        return n - from;
      }
    }
  }

  #feed(item: Item): boolean {
    const chunk = item.chunks.peek();
    if (chunk === undefined) {
      if (!item.ended || item.drained) {
        return false;
      }
      this.#resampler.finish();
      item.drained = true;
      return true;
    }
    const to = Math.min(item.used + FEED, chunk.length);
    this.#resampler.writePcm16(chunk, item.used, to);
    item.queued -= to - item.used;
    item.used = to;
    if (to === chunk.length) {
      item.chunks.drop();
      item.used = 0;
    }
    return true;
  }

  #rampUp(item: Item, out: Float32Array, from: number, to: number): void {
    const length = this.#frames(DECLICK_MS);
    for (let i = from; item.ramp > 0 && i < to; i++) {
      out[i]! *= 1 - item.ramp-- / length;
    }
  }

  #renderFade(item: Item, askedAt: number): void {
    const length = this.#frames(FADE_MS);
    const count = this.#read(item, this.#fade, 0, length);
    this.#rampUp(item, this.#fade, 0, count);
    for (let i = 0; i < count; i++) {
      this.#fade[i]! *= 1 - (i + 1) / length;
    }
    this.#fadeEnd = count;
    if (count < length) {
      // The item was about to run dry, so use a shorter ramp from its last sample.
      const last = count > 0 ? this.#fade[count - 1]! : this.#last;
      const ramp = Math.min(this.#frames(DECLICK_MS), length - count);
      for (let i = 1; i <= ramp; i++) {
        this.#fade[this.#fadeEnd++] = last * (1 - i / ramp);
      }
    }
    this.#fadeAt = 0;
    this.#fadeItem = item.id;
    this.#fadeAskedAt = askedAt;
    this.#tail = 0;
  }

  #pullFade(out: Float32Array): number {
    if (this.#fadeAt >= this.#fadeEnd) {
      return 0;
    }
    let n = 0;
    while (n < out.length && this.#fadeAt < this.#fadeEnd) {
      out[n++] = this.#fade[this.#fadeAt++]!;
    }
    if (this.#fadeAt === this.#fadeEnd) {
      const ms = ((this.#clock + n) / this.#outRate - this.#fadeAskedAt) * 1000;
      this.#emit({ type: "silenced", item: this.#fadeItem, ms: Math.max(0, Math.round(ms)) });
    }
    return n;
  }

  #leave(item: Item): void {
    remove(this.#items, item);
    this.#leaving.push(item);
  }

  #finish(item: Item): void {
    remove(this.#items, item);
    remove(this.#leaving, item);
    const playedMs = this.#ms(this.#heard(item));
    this.#finished.set(item.id, playedMs);
    if (this.#finished.size > REMEMBERED) {
      for (const oldest of this.#finished.keys()) {
        this.#finished.delete(oldest);
        break;
      }
    }
    this.#emit({ type: "report", item: item.id, playedMs, done: true });
  }

  #tellHeard(): void {
    for (let item = this.#leaving[0]; item !== undefined && this.#heard(item) === item.rendered; item = this.#leaving[0]) {
      this.#finish(item);
    }
    const item = this.#leaving[0] ?? this.#items[0];
    if (item === undefined) {
      return;
    }
    const heard = this.#heard(item);
    if (heard - item.reported >= this.#frames(REPORT_MS)) {
      item.reported = heard;
      this.#emit({ type: "report", item: item.id, playedMs: this.#ms(heard), done: false });
    }
  }

  /** Frames of the item heard so far; never below the number already reported. */
  #heard(item: Item): number {
    const inside = Math.max(0, this.#latency - (this.#clock - item.until));
    return Math.max(item.reported, item.rendered - inside);
  }

  #queuedMs(): number {
    let ms = 0;
    for (const item of this.#items) {
      ms += item.ms(item.queued);
    }
    return ms;
  }

  #ms(frames: number): number {
    return Math.round((frames * 1000) / this.#outRate);
  }

  #frames(ms: number): number {
    return Math.round((ms * this.#outRate) / 1000);
  }
}

function find(items: readonly Item[], id: string): Item | undefined {
  for (const item of items) {
    if (item.id === id) {
      return item;
    }
  }
  return undefined;
}

function remove(items: Item[], item: Item): void {
  const at = items.indexOf(item);
  if (at >= 0) {
    items.splice(at, 1);
  }
}
