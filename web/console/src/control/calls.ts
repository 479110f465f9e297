// What the page asks the gateway about the calls that run, as an operator.
import { recalled } from "../model/history.js";
import type { Line } from "../model/lines.js";
import { readRunning, type RunningCalls } from "../model/running.js";
import { fields, text } from "../model/shape.js";
import { ask, UNREACHABLE } from "./ask.js";

/** What was said in a call: as lines, and as the gateway tells it. */
export interface Transcript {
  lines: readonly Line[];
  json: string;
}

/** `request` asks as an operator. */
export class CallsControl {
  constructor(private readonly request: typeof fetch) {}

  /** The calls that run; null where the gateway does not tell. */
  async list(): Promise<RunningCalls | null> {
    return readRunning((await ask(this.request, "v1/sessions")).answer);
  }

  /** What was said in a conversation so far; null where the gateway does not tell. */
  async transcript(conversation: string): Promise<Transcript | null> {
    const { status, answer } = await ask(this.request, `v1/conversations/${encodeURIComponent(conversation)}`);
    return status === 200 ? { lines: recalled(answer), json: `${JSON.stringify(answer, null, 2)}\n` } : null;
  }

  /** Ends a call; null where it is ending, or why it is not. */
  async end(call: string): Promise<string | null> {
    const { status, answer } = await ask(this.request, `v1/sessions/${encodeURIComponent(call)}`, { method: "DELETE" });
    return status === 204 ? null : status === 0 ? UNREACHABLE : text(fields(fields(answer)["error"])["message"]);
  }
}
