// Updates the picture of a waveform while it is visible.
import type { Instruments } from "../instruments.js";
import type { Sound } from "../model/sound.js";
import { Drawing } from "../ui/drawing.js";
import { TICK_MS, ticks } from "../ui/ticks.js";
import { pictureOf, type Window } from "./picture.js";

/** The time span of the whole width, and its part before now. Queued audio is drawn after now. */
export const SHOWN_MS = 20_000;
export const PAST_MS = 16_000;
/** The interval between drawings with reduced motion; otherwise every tick. */
const CALM_MS = 500;

/** The view. held: paused, while the pointer is over it ("pointer") or until resumed ("yes"). */
export interface Look {
  held: "no" | "pointer" | "yes";
  /** The time at which it was paused, and how far before it the view ends, in ms. */
  now: number;
  behind: number;
}

/** Now, or the end of the session, after which nothing moves. */
export function timeOf(sound: Sound): number {
  return sound.stoppedAt ?? performance.now();
}

/** Paints changes while the canvas is visible. */
export class Painter {
  private readonly drawing: Drawing;
  private readonly calm = matchMedia("(prefers-reduced-motion: reduce)");
  private readonly paint = (): void => this.painting();
  private touched = true;
  private painted = NaN;

  constructor(
    canvas: HTMLCanvasElement,
    private readonly instruments: Instruments,
    private readonly look: () => Look,
  ) {
    this.drawing = new Drawing(canvas, () => this.touch());
    this.touch();
  }

  /** Records a change. */
  touch(): void {
    this.touched = true;
    this.wake();
  }

  close(): void {
    ticks.drop(this.paint);
    this.drawing.close();
  }

  private wake(): void {
    if (this.drawing.visible) {
      ticks.ask(this.paint);
    }
  }

  private painting(): void {
    const { drawing, instruments } = this;
    if (!drawing.visible) {
      return;
    }
    const view = this.window();
    if (this.touched || view.from !== this.painted) {
      this.touched = false;
      this.painted = view.from;
      drawing.show(pictureOf(instruments, view, drawing.width));
    }
    if (instruments.sound.running && this.look().held === "no") {
      this.wake();
    }
  }

  private window(): Window {
    const { held, now: stopped, behind } = this.look();
    const now = held === "no" ? timeOf(this.instruments.sound) : stopped;
    // Whole pixels, so that the picture scrolls without changing.
    const pixel = SHOWN_MS / this.drawing.width;
    const step = pixel * Math.ceil((this.calm.matches ? CALM_MS : TICK_MS / 2) / pixel);
    const until = Math.floor(now / step) * step;
    return { from: until - PAST_MS - behind, ms: SHOWN_MS, now: until };
  }
}
