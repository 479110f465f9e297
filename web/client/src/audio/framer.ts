import { rms, toPcm16 } from "./pcm.js";
import { Resampler } from "./resample.js";

/** Length of an uplink frame in ms. */
export const FRAME_MS = 20;

/**
 * Converts microphone blocks of any rate and channel count to uplink frames of 20 ms. Runs in the capture
 * worklet, without using its globals, so that tests can run it. It allocates only the frames it emits.
 */
export class Framer {
  readonly #emit: (pcm: Int16Array<ArrayBuffer>, level: number) => void;
  readonly #resampler: Resampler;
  readonly #frame: Float32Array;
  #filled = 0;
  #mixed = new Float32Array(128);

  /**
   * Rates in Hz. `emit` receives a new array for each frame, which it may transfer, and the frame's RMS
   * level.
   */
  constructor(inRate: number, outRate: number, emit: (pcm: Int16Array<ArrayBuffer>, level: number) => void) {
    this.#emit = emit;
    this.#resampler = new Resampler(inRate, outRate);
    this.#frame = new Float32Array((outRate * FRAME_MS) / 1000);
  }

  /** Adds one block: an array for each channel, all of the same length. */
  push(channels: readonly Float32Array[]): void {
    const first = channels[0];
    if (first === undefined) {
      return;
    }
    this.#resampler.write(channels.length === 1 ? first : this.#mixDown(channels, first.length));
    this.#emitFrames();
  }

  /** Adds a block of silence. */
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

  // The request for mono is only a wish; devices may deliver more channels.
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
