// The audio clock of what the user says, by which the gateway tells where it heard speech.

/** The audio clock advances in steps of a few ms; a frame that is missing is 20 ms. */
const STEP_MS = 10;

/** When all frames of so many ms are later than that, the microphone's clock has stood still. */
const LATE_MS = 120;
const LATE_FOR_MS = 2000;

const MAX_STRETCHES = 64;

/** Frames without a gap between them. */
export interface UplinkStretch {
  /** Where it begins in what was sent. */
  readonly ms: number;
  /** When that was spoken (performance.now()). It is corrected while frames come. */
  at: number;
}

/** A place in what was sent. */
export interface UplinkPlace {
  readonly stretch: UplinkStretch;
  readonly ms: number;
}

/** When the sample at a place was spoken (performance.now()). */
export function spokenAt({ stretch, ms }: UplinkPlace): number {
  return stretch.at + (ms - stretch.ms);
}

/** The client's audio clock: ms since the first sample that was sent. */
export class UplinkClock {
  private readonly stretches: UplinkStretch[] = [];
  private sent = 0;
  /** When the newest frame was complete, on the microphone's clock. */
  private clockMs = 0;
  private lateMs = 0;

  /** Counts a frame of so many ms that was complete at `at`, and at clockMs on the microphone's clock. Returns where it begins. */
  push(ms: number, at: number, clockMs: number): UplinkPlace {
    const followed = Math.abs(clockMs - ms - this.clockMs) < STEP_MS;
    const last = this.stretches.at(-1);
    const late = last === undefined ? 0 : at - ms - spokenAt({ stretch: last, ms: this.sent });
    this.lateMs = late > LATE_MS ? this.lateMs + ms : 0;
    let stretch = last;
    if (stretch === undefined || !followed || this.lateMs > LATE_FOR_MS) {
      stretch = this.begin(at - ms);
    } else {
      // A busy page makes frames late and nothing makes them early: the earliest are right.
      stretch.at += Math.min(0, late);
    }
    const place = { stretch, ms: this.sent };
    this.sent += ms;
    this.clockMs = clockMs;
    return place;
  }

  /** When the sample at so many ms was spoken; undefined before anything was sent. */
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
