// Which item a binary frame belongs to: order tells, there is no header.

/** What the router needs of a Player. */
export interface ItemSink {
  start(item: string, rate: number): void;
  audio(item: string, pcm: ArrayBuffer): void;
  end(item: string): void;
  flush(item: string | null): void;
}

/** So many flushed items are remembered. */
const REMEMBERED = 64;

/** Sorts binary frames into items, and drops those of an item that is over. */
export class Downlink {
  readonly #sink: ItemSink;
  #current: string | null = null;
  readonly #flushed = new Set<string>();

  constructor(sink: ItemSink) {
    this.#sink = sink;
  }

  /** The item that binary frames belong to now; null where they belong to none. */
  get playing(): string | null {
    return this.#current;
  }

  /** audio.start; rate in Hz. */
  start(item: string, rate: number): void {
    if (this.#flushed.has(item)) {
      this.#current = null;
      return;
    }
    this.#current = item;
    this.#sink.start(item, rate);
  }

  /** A binary frame. */
  audio(pcm: ArrayBuffer): void {
    if (this.#current !== null && pcm.byteLength % 2 === 0) {
      this.#sink.audio(this.#current, pcm);
    }
  }

  /** audio.end. */
  end(item: string): void {
    if (this.#current === item) {
      this.#current = null;
    }
    this.#sink.end(item);
  }

  /** audio.flush: from here on no frame of the item may sound. */
  flush(item: string): void {
    this.#forget(item);
    this.#sink.flush(item);
  }

  /**
   * The user pressed stop. Silences everything without waiting for the
   * gateway, and the rest of the current item too, which is still on its way.
   */
  stop(): void {
    if (this.#current !== null) {
      this.#forget(this.#current);
    }
    this.#sink.flush(null);
  }

  #forget(item: string): void {
    if (this.#current === item) {
      this.#current = null;
    }
    this.#flushed.add(item);
    if (this.#flushed.size > REMEMBERED) {
      for (const oldest of this.#flushed) {
        this.#flushed.delete(oldest);
        break;
      }
    }
  }
}
