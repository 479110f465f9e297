// Which item a binary frame belongs to: order tells, there is no header.
import type { AudioPosition } from "./protocol/messages.js";

/** What Items needs of a player. The player alone keeps which items sound and which are over. */
export interface ItemSink {
  start(item: string, rate: number): void;
  audio(item: string, pcm: ArrayBuffer): void;
  end(item: string): void;
  flush(item: string | null): void;
}

/** So many items are known; of more the oldest is forgotten. */
const MOST = 32;

/** What has come of an item, and what was heard of it. */
interface Known {
  readonly rate: number;
  /** Where in the item the first sample that came here belongs, in ms. */
  readonly fromMs: number;
  /** Up to which sample of the item all has come. */
  samples: number;
  heardMs: number;
  /** Nothing more of it comes. */
  whole: boolean;
  /** It has run dry: the player waits for more. */
  dry: boolean;
  /** A snapshot was announced, and nothing has been said of the item since. */
  doubtful: boolean;
  /** It has sounded to its end. Only the newest item is still known then. */
  over: boolean;
}

/**
 * Sorts binary frames into the spoken items of a conversation, and drops those of an item
 * that is over. It knows how much of each has come, so that after a broken connection an item
 * goes on at its next sample. Another session of the conversation may give its items the
 * names of the last one's, some of which may still sound: the player gets names of its own.
 */
export class Items {
  readonly #player: ItemSink;
  /** By the player's name, oldest first; of those that will not sound any more only the newest is among them. */
  readonly #known = new Map<string, Known>();
  /** The player's name of the item that binary frames belong to now; null where they belong to none. */
  #current: string | null = null;
  /** So many samples of what comes next have come before. */
  #repeated = 0;
  /** The item that was begun last, unless it was silenced since. */
  #newest: string | null = null;
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

  /**
   * How much has come of the newest item, also if it has sounded to its end: the gateway may not know that
   * yet, and goes on from there. Undefined if the item was silenced.
   */
  get position(): AudioPosition | undefined {
    const known = this.#newest === null ? undefined : this.#known.get(this.#newest);
    return known === undefined ? undefined : { item_id: nameOf(this.#newest!), received_ms: receivedMs(known) };
  }

  /** Whether something that should sound waits for audio. */
  get waiting(): boolean {
    return [...this.#known.values()].some(({ dry }) => dry);
  }

  /** What was heard of the items of this session that are not over, oldest first, in ms. */
  get heard(): [item: string, ms: number][] {
    return this.#own().map(([item, { heardMs }]) => [item, heardMs]);
  }

  /** audio.start; rate in Hz. fromMs: where in the item the frames that follow begin. */
  start(item: string, rate: number, fromMs = 0): void {
    this.outdate();
    const key = this.#key(item);
    const beginsMs = Number.isFinite(fromMs) ? Math.max(0, fromMs) : 0;
    const from = Math.round((beginsMs * rate) / 1000);
    this.#forgetOver(key);
    const known = this.#known.get(key);
    if (known?.over === true) {
      this.#current = null; // what comes again was heard
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

  /** What of a binary frame is new and belongs to an item; null where nothing does. */
  fresh(pcm: ArrayBuffer): ArrayBuffer | null {
    if (this.#current === null || pcm.byteLength % 2 !== 0) {
      return null;
    }
    const before = Math.min(this.#repeated, pcm.byteLength / 2);
    this.#repeated -= before;
    return before === 0 ? pcm : before * 2 === pcm.byteLength ? null : pcm.slice(before * 2);
  }

  /** Plays what fresh has returned. */
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

  /** audio.end. */
  end(item: string): void {
    this.#player.end(this.#shut(item));
  }

  /** audio.flush: from here on no frame of the item may sound. */
  flush(item: string): void {
    const key = this.#shut(item);
    this.#newest = this.#newest === key ? null : this.#newest;
    this.#player.flush(key);
  }

  /** Everything is silent at once, also what of the current item is still on its way. */
  stop(): void {
    this.#current = this.#newest = null;
    for (const known of this.#known.values()) {
      known.dry = false;
    }
    this.#player.flush(null);
  }

  /** The session was taken up again: the gateway says where it goes on. */
  broken(): void {
    this.#current = null;
  }

  /** A snapshot follows: an item that goes on is announced again in it. */
  doubt(): void {
    this.#own().forEach(([, known]) => (known.doubtful = true));
  }

  /** The snapshot has come: of what it has not announced again nothing more comes. What has come sounds to its end. */
  caughtUp(): void {
    for (const [item] of this.#own().filter(([, known]) => known.doubtful && !known.whole)) {
      this.end(item);
    }
  }

  /** Another session goes on. What was said by the last one sounds to its end, or until outdate. */
  renew(): void {
    for (const [item] of this.#own().filter(([, known]) => !known.whole)) {
      this.end(item);
    }
    this.#generation++;
    this.#newest = null;
    this.#stale = true;
  }

  /** This session has something to say or to hear: what still sounds of the last one is silenced. */
  outdate(): void {
    if (this.#stale) {
      this.#stale = false;
      this.stop();
    }
  }

  /** The player has run dry in the middle of an item. */
  ranDry(key: string): void {
    const known = this.#known.get(key);
    if (known !== undefined && !known.whole) {
      known.dry = true;
    }
  }

  /**
   * The player tells how much of an item was heard since it was begun here, and whether it is
   * over. Returns what the gateway is to be told: null for an item that is not of this session.
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
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.whole = true;
      known.dry = false;
    }
    return key;
  }

  /** Another item is the newest now. */
  #forgetOver(newest: string): void {
    for (const [key, { over }] of this.#known) {
      if (over && key !== newest) {
        this.#known.delete(key);
      }
    }
  }

  /** Those of this session that are not over, by the gateway's names. */
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
