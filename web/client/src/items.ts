import { Downlink, type ItemSink } from "./audio/downlink.js";

/**
 * The spoken items of a conversation. Another session of it may give its items the names of
 * the last one's, some of which may still sound: the player gets names of its own.
 */
export class Items {
  readonly #downlink: Downlink;
  /** Which session of the conversation it is. */
  #generation = 0;
  /** What sounds may be of a session that is over. */
  #stale = false;

  constructor(player: ItemSink) {
    this.#downlink = new Downlink(player);
  }

  /** The gateway's name of the item that binary frames belong to now; null where they belong to none. */
  get playing(): string | null {
    return this.#downlink.playing === null ? null : nameOf(this.#downlink.playing);
  }

  /** audio.start; rate in Hz. */
  start(item: string, rate: number): void {
    this.outdate();
    this.#downlink.start(this.#key(item), rate);
  }

  audio(pcm: ArrayBuffer): void {
    this.#downlink.audio(pcm);
  }

  end(item: string): void {
    this.#downlink.end(this.#key(item));
  }

  flush(item: string): void {
    this.#downlink.flush(this.#key(item));
  }

  /** Everything is silent at once, also what of the current item is still on its way. */
  stop(): void {
    this.#downlink.stop();
  }

  /** Another session goes on. What was said by the last one sounds to its end, or until outdate. */
  renew(): void {
    if (this.playing !== null) {
      this.end(this.playing);
    }
    this.#generation++;
    this.#stale = true;
  }

  /** This session has something to say or to hear: what still sounds of the last one is silenced. */
  outdate(): void {
    if (this.#stale) {
      this.#stale = false;
      this.#downlink.stop();
    }
  }

  /** The gateway's name of an item of the player, and whether it is of this session. */
  named(key: string): { item: string; own: boolean } {
    const item = nameOf(key);
    return { item, own: key === this.#key(item) };
  }

  #key(item: string): string {
    return `${this.#generation} ${item}`;
  }
}

function nameOf(key: string): string {
  return key.slice(key.indexOf(" ") + 1);
}
