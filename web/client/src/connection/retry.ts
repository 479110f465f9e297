import { whenBack } from "./back.js";

/** How a broken connection is restored. */
export interface RetryOptions {
  /** How often it is tried, before the conversation is given up. Default 10. */
  tries?: number;
  /** Pause before the first and the longest, in ms. Default 250 and 8000; each is drawn from half to whole. */
  firstMs?: number;
  longestMs?: number;
}

/** The defaults of RetryOptions. */
const TRIES = 10;
const FIRST_MS = 250;
const LONGEST_MS = 8000;

/** How often it is tried, by the option of connect. */
export function tries(reconnect: boolean | RetryOptions | undefined): number {
  return reconnect === false ? 0 : ((reconnect as RetryOptions | undefined)?.tries ?? TRIES);
}

/** The pause in ms before a try (from 1); random is in [0, 1). */
export function pause(attempt: number, options: RetryOptions, random: number): number {
  const first = options.firstMs ?? FIRST_MS;
  const longest = options.longestMs ?? LONGEST_MS;
  const whole = Math.min(longest, first * 2 ** (attempt - 1));
  return Math.round(whole * (0.5 + random / 2));
}

/**
 * Calls back after a pause, once: sooner when the network is back or the user looks at the
 * page again. Without a network the pause is the longest, but it ends: browsers know of the
 * world's network, and the gateway may be on this machine.
 */
export class Wait {
  readonly #done: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ignore: (() => void) | undefined;

  constructor(done: () => void) {
    this.#done = done;
  }

  /**
   * Begins to wait and returns for how many ms. A wait before it is over. atLeastMs is what
   * the gateway has asked for: neither the network nor the user makes it shorter.
   */
  start(attempt: number, options: RetryOptions, atLeastMs = 0): number {
    this.stop();
    const offline = navigator.onLine === false ? { firstMs: options.longestMs ?? LONGEST_MS } : {};
    const ms = Math.max(atLeastMs, pause(attempt, { ...options, ...offline }, Math.random()));
    this.#timer = setTimeout(this.over, ms);
    if (atLeastMs === 0) {
      this.#ignore = whenBack(this.over);
    }
    return ms;
  }

  /** Ends it now, and calls back. Only while it lasts. */
  readonly over = (): void => {
    this.stop();
    this.#done();
  };

  /** Ends it without calling back. May be called more than once. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#ignore?.();
  }
}
