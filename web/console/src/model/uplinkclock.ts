// The clock of the user's audio, on which the gateway reports detected speech.

/** The audio clock advances in steps of a few ms; a missing frame is 20 ms. */
const STEP_MS = 10;

/** If all frames of this duration are late, the microphone's clock has stopped in between. */
const LATE_MS = 120;
const LATE_FOR_MS = 2000;

const MAX_STRETCHES = 64;

/** Frames without a gap. */
export interface UplinkStretch {
  /** Its start in the sent audio. */
  readonly ms: number;
  /** When its first sample was spoken (performance.now()). Corrected while frames arrive. */
  at: number;
}

/** A position in the sent audio. */
export interface UplinkPlace {
  readonly stretch: UplinkStretch;
  readonly ms: number;
}

/** When the sample at a position was spoken (performance.now()). */
export function spokenAt({ stretch, ms }: UplinkPlace): number {
  return stretch.at + (ms - stretch.ms);
}

/** The client's audio clock: ms since the first sent sample. */
export class UplinkClock {
  private readonly stretches: UplinkStretch[] = [];
  private sent = 0;
  /** When the newest frame was complete, on the microphone's clock. */
  private clockMs = 0;
  private lateMs = 0;

  /** Adds a frame of `ms`, complete at `at`, and at clockMs on the microphone's clock. Returns its position. */
  push(ms: number, at: number, clockMs: number): UplinkPlace {
    const followed = Math.abs(clockMs - ms - this.clockMs) < STEP_MS;
    const last = this.stretches.at(-1);
    const late = last === undefined ? 0 : at - ms - spokenAt({ stretch: last, ms: this.sent });
    this.lateMs = late > LATE_MS ? this.lateMs + ms : 0;
    let stretch = last;
    if (stretch === undefined || !followed || this.lateMs > LATE_FOR_MS) {
      stretch = this.begin(at - ms);
    } else {
      // A busy page delays frames, and nothing makes them early, so the earliest ones are right.
      stretch.at += Math.min(0, late);
    }
    const place = { stretch, ms: this.sent };
    this.sent += ms;
    this.clockMs = clockMs;
    return place;
  }

  /** When the sample at `ms` was spoken; undefined before any was sent. */
  when(ms: number): number | undefined {
    const stretch = this.stretches.findLast((s) => s.ms <= ms) ?? this.stretches[0];
    return stretch === undefined ? undefined : spokenAt({ stretch, ms });
  }

  private begin(at: number): UplinkStretch {
    const stretch = { ms: this.sent, at };
    this.stretches.push(stretch);
    if (this.stretches.length > MAX_STRETCHES) {
      this.stretches.shift();
    }
    this.lateMs = 0;
    return stretch;
  }
}
