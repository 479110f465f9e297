// When what moves by itself is drawn: all of it in the same frame, and not in every frame.

/** Between two drawings, in ms. The eye sees meters and waves move; each frame of a page costs. */
export const TICK_MS = 100;

/** Draws what has asked for it, at most every TICK_MS. */
export class Ticks {
  private readonly asked = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = -Infinity;

  /** `soon` calls back when the page can be seen. */
  constructor(private readonly soon: (draw: () => void) => void = whenSeen) {}

  /** `draw` is called once, soon. What moves on asks again then. */
  ask(draw: () => void): void {
    this.asked.add(draw);
    this.timer ??= setTimeout(() => this.soon(() => this.run()), Math.max(0, this.last + TICK_MS - performance.now()));
  }

  /** What has asked is not drawn any more. */
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

/** At once, where the page is seen: to wait for its next frame would make one, also where nothing of the page has changed. */
function whenSeen(draw: () => void): void {
  if (document.hidden) {
    requestAnimationFrame(draw);
  } else {
    draw();
  }
}

/** The page's. */
export const ticks = new Ticks();
