// Keeps the picture of a waveform up to date, while it is seen.
import type { Instruments } from "../instruments.js";
import type { Sound } from "../model/sound.js";
import { draw, type Surface, type Window } from "./draw.js";
import { TICK_MS, ticks } from "../ui/ticks.js";
import { onTheme, paletteOf } from "./theme.js";

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
  private readonly surface: Surface;
  private readonly closers: (() => void)[] = [];
  private readonly calm = matchMedia("(prefers-reduced-motion: reduce)");
  private readonly paint = (): void => this.painting();
  private seen = true;
  private touched = true;
  private painted = NaN;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly instruments: Instruments,
    private readonly look: () => Look,
  ) {
    this.surface = { context: canvas.getContext("2d")!, width: 0, height: 0, ratio: 1, font: "", palette: paletteOf(canvas.parentElement!) };
    const resized = new ResizeObserver(() => this.measure());
    resized.observe(canvas);
    const visible = new IntersectionObserver((entries) => {
      // The last of them is how it is now: a canvas that comes with its lane may have been hidden a moment ago.
      this.seen = entries.at(-1)!.isIntersecting;
      this.wake();
    });
    visible.observe(canvas);
    const recolour = (): void => {
      this.surface.palette = paletteOf(canvas.parentElement!);
      this.touch();
    };
    this.closers.push(() => resized.disconnect(), () => visible.disconnect(), onTheme(recolour));
    this.measure();
  }

  /** Something has changed. */
  touch(): void {
    this.touched = true;
    this.wake();
  }

  close(): void {
    ticks.drop(this.paint);
    this.closers.forEach((close) => close());
  }

  private wake(): void {
    if (this.seen) {
      ticks.ask(this.paint);
    }
  }

  private measure(): void {
    const { canvas, surface } = this;
    surface.ratio = devicePixelRatio;
    surface.width = canvas.width = Math.round(canvas.clientWidth * surface.ratio);
    surface.height = canvas.height = Math.round(canvas.clientHeight * surface.ratio);
    const style = getComputedStyle(canvas);
    surface.font = `${parseFloat(style.fontSize) * surface.ratio}px ${style.fontFamily}`;
    this.touch();
  }

  private painting(): void {
    const { surface, instruments } = this;
    if (surface.width === 0) {
      return;
    }
    const view = this.window();
    if (this.touched || view.from !== this.painted) {
      this.touched = false;
      this.painted = view.from;
      draw(surface, instruments, view);
    }
    if (instruments.sound.running && this.look().held === "no") {
      this.wake();
    }
  }

  private window(): Window {
    const { held, now: stopped, behind } = this.look();
    const now = held === "no" ? timeOf(this.instruments.sound) : stopped;
    // By whole pixels, so that the picture moves and does not change.
    const pixel = SHOWN_MS / this.surface.width;
    const step = pixel * Math.ceil((this.calm.matches ? CALM_MS : TICK_MS / 2) / pixel);
    const until = Math.floor(now / step) * step;
    return { from: until - PAST_MS - behind, ms: SHOWN_MS, now: until };
  }
}
