// The worker that draws, as the page sees it.
import type { Message, Order } from "./sheets.js";

/** A worker that has said nothing by then is not waited for. */
const PATIENCE_MS = 3000;

/** What of a worker is needed here. */
export type Drawer = Pick<Worker, "postMessage" | "terminate" | "onmessage" | "onerror">;

export class Studio {
  private messages: Message[] = [];
  private transfer: Transferable[] = [];
  private newest = 0;

  private constructor(private readonly worker: Drawer) {}

  /**
   * Null where no worker starts. A canvas that was given away cannot be taken back: there is
   * no Studio before the worker has said that it runs.
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

  /** Takes a canvas for good; returns its number. */
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

  /** What is drawn in one tick is one message. */
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
