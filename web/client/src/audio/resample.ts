// A streaming sample rate converter. It keeps history between blocks, so the output does not depend on the
// block size and does not click at the edges.
import { design, type Filter } from "./filter.js";
import { FULL_SCALE } from "./pcm.js";

// Room for unread input beyond the filter's length. Callers write at most one audio block at a time.
const ROOM = 4096;

/**
 * Converts one stream; it has history, so streams cannot share it. After construction, which may take
 * milliseconds, it allocates nothing.
 */
export class Resampler {
  readonly #filter: Filter;
  /** The input step per output sample: whole + part/of. */
  readonly #whole: number;
  readonly #part: number;
  readonly #of: number;

  readonly #buffer: Float32Array;
  #filled = 0;
  /** Index in the buffer of the next output's first tap. */
  #at = 0;
  /** Numerator of the next output's fractional position. */
  #fraction = 0;

  /** Rates in Hz, both above zero. */
  constructor(inRate: number, outRate: number) {
    if (!(inRate > 0) || !(outRate > 0)) {
      throw new RangeError(`resample: rates must be positive, got ${inRate} and ${outRate}`);
    }
    const from = Math.round(inRate);
    const to = Math.round(outRate);
    const common = gcd(from, to);
    this.#of = to / common;
    this.#whole = Math.floor(from / to);
    this.#part = (from / common) % this.#of;
    this.#filter = design(from, to, this.#of);
    this.#buffer = new Float32Array(this.#filter.taps + ROOM);
    this.reset();
  }

  /** Begins a new stream. */
  reset(): void {
    // Silence before the first sample aligns the first output with the first input; otherwise it would come
    // half a filter late.
    this.#filled = this.#filter.taps / 2 - 1;
    this.#buffer.fill(0, 0, this.#filled);
    this.#at = 0;
    this.#fraction = 0;
  }

  /** Appends samples. At most 4096 may be unread. */
  write(input: Float32Array): void {
    this.#reserve(input.length);
    this.#buffer.set(input, this.#filled);
    this.#filled += input.length;
  }

  /** Appends input[from..to) as PCM16. */
  writePcm16(input: Int16Array, from: number, to: number): void {
    this.#reserve(to - from);
    const shift = this.#filled - from;
    for (let i = from; i < to; i++) {
      this.#buffer[i + shift] = input[i]! / FULL_SCALE;
    }
    this.#filled += to - from;
  }

  /** Appends silence. */
  writeSilence(count: number): void {
    this.#reserve(count);
    this.#buffer.fill(0, this.#filled, this.#filled + count);
    this.#filled += count;
  }

  /** Ends the stream; the rest inside the filter can then be read. */
  finish(): void {
    this.writeSilence(this.#filter.taps / 2);
  }

  /** Fills out[from..to), up to the available input, and returns the count. */
  read(out: Float32Array, from = 0, to = out.length): number {
    const { taps } = this.#filter;
    let n = from;
    while (n < to && this.#at + taps <= this.#filled) {
      out[n++] = this.#next();
      this.#at += this.#whole;
      this.#fraction += this.#part;
      if (this.#fraction >= this.#of) {
        this.#fraction -= this.#of;
        this.#at++;
      }
    }
    return n - from;
  }

  // Four independent sums run in parallel on the processor.
  #next(): number {
    const buffer = this.#buffer;
    const at = this.#at;
    const { table, taps, phases } = this.#filter;
    const row = taps * (phases === this.#of ? this.#fraction : Math.floor((this.#fraction * phases) / this.#of));
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (let i = 0; i < taps; i += 4) {
      a += buffer[at + i]! * table[row + i]!;
      b += buffer[at + i + 1]! * table[row + i + 1]!;
      c += buffer[at + i + 2]! * table[row + i + 2]!;
      d += buffer[at + i + 3]! * table[row + i + 3]!;
    }
    return a + b + (c + d);
  }

  /** Makes room at the end of the buffer. */
  #reserve(count: number): void {
    if (this.#filled + count <= this.#buffer.length) {
      return;
    }
    // A filter is longer than any step, so `at` is never beyond the end.
    this.#buffer.copyWithin(0, this.#at, this.#filled);
    this.#filled -= this.#at;
    this.#at = 0;
    if (this.#filled + count > this.#buffer.length) {
      throw new RangeError("resample: read what was written before writing more");
    }
  }
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
