import { whenBack } from "./back.js";

/** How to restore a lost connection. */
export interface RetryOptions {
  /** Attempts before the conversation ends. Default 10. */
  tries?: number;
  /**
   * The first and the longest delay in ms. Default 250 and 8000. Each delay is random, between half and all
   * of its value.
   */
  firstMs?: number;
  longestMs?: number;
}

const TRIES = 10;
const FIRST_MS = 250;
const LONGEST_MS = 8000;

/** The number of attempts that the option of connect allows. */
export function tries(reconnect: boolean | RetryOptions | undefined): number {
  return reconnect === false ? 0 : ((reconnect as RetryOptions | undefined)?.tries ?? TRIES);
}

/** The delay in ms before an attempt (from 1). random is in [0, 1). */
export function pause(attempt: number, options: RetryOptions, random: number): number {
  const first = options.firstMs ?? FIRST_MS;
  const longest = options.longestMs ?? LONGEST_MS;
  const whole = Math.min(longest, first * 2 ** (attempt - 1));
  return Math.round(whole * (0.5 + random / 2));
}

/**
 * Calls back once, after a delay or as soon as the browser is online again or the page becomes visible. Offline
 * it waits for the longest delay and then tries anyway, because the gateway may run on this machine.
 */
export class Wait {
  readonly #done: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ignore: (() => void) | undefined;

  constructor(done: () => void) {
    this.#done = done;
  }

  /**
   * Starts waiting and returns the delay in ms. Replaces an earlier wait. atLeastMs is the gateway's minimum;
   * nothing shortens it.
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

  /** Ends the wait now and calls back. */
  readonly over = (): void => {
    this.stop();
    this.#done();
  };

  /** Ends the wait without calling back. Safe to call twice. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#ignore?.();
  }
}
