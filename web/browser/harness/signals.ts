// Test signals for the microphone and the gateway, and a comparison of recordings.

/** The interpolation filter's samples on each side. */
const HALF = 16;

/** An endless sound: its value, -1 to 1, at a time in seconds. */
export type Sound = (seconds: number) => number;

/**
 * A speech-like sound: moving pitch and vowels, in syllables with pauses. No two stretches are alike, and nothing is
 * above 4.2 kHz.
 */
export function babble(t: number): number {
  const pitch = 120 + 35 * Math.sin(2 * Math.PI * 0.37 * t) + 15 * Math.sin(2 * Math.PI * 1.13 * t);
  // The integral of the pitch.
  const cycles = 120 * t - (35 / (2 * Math.PI * 0.37)) * Math.cos(2 * Math.PI * 0.37 * t) - (15 / (2 * Math.PI * 1.13)) * Math.cos(2 * Math.PI * 1.13 * t);
  const vowel = 700 + 400 * Math.sin(2 * Math.PI * 0.71 * t + 1);
  let sum = 0;
  for (let harmonic = 1; harmonic <= 24; harmonic++) {
    const distance = (harmonic * pitch - vowel) / 500;
    sum += Math.exp(-distance * distance) * Math.sin(2 * Math.PI * harmonic * cycles);
  }
  const syllable = Math.max(0, Math.sin(2 * Math.PI * (2.3 * t + 0.4 * Math.sin(2 * Math.PI * 0.29 * t))));
  return 0.12 * sum * syllable ** 0.5;
}

/** A sine of a frequency in Hz. */
export function tone(frequency: number, amplitude = 0.3): Sound {
  return (t) => amplitude * Math.sin(2 * Math.PI * frequency * t);
}

/** Interpolates a recording at a rate in Hz. It must have nothing above 4.2 kHz. */
export function recorded(samples: ArrayLike<number>, rate: number): Sound {
  // Different rates share few positions between samples.
  const known = new Map<number, Float64Array>();
  return (t) => {
    const whole = Math.floor(t * rate);
    const between = Math.round((t * rate - whole) * 1000) / 1000;
    const taps = known.get(between) ?? sinc(-between);
    known.set(between, taps);
    let sum = 0;
    for (let k = 0; k < taps.length; k++) {
      sum += taps[k]! * (samples[whole - k + HALF] ?? 0);
    }
    return sum;
  };
}

/** The sound from one time to another, and silence elsewhere. */
export function within(sound: Sound, from: number, to: number): Sound {
  return (t) => (t < from || t >= to ? 0 : sound(t));
}

/** Seconds from the first to the last loud moment between two times. */
export function voiced(sound: Sound, from: number, to: number): number {
  const loud = Array.from({ length: Math.round((to - from) * 16000) }, (_, i) => i / 16000).filter((t) => Math.abs(sound(from + t)) > 0.02);
  return loud.at(-1)! - loud[0]!;
}

/** PCM16 of a sound: rate in Hz, length and start in seconds. */
export function pcm16(sound: Sound, rate: number, seconds: number, from = 0): Int16Array {
  return Int16Array.from({ length: Math.round(rate * seconds) }, (_, i) => Math.round(32767 * Math.max(-1, Math.min(1, sound(from + i / rate)))));
}

/** Below this correlation, a hop may be shifted by a fraction of a sample. */
const ALIKE = 0.995;

/** The similarity of a recording and its original. */
export interface Likeness {
  /** Normalised correlation of the parts found, 0 to 1. */
  correlation: number;
  /** Missing and extra time, in ms. */
  lostMs: number;
  /** The sample of the recording where the original begins; may be negative. */
  begins: number;
}

/**
 * Compares a recording with its original, both at a rate in Hz. A device may begin between two samples, and a busy
 * machine drops blocks. So the original is followed in hops of 20 ms; where it breaks off, it is searched again, and
 * that hop is not counted.
 */
