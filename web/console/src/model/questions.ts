import type { ConfirmationRequest } from "@voicegw/client";
import type { Side } from "./feed.js";
import { readableTimes } from "./when.js";

/** A question that only the user can answer, with a button. */
export interface Question {
  readonly token: string;
  /** The agent that asks and receives the answer. */
  readonly side: Side;
  readonly tool: string;
  /** A description of the action, with times on the reader's clock. */
  readonly preview: string;
  /** The exact arguments as formatted JSON; empty for none. */
  readonly args: string;
  /** When it expires on this machine's clock (ms since the epoch); null if unknown. */
  readonly expires: number | null;
  /** The user's answer; null before. */
  readonly approved: boolean | null;
}

/** Far more than a gateway asks at once. */
const MAX_OPEN = 32;

/** The open questions, oldest first. */
export class Questions {
  private open: readonly Question[] = [];

  /** A new array after each change. */
  get list(): readonly Question[] {
    return this.open;
  }

  /** Adds a confirmation.request that arrived at now (ms since the epoch). */
  asked(side: Side, message: ConfirmationRequest, now: number): void {
    if (this.open.length >= MAX_OPEN || this.find(message.token) !== undefined) {
      return;
    }
    const end = Date.parse(message.expires_at ?? "");
    const question: Question = {
      token: message.token,
      side,
      tool: visible(message.tool),
      preview: readableTimes(visible(previewOf(message))),
      args: message.args_source === "{}" ? "" : visible(message.args_source ?? ""),
      // A new question cannot have expired, so this clock is wrong. The gateway reports the end.
      expires: end > now ? end : null,
      approved: null,
    };
    this.open = [...this.open, question];
  }

  /** Records the user's answer and returns the question; undefined if it is answered, expired or unknown. */
  answer(token: string, approved: boolean, now: number): Question | undefined {
    const question = this.find(token);
    if (question === undefined || !answerable(question, now)) {
      return undefined;
    }
    this.open = this.open.map((other) => (other === question ? { ...question, approved } : other));
    return question;
  }

  /** Reopens an answered question whose answer failed. Without a token, reopens all of a side. */
  reopen(side: Side, token?: string): void {
    this.open = this.open.map((q) => (q.side === side && q.approved !== null && (token === undefined || q.token === token) ? { ...q, approved: null } : q));
  }

  /** Removes a question and returns it; undefined if unknown. */
  ended(token: string): Question | undefined {
    const question = this.find(token);
    if (question !== undefined) {
      this.open = this.open.filter((other) => other !== question);
    }
    return question;
  }

  /** Removes all questions of a side and returns them. */
  endedAll(side: Side): readonly Question[] {
    const gone = this.open.filter((question) => question.side === side);
    this.open = this.open.filter((question) => question.side !== side);
    return gone;
  }

  clear(): void {
    this.open = [];
  }

  private find(token: string): Question | undefined {
    return this.open.find((question) => question.token === token);
  }
}

/** Whether a question can be answered at now (ms since the epoch). */
export function answerable(question: Question, now: number): boolean {
  return question.approved === null && (question.expires === null || now < question.expires);
}

/** The preview. A tool without its own preview sends the arguments, which are shown anyway. */
function previewOf({ tool, preview }: ConfirmationRequest): string {
  const text = preview?.trim() ?? "";
  return text === "" || text === tool || text.startsWith(`${tool} {`) ? `Run ${tool}?` : text;
}

// Bidirectional controls and invisible characters, which could make an approval read like something else.
// Joiners and variation selectors are part of ordinary words and emoji.
const UNSEEN = /(?![\n\u200c\u200d\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Escapes the invisible characters, as JSON does. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (c) => {
    const code = c.codePointAt(0)!.toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}
