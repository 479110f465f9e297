/** No gateway has to be left later than that, whatever two clocks make of its deadline. */
const LATEST_MS = 60_000;
/** So much of the time is left over: a new connection takes a moment. */
const MARGIN_MS = 1000;

/**
 * When a session goes over to where the gateway has moved it: at a random moment before the
 * deadline, so that a gateway that leaves does not send all its clients away at once.
 */
export class Move {
  readonly #go: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(go: () => void) {
    this.#go = go;
  }

  /** Goes before the deadline (RFC 3339), soon where it is not known or over. What was said before does not count. */
  before(deadline: string | undefined): void {
    this.stop();
    const left = Date.parse(deadline ?? "") - Date.now() - MARGIN_MS;
    const most = Number.isNaN(left) ? 0 : Math.max(0, Math.min(LATEST_MS, left));
    this.#timer = setTimeout(this.#go, Math.random() * most);
  }

  /** May be called more than once. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}
