// Requests about running and past calls, as an operator.
import { recalled } from "../model/history.js";
import type { Line } from "../model/lines.js";
import { pastTurns, readPast, type PastCalls, type PastTurn } from "../model/past.js";
import { readPrompt, type Prompt } from "../model/prompt.js";
import { readRunning, type RunningCalls } from "../model/running.js";
import { fields, text } from "../model/shape.js";
import { ask, UNREACHABLE } from "./ask.js";

/** A call's transcript, as lines and as the gateway's JSON. */
export interface Transcript {
  lines: readonly Line[];
  turns: readonly PastTurn[];
  json: string;
}

/** Past calls per request. */
const PAGE = 25;

/** `request` is fetch with the operator's token. */
export class CallsControl {
  constructor(private readonly request: typeof fetch) {}

  /** Lists the running calls; null without an answer. */
  async list(): Promise<RunningCalls | null> {
    return readRunning((await ask(this.request, "v1/sessions")).answer);
  }

  /** Lists a page of past calls. "none": the gateway keeps no list; null: no answer. */
  async past(after = ""): Promise<PastCalls | "none" | null> {
    const { status, answer } = await ask(this.request, `v1/conversations?limit=${PAGE}${after === "" ? "" : `&after=${encodeURIComponent(after)}`}`);
    return status === 404 ? "none" : readPast(answer);
  }

  /** Loads a conversation's transcript so far. "gone": nothing is stored; null: no answer. */
  async transcript(conversation: string): Promise<Transcript | "gone" | null> {
    const { status, answer } = await ask(this.request, `v1/conversations/${encodeURIComponent(conversation)}`);
    if (status === 404) {
      return "gone";
    }
    return status === 200 ? { lines: recalled(answer), turns: pastTurns(answer), json: `${JSON.stringify(answer, null, 2)}\n` } : null;
  }

  /** Loads the prompt of a call's model; null without an answer. */
  async prompt(call: string): Promise<Prompt | null> {
    return readPrompt((await ask(this.request, `v1/sessions/${encodeURIComponent(call)}/prompt`)).answer);
  }

  /** Ends a call. Returns null on success, otherwise the reason. */
  async end(call: string): Promise<string | null> {
    const { status, answer } = await ask(this.request, `v1/sessions/${encodeURIComponent(call)}`, { method: "DELETE" });
    return status === 204 ? null : status === 0 ? UNREACHABLE : text(fields(fields(answer)["error"])["message"]);
  }
}
