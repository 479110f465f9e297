import type { LocalEvents } from "../events.js";

/** So long nobody notices an outage: what is queued sounds, and an answer may take as long. In ms. */
const UNNOTICED_MS = 2000;

/** A try to restore the connection, which has been gone since `since`, as performance.now(). */
export interface Try extends Omit<LocalEvents["reconnecting"], "lostMs"> {
  since: number;
}

/**
 * A connection that is gone, and whether anybody has noticed. What is said meanwhile is
 * kept, and what is queued goes on sounding: an outage that is over after two seconds did not exist for the
 * user, and nothing is told of it. As soon as something can be missed, it is told as it is.
 */
export class Outage {
  readonly #tell: (event: LocalEvents["reconnecting"]) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #newest: (Try & { dueAt: number }) | undefined;
  #shown = false;

  /** `tell` is called for each try from when it is noticed on. */
  constructor(tell: (event: LocalEvents["reconnecting"]) => void) {
    this.#tell = tell;
  }

  /** A try is made in delayMs. hidden: it may succeed before anybody notices. */
  tried(next: Try, hidden: boolean): void {
    const now = performance.now();
    this.#newest = { ...next, dueAt: now + next.delayMs };
    const left = UNNOTICED_MS - (now - next.since);
    if (this.#shown || !hidden || left <= 0) {
      this.#shown = true;
      this.#say(now);
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.show(), Math.ceil(left)); // a fraction of a ms would be cut off
  }

  /** Something is missing now: it is told, if there is an outage and it was not told before. */
  show(): void {
    if (this.#newest !== undefined && !this.#shown) {
      this.#shown = true;
      this.#say(performance.now());
    }
  }

  /** It is over. Returns whether it was told. */
  end(): boolean {
    clearTimeout(this.#timer);
    const shown = this.#shown;
    this.#newest = undefined;
    this.#shown = false;
    return shown;
  }

  #say(now: number): void {
    clearTimeout(this.#timer);
    const { attempt, resumable, error, since, dueAt } = this.#newest!;
    this.#tell({ attempt, delayMs: Math.round(Math.max(0, dueAt - now)), lostMs: Math.round(now - since), resumable, error });
  }
}
