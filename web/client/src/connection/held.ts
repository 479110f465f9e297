import type { UplinkFrame } from "../audio/worklets/messages.js";
import { size, type Said } from "./spoken.js";

/**
 * The most audio, in ms, that is sent when the session resumes: recorded offline plus lost with the
 * connection. The gateway accepts this much at once.
 */
export const HELD_MS = 15_000;

/**
 * Audio recorded while offline. It is sent after the audio that was lost with the connection and before
 * anything newer, so an outage costs no words.
 */
export class Held {
  readonly #most: number;
  #frames: UplinkFrame[] = [];
  #bytes = 0;

  /** rate is the uplink's sample rate in Hz. */
  constructor(rate: number) {
    this.#most = (HELD_MS * rate * 2) / 1000;
  }

  /** Adds a frame and returns how many older frames it displaced. */
  push(frame: UplinkFrame): number {
    this.#frames.push(frame);
    this.#bytes += frame.pcm.byteLength;
    let gone = 0;
    while (this.#bytes > this.#most) {
      this.#bytes -= this.#frames[gone++]!.pcm.byteLength;
    }
    this.#frames.splice(0, gone);
    return gone;
  }

  /**
   * Returns the part of the lost audio to send again: the newest that fits into HELD_MS together with the
   * stored frames, and every press of the button.
   */
  beside(lost: readonly Said[]): Said[] {
    let over = lost.reduce<number>((sum, one) => sum + size(one), this.#bytes - this.#most);
    return lost.filter((one) => {
      const old = over > 0 && typeof one !== "boolean";
      over -= size(one);
      return !old;
    });
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Removes and returns the stored frames, oldest first. */
  take(): UplinkFrame[] {
    const frames = this.#frames;
    this.#frames = [];
    this.#bytes = 0;
    return frames;
  }
}
