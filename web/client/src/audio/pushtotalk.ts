import { FRAME_MS } from "./framer.js";

/** So much is still sent after the button was let go: fingers are quicker than last syllables. */
const TAIL_MS = 200;
/** Where no frames come, the end is told after so long all the same. */
const GIVE_UP_MS = 2 * TAIL_MS;

/**
 * Push-to-talk between the button and the wire. It counts in frames, not in time: the end is
 * told right after the last frame that belongs to what was said.
 */
export class PushToTalk {
  readonly #tell: (active: boolean) => void;
  #pressed = false;
  /** Frames still to be sent before the end; 0: not ending. */
  #tail = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(tell: (active: boolean) => void) {
    this.#tell = tell;
  }

  /** Whether what is said now is sent. */
  get active(): boolean {
    return this.#pressed;
  }

  /** The button was pressed or let go. */
  press(active: boolean): void {
    if (!active) {
      if (this.#pressed && this.#tail === 0) {
        this.#tail = TAIL_MS / FRAME_MS;
        this.#timer = setTimeout(() => this.release(), GIVE_UP_MS);
      }
      return;
    }
    // Pressed again within the tail it goes on.
    clearTimeout(this.#timer);
    this.#tail = 0;
    if (!this.#pressed) {
      this.#pressed = true;
      this.#tell(true);
    }
  }

  /** One more frame was sent. */
  frameSent(): void {
    if (this.#tail > 0 && --this.#tail === 0) {
      this.release();
    }
  }

  /** Ends at once what was pressed. */
  release(): void {
    clearTimeout(this.#timer);
    this.#tail = 0;
    if (this.#pressed) {
      this.#pressed = false;
      this.#tell(false);
    }
  }
}
