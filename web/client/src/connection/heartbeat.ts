import { whenBack } from "./back.js";

/** Interval between checks for received frames. */
const LOOK_MS = 1000;
/** A ping is sent every LOOKS_PER_PING checks, and at every check after SILENT_LOOKS checks without a frame. */
const LOOKS_PER_PING = 5;
const SILENT_LOOKS = 2;
/** The connection counts as lost after this many checks without a frame. */
const LOOKS_OF_SILENCE = 5;

export interface Pulse {
  ping(): void;
  lost(): void;
}

/**
 * Detects a dead connection that was never closed, for example after the network changed. It runs only while
 * the page is visible. It counts checks instead of time, because a machine that sleeps receives nothing.
 */
export class Heartbeat {
  readonly #pulse: Pulse;
  #timer: ReturnType<typeof setInterval> | undefined;
  #ignore: (() => void) | undefined;
  #looks = 0;
  #silent = 0;
  #heardAt = 0;

  constructor(pulse: Pulse) {
    this.#pulse = pulse;
  }

  /** When the last frame arrived, as performance.now(). */
  get lastHeard(): number {
    return this.#heardAt;
  }

  start(): void {
    this.stop();
    this.heard();
    this.#looks = 0;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    // The page may be on another network now.
    this.#ignore = whenBack(() => this.#pulse.ping());
  }

  /** Records that a frame arrived. */
  heard(): void {
    this.#silent = 0;
    this.#heardAt = performance.now();
  }

  /** Stops the checks. Safe to call twice. */
  stop(): void {
    clearInterval(this.#timer);
    this.#ignore?.();
  }

  #look(): void {
    if (document.visibilityState === "hidden") {
      this.#silent = 0;
    } else if (++this.#silent >= LOOKS_OF_SILENCE) {
      this.stop();
      this.#pulse.lost();
    } else if (++this.#looks % LOOKS_PER_PING === 0 || this.#silent >= SILENT_LOOKS) {
      this.#pulse.ping();
    }
  }
}
