// The audio clock of what the user says, by which the gateway tells where it heard speech.

/** Frames that come so much later (in ms) than they should are a new beginning. */
const GAP_MS = 120;

const MAX_STRETCHES = 64;

/** The client's audio clock: ms since the first sample that was sent. */
export class UplinkClock {
  /** Stretches without a gap: from audio time `ms` on it goes on from `at`. */
  private readonly stretches: { ms: number; at: number }[] = [];
  private sent = 0;

  /** Counts a frame of so many ms that was sent at `at`; returns when it began to be spoken. */
  push(ms: number, at: number): number {
    const begun = at - ms;
    const last = this.stretches.at(-1);
    const late = last === undefined ? Infinity : begun - this.expected(last);
    if (last === undefined || late > GAP_MS) {
      this.stretches.push({ ms: this.sent, at: begun });
      if (this.stretches.length > MAX_STRETCHES) {
        this.stretches.shift();
      }
    } else if (late < 0) {
      // A busy page makes frames late and nothing makes them early: the earliest are right.
      last.at += late;
    }
    const from = this.expected(this.stretches.at(-1)!);
    this.sent += ms;
    return from;
  }

  /** When the sample at so many ms was spoken; undefined before anything was sent. */
  when(ms: number): number | undefined {
    const stretch = this.stretches.findLast((s) => s.ms <= ms) ?? this.stretches[0];
    return stretch === undefined ? undefined : stretch.at + (ms - stretch.ms);
  }

  private expected(stretch: { ms: number; at: number }): number {
    return stretch.at + (this.sent - stretch.ms);
  }
}
