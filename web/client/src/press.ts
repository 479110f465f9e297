/** The push-to-talk button: whether it is pressed, and whether the session knows. */
export class Press {
  readonly #send: (active: boolean) => boolean;
  #pressed = false;
  /** The state that the session knows. */
  told = false;

  /** `send` informs the session and returns false if it cannot do so now. */
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

  /** Informs the session if the state has changed. */
  tell(): void {
    if (this.#pressed !== this.told && this.#send(this.#pressed)) {
      this.told = this.#pressed;
    }
  }
}
