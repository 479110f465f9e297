import type { ClientMessage, PlaybackReport } from "../protocol/messages.js";

/** The most messages stored. */
const MOST = 32;

/** Stores the user's messages while offline. When it is full, it refuses new ones. */
export class Outbox {
  #kept: ClientMessage[] = [];
  /** The last report sent; it may be lost with the connection. */
  #reported: PlaybackReport | undefined;

  sent(message: ClientMessage): void {
    if (message.type === "playback") {
      this.#reported = message;
    }
  }

  /** Stores a message for later. Returns false if it was not stored. */
  keep(message: ClientMessage): boolean {
    switch (message.type) {
      case "playback":
        // Only the last report of an item counts.
        this.#kept = this.#kept.filter((m) => m.type !== "playback" || m.item_id !== message.item_id);
        break;
      case "interrupt":
        // One interrupt is enough.
        this.#kept = this.#kept.filter((m) => m.type !== "interrupt");
        break;
      case "input.text":
      case "input.context":
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

  /**
   * Removes and returns the messages to send now. A new session does not know the old one's questions and
   * items. The same session gets the last report again, unless a newer one is stored.
   */
  take(resumed: boolean): ClientMessage[] {
    const all = this.#kept.filter((m) => resumed || m.type.startsWith("input."));
    const last = this.#reported;
    this.#kept = [];
    this.#reported = undefined;
    const again = resumed && last !== undefined && !all.some((m) => m.type === "playback" && m.item_id === last.item_id);
    return again ? [last, ...all] : all;
  }
}
