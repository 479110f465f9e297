// The waveform of both sides over time, reduced for drawing.
import type { Happening, Watcher } from "./feed.js";
import type { Sound } from "./sound.js";
import { spokenAt } from "./uplinkclock.js";

/** A column has the lowest and the highest sample of this many ms. */
export const COLUMN_MS = 10;
/** How far the user can look back. */
export const KEPT_MS = 120_000;

const RING = KEPT_MS / COLUMN_MS;
/** Answers are drawn up to ten minutes. */
const MAX_ITEM_COLUMNS = 60_000;

/** Columns by number. Unwritten and dropped ones are silent. */
export interface Columns {
  low(column: number): number;
  high(column: number): number;
  /** Copies columns into `lows` and `highs`, starting with column `first`, until they are full. */
  copy(first: number, lows: Int16Array, highs: Int16Array): void;
}

/** The newest two minutes: column n begins at n × COLUMN_MS on the page's clock. */
class Ring implements Columns {
  private readonly lows = new Int16Array(RING);
  private readonly highs = new Int16Array(RING);
  private newest = -1;

  add(column: number, low: number, high: number): void {
    if (column < 0 || column <= this.newest - RING) {
      return;
    }
    if (column > this.newest) {
      const from = Math.max(this.newest + 1, column - RING + 1);
      for (let i = from; i <= column; i++) {
        this.lows[i % RING] = this.highs[i % RING] = 0;
      }
      this.newest = column;
    }
    const i = column % RING;
    this.lows[i] = Math.min(this.lows[i]!, low);
    this.highs[i] = Math.max(this.highs[i]!, high);
  }

  low(column: number): number {
    return this.holds(column) ? this.lows[column % RING]! : 0;
  }

  high(column: number): number {
    return this.holds(column) ? this.highs[column % RING]! : 0;
  }

  copy(first: number, lows: Int16Array, highs: Int16Array): void {
    lows.fill(0);
    highs.fill(0);
    const end = Math.min(first + lows.length, this.newest + 1);
    // In two parts if the ring wraps in between.
    for (let from = Math.max(first, 0, this.newest - RING + 1); from < end; ) {
      const at = from % RING;
      const count = Math.min(end - from, RING - at);
      lows.set(this.lows.subarray(at, at + count), from - first);
      highs.set(this.highs.subarray(at, at + count), from - first);
      from += count;
    }
  }

  clear(): void {
    this.lows.fill(0);
    this.highs.fill(0);
    this.newest = -1;
  }

  private holds(column: number): boolean {
    return column >= 0 && column <= this.newest && column > this.newest - RING;
  }
}

/** The columns of one item, from its first sample. */
class ItemColumns implements Columns {
  private lows = new Int16Array(512);
  private highs = new Int16Array(512);
  private filled = 0;

  add(column: number, low: number, high: number): void {
    if (column >= MAX_ITEM_COLUMNS) {
      return;
    }
    if (column >= this.lows.length) {
      this.lows = grown(this.lows);
      this.highs = grown(this.highs);
    }
    this.filled = Math.max(this.filled, column + 1);
    this.lows[column] = Math.min(this.lows[column]!, low);
    this.highs[column] = Math.max(this.highs[column]!, high);
  }

  low(column: number): number {
    return column >= 0 && column < this.filled ? this.lows[column]! : 0;
  }

  high(column: number): number {
    return column >= 0 && column < this.filled ? this.highs[column]! : 0;
  }

  copy(first: number, lows: Int16Array, highs: Int16Array): void {
    lows.fill(0);
    highs.fill(0);
    const from = Math.max(first, 0);
    const end = Math.min(first + lows.length, this.filled);
    if (from < end) {
      lows.set(this.lows.subarray(from, end), from - first);
      highs.set(this.highs.subarray(from, end), from - first);
    }
  }
}

/** The waveform of the running or last session. */
export class Wave implements Watcher {
  private readonly ring = new Ring();
  private readonly items = new Map<string, ItemColumns>();

  /** `sound` must receive each event first. */
  constructor(private readonly sound: Sound) {}

  /** The user's columns, on the page's clock. */
  get user(): Columns {
    return this.ring;
  }

  /** The columns of the model's item, on its own clock. */
  item(id: string): Columns | undefined {
    return this.items.get(id);
  }

  take(happening: Happening): void {
    switch (happening.kind) {
      case "opened":
        this.ring.clear();
        this.items.clear();
        break;
      case "uplink":
        columns(happening.pcm, happening.rate, spokenAt(this.sound.newestFrame!), this.ring);
        break;
      case "downlink": {
        const all = this.items.get(happening.item) ?? this.begin(happening.item, happening.at);
        const received = this.sound.item(happening.item)?.receivedMs ?? 0;
        columns(happening.pcm, happening.rate, received - (happening.pcm.length * 1000) / happening.rate, all);
        break;
      }
      default:
    }
  }

  private begin(id: string, now: number): ItemColumns {
    // Drop items that ended before the visible past.
    for (const known of this.items.keys()) {
      const item = this.sound.item(known);
      if (item === undefined || (item.doneAt !== undefined && item.doneAt + item.receivedMs < now - KEPT_MS)) {
        this.items.delete(known);
      }
    }
    const fresh = new ItemColumns();
    this.items.set(id, fresh);
    return fresh;
  }
}

/** Adds the columns of samples that begin at beginMs. */
function columns(pcm: Int16Array, rate: number, beginMs: number, to: Ring | ItemColumns): void {
  const perColumn = (rate * COLUMN_MS) / 1000;
  const begin = (beginMs * rate) / 1000;
  let column = Math.floor(begin / perColumn);
  for (let i = 0; i < pcm.length; column++) {
    const end = Math.min(pcm.length, Math.max(i + 1, Math.ceil((column + 1) * perColumn - begin)));
    let low = 0;
    let high = 0;
    for (; i < end; i++) {
      const sample = pcm[i]!;
      low = sample < low ? sample : low;
      high = sample > high ? sample : high;
    }
    to.add(column, low, high);
  }
}

function grown(array: Int16Array<ArrayBuffer>): Int16Array<ArrayBuffer> {
  const larger = new Int16Array(array.length * 2);
  larger.set(array);
  return larger;
}
