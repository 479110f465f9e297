import type { ServerMessage } from "./protocol/messages.js";

/**
 * The agent's activity, as the user hears it. `speaking`: its voice plays here. `thinking`: the user has
 * spoken or a tool runs, and no answer plays yet. `listening`: everything else, including an open question to
 * the user.
 */
export type AgentState = "listening" | "thinking" | "speaking";

/** Derives the agent's state from the gateway's messages and the player. */
export class Agent {
  readonly #changed: (state: AgentState) => void;
  #current: AgentState = "listening";
  /** No answer to the user's last input has played yet. */
  #owed = false;
  readonly #tools = new Set<string>();
  readonly #sounding = new Set<string>();

  constructor(changed: (state: AgentState) => void) {
    this.#changed = changed;
  }

  get state(): AgentState {
    return this.#current;
  }

  /** Handles a message from the gateway. */
  told(message: ServerMessage): void {
    switch (message.type) {
      case "tool.started":
        this.#tools.add(message.call_id);
        break;
      case "tool.ended":
        this.#tools.delete(message.call_id);
        return this.owe(true);
      case "speech.stopped":
      case "turn.started":
        return this.owe(true);
      case "turn.ended":
      case "error":
        this.#tools.clear();
        return this.owe(false);
      case "speech.started":
      case "confirmation.request":
        return this.owe(false);
      default:
    }
    this.#look();
  }

  /** Sets whether the user waits for an answer: true after a typed text, false after an interrupt. */
  owe(owed: boolean): void {
    this.#owed = owed;
    this.#look();
  }

  /** The first sample of an item plays. `item` is the player's name for it. */
  sounds(item: string): void {
    this.#sounding.add(item);
    this.owe(false);
  }

  /** The item has stopped playing. */
  silent(item: string): void {
    this.#sounding.delete(item);
    this.#look();
  }

  /** The session's open turns and tools will not be completed. Queued audio continues to play. */
  forget(): void {
    this.#tools.clear();
    this.owe(false);
  }

  /** The session has ended and nothing plays. */
  end(): void {
    this.#sounding.clear();
    this.forget();
  }

  #look(): void {
    const state = this.#sounding.size > 0 ? "speaking" : this.#owed || this.#tools.size > 0 ? "thinking" : "listening";
    if (state !== this.#current) {
      this.#current = state;
      this.#changed(state);
    }
  }
}
