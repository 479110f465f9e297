import { FRAME_MS } from "./framer.js";

/** Audio sent after the button is released, because fingers are faster than last syllables. */
const TAIL_MS = 200;
/** Without frames, the end is sent after this time anyway. */
const GIVE_UP_MS = 2 * TAIL_MS;

/**
 * Push-to-talk between the button and the connection. It counts frames instead of time, so that the end
 * follows the last frame of the speech.
 */
export class PushToTalk {
  readonly #tell: (active: boolean) => void;
  #pressed = false;
  /** Frames to send before the end; 0 if not ending. */
  #tail = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(tell: (active: boolean) => void) {
    this.#tell = tell;
  }

  /** Whether speech is sent now. */
  get active(): boolean {
    return this.#pressed;
  }

  /** The button was pressed or released. */
  press(active: boolean): void {
    if (!active) {
      if (this.#pressed && this.#tail === 0) {
        this.#tail = TAIL_MS / FRAME_MS;
        this.#timer = setTimeout(() => this.release(), GIVE_UP_MS);
      }
      return;
    }
    // A press during the tail continues the speech.
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

  /** Ends the speech at once. */
  release(): void {
    clearTimeout(this.#timer);
    this.#tail = 0;
    if (this.#pressed) {
      this.#pressed = false;
      this.#tell(false);
    }
  }
}
