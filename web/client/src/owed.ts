import type { ClientMessage, ServerMessage } from "./protocol/messages.js";

/** The most texts and answers stored; the oldest is forgotten first. */
const MOST = 32;

/** A typed text, and the turn that the gateway has begun for it; 0 before. */
interface Text {
  readonly message: ClientMessage;
  turn: number;
}

/** The user's messages that the gateway has not answered. They may be lost with a connection or a gateway. */
export class Owed {
  /** Unanswered texts, by the id of their transcript. */
  readonly #texts = new Map<string, Text>();
  /** Answers to questions, by the question's token, and the newest interrupt, by "". */
  readonly #answers = new Map<string, ClientMessage>();
  /** Texts and answers that may be lost since a connection broke. */
  readonly #doubtful = new Set<string>();
  /** The newest turn. */
  #turn = 0;

  /** Records a sent message. */
  sent(message: ClientMessage): void {
    if (message.type === "input.text" && message.id !== undefined) {
      this.#texts.set(message.id, { message, turn: 0 });
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

  /** Handles a message from the gateway. */
  told(message: ServerMessage): void {
    const turn = message.turn ?? 0;
    switch (message.type) {
      case "transcript":
        if (message.role === "user") {
          this.#taken((_, id) => id === message.id, turn);
        } else {
          this.#answered(turn);
        }
        break;
      case "audio.start":
        this.#answered(turn);
        break;
      case "turn.started":
        this.#begin(turn);
        break;
      case "turn.ended":
        this.#begin(turn);
        this.#answered(turn);
        this.#answers.delete("");
        break;
      case "audio.flush":
        this.#answers.delete("");
        break;
      case "confirmation.ended":
        this.#answers.delete(message.token);
        break;
    }
  }

  /**
   * The session was resumed. A snapshot may come from an older checkpoint, which lacks texts that have begun
   * a turn.
   */
  resumed(snapshot: boolean): void {
    this.#doubtful.clear();
    this.#texts.forEach((text, id) => {
      if (snapshot || text.turn === 0) {
        this.#doubtful.add(id);
      }
    });
    this.#answers.forEach((_, token) => this.#doubtful.add(token));
  }

  /** The client has caught up, or has a snapshot. Returns the lost messages, to send again. */
  caughtUp(): ClientMessage[] {
    const lost: ClientMessage[] = [];
    this.#texts.forEach((text, id) => {
      if (this.#doubtful.has(id)) {
        text.turn = 0;
        lost.push(text.message);
      }
    });
    this.#answers.forEach((answer, token) => {
      if (this.#doubtful.has(token)) {
        lost.push(answer);
      }
    });
    this.#doubtful.clear();
    return lost;
  }

  /** A new session follows, which answers none of them. Returns whether a text was lost. */
  lose(): boolean {
    const lost = [...this.#texts.values()].some((text) => text.turn === 0);
    this.#turn = 0;
    this.#texts.clear();
    this.#answers.clear();
    this.#doubtful.clear();
    return lost;
  }

  /**
   * A new turn contains every text sent before, even if its transcript is withheld. A snapshot repeats a
   * known turn.
   */
  #begin(turn: number): void {
    const fresh = turn > this.#turn;
    this.#taken((text) => (fresh ? text.turn === 0 : text.turn === turn), turn);
    if (fresh) {
      this.#turn = turn;
      this.#answers.delete("");
    }
  }

  #taken(which: (text: Text, id: string) => boolean, turn: number): void {
    this.#texts.forEach((text, id) => {
      if (which(text, id)) {
        text.turn = turn;
        this.#doubtful.delete(id);
      }
    });
  }

  #answered(turn: number): void {
    this.#texts.forEach((text, id) => {
      if (text.turn !== 0 && text.turn <= turn && !this.#doubtful.has(id)) {
        this.#texts.delete(id);
      }
    });
  }
}
