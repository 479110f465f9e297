// A streaming sample rate converter. It keeps its history between blocks (converting each
// block on its own clicks at every edge), so that how a stream is cut into blocks makes no
// difference to the output.
import { design, type Filter } from "./filter.js";
import { FULL_SCALE } from "./pcm.js";

// Room for input that was written and not read yet, beyond the filter's own length. Callers
// write at most one audio block at a time.
const ROOM = 4096;

/**
 * One direction of one stream; not shared between streams, since it has history. Nothing is
 * allocated after it was made, which may take some milliseconds.
 */
export class Resampler {
  readonly #filter: Filter;
  /** How far one output sample moves on in the input: whole + part/of. */
  readonly #whole: number;
  readonly #part: number;
  readonly #of: number;

  readonly #buffer: Float32Array;
  #filled = 0;
  /** Where in buffer the next output's first tap is. */
  #at = 0;
  /** Numerator of the next output's fraction behind its input sample. */
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

  /** Forgets the stream; the next write begins a new one. */
  reset(): void {
    // Silence before the first sample: the first output then stands for the first input,
    // instead of coming half a filter late.
    this.#filled = this.#filter.taps / 2 - 1;
    this.#buffer.fill(0, 0, this.#filled);
    this.#at = 0;
    this.#fraction = 0;
  }

  /** Appends samples. At most 4096 may wait to be read. */
  write(input: Float32Array): void {
    this.#reserve(input.length);
    this.#buffer.set(input, this.#filled);
    this.#filled += input.length;
  }

  /** Appends input[from..to), which is PCM16. */
  writePcm16(input: Int16Array, from: number, to: number): void {
    this.#reserve(to - from);
    const shift = this.#filled - from;
    for (let i = from; i < to; i++) {
      this.#buffer[i + shift] = input[i]! / FULL_SCALE;
    }
    this.#filled += to - from;
  }

  /** Appends so many samples of silence. */
  writeSilence(count: number): void {
    this.#reserve(count);
    this.#buffer.fill(0, this.#filled, this.#filled + count);
    this.#filled += count;
  }

  /** Ends the stream: what is still inside the filter can be read after this. */
  finish(): void {
    this.writeSilence(this.#filter.taps / 2);
  }

  /** Fills out[from..to) as far as the input reaches; returns the count. */
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

  // Four sums side by side: they do not wait for one another.
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

  /** Makes room behind what is filled. */
  #reserve(count: number): void {
    if (this.#filled + count <= this.#buffer.length) {
      return;
    }
    // A filter is longer than any step: `at` never lies beyond what is filled.
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
