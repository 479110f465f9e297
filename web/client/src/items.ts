// Assigns binary frames to items by their order, because frames have no header.
import type { AudioPosition } from "./protocol/messages.js";

/** The part of the player that Items needs. Only the player knows which items play and which are over. */
export interface ItemSink {
  start(item: string, rate: number): void;
  audio(item: string, pcm: ArrayBuffer): void;
  end(item: string): void;
  flush(item: string | null): void;
}

/** The most items remembered; the oldest is forgotten first. */
const MOST = 32;

/** How much of an item was received and heard. */
interface Known {
  readonly rate: number;
  /** The position in the item, in ms, of the first sample received here. */
  readonly fromMs: number;
  /** All samples of the item up to this one have arrived. */
  samples: number;
  heardMs: number;
  /** The item's audio is complete. */
  whole: boolean;
  /** The player waits for more of the item. */
  dry: boolean;
  /** A snapshot was announced and has not named the item yet. */
  doubtful: boolean;
  /** The item has played to its end. Only the newest item is still remembered then. */
  over: boolean;
}

/**
 * Assigns binary frames to the spoken items of a conversation and drops those of items that are over. It
 * records how much of each item has arrived, so that an item continues at its next sample after a lost
 * connection. A new session of the conversation may reuse the names of items that still play, so the player
 * gets unique names.
 */
export class Items {
  readonly #player: ItemSink;
  /** By the player's name, oldest first. Of the items that will not play any more it contains only the newest. */
  readonly #known = new Map<string, Known>();
  /** The player's name of the item that binary frames belong to now; null if none. */
  #current: string | null = null;
  /** The number of samples to skip because they arrived before. */
  #repeated = 0;
  /** The item that began last, unless it was silenced. */
  #newest: string | null = null;
  /** The number of the session in the conversation. */
  #generation = 0;
  /** Items of a session that is over may still play. */
  #stale = false;

  constructor(player: ItemSink) {
    this.#player = player;
  }

  /** The gateway's name of the item that binary frames belong to now; null if none. */
  get playing(): string | null {
    return this.#current === null ? null : nameOf(this.#current);
  }

