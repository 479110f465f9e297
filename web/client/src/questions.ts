import type { ConfirmationEnded, ConfirmationRequest, ServerMessage } from "./protocol/messages.js";

/** The open confirmation requests of a session. Each ends exactly once for the page. */
export class Questions {
  readonly #open = new Map<string, ConfirmationRequest>();
  /** Requests that may have ended while offline. */
  #doubtful = new Set<string>();

  /** Handles a message from the gateway. */
  note(message: ServerMessage): void {
    if (message.type === "confirmation.request") {
      this.#open.set(message.token, message);
      this.#doubtful.delete(message.token);
    } else if (message.type === "confirmation.ended") {
      this.#open.delete(message.token);
    }
  }

  /** A snapshot follows, which repeats the requests that are still open. */
  doubt(): void {
    this.#doubtful = new Set(this.#open.keys());
  }

  /** The snapshot is complete. Returns the ends of the requests that it did not repeat. */
  caughtUp(): ConfirmationEnded[] {
    const gone = [...this.#open.keys()].filter((token) => this.#doubtful.has(token));
    this.#doubtful.clear();
    return this.#lose(gone, "unknown");
  }

  /** The session is over. Returns the ends of all open requests. */
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
