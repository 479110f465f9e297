import { rms, toPcm16 } from "./pcm.js";
import { Resampler } from "./resample.js";

/** Length of one uplink frame in milliseconds. */
export const FRAME_MS = 20;

/**
 * Turns blocks of the microphone, of any channel count and rate, into uplink
 * frames of 20 ms. Lives in the capture worklet; pure, so that tests reach it.
 */
export class Framer {
  private readonly resampler: Resampler;
  private readonly frame: Float32Array;
  private filled = 0;
  private mixed = new Float32Array(128);

  /**
   * Rates in Hz. `emit` gets a fresh array per frame (the caller may transfer
   * it) and the frame's RMS level.
   */
  constructor(
    inRate: number,
    outRate: number,
    private readonly emit: (pcm: Int16Array<ArrayBuffer>, level: number) => void,
  ) {
    this.resampler = new Resampler(inRate, outRate);
    this.frame = new Float32Array((outRate * FRAME_MS) / 1000);
  }

  /** One block: one array per channel, all of the same length. */
  push(channels: readonly Float32Array[]): void {
    this.resampler.write(this.mixDown(channels));
    for (;;) {
      this.filled += this.resampler.read(this.frame, this.filled);
      if (this.filled < this.frame.length) {
        return;
      }
      const pcm = new Int16Array(this.frame.length);
      toPcm16(this.frame, pcm);
      this.emit(pcm, rms(this.frame));
      this.filled = 0;
    }
  }

  // Mono is asked for, but devices give what they have.
  private mixDown(channels: readonly Float32Array[]): Float32Array {
    const first = channels[0];
    if (first === undefined) {
      return this.mixed.subarray(0, 0);
    }
    if (channels.length === 1) {
      return first;
    }
    if (this.mixed.length !== first.length) {
      this.mixed = new Float32Array(first.length);
    }
    this.mixed.fill(0);
    for (const channel of channels) {
      for (let i = 0; i < first.length; i++) {
        this.mixed[i]! += channel[i]! / channels.length;
      }
    }
    return this.mixed;
  }
}
