import type { Tally } from "../stats.js";

/** How many seqs back a repeat is recognized. */
const WINDOW = 1024;

/**
 * Records which messages of a session have arrived. Each has a seq that rises by one. After a resume the
 * gateway repeats messages that may be lost; Order recognizes the repeats.
 */
export class Order {
  /** The newest seq for each remainder of WINDOW. */
  readonly #seen = new Float64Array(WINDOW);
  readonly #tally: Tally;
  #oldest = 0;
  #newest = 0;
  #complete: number | undefined;

  /**
   * Counts missing and repeated messages in tally. Expects all messages after `complete`, or, without it,
   * those after the first to arrive.
   */
  constructor(tally: Tally, complete?: number) {
    this.#tally = tally;
    this.#complete = complete;
  }

  /**
   * All messages up to this seq have arrived; 0 before the first. After a resume it can be far below the
   * newest seq until the gateway has repeated the missed messages.
   */
  get complete(): number {
    return this.#complete ?? 0;
  }

  /** Records a message and returns false for a repeat. A message without a number is always new. */
  fresh(seq: unknown): boolean {
    if (!Number.isSafeInteger(seq) || (seq as number) < 1) {
      return true;
    }
    const number = seq as number;
    const slot = number % WINDOW;
    if (this.#seen[slot] === number || number <= this.#newest - WINDOW) {
      this.#tally.repeats++;
      return false;
    }
    this.#seen[slot] = number;
    this.#place(number);
    this.#complete ??= number;
    this.#advance();
    return true;
  }

  /** Stops expecting the missing messages up to seq; the gateway no longer has them. */
  skip(seq: number): void {
    if (!Number.isSafeInteger(seq)) {
      return;
    }
    this.#complete = Math.max(this.complete, Math.min(seq, this.#newest));
    this.#advance();
  }

  #advance(): void {
    // An older message would count as a repeat, so it is no longer expected.
    let upTo = Math.max(this.complete, this.#newest - WINDOW);
    while (this.#seen[(upTo + 1) % WINDOW] === upTo + 1) {
      upTo++;
    }
    this.#complete = upTo;
  }

  /** Updates the count of missing messages. */
  #place(seq: number): void {
    if (this.#newest === 0) {
      this.#oldest = this.#newest = seq;
    } else if (seq > this.#newest) {
      this.#tally.gaps += seq - this.#newest - 1;
      this.#newest = seq;
    } else if (seq < this.#oldest) {
      this.#tally.gaps += this.#oldest - seq - 1;
      this.#oldest = seq;
    } else {
      this.#tally.gaps--;
    }
  }
}
