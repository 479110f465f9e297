import type { ClientMessage, ServerMessage } from "./protocol/messages.js";

/** So many texts and answers are waited for; of more the oldest is forgotten. */
const MOST = 32;

/**
 * What the user has sent and the gateway has not answered yet. When a connection breaks,
 * nobody knows whether that has arrived.
 */
export class Owed {
  /** Typed texts, by the ids of their transcripts. */
  readonly #texts = new Map<string, ClientMessage>();
  /** Answers to questions, by the questions' tokens, and the newest wish for silence, by "". */
  readonly #answers = new Map<string, ClientMessage>();
  /** Those of both that were on their way when a connection broke. */
  #doubtful = new Set<string>();
  /** The newest turn that has begun. */
  #turn = 0;

  /** A message was sent. */
  sent(message: ClientMessage): void {
    if (message.type === "input.text" && message.id !== undefined) {
      this.#texts.set(message.id, message);
    } else if (message.type === "confirmation.resolve") {
      this.#answers.set(message.token, message);
    } else if (message.type === "interrupt") {
      this.#answers.set("", message);
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
    } else if (message.type === "turn.ended" || (message.type === "turn.started" && (message.turn ?? 0) > this.#turn)) {
      // Its transcript may have been withheld.
      this.#texts.clear();
      this.#answers.delete("");
      this.#turn = Math.max(this.#turn, message.turn ?? 0);
    } else if (message.type === "audio.flush") {
      this.#answers.delete("");
    } else if (message.type === "confirmation.ended") {
      this.#answers.delete(message.token);
    }
  }

  /** The session was taken up again: what is owed may not have arrived. */
  resumed(): void {
    this.#doubtful = new Set([...this.#texts.keys(), ...this.#answers.keys()]);
  }

  /**
   * The gateway has said again what was missed, or how things stand. What is still owed has not
   * arrived and is returned, to be sent again: the gateway shows each text that it has got, and
   * each answer counts once.
   */
  caughtUp(): ClientMessage[] {
    const doubtful = this.#doubtful;
    this.#doubtful = new Set();
    return [...this.#texts, ...this.#answers].filter(([id]) => doubtful.has(id)).map(([, message]) => message);
  }

  /** Another session goes on: nothing is answered any more. Whether a text was owed. */
  lose(): boolean {
    const lost = this.#texts.size > 0;
    this.#turn = 0;
    this.#texts.clear();
    this.#answers.clear();
    this.#doubtful.clear();
    return lost;
  }
}
