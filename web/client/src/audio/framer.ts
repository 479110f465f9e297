import { rms, toPcm16 } from "./pcm.js";
import { Resampler } from "./resample.js";

/** Length of one uplink frame in milliseconds. */
export const FRAME_MS = 20;

/**
 * Turns blocks of the microphone, of any channel count and rate, into uplink frames of
 * 20 ms. Lives in the capture worklet; pure, so that tests reach it. It allocates the frame
 * that it gives away, and nothing else.
 */
export class Framer {
  readonly #emit: (pcm: Int16Array<ArrayBuffer>, level: number) => void;
  readonly #resampler: Resampler;
  readonly #frame: Float32Array;
  #filled = 0;
  #mixed = new Float32Array(128);

  /**
   * Rates in Hz. `emit` gets a fresh array per frame (the caller may transfer it) and the
   * frame's RMS level.
   */
  constructor(inRate: number, outRate: number, emit: (pcm: Int16Array<ArrayBuffer>, level: number) => void) {
    this.#emit = emit;
    this.#resampler = new Resampler(inRate, outRate);
    this.#frame = new Float32Array((outRate * FRAME_MS) / 1000);
  }

  /** One block: one array per channel, all of the same length. */
  push(channels: readonly Float32Array[]): void {
    const first = channels[0];
    if (first === undefined) {
      return;
    }
    this.#resampler.write(channels.length === 1 ? first : this.#mixDown(channels, first.length));
    this.#emitFrames();
  }

  /** One block of so many samples of nothing. */
  pushSilence(samples: number): void {
    this.#resampler.writeSilence(samples);
    this.#emitFrames();
  }

  #emitFrames(): void {
    for (;;) {
      this.#filled += this.#resampler.read(this.#frame, this.#filled);
      if (this.#filled < this.#frame.length) {
        return;
      }
      const pcm = new Int16Array(this.#frame.length);
      toPcm16(this.#frame, pcm);
      this.#emit(pcm, rms(this.#frame));
      this.#filled = 0;
    }
  }

  // Mono is asked for, but devices give what they have.
  #mixDown(channels: readonly Float32Array[], length: number): Float32Array {
    if (this.#mixed.length !== length) {
      this.#mixed = new Float32Array(length);
    }
    const mixed = this.#mixed;
    mixed.fill(0);
    for (let c = 0; c < channels.length; c++) {
      const channel = channels[c]!;
      for (let i = 0; i < length; i++) {
        mixed[i]! += channel[i]! / channels.length;
      }
    }
    return mixed;
  }
}
