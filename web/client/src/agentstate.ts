import type { ServerMessage } from "./protocol/messages.js";

/**
 * What the agent does, for whoever listens at this page. `speaking`: something of it sounds
 * here, now. `thinking`: the user has said something, or a tool runs, and nothing sounds yet.
 * `listening`: anything else, also while it waits for an answer to a question.
 */
export type AgentState = "listening" | "thinking" | "speaking";

/** Derives it from what is told and from what sounds. */
export class Agent {
  readonly #changed: (state: AgentState) => void;
  #current: AgentState = "listening";
  /** The user has done something to which nothing has sounded since. */
  #owed = false;
  readonly #tools = new Set<string>();
  readonly #sounding = new Set<string>();

  constructor(changed: (state: AgentState) => void) {
    this.#changed = changed;
  }

  get state(): AgentState {
    return this.#current;
  }

  /** Something that the gateway tells. */
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

  /** Whether the user waits for something: a text was sent, or silence was wanted. */
  owe(owed: boolean): void {
    this.#owed = owed;
    this.#look();
  }

  /** The first sample of an item sounds, by the player's name of it. */
  sounds(item: string): void {
    this.#sounding.add(item);
    this.owe(false);
  }

  /** Nothing more of the item sounds. */
  silent(item: string): void {
    this.#sounding.delete(item);
    this.#look();
  }

  /** What was going on is not told to its end any more. What sounds goes on. */
  forget(): void {
    this.#tools.clear();
    this.owe(false);
  }

  /** The session is over, and nothing sounds. */
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
