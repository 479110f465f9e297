import type { UplinkFrame } from "../audio/worklets/messages.js";
import { size, type Said } from "./spoken.js";

/**
 * So much of what was said without a connection, and of what was lost with it, is sent when the session goes on, in ms:
 * as much as a gateway takes at once.
 */
export const HELD_MS = 15_000;

/**
 * What is said while there is no connection, after what was lost with the connection. It is sent
 * first when the session is taken up again, so that an outage cuts no word.
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

  /**
   * What is still worth being sent of what was sent and has not arrived: the newest of it that makes HELD_MS
   * with what is kept, and each press of the button.
   */
  beside(lost: readonly Said[]): Said[] {
    let over = lost.reduce<number>((sum, one) => sum + size(one), this.#bytes - this.#most);
    return lost.filter((one) => {
      const old = over > 0 && typeof one !== "boolean";
      over -= size(one);
      return !old;
    });
  }

  /** How many bytes are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What is kept, oldest first. Nothing is kept afterwards. */
  take(): UplinkFrame[] {
    const frames = this.#frames;
    this.#frames = [];
    this.#bytes = 0;
    return frames;
  }
}
