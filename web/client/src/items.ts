// Which item a binary frame belongs to: order tells, there is no header.

/** What Items needs of a player. The player alone keeps which items sound and which are over. */
export interface ItemSink {
  start(item: string, rate: number): void;
  audio(item: string, pcm: ArrayBuffer): void;
  end(item: string): void;
  flush(item: string | null): void;
}

/**
 * Sorts binary frames into the spoken items of a conversation, and drops those of an item
 * that is over. Another session of the conversation may give its items the names of the last
 * one's, some of which may still sound: the player gets names of its own.
 */
export class Items {
  readonly #player: ItemSink;
  /** The player's name of the item that binary frames belong to now; null where they belong to none. */
  #current: string | null = null;
  /** Which session of the conversation it is. */
  #generation = 0;
  /** What sounds may be of a session that is over. */
  #stale = false;

  constructor(player: ItemSink) {
    this.#player = player;
  }

  /** The gateway's name of the item that binary frames belong to now; null where they belong to none. */
  get playing(): string | null {
    return this.#current === null ? null : nameOf(this.#current);
  }

  /** audio.start; rate in Hz. */
  start(item: string, rate: number): void {
    this.outdate();
    this.#current = this.#key(item);
    this.#player.start(this.#current, rate);
  }

  /** A binary frame. */
  audio(pcm: ArrayBuffer): void {
    if (this.#current !== null && pcm.byteLength % 2 === 0) {
      this.#player.audio(this.#current, pcm);
    }
  }

  /** audio.end. */
  end(item: string): void {
    this.#player.end(this.#shut(item));
  }

  /** audio.flush: from here on no frame of the item may sound. */
  flush(item: string): void {
    this.#player.flush(this.#shut(item));
  }

  /** Everything is silent at once, also what of the current item is still on its way. */
  stop(): void {
    this.#current = null;
    this.#player.flush(null);
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
      this.stop();
    }
  }

  /** The gateway's name of an item of the player, and whether it is of this session. */
  named(key: string): { item: string; own: boolean } {
    const item = nameOf(key);
    return { item, own: key === this.#key(item) };
  }

  /** No more frames belong to the item; returns the player's name of it. */
  #shut(item: string): string {
    const key = this.#key(item);
    if (this.#current === key) {
      this.#current = null;
    }
    return key;
  }

  #key(item: string): string {
    return `${this.#generation} ${item}`;
  }
}

function nameOf(key: string): string {
  return key.slice(key.indexOf(" ") + 1);
}
