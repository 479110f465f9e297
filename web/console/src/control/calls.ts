// What the page asks the gateway about the calls that run, as an operator.
import { recalled } from "../model/history.js";
import type { Line } from "../model/lines.js";
import { readRunning, type RunningCalls } from "../model/running.js";
import { fields, text } from "../model/shape.js";

/** What was said in a call: as lines, and as the gateway tells it. */
export interface Transcript {
  lines: readonly Line[];
  json: string;
}

const UNREACHABLE = "The gateway cannot be reached. Try again.";

/** `request` asks as an operator. */
export class CallsControl {
  constructor(private readonly request: typeof fetch) {}

  /** The calls that run; null where the gateway does not tell. */
  async list(): Promise<RunningCalls | null> {
    return readRunning((await this.ask("v1/sessions")).answer);
  }

  /** What was said in a conversation so far; null where the gateway does not tell. */
  async transcript(conversation: string): Promise<Transcript | null> {
    const { status, answer } = await this.ask(`v1/conversations/${encodeURIComponent(conversation)}`);
    return status === 200 ? { lines: recalled(answer), json: `${JSON.stringify(answer, null, 2)}\n` } : null;
  }

  /** Ends a call; null where it is ending, or why it is not. */
  async end(call: string): Promise<string | null> {
    const { status, answer } = await this.ask(`v1/sessions/${encodeURIComponent(call)}`, { method: "DELETE" });
    return status === 204 ? null : status === 0 ? UNREACHABLE : text(fields(fields(answer)["error"])["message"]);
  }

  private async ask(to: string, init: RequestInit = {}): Promise<{ status: number; answer: unknown }> {
    try {
      const response = await this.request(to, { cache: "no-store", ...init });
      return { status: response.status, answer: response.status === 204 ? null : await response.json() };
    } catch {
      return { status: 0, answer: null };
    }
  }
}
