// What the page asks the gateway about calls, running and past, as an operator.
import { recalled } from "../model/history.js";
import type { Line } from "../model/lines.js";
import { pastTurns, readPast, type PastCalls, type PastTurn } from "../model/past.js";
import { readPrompt, type Prompt } from "../model/prompt.js";
import { readRunning, type RunningCalls } from "../model/running.js";
import { fields, text } from "../model/shape.js";
import { ask, UNREACHABLE } from "./ask.js";

/** What was said in a call: as lines, and as the gateway tells it. */
export interface Transcript {
  lines: readonly Line[];
  turns: readonly PastTurn[];
  json: string;
}

/** How many past calls are asked for at once. */
const PAGE = 25;

/** `request` asks as an operator. */
export class CallsControl {
  constructor(private readonly request: typeof fetch) {}

  /** The calls that run; null where the gateway does not tell. */
  async list(): Promise<RunningCalls | null> {
    return readRunning((await ask(this.request, "v1/sessions")).answer);
  }

  /** A page of the calls that were; "none" where the gateway has no list of them, null where it does not answer. */
  async past(after = ""): Promise<PastCalls | "none" | null> {
    const { status, answer } = await ask(this.request, `v1/conversations?limit=${PAGE}${after === "" ? "" : `&after=${encodeURIComponent(after)}`}`);
    return status === 404 ? "none" : readPast(answer);
  }

  /** What was said in a conversation so far; "gone" where nothing is kept of it, null where the gateway does not tell. */
  async transcript(conversation: string): Promise<Transcript | "gone" | null> {
    const { status, answer } = await ask(this.request, `v1/conversations/${encodeURIComponent(conversation)}`);
    if (status === 404) {
      return "gone";
    }
    return status === 200 ? { lines: recalled(answer), turns: pastTurns(answer), json: `${JSON.stringify(answer, null, 2)}\n` } : null;
  }

  /** What the model of a call is told; null where the gateway does not tell. */
  async prompt(call: string): Promise<Prompt | null> {
    return readPrompt((await ask(this.request, `v1/sessions/${encodeURIComponent(call)}/prompt`)).answer);
  }

  /** Ends a call; null where it is ending, or why it is not. */
  async end(call: string): Promise<string | null> {
    const { status, answer } = await ask(this.request, `v1/sessions/${encodeURIComponent(call)}`, { method: "DELETE" });
    return status === 204 ? null : status === 0 ? UNREACHABLE : text(fields(fields(answer)["error"])["message"]);
  }
}
