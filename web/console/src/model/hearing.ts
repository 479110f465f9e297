// Judges by its level whether a tested microphone works.

/**
 * none: not enough audio yet. faint: sound, but no speech that a model would recognize. silent: not even
 * noise.
 */
export type Heard = "none" | "heard" | "faint" | "silent";

/** RMS of speech that is loud enough: -40 dB. */
const SPEECH = 0.01;
/** A microphone has at least this much noise of its own: -90 dB. */
const NOISE = 0.00003;
/** Shorter sounds in total, in ms, are clicks. */
const ENOUGH_MS = 300;
/** How long the user may take to begin, in ms. */
const PATIENCE_MS = 4000;

/** Judges a sequence of levels. */
export class Hearing {
  private speechMs = 0;
  private allMs = 0;
  private noise = false;

  /** Adds an RMS level, 0 to 1, that lasted `ms`. */
  take(level: number, ms: number): Heard {
    this.allMs += ms;
    this.noise ||= level > NOISE;
    if (level >= SPEECH) {
      this.speechMs += ms;
    }
    if (this.speechMs >= ENOUGH_MS) {
      return "heard";
    }
    return this.allMs < PATIENCE_MS ? "none" : this.noise ? "faint" : "silent";
  }
}

/** The root mean square of samples from -1 to 1. */
export function rms(samples: Float32Array): number {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / Math.max(1, samples.length));
}
