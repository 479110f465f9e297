// A streaming sample rate converter: polyphase FIR, Kaiser windowed sinc.
//
// It keeps its history between blocks (converting each block on its own clicks
// at every edge) and filters below the lower of the two Nyquist limits, so that
// nothing folds back into the speech band.

const ATTENUATION_DB = 80;

// Share of the lower Nyquist limit given to the filter's slope. 12 % keeps
// everything up to 7 kHz at a rate of 16 kHz, for a look-ahead of under 4 ms.
const TRANSITION = 0.12;

// Above this many phases the nearest one is used. No pair of usual rates needs
// more than 441 (48 000 to 44 100 and their like), which are exact.
const MAX_PHASES = 1024;

// Room for input that was written and not read yet, beyond the filter's own
// length. Callers write at most one audio block at a time.
const ROOM = 4096;

/** One direction of one stream. Not shared between streams: it has history. */
export class Resampler {
  private readonly phases: number;
  private readonly taps: number;
  private readonly table: Float32Array;
  /** How far one output sample moves on in the input: whole + part/of. */
  private readonly whole: number;
  private readonly part: number;
  private readonly of: number;

  private readonly buffer: Float32Array;
  private filled: number;
  /** Buffer index of the input sample at or before the next output. */
  private at: number;
  /** Numerator of the next output's fraction behind `at`. */
  private fraction = 0;

  /** Rates in Hz, both above zero. */
  constructor(inRate: number, outRate: number) {
    if (!(inRate > 0) || !(outRate > 0)) {
      throw new RangeError(`resample: rates must be positive, got ${inRate} and ${outRate}`);
    }
    const from = Math.round(inRate);
    const to = Math.round(outRate);
    const common = gcd(from, to);
    this.of = to / common;
    this.whole = Math.floor(from / to);
    this.part = (from / common) % this.of;
    this.phases = Math.min(this.of, MAX_PHASES);
    const half = halfLength(from, to);
    this.taps = 2 * half;
    this.table = design(from, to, half, this.phases);
    this.buffer = new Float32Array(this.taps + ROOM);
    // Silence before the first sample: the first output then stands for the
    // first input, instead of coming half a filter late.
    this.filled = half - 1;
    this.at = half - 1;
  }

  /** Appends input. At most 4096 samples may wait to be read. */
  write(input: Float32Array, from = 0, to = input.length): void {
    const count = to - from;
    if (this.filled + count > this.buffer.length) {
      this.compact();
      if (this.filled + count > this.buffer.length) {
        throw new RangeError("resample: read what was written before writing more");
      }
    }
    this.buffer.set(input.subarray(from, to), this.filled);
    this.filled += count;
  }

  /** Ends the stream: what is still inside the filter can be read after this. */
  finish(): void {
    this.write(new Float32Array(this.taps / 2));
  }

  /** Fills out[from..to) as far as the input reaches; returns the count. */
  read(out: Float32Array, from = 0, to = out.length): number {
    const half = this.taps / 2;
    let n = from;
    while (n < to && this.at + half < this.filled) {
      out[n++] = this.sampleAt(this.at - half + 1);
      this.at += this.whole;
      this.fraction += this.part;
      if (this.fraction >= this.of) {
        this.fraction -= this.of;
        this.at++;
      }
    }
    return n - from;
  }

  private sampleAt(first: number): number {
    const phase = this.phases === this.of ? this.fraction : Math.floor((this.fraction * this.phases) / this.of);
    const { buffer, table, taps } = this;
    const row = phase * taps;
    let sum = 0;
    for (let i = 0; i < taps; i++) {
      sum += buffer[first + i]! * table[row + i]!;
    }
    return sum;
  }

  private compact(): void {
    // `at` may lie beyond what is filled when the next output is far ahead.
    const keep = Math.min(this.at - this.taps / 2 + 1, this.filled);
    this.buffer.copyWithin(0, keep, this.filled);
    this.filled -= keep;
    this.at -= keep;
  }
}

/** Taps on each side of an output sample, for the wanted attenuation. */
function halfLength(from: number, to: number): number {
  if (from === to) {
    return 1;
  }
  const slope = (Math.PI * TRANSITION * Math.min(from, to)) / from;
  return Math.ceil((ATTENUATION_DB - 7.95) / (2.285 * slope) / 2);
}

function design(from: number, to: number, half: number, phases: number): Float32Array {
  const taps = 2 * half;
  const table = new Float32Array(phases * taps);
  if (from === to) {
    table[0] = 1;
    return table;
  }
  // In units of the input rate. The slope ends at the lower Nyquist limit.
  const cutoff = (0.5 * Math.min(from, to) * (1 - TRANSITION / 2)) / from;
  const beta = 0.1102 * (ATTENUATION_DB - 8.7);
  for (let phase = 0; phase < phases; phase++) {
    const row = table.subarray(phase * taps, (phase + 1) * taps);
    let sum = 0;
    for (let i = 0; i < taps; i++) {
      const t = i - half + 1 - phase / phases;
      row[i] = 2 * cutoff * sinc(2 * cutoff * t) * kaiser(t / half, beta);
      sum += row[i]!;
    }
    // Every phase has a gain of exactly one at DC, or a constant would hum.
    for (let i = 0; i < taps; i++) {
      row[i] = row[i]! / sum;
    }
  }
  return table;
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

function kaiser(x: number, beta: number): number {
  return Math.abs(x) > 1 ? 0 : bessel(beta * Math.sqrt(1 - x * x)) / bessel(beta);
}

/** Modified Bessel function of the first kind, order zero, as a power series. */
function bessel(x: number): number {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > 1e-12 * sum; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
