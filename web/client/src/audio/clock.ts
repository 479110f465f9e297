// When the samples of a context reach the loudspeaker, according to the browser.

/** The part of an AudioContext used here. Not all browsers have the optional properties. */
export interface OutputClock {
  readonly currentTime: number;
  readonly baseLatency?: number;
  readonly outputLatency?: number;
  getOutputTimestamp?(): AudioTimestamp;
}

/** No device has a latency above one second; larger values come from browsers that do not know it. */
const MOST_SECONDS = 1;

/** Seconds from rendering a sample until it is heard. */
export function outputLatency(clock: OutputClock): number {
  const seconds = (clock.baseLatency ?? 0) + (clock.outputLatency ?? 0);
  return seconds > 0 && seconds < MOST_SECONDS ? seconds : 0;
}

/** When the sample at context time `seconds` is heard. `now` and the result are performance.now(). */
export function heardAt(clock: OutputClock, seconds: number, now: number): number {
  const { contextTime = 0, performanceTime = 0 } = clock.getOutputTimestamp?.() ?? {};
  // The values are zero before the first sample, and in contexts whose clock the browser does not know.
  if (contextTime > 0 && Math.abs(now - performanceTime) < MOST_SECONDS * 1000) {
    return performanceTime + (seconds - contextTime) * 1000;
  }
  return now + (seconds - clock.currentTime + outputLatency(clock)) * 1000;
}
