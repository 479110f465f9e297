import type { ConfirmationEnded, ConfirmationRequest, ServerMessage } from "./protocol/messages.js";

/** The questions of a session that are open: each is to be told ended once, whatever happens. */
export class Questions {
  readonly #open = new Map<string, ConfirmationRequest>();

  /** Notes what a message says of them. */
  note(message: ServerMessage): void {
    if (message.type === "confirmation.request") {
      this.#open.set(message.token, message);
    } else if (message.type === "confirmation.ended") {
      this.#open.delete(message.token);
    }
  }

  /** The session is over, and with it what it has asked: the ends of all that was open. */
  lose(): ConfirmationEnded[] {
    const ended = [...this.#open.values()].map(
      ({ token, tool, turn }): ConfirmationEnded => ({
        type: "confirmation.ended",
        seq: 0,
        ...(turn === undefined ? {} : { turn }),
        token,
        tool,
        outcome: "lost",
      }),
    );
    this.#open.clear();
    return ended;
  }
}
