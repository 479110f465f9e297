/** The button of push-to-talk: whether it is pressed, and whether the session knows. */
export class Press {
  readonly #send: (active: boolean) => boolean;
  #pressed = false;
  /** What the session knows. */
  told = false;

  /** `send` tells the session; false where that cannot be now. */
  constructor(send: (active: boolean) => boolean) {
    this.#send = send;
  }

  get pressed(): boolean {
    return this.#pressed;
  }

  press(active: boolean): void {
    this.#pressed = active;
    this.tell();
  }

  /** Tells the session what it does not know yet. */
  tell(): void {
    if (this.#pressed !== this.told && this.#send(this.#pressed)) {
      this.told = this.#pressed;
    }
  }
}
