// Whether a microphone that is tested is heard, by how loud it is.

/** none: nothing has come yet that can be judged. faint: there is sound, but no speech that a model would hear. silent: not even noise. */
export type Heard = "none" | "heard" | "faint" | "silent";

/** RMS from which speech is heard well: -40 dB. */
const SPEECH = 0.01;
/** A microphone that is on has at least its own noise: -90 dB. */
const NOISE = 0.00003;
/** So much of it in all is speech and not a click, in ms. */
const ENOUGH_MS = 300;
/** So long somebody needs to begin, in ms. */
const PATIENCE_MS = 4000;

/** Judges levels, one after another. */
export class Hearing {
  private speechMs = 0;
  private allMs = 0;
  private noise = false;

  /** A level as RMS, 0 to 1, that lasted some ms. */
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
