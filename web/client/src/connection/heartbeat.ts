import { whenBack } from "./back.js";

/** How often it is looked whether frames have come. */
const LOOK_MS = 1000;
/** Every so many looks the gateway is asked whether it is there, and at each look after SILENT_LOOKS without a frame. */
const LOOKS_PER_PING = 5;
const SILENT_LOOKS = 2;
/** After so many looks without any frame between them, the connection is taken for lost. */
const LOOKS_OF_SILENCE = 5;

/** What a heartbeat needs. */
export interface Pulse {
  ping(): void;
  lost(): void;
}

/**
 * Notices a connection that is dead without having been closed: a network that went away
 * tells nobody. Only while the page is seen. It counts looks and not time: while a machine
 * sleeps, or a page is not run, nothing is looked at and nothing can be heard.
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

  /** When the last frame came, as performance.now(). */
  get lastHeard(): number {
    return this.#heardAt;
  }

  start(): void {
    this.stop();
    this.heard();
    this.#looks = 0;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    // The network may be another one then.
    this.#ignore = whenBack(() => this.#pulse.ping());
  }

  /** A frame came. */
  heard(): void {
    this.#silent = 0;
    this.#heardAt = performance.now();
  }

  /** May be called more than once. */
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
