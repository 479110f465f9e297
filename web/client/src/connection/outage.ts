import type { LocalEvents } from "../events.js";

/** Users do not notice an outage of this length in ms: queued audio plays, and an answer can take as long. */
const UNNOTICED_MS = 2000;

/** An attempt to restore the connection, which was lost at `since` (performance.now()). */
export interface Try extends Omit<LocalEvents["reconnecting"], "lostMs"> {
  since: number;
}

/**
 * Hides short outages. Speech is stored and queued audio continues to play, so an outage of less than two
 * seconds is reported only if the user could miss something.
 */
export class Outage {
  readonly #tell: (event: LocalEvents["reconnecting"]) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #newest: (Try & { dueAt: number }) | undefined;
  #shown = false;

  /** `tell` is called for each attempt once the outage is noticeable. */
  constructor(tell: (event: LocalEvents["reconnecting"]) => void) {
    this.#tell = tell;
  }

  /** Records an attempt that starts in delayMs. hidden: it may succeed before the user notices the outage. */
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
    this.#timer = setTimeout(() => this.show(), Math.ceil(left)); // setTimeout truncates fractions
  }

  /** Reports the outage, if there is one and it was not reported yet: the user can miss something now. */
  show(): void {
    if (this.#newest !== undefined && !this.#shown) {
      this.#shown = true;
      this.#say(performance.now());
    }
  }

  /** Ends the outage and returns whether it was reported. */
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
