// When what a context renders comes out of the loudspeaker, as far as the browser tells.

/** What is asked of an AudioContext. Not every browser has the optional ones. */
export interface OutputClock {
  readonly currentTime: number;
  readonly baseLatency?: number;
  readonly outputLatency?: number;
  getOutputTimestamp?(): AudioTimestamp;
}

/** Beyond a second no device is that slow: the browser does not know. */
const MOST_SECONDS = 1;

/** Seconds from when a sample is rendered until it is heard. */
export function outputLatency(clock: OutputClock): number {
  const seconds = (clock.baseLatency ?? 0) + (clock.outputLatency ?? 0);
  return seconds > 0 && seconds < MOST_SECONDS ? seconds : 0;
}

/** When the sample at so many seconds of the context is heard; both ends are performance.now(). */
export function heardAt(clock: OutputClock, seconds: number, now: number): number {
  const { contextTime = 0, performanceTime = 0 } = clock.getOutputTimestamp?.() ?? {};
  // Zeros before the first sample, and in contexts whose clock the browser does not know.
  if (contextTime > 0 && Math.abs(now - performanceTime) < MOST_SECONDS * 1000) {
    return performanceTime + (seconds - contextTime) * 1000;
  }
  return now + (seconds - clock.currentTime + outputLatency(clock)) * 1000;
}
