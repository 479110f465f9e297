import type { Tally } from "../stats.js";

/** So far back a message may come again and be known. */
const WINDOW = 1024;

/**
 * Which messages of a session have been seen: every one carries seq, rising by one. After a
 * resume the gateway says again what may have been lost, and what was not is told only once.
 */
export class Order {
  /** The newest seq of each remainder. */
  readonly #seen = new Float64Array(WINDOW);
  readonly #tally: Tally;
  #oldest = 0;
  #newest = 0;
  #complete: number | undefined;

  /**
   * Counts in tally what is missing and what came again. Where `complete` is given, all
   * messages after it are wanted; otherwise those after the first one that comes.
   */
  constructor(tally: Tally, complete?: number) {
    this.#tally = tally;
    this.#complete = complete;
  }

  /**
   * Everything up to this seq has come: what a resume has to say again comes after it. 0
   * where nothing has come. After a resume it may be far below the newest seq, until the
   * gateway has said again what was missed.
   */
  get complete(): number {
    return this.#complete ?? 0;
  }

  /** Notes a message; false when it came before. One without a number is always new. */
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

  /** What is missing before this seq is not coming any more: the gateway does not have it. */
  skip(seq: number): void {
    if (!Number.isSafeInteger(seq)) {
      return;
    }
    // Nothing later than what has come is known of.
    this.#complete = Math.max(this.complete, Math.min(seq, this.#newest));
    this.#advance();
  }

  #advance(): void {
    // What is further back would be taken for a repeat, so nobody waits for it.
    let upTo = Math.max(this.complete, this.#newest - WINDOW);
    while (this.#seen[(upTo + 1) % WINDOW] === upTo + 1) {
      upTo++;
    }
    this.#complete = upTo;
  }

  /** Counts what is missing between it and the others. */
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
