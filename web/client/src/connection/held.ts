import type { UplinkFrame } from "../audio/worklets/messages.js";
import { SPOKEN_MS, size, type Said } from "./spoken.js";

/** So much of what was said without a connection is sent when the session goes on, in ms. */
export const HELD_MS = 2000;

/**
 * What is said while there is no connection, after what was lost with the connection. The newest
 * two seconds of it are sent first when the session is taken up again, so that a short outage
 * cuts no word; all of it, ten seconds at most, where another gateway goes on with the session and needs what the user was saying.
 */
export class Held {
  readonly #most: number;
  readonly #short: number;
  #frames: UplinkFrame[] = [];
  #bytes = 0;

  /** rate of the uplink in Hz. */
  constructor(rate: number) {
    this.#most = (SPOKEN_MS * rate * 2) / 1000;
    this.#short = (HELD_MS * rate * 2) / 1000;
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
   * What is still worth being sent of what was sent and has not arrived: the newest of it that makes two
   * seconds with what is kept, and each press of the button.
   */
  beside(lost: readonly Said[]): Said[] {
    let over = lost.reduce<number>((sum, one) => sum + size(one), this.#bytes - this.#short);
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

  /**
   * What is kept, oldest first: all of it where `all`, otherwise the newest two seconds, and how
   * many older frames were not wanted. Nothing is kept afterwards.
   */
  take(all: boolean): { frames: UplinkFrame[]; unwanted: number } {
    const frames = this.#frames;
    let unwanted = 0;
    while (!all && this.#bytes > this.#short) {
      this.#bytes -= frames[unwanted++]!.pcm.byteLength;
    }
    frames.splice(0, unwanted);
    this.#frames = [];
    this.#bytes = 0;
    return { frames, unwanted };
  }
}
