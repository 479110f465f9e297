/** The number of items remembered; fewer overlap. */
const MAX_ITEMS = 16;

interface Item {
  /** Audio received so far; the total once the item has ended. */
  ms: number;
  ended: boolean;
  playedMs: number;
  /** The length of its text when it was flushed; null before. */
  length: number | null;
}

/** The most a player may round off an answer, in ms: one frame. */
const ROUNDING_MS = 20;

/** How much of a text was heard, derived from its audio. */
export interface Heard {
  /** 0 to 1, of the text's length when it was flushed. */
  share: number;
  length: number;
}

/** Computes how much of each spoken answer was heard, with the gateway's rules. */
export class HeardCount {
  private readonly items = new Map<string, Item>();

  /** Audio of an item arrived, in ms. */
  came(item: string, ms: number): void {
    const known = this.item(item);
    if (!known.ended) {
      known.ms += ms;
    }
  }

  /** An item's audio is complete. */
  all(item: string, ms: number): void {
    const known = this.item(item);
    known.ended = true;
    known.ms = ms > 0 ? ms : known.ms;
  }

  /** The rest of an item is dropped; length is that of its text. */
  flushed(item: string, length: number): void {
    this.item(item).length = length;
  }

  /** Records how much of an item was heard. Returns the share of its text if it was cut off. */
  played(item: string, ms: number): Heard | null {
    const known = this.items.get(item);
    if (known === undefined) {
      return null;
    }
    known.playedMs = Math.max(known.playedMs, ms);
    if (known.length === null || known.ms <= 0) {
      return null;
    }
    return { share: Math.min(1, known.playedMs / known.ms), length: known.length };
  }

  /** The items heard to their end. */
  whole(): string[] {
    return [...this.items].filter(([, item]) => item.ended && item.playedMs >= item.ms - ROUNDING_MS).map(([id]) => id);
  }

  /** The items neither flushed nor heard to their end, with the share heard of the received audio. */
  broken(): { item: string; share: number }[] {
    const open = [...this.items].filter(([, item]) => item.length === null && item.ms > 0 && item.playedMs < item.ms - ROUNDING_MS);
    return open.map(([item, { playedMs, ms }]) => ({ item, share: playedMs / ms }));
  }

  clear(): void {
    this.items.clear();
  }

  private item(id: string): Item {
    const known = this.items.get(id);
    if (known !== undefined) {
      return known;
    }
    const item: Item = { ms: 0, ended: false, playedMs: 0, length: null };
    this.items.set(id, item);
    for (const oldest of this.items.keys()) {
      if (this.items.size <= MAX_ITEMS) {
        break;
      }
      this.items.delete(oldest);
    }
    return item;
  }
}
