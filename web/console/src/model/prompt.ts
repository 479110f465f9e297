// The prompt of a call's model (GET /v1/sessions/{id}/prompt).
import { fields, list, text } from "./shape.js";

export interface Prompt {
  readonly agent: string;
  /** The whole text. */
  readonly instructions: string;
  readonly tools: readonly { readonly name: string; readonly description: string }[];
}

/** Null for another shape. */
export function readPrompt(value: unknown): Prompt | null {
  const answer = fields(value);
  if (typeof answer["instructions"] !== "string") {
    return null;
  }
  const tools = list(answer["tools"]).map((entry) => ({ name: text(fields(entry)["name"]), description: text(fields(entry)["description"]) }));
  return { agent: text(answer["agent"]), instructions: answer["instructions"], tools: tools.filter(({ name }) => name !== "") };
}
