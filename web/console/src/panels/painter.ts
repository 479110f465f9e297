// Keeps the picture of a waveform up to date, while it is seen.
import type { Instruments } from "../instruments.js";
import type { Sound } from "../model/sound.js";
import { Drawing } from "../ui/drawing.js";
import { TICK_MS, ticks } from "../ui/ticks.js";
import { pictureOf, type Window } from "./picture.js";

/** The width holds so much time, and so much of it is past: what waits to sound stands behind now. */
export const SHOWN_MS = 20_000;
export const PAST_MS = 16_000;
/** It moves so seldom for those who want less motion; else with every tick. */
const CALM_MS = 500;

/** How one looks at it. held: it stands still, by the pointer alone or until it is let go. */
export interface Look {
  held: "no" | "pointer" | "yes";
  /** The moment at which it was stopped, and how far one looks back from there, in ms. */
  now: number;
  behind: number;
}

/** Now, or when the session ended: nothing moves after that. */
export function timeOf(sound: Sound): number {
  return sound.stoppedAt ?? performance.now();
}

/** Paints when something has changed and somebody can see it. */
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

  /** Something has changed. */
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
    // By whole pixels, so that the picture moves and does not change.
    const pixel = SHOWN_MS / this.drawing.width;
    const step = pixel * Math.ceil((this.calm.matches ? CALM_MS : TICK_MS / 2) / pixel);
    const until = Math.floor(now / step) * step;
    return { from: until - PAST_MS - behind, ms: SHOWN_MS, now: until };
  }
}
