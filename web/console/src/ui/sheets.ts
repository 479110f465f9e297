// The part of drawing that does not use the page; it runs in a worker or in the page.
import { paint, type Context, type LevelPicture, type Picture, type Surface } from "./paint.js";

/** A picture to draw on a sheet, and its surface if that has changed. */
export interface Order {
  surface?: Surface;
  picture: Picture;
}

/** A message about a canvas by its number: a new canvas, a drawing order, or its end. */
export type Message = { id: number } & ({ canvas: OffscreenCanvas } | { order: Order } | { closed: true });

/** A canvas to draw on. */
export class Sheet {
  private context: Context | null | undefined;
  private surface: Surface | undefined;
  private shown: Picture | undefined;
  private orders = 0;

  /** `frame` calls back with the time when a frame is drawn; without it nothing animates. */
  constructor(
    private readonly canvas: HTMLCanvasElement | OffscreenCanvas,
    private readonly frame?: (draw: (now: number) => void) => void,
  ) {}

  take({ surface = this.surface, picture }: Order): void {
    this.context ??= this.canvas.getContext("2d") as Context | null;
    if (surface === undefined) {
      return;
    }
    if (this.surface?.width !== surface.width || this.surface.height !== surface.height) {
      this.canvas.width = surface.width;
      this.canvas.height = surface.height;
    }
    this.surface = surface;
    this.orders++;
    if (picture.kind === "level" && picture.glideMs > 0 && this.shown?.kind === "level" && this.frame !== undefined) {
      this.glide(this.shown.share, picture, this.orders);
    } else {
      this.paint(picture);
    }
  }

  /** Stops drawing. */
  close(): void {
    this.orders++;
  }

  private glide(from: number, to: LevelPicture, order: number): void {
    let began: number | undefined;
    const step = (now: number): void => {
      if (order !== this.orders) {
        return; // A newer order has arrived.
      }
      began ??= now;
      const way = Math.min(1, (now - began) / to.glideMs);
      this.paint({ ...to, share: from + way * (to.share - from) });
      if (way < 1) {
        this.frame!(step);
      }
    };
    this.frame!(step);
  }

  private paint(picture: Picture): void {
    this.shown = picture;
    if (this.context != null && this.surface !== undefined) {
      paint(this.context, this.surface, picture);
    }
  }
}

/** All sheets of a worker. */
export class Sheets {
  private readonly sheets = new Map<number, Sheet>();

  constructor(private readonly frame: (draw: (now: number) => void) => void) {}

  take(messages: readonly Message[]): void {
    for (const message of messages) {
      if ("canvas" in message) {
        this.sheets.set(message.id, new Sheet(message.canvas, this.frame));
      } else if ("order" in message) {
        this.sheets.get(message.id)?.take(message.order);
      } else {
        this.sheets.get(message.id)?.close();
        this.sheets.delete(message.id);
      }
    }
  }
}
