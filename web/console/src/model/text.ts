// What the text agent's side is doing.
import type { Notice } from "./notice.js";

export interface TextState {
  /** A message or an answer to a question is on its way. stopping: the user has given it up. */
  readonly phase: "ready" | "answering" | "stopping";
  /** Words of the answer have come; before that the agent thinks, or its tools work. */
  readonly writing: boolean;
  /** Why nothing can be sent; null where something can. */
  readonly notice: Notice | null;
}

export const READY: TextState = { phase: "ready", writing: false, notice: null };
