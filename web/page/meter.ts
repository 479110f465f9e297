import { meterPosition } from "./pcm.js";

/** Share that is left of a peak after one frame of the display. */
const DECAY = 0.86;

/** A level bar: rises at once, falls slowly, rests when nothing moves. */
export class Meter {
  private wanted = 0;
  private shown = 0;
  private moving = false;

  constructor(private readonly bar: HTMLElement) {}

  /** level is an RMS value, 0 to 1. */
  set(level: number): void {
    this.wanted = meterPosition(level);
    if (!this.moving && this.wanted > 0) {
      this.moving = true;
      requestAnimationFrame(() => this.move());
    }
  }

  private move(): void {
    this.shown = Math.max(this.wanted, this.shown * DECAY);
    if (this.shown < 0.005) {
      this.shown = 0;
    }
    this.bar.style.transform = `scaleX(${this.shown.toFixed(3)})`;
    this.moving = this.shown > 0;
    if (this.moving) {
      requestAnimationFrame(() => this.move());
    }
  }
}
