import type { UplinkFrame } from "../audio/worklets/messages.js";
import type { InputRange, SessionStarted } from "../protocol/messages.js";

/** How much sent audio is stored, in ms. The gateway accepts this much again. */
export const SPOKEN_MS = 10_000;

/** A frame, or a press (true) or release (false) of the push-to-talk button. */
export type Said = UplinkFrame | boolean;

/**
 * The user's speech that was sent. After a takeover the new gateway requests the speech that was not
 * processed. Positions are bytes on the session's input clock, which both sides count: docs/protocol.md,
 * "Unanswered speech".
 */
export class Spoken {
  readonly #bytesPerMs: number;
  #said: Said[] = [];
  /** The positions of the oldest and the newest stored byte. */
  #from = 0;
  #to = 0;
  /** The gateway's clock and this one agree. */
  #known = false;
  /** The button was pressed before the oldest entry. */
  #pressed = false;
  /** The end of the last speech that the gateway reported, and its turn. */
  #stopped = { ms: 0, turn: 0 };

  /** rate is the uplink's sample rate in Hz. */
  constructor(rate: number) {
    this.#bytesPerMs = (2 * rate) / 1000;
  }

  /** Starts empty at position ms. */
  begin(ms: number): void {
    this.#said = [];
    this.#from = this.#to = this.#at(ms);
    this.#known = true;
    this.#pressed = false;
    this.#stopped = { ms: 0, turn: 0 };
  }

  /** The gateway did not count a frame. Stores nothing until the next session.started. */
  doubt(): void {
    this.#said = [];
    this.#known = false;
  }

  /** Records a sent frame or press. */
  sent(one: Said): void {
    if (!this.#known) {
      return;
    }
    this.#said.push(one);
    this.#to += size(one);
    this.#dropBefore(this.#to - SPOKEN_MS * this.#bytesPerMs);
  }

  /** Records where the gateway detected the end of speech. */
  stopped(ms: number, turn: number): void {
    this.#stopped = { ms, turn };
  }

  /** Discards the speech of a turn that ended. */
  ended(turn: number): void {
    if (this.#known && this.#stopped.turn <= turn) {
      this.#dropBefore(Math.min(this.#at(this.#stopped.ms), this.#to));
    }
  }

  /**
   * The range of the stored audio plus `recorded` bytes not sent yet; undefined if that is empty or its
   * position unknown.
   */
  range(recorded: number): InputRange | undefined {
    if (!this.#known || (this.#said.length === 0 && recorded === 0)) {
      return undefined;
    }
    return { from_ms: Math.floor(this.#from / this.#bytesPerMs), to_ms: Math.floor((this.#to + recorded) / this.#bytesPerMs) };
  }

  /**
   * The session resumes. Returns the audio to send again, oldest first: requested by the gateway, or sent but
   * not received.
   */
  resumed({ input_ms, input_again = false }: SessionStarted): Said[] {
    const at = this.#at(input_ms ?? 0);
    if (!this.#known) {
      this.begin(input_ms ?? 0);
      return [];
    }
    if (!input_again) {
      const lost = this.#cut(at);
      // A gateway that does not report how much it received may have it all.
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

  /** Removes and returns the audio after a position, and presses at that position, which may not have arrived. */
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

  /** Discards audio that ends before a position. */
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

/** The bytes of audio in an entry. */
export function size(one: Said): number {
  return typeof one === "boolean" ? 0 : one.pcm.byteLength;
}