export function likeness(recording: Int16Array, original: Int16Array, rate: number): Likeness {
  const hop = rate / 50;
  const step = Math.max(1, Math.round(rate / 8000));
  const ahead = (at: number) => original.subarray(at, at + 10 * hop);
  const start = loudest(original, 25 * hop);
  let lag = place(recording, original.subarray(start, start + 25 * hop), 0, recording.length, step) - start;
  const begins = lag;
  let wanted = shifted(recording, original, start, lag, 25 * hop);
  const sum = { both: 0, own: 0, other: 0 };
  let lost = 0;
  /** The previous hop, if it did not fit: counted unless something was lost in it. */
  let doubtful: Products | null = null;
  /** The previous hop fitted, but not exactly. */
  let unlike = false;
  for (let at = 0; at + 10 * hop <= original.length; at += hop) {
    let found = products(recording, at + lag, wanted.subarray(at, at + hop), 1);
    if (doubtful !== null && found.other > 0 && coefficient(found) < 0.9) {
      const before = lag;
      lag = place(recording, ahead(at), at + lag - 5 * hop, at + lag + 5 * hop, step) - at;
      wanted = shifted(recording, original, at, lag, 10 * hop);
      found = products(recording, at + lag, wanted.subarray(at, at + hop), 1);
      lost += Math.abs(lag - before);
      doubtful = lag === before ? doubtful : null;
    }
    // A shift of less than a sample loses nothing.
    const near: boolean = found.other > 0 && coefficient(found) < ALIKE && coefficient(found) >= 0.9;
    if (near && unlike) {
      const beside = place(recording, ahead(at), at + lag - 2, at + lag + 2, 1) - at;
      const closer = shifted(recording, original, at, beside, 10 * hop);
      const better = products(recording, at + beside, closer.subarray(at, at + hop), 1);
      if (coefficient(better) > coefficient(found)) {
        lost += Math.abs(beside - lag);
        [lag, wanted, found] = [beside, closer, better];
      }
    }
    unlike = near;
    add(sum, doubtful);
    const fits = found.other === 0 || coefficient(found) >= 0.9;
    doubtful = fits ? null : found;
    add(sum, fits ? found : null);
  }
  add(sum, doubtful);
  return { correlation: coefficient(sum), lostMs: (lost * 1000) / rate, begins };
}

function add(sum: Products, more: Products | null): void {
  sum.both += more?.both ?? 0;
  sum.own += more?.own ?? 0;
  sum.other += more?.other ?? 0;
}

/** The start of the loudest stretch of that length. */
function loudest(pcm: Int16Array, length: number): number {
  const starts = Array.from({ length: Math.floor(pcm.length / length) }, (_, i) => i * length);
  const energy = (from: number) => pcm.subarray(from, from + length).reduce((sum, x) => sum + x * x, 0);
  return starts.reduce((best, from) => (energy(from) > energy(best) ? from : best), 0);
}

/** Finds a part in the recording between two places: coarsely first, then to the sample. */
function place(recording: Int16Array, part: Int16Array, from: number, to: number, step: number): number {
  const coarse = best(recording, part, from, to, step, step);
  return best(recording, part, coarse - step, coarse + step, 1, step);
}

function best(recording: Int16Array, part: Int16Array, from: number, to: number, stride: number, step: number): number {
  let found = Math.max(0, from);
  let most = -1;
  for (let at = Math.max(0, from); at <= to && at + part.length <= recording.length; at += stride) {
    const correlation = correlate(recording, at, part, step);
    if (correlation > most) {
      found = at;
      most = correlation;
    }
  }
  return found;
}

/** The original, delayed by the tenth of a sample that fits the recording best. */
function shifted(recording: Int16Array, original: Int16Array, from: number, lag: number, length: number): Float64Array {
  const part = original.subarray(from, from + length);
  const fits = Array.from({ length: 11 }, (_, i) => correlate(recording, from + lag, delayed(part, (i - 5) / 10), 1));
  return delayed(original, (fits.indexOf(Math.max(...fits)) - 5) / 10);
}

interface Products {
  both: number;
  own: number;
  other: number;
}

function coefficient({ both, own, other }: Products): number {
  return own === 0 || other === 0 ? 0 : both / Math.sqrt(own * other);
}

function correlate(recording: Int16Array, at: number, part: ArrayLike<number>, step: number): number {
  return coefficient(products(recording, at, part, step));
}

function products(recording: Int16Array, at: number, part: ArrayLike<number>, step: number): Products {
  let both = 0;
  let own = 0;
  let other = 0;
  for (let i = 0; i < part.length; i += step) {
    const x = recording[at + i] ?? 0;
    const y = part[i]!;
    both += x * y;
    own += x * x;
    other += y * y;
  }
  return { both, own, other };
}

/** Delays a part by a fraction of a sample, with a windowed sinc of 33 taps. */
function delayed(part: Int16Array, fraction: number): Float64Array {
  if (fraction === 0) {
    return Float64Array.from(part);
  }
  const taps = sinc(fraction);
  const out = new Float64Array(part.length);
  for (let i = HALF; i < part.length - HALF; i++) {
    let sum = 0;
    for (let k = 0; k < taps.length; k++) {
      sum += taps[k]! * part[i - k + HALF]!;
    }
    out[i] = sum;
  }
  return out;
}

function sinc(fraction: number): Float64Array {
  return Float64Array.from({ length: 2 * HALF + 1 }, (_, i) => {
    const t = i - HALF - fraction;
    return t === 0 ? 1 : (Math.sin(Math.PI * t) / (Math.PI * t)) * Math.cos((Math.PI * t) / (2 * HALF + 2)) ** 2;
  });
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}
