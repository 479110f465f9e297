import type { ClientMessage, PlaybackReport } from "../protocol/messages.js";

/** So much is kept. */
const MOST = 32;

/**
 * What the user has done while there was no connection, to be sent when there is one. When
 * it is full, the newest is refused.
 */
export class Outbox {
  #kept: ClientMessage[] = [];
  /** The last report that was sent: it may have been on its way when the connection broke. */
  #reported: PlaybackReport | undefined;

  /** A message was sent. */
  sent(message: ClientMessage): void {
    if (message.type === "playback") {
      this.#reported = message;
    }
  }

  /** Keeps a message to be sent later; false when it is not kept. */
  keep(message: ClientMessage): boolean {
    switch (message.type) {
      case "playback":
        // The last report of an item counts.
        this.#kept = this.#kept.filter((m) => m.type !== "playback" || m.item_id !== message.item_id);
        break;
      case "interrupt":
        // Silence is wanted of what was said before; once is enough.
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
   * What is to be sent now. In another session nobody knows the questions and items of the
   * old one; in the same one the last report is said again, unless there is a newer one.
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
