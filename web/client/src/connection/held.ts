import type { UplinkFrame } from "../audio/worklets/messages.js";

/** So much of the microphone is kept while there is no connection, in ms. */
export const HELD_MS = 2000;

/**
 * What is said while there is no connection: the newest two seconds. They are sent first
 * when the session is taken up again, so that a short outage cuts no word.
 */
export class Held {
  readonly #most: number;
  #frames: UplinkFrame[] = [];
  #bytes = 0;

  /** rate of the uplink in Hz. */
  constructor(rate: number) {
    this.#most = (HELD_MS * rate * 2) / 1000;
  }

  /** Keeps a frame, and returns how many older ones had to go for it. */
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

  /** All that is kept, oldest first. Nothing is kept afterwards. */
  take(): UplinkFrame[] {
    const frames = this.#frames;
    this.#frames = [];
    this.#bytes = 0;
    return frames;
  }
}
