// Draws all animations in the same frame, and not in every frame, because each frame costs.

/** Interval between two drawings, in ms: smooth enough for meters and waves. */
export const TICK_MS = 100;

/** Calls its clients at most every TICK_MS. */
export class Ticks {
  private readonly asked = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = -Infinity;

  /** `soon` calls back when the page is visible. */
  constructor(private readonly soon: (draw: () => void) => void = whenSeen) {}

  /** Calls `draw` once, soon. Animations ask again then. */
  ask(draw: () => void): void {
    this.asked.add(draw);
    this.timer ??= setTimeout(() => this.soon(() => this.run()), Math.max(0, this.last + TICK_MS - performance.now()));
  }

  /** Cancels a call. */
  drop(draw: () => void): void {
    this.asked.delete(draw);
  }

  private run(): void {
    this.timer = undefined;
    this.last = performance.now();
    const all = [...this.asked];
    this.asked.clear();
    all.forEach((draw) => draw());
  }
}

/** A visible page draws at once: requestAnimationFrame would cause a frame even if nothing changed. */
function whenSeen(draw: () => void): void {
  if (document.hidden) {
    requestAnimationFrame(draw);
  } else {
    draw();
  }
}

/** The page's ticks. */
export const ticks = new Ticks();
