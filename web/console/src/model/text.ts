// The text agent's activity.
import type { Notice } from "./notice.js";

export interface TextState {
  /** answering: a message or an answer to a question is in progress. stopping: the user cancelled it. */
  readonly phase: "ready" | "answering" | "stopping";
  /** Words of the answer have arrived; before, the agent thinks or its tools run. */
  readonly writing: boolean;
  /** Why nothing can be sent; null if it can. */
  readonly notice: Notice | null;
}

export const READY: TextState = { phase: "ready", writing: false, notice: null };
