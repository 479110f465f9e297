// The drawing worker, as the page uses it.
import type { Message, Order } from "./sheets.js";

/** How long to wait for the worker's first message. */
const PATIENCE_MS = 3000;

/** The part of a worker used here. */
export type Drawer = Pick<Worker, "postMessage" | "terminate" | "onmessage" | "onerror">;

export class Studio {
  private messages: Message[] = [];
  private transfer: Transferable[] = [];
  private newest = 0;

  private constructor(private readonly worker: Drawer) {}

  /**
   * Null if no worker starts. A transferred canvas cannot be returned, so the Studio exists only after the
   * worker's first message.
   */
  static async start(make: () => Drawer): Promise<Studio | null> {
    let worker: Drawer;
    try {
      worker = make();
    } catch {
      return null;
    }
    const runs = await new Promise<boolean>((resolve) => {
      worker.onmessage = () => resolve(true);
      worker.onerror = () => resolve(false);
      setTimeout(() => resolve(false), PATIENCE_MS);
    });
    if (!runs) {
      worker.terminate();
      return null;
    }
    worker.onmessage = worker.onerror = null;
    return new Studio(worker);
  }

  /** Takes a canvas permanently and returns its number. */
  open(canvas: OffscreenCanvas): number {
    this.transfer.push(canvas);
    this.tell({ id: ++this.newest, canvas });
    return this.newest;
  }

  draw(id: number, order: Order): void {
    this.tell({ id, order });
  }

  close(id: number): void {
    this.tell({ id, closed: true });
  }

  /** Sends all orders of a tick in one message. */
  private tell(message: Message): void {
    if (this.messages.push(message) === 1) {
      queueMicrotask(() => {
        this.worker.postMessage(this.messages, this.transfer);
        this.messages = [];
        this.transfer = [];
      });
    }
  }
}
