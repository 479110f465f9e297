// Canvases drawn by a worker, so that animations do not cost the page frames. Without a worker, the page
// draws.
import type { Picture, Surface } from "./paint.js";
import { Sheet, type Order } from "./sheets.js";
import { Studio } from "./studio.js";
import { onTheme, paletteOf } from "./theme.js";

/** A canvas that is drawn while it is visible. */
export class Drawing {
  private surface: Surface;
  /** The surface has changed since the last picture. */
  private stale = true;
  private seen = true;
  private closed = false;
  /** Draws an order. Until the drawer is known, the last order waits. */
  private draw: ((order: Order) => void) | undefined;
  private waiting: Order | undefined;
  private readonly closers: (() => void)[] = [];

  /** `due` is called when the canvas needs a new picture because of its visibility, size or colours. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly due: () => void,
  ) {
    this.surface = this.measured();
    const resized = new ResizeObserver(() => this.measure());
    resized.observe(canvas);
    const visible = new IntersectionObserver((entries) => {
      // The last entry is the current state; a canvas may have been hidden a moment ago.
      this.seen = entries.at(-1)!.isIntersecting;
      due();
    });
    visible.observe(canvas);
    this.closers.push(() => resized.disconnect(), () => visible.disconnect(), onTheme(() => this.measure()));
    void studio().then((found) => this.begin(found));
  }

  /** Whether the canvas is visible. Otherwise nothing is drawn. */
  get visible(): boolean {
    return this.seen && this.surface.width > 0;
  }

  /** In device pixels. */
  get width(): number {
    return this.surface.width;
  }

  show(picture: Picture): void {
    if (!this.visible) {
      return;
    }
    const order = this.stale ? { surface: this.surface, picture } : { picture };
    this.stale = false;
    if (this.draw === undefined) {
      this.waiting = { ...this.waiting, ...order };
    } else {
      this.draw(order);
    }
  }

  close(): void {
    this.closed = true;
    this.closers.forEach((close) => close());
  }

  private begin(found: Studio | null): void {
    if (this.closed) {
      return;
    }
    if (found === null) {
      const sheet = new Sheet(this.canvas);
      this.draw = (order) => sheet.take(order);
    } else {
      const id = found.open(this.canvas.transferControlToOffscreen());
      this.draw = (order) => found.draw(id, order);
      this.closers.push(() => found.close(id));
    }
    if (this.waiting !== undefined) {
      this.draw(this.waiting);
      this.waiting = undefined;
    }
  }

  private measure(): void {
    this.surface = this.measured();
    this.stale = true;
    this.due();
  }

  private measured(): Surface {
    const { canvas } = this;
    const { fontSize, fontFamily } = getComputedStyle(canvas);
    return {
      width: Math.round(canvas.clientWidth * devicePixelRatio),
      height: Math.round(canvas.clientHeight * devicePixelRatio),
      ratio: devicePixelRatio,
      font: `${parseFloat(fontSize) * devicePixelRatio}px ${fontFamily}`,
      palette: paletteOf(canvas.parentElement!),
    };
  }
}

let started: Promise<Studio | null> | undefined;

/** The page's drawing worker. */
function studio(): Promise<Studio | null> {
  const able = typeof Worker === "function" && "transferControlToOffscreen" in HTMLCanvasElement.prototype;
  return (started ??= able ? Studio.start(() => new Worker(new URL("./drawing.worker.ts", import.meta.url), { type: "module" })) : Promise.resolve(null));
}
