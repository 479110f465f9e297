/** So many items are remembered: more are never on their way together. */
const MAX_ITEMS = 16;

interface Item {
  /** Audio of it that has come; all of it once it has ended. */
  ms: number;
  ended: boolean;
  playedMs: number;
  /** How long its text was when it was flushed; null before. */
  length: number | null;
}

/** What a player may round away of an answer, in ms: one frame of it. */
const ROUNDING_MS = 20;

/** How much of a text was heard, by how much of its audio was. */
export interface Heard {
  /** 0 to 1, of the text's length when it was flushed. */
  share: number;
  length: number;
}

/** Counts how much of each spoken answer was heard, as the gateway does for its record. */
export class HeardCount {
  private readonly items = new Map<string, Item>();

  /** Audio of an item came, in ms. */
  came(item: string, ms: number): void {
    const known = this.item(item);
    if (!known.ended) {
      known.ms += ms;
    }
  }

  /** All of an item has come. */
  all(item: string, ms: number): void {
    const known = this.item(item);
    known.ended = true;
    known.ms = ms > 0 ? ms : known.ms;
  }

  /** What is left of an item is dropped; its text is so long. */
  flushed(item: string, length: number): void {
    this.item(item).length = length;
  }

  /** So much of an item was heard; what that means for its text, once it is cut off. */
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

  /** The items that were heard to their end. */
  whole(): string[] {
    return [...this.items].filter(([, item]) => item.ended && item.playedMs >= item.ms - ROUNDING_MS).map(([id]) => id);
  }

  /** Of the items that were not flushed and not heard to their end: which share of what has come was. */
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