  /**
   * How much of the newest item has arrived; the gateway continues from there. Includes an item that has
   * played to its end, which the gateway may not know yet. Undefined if the item was silenced.
   */
  get position(): AudioPosition | undefined {
    const known = this.#newest === null ? undefined : this.#known.get(this.#newest);
    return known === undefined ? undefined : { item_id: nameOf(this.#newest!), received_ms: receivedMs(known) };
  }

  /** Whether an item that should play waits for audio. */
  get waiting(): boolean {
    return [...this.#known.values()].some(({ dry }) => dry);
  }

  /** The items of this session that are not over, oldest first, and how much of each was heard in ms. */
  get heard(): [item: string, ms: number][] {
    return this.#own().map(([item, { heardMs }]) => [item, heardMs]);
  }

  /** Handles audio.start; rate in Hz. fromMs: the position in the item of the next frame. */
  start(item: string, rate: number, fromMs = 0): void {
    this.outdate();
    const key = this.#key(item);
    const beginsMs = Number.isFinite(fromMs) ? Math.max(0, fromMs) : 0;
    const from = Math.round((beginsMs * rate) / 1000);
    this.#forgetOver(key);
    const known = this.#known.get(key);
    if (known?.over === true) {
      this.#current = null; // the repeated audio was already heard
      return;
    }
    this.#repeated = Math.max(0, (known?.samples ?? 0) - from);
    if (known === undefined) {
      this.#remember(key, { rate, fromMs: beginsMs, samples: from, heardMs: beginsMs, whole: false, dry: false, doubtful: false, over: false });
    } else {
      known.doubtful = false;
      known.samples = Math.max(known.samples, from);
    }
    this.#current = this.#newest = key;
    this.#player.start(key, rate);
  }

  /** Returns the part of a binary frame that is new and belongs to an item; null if none does. */
  fresh(pcm: ArrayBuffer): ArrayBuffer | null {
    if (this.#current === null || pcm.byteLength % 2 !== 0) {
      return null;
    }
    const before = Math.min(this.#repeated, pcm.byteLength / 2);
    this.#repeated -= before;
    return before === 0 ? pcm : before * 2 === pcm.byteLength ? null : pcm.slice(before * 2);
  }

  /** Plays the result of fresh. */
  audio(pcm: ArrayBuffer): void {
    if (this.#current === null) {
      return;
    }
    const known = this.#known.get(this.#current);
    if (known !== undefined) {
      known.samples += pcm.byteLength / 2;
      known.dry = false;
    }
    this.#player.audio(this.#current, pcm);
  }

  /** Handles audio.end. */
  end(item: string): void {
    this.#player.end(this.#shut(item));
  }

  /** Handles audio.flush: no further frame of the item may play. */
  flush(item: string): void {
    const key = this.#shut(item);
    this.#newest = this.#newest === key ? null : this.#newest;
    this.#player.flush(key);
  }

  /** Silences everything at once, including audio of the current item that has not arrived yet. */
  stop(): void {
    this.#current = this.#newest = null;
    for (const known of this.#known.values()) {
      known.dry = false;
    }
    this.#player.flush(null);
  }

  /** The session was resumed; the gateway announces where it continues. */
  broken(): void {
    this.#current = null;
  }

  /** A snapshot follows, which announces again each item that continues. */
  doubt(): void {
    this.#own().forEach(([, known]) => (known.doubtful = true));
  }

  /** The snapshot is complete. Items that it did not announce get no more audio and play to their end. */
  caughtUp(): void {
    for (const [item] of this.#own().filter(([, known]) => known.doubtful && !known.whole)) {
      this.end(item);
    }
  }

  /** A new session begins. Items of the old one play to their end, or until outdate. */
  renew(): void {
    for (const [item] of this.#own().filter(([, known]) => !known.whole)) {
      this.end(item);
    }
    this.#generation++;
    this.#newest = null;
    this.#stale = true;
  }

  /** The new session has input or output, so items of the old one are silenced. */
  outdate(): void {
    if (this.#stale) {
      this.#stale = false;
      this.stop();
    }
  }

  /** The player has run dry within an item. */
  ranDry(key: string): void {
    const known = this.#known.get(key);
    if (known !== undefined && !known.whole) {
      known.dry = true;
    }
  }

  /**
   * The player reports how much of an item was heard since it began here, and whether it is over. Returns the
   * report for the gateway; null for an item of another session.
   */
  played(key: string, ms: number, done: boolean): { item: string; own: boolean; playedMs: number; receivedMs: number | undefined } {
    const known = this.#known.get(key);
    const playedMs = (known?.fromMs ?? 0) + ms;
    if (known !== undefined) {
      known.heardMs = playedMs;
    }
    if (done && known?.whole === true && key === this.#newest) {
      known.over = true;
    } else if (done) {
      this.#known.delete(key);
    }
    return { ...this.named(key), playedMs, receivedMs: known === undefined ? undefined : receivedMs(known) };
  }

  /** Returns the gateway's name of a player's item, and whether it belongs to this session. */
  named(key: string): { item: string; own: boolean } {
    const item = nameOf(key);
    return { item, own: key === this.#key(item) };
  }

  /** Closes the item to further frames and returns the player's name of it. */
  #shut(item: string): string {
    const key = this.#key(item);
    if (this.#current === key) {
      this.#current = null;
    }
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.whole = true;
      known.dry = false;
    }
    return key;
  }

  /** Forgets items that are over, because another item is now the newest. */
  #forgetOver(newest: string): void {
    for (const [key, { over }] of this.#known) {
      if (over && key !== newest) {
        this.#known.delete(key);
      }
    }
  }

  /** This session's items that are not over, by the gateway's names. */
  #own(): [item: string, known: Known][] {
    return [...this.#known].filter(([key, { over }]) => !over && key === this.#key(nameOf(key))).map(([key, known]) => [nameOf(key), known]);
  }

  #remember(key: string, known: Known): void {
    this.#known.set(key, known);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MOST) {
        return;
      }
      this.#known.delete(oldest);
    }
  }

  #key(item: string): string {
    return `${this.#generation} ${item}`;
  }
}

function receivedMs({ samples, rate }: Known): number {
  return Math.floor((samples * 1000) / rate);
}

function nameOf(key: string): string {
  return key.slice(key.indexOf(" ") + 1);
}
