import type { ConfirmationEnded, ConfirmationRequest, ServerMessage } from "./protocol/messages.js";

/** The questions of a session that are open: each is to be told ended once, whatever happens. */
export class Questions {
  readonly #open = new Map<string, ConfirmationRequest>();
  /** Those of which nobody knows whether they are still open. */
  #doubtful = new Set<string>();

  /** Notes what a message says of them. */
  note(message: ServerMessage): void {
    if (message.type === "confirmation.request") {
      this.#open.set(message.token, message);
      this.#doubtful.delete(message.token);
    } else if (message.type === "confirmation.ended") {
      this.#open.delete(message.token);
    }
  }

  /** A snapshot follows: those that are still open are asked again in it. */
  doubt(): void {
    this.#doubtful = new Set(this.#open.keys());
  }

  /** The snapshot has come: the ends of those that it has not asked again. */
  caughtUp(): ConfirmationEnded[] {
    const gone = [...this.#open.keys()].filter((token) => this.#doubtful.has(token));
    this.#doubtful.clear();
    return this.#lose(gone, "unknown");
  }

  /** The session is over, and with it what it has asked: the ends of all that was open. */
  lose(): ConfirmationEnded[] {
    this.#doubtful.clear();
    return this.#lose([...this.#open.keys()], "lost");
  }

  #lose(tokens: readonly string[], outcome: "lost" | "unknown"): ConfirmationEnded[] {
    const ended = tokens.map((token) => this.#open.get(token)!).map(
      ({ token, tool, turn }): ConfirmationEnded => ({
        type: "confirmation.ended",
        seq: 0,
        ...(turn === undefined ? {} : { turn }),
        token,
        tool,
        outcome,
      }),
    );
    tokens.forEach((token) => this.#open.delete(token));
    return ended;
  }
}
