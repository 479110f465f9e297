import type { ClientMessage, ServerMessage } from "./protocol/messages.js";

/** So many texts and answers are waited for; of more the oldest is forgotten. */
const MOST = 32;

/**
 * What the user has sent and the gateway has not answered yet. When a connection breaks,
 * nobody knows whether that has arrived.
 */
export class Owed {
  /** Typed texts, by the ids of their transcripts. */
  readonly #texts = new Set<string>();
  /** Answers to questions, by the questions' tokens. */
  readonly #answers = new Map<string, ClientMessage>();
  /** Those of both that were on their way when a connection broke. */
  #doubtful = new Set<string>();

  /** A message was sent. */
  sent(message: ClientMessage): void {
    if (message.type === "input.text" && message.id !== undefined) {
      this.#texts.add(message.id);
    } else if (message.type === "confirmation.resolve") {
      this.#answers.set(message.token, message);
    }
    for (const all of [this.#texts, this.#answers]) {
      const oldest = all.keys().next();
      if (all.size > MOST && oldest.done !== true) {
        all.delete(oldest.value);
      }
    }
  }

  /** Notes what a message says of them. */
  told(message: ServerMessage): void {
    if (message.type === "transcript") {
      this.#texts.delete(message.id);
    } else if (message.type === "turn.ended") {
      // Its transcript may have been withheld.
      this.#texts.clear();
    } else if (message.type === "confirmation.ended") {
      this.#answers.delete(message.token);
    }
  }

  /** The session was taken up again: what is owed may not have arrived. */
  resumed(): void {
    this.#doubtful = new Set([...this.#texts, ...this.#answers.keys()]);
  }

  /**
   * The gateway has said again what was missed. What is still owed has not arrived: answers
   * to questions may be sent again, since each counts once; a text may not, since nobody can
   * be sure that it was not heard.
   */
  caughtUp(): { answers: ClientMessage[]; textLost: boolean } {
    const doubtful = this.#doubtful;
    this.#doubtful = new Set();
    const answers = [...this.#answers].filter(([token]) => doubtful.has(token)).map(([, answer]) => answer);
    const texts = [...this.#texts].filter((id) => doubtful.has(id));
    texts.forEach((id) => this.#texts.delete(id));
    return { answers, textLost: texts.length > 0 };
  }

  /** Another session goes on: nothing is answered any more. Whether a text was owed. */
  lose(): boolean {
    const lost = this.#texts.size > 0;
    this.#texts.clear();
    this.#answers.clear();
    this.#doubtful.clear();
    return lost;
  }
}
