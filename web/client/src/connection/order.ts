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

  /** Counts what is missing and what came again. */
  constructor(tally: Tally) {
    this.#tally = tally;
  }

  /** The highest seq so far; 0 for none. */
  get highest(): number {
    return this.#newest;
  }

  /** Notes a message; false when it came before. One without a number is always new. */
  fresh(seq: unknown): boolean {
    if (typeof seq !== "number") {
      return true;
    }
    const slot = seq % WINDOW;
    if (this.#seen[slot] === seq || seq <= this.#newest - WINDOW) {
      this.#tally.repeats++;
      return false;
    }
    this.#seen[slot] = seq;
    this.#place(seq);
    return true;
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
