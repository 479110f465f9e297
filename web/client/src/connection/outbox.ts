import type { ClientMessage } from "../protocol/messages.js";

/** So much is kept. */
const MOST = 32;

/**
 * What the user has done while there was no connection. Audio is not kept: the model should
 * hear what is said now. When it is full, the newest is refused.
 */
export class Outbox {
  #kept: ClientMessage[] = [];

  /** Keeps a message to be sent later; false when it is not kept. */
  keep(message: ClientMessage): boolean {
    switch (message.type) {
      case "playback":
        // The last report of an item counts.
        this.#kept = this.#kept.filter((m) => m.type !== "playback" || m.item_id !== message.item_id);
        break;
      case "input.text":
      case "confirmation.resolve":
        break;
      default:
        return false;
    }
    if (this.#kept.length >= MOST) {
      return false;
    }
    this.#kept.push(message);
    return true;
  }

  /** What is to be sent now. In another session nobody knows the questions and items of the old one. */
  take(resumed: boolean): ClientMessage[] {
    const all = this.#kept.filter((m) => resumed || m.type === "input.text");
    this.#kept = [];
    return all;
  }
}
