import type { UplinkFrame } from "../audio/worklets/messages.js";
import type { InputRange, SessionStarted } from "../protocol/messages.js";

/** So much of what was sent is kept, in ms: as much as a gateway takes again. */
export const SPOKEN_MS = 10_000;

/** A frame, or the push-to-talk button: pressed or let go. */
export type Said = UplinkFrame | boolean;

/**
 * What was sent of the user's speech. A gateway that goes on with a session whose gateway has
 * died asks for what nobody has handled. Positions are in bytes on the session's input clock,
 * which both sides count: docs/protocol.md, "What the user was saying".
 */
export class Spoken {
  readonly #bytesPerMs: number;
  #said: Said[] = [];
  /** Where the oldest audio begins, and where the newest one ends. */
  #from = 0;
  #to = 0;
  /** The gateway counts as this does. */
  #known = false;
  /** The button was pressed before the oldest entry. */
  #pressed = false;
  /** Where the newest speech that was reported has ended, and its turn. */
  #stopped = { ms: 0, turn: 0 };

  /** rate of the uplink in Hz. */
  constructor(rate: number) {
    this.#bytesPerMs = (2 * rate) / 1000;
  }

  /** Nothing is kept yet; what is sent next stands at ms. */
  begin(ms: number): void {
    this.#said = [];
    this.#from = this.#to = this.#at(ms);
    this.#known = true;
    this.#pressed = false;
    this.#stopped = { ms: 0, turn: 0 };
  }

  /** The gateway has not counted a frame: nothing is kept until the next session.started. */
  doubt(): void {
    this.#said = [];
    this.#known = false;
  }

  /** A frame or a press was sent. */
  sent(one: Said): void {
    if (!this.#known) {
      return;
    }
    this.#said.push(one);
    this.#to += size(one);
    this.#dropBefore(this.#to - SPOKEN_MS * this.#bytesPerMs);
  }

  /** The gateway has told where speech ended. */
  stopped(ms: number, turn: number): void {
    this.#stopped = { ms, turn };
  }

  /** A turn is over: its speech is not said again. */
  ended(turn: number): void {
    if (this.#known && this.#stopped.turn <= turn) {
      this.#dropBefore(Math.min(this.#at(this.#stopped.ms), this.#to));
    }
  }

  /** What is kept, with so many bytes that were recorded and not sent; undefined where that is nothing, or nobody knows its place. */
  range(recorded: number): InputRange | undefined {
    if (!this.#known || (this.#said.length === 0 && recorded === 0)) {
      return undefined;
    }
    return { from_ms: Math.floor(this.#from / this.#bytesPerMs), to_ms: Math.floor((this.#to + recorded) / this.#bytesPerMs) };
  }

  /**
   * The session goes on. Returns what is to be sent again, oldest first: what the gateway asks
   * for, or what was sent before and has not arrived.
   */
  resumed({ input_ms, input_again = false }: SessionStarted): Said[] {
    const at = this.#at(input_ms ?? 0);
    if (!this.#known) {
      this.begin(input_ms ?? 0);
      return [];
    }
    if (!input_again) {
      const lost = this.#cut(at);
      // A gateway that does not tell how much has arrived may have it all.
      return input_ms === undefined ? [] : lost;
    }
    this.#dropBefore(at);
    const again = [...(this.#pressed ? [true] : []), ...this.#said];
    const skip = at - this.#from;
    const first = again.findIndex((one) => typeof one !== "boolean");
    const frame = again[first];
    if (skip > 0 && frame !== undefined && typeof frame !== "boolean") {
      again[first] = { ...frame, pcm: frame.pcm.slice(skip) };
    }
    this.begin(input_ms ?? 0);
    return again;
  }

  /** Takes away what was sent after a position, and presses of the button at it, which may have arrived. */
  #cut(at: number): Said[] {
    let arrived = this.#said.length;
    while (arrived > 0) {
      const one = this.#said[arrived - 1]!;
      if (typeof one !== "boolean" && this.#to - size(one) / 2 <= at) {
        break;
      }
      this.#to -= size(one);
      arrived--;
    }
    this.#from += at - this.#to;
    this.#to = at;
    return this.#said.splice(arrived);
  }

  /** Forgets what ends before a position. */
  #dropBefore(at: number): void {
    let gone = 0;
    for (const one of this.#said) {
      if (typeof one === "boolean" ? this.#from >= at : this.#from + size(one) > at) {
        break;
      }
      this.#pressed = typeof one === "boolean" ? one : this.#pressed;
      this.#from += size(one);
      gone++;
    }
    this.#said.splice(0, gone);
  }

  #at(ms: number): number {
    return 2 * Math.floor((ms * this.#bytesPerMs) / 2);
  }
}

/** How many bytes of audio it has. */
export function size(one: Said): number {
  return typeof one === "boolean" ? 0 : one.pcm.byteLength;
}
