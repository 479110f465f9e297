import type { ConfirmationRequest } from "@voicegw/client";
import type { Side } from "./feed.js";
import { readableTimes } from "./when.js";

/** A question that only the user may answer, with a button. */
export interface Question {
  readonly token: string;
  /** Who asks, and who must be given the answer. */
  readonly side: Side;
  readonly tool: string;
  /** What would be done, for a person: times are those of the reader's clock. */
  readonly preview: string;
  /** The exact arguments, as formatted JSON; empty for none. */
  readonly args: string;
  /** When it ends on this machine's clock (ms since the epoch); null when that cannot be told. */
  readonly expires: number | null;
  /** What the user has pressed; null before. */
  readonly approved: boolean | null;
}

/** More than a gateway ever asks at once. */
const MAX_OPEN = 32;

/** The questions that are open, oldest first. */
export class Questions {
  private open: readonly Question[] = [];

  /** A new array whenever anything has changed. */
  get list(): readonly Question[] {
    return this.open;
  }

  /** A confirmation.request that came at now (ms since the epoch). */
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
      // What has just been asked cannot be over: this clock is wrong then, and
      // the gateway says when it ends.
      expires: end > now ? end : null,
      approved: null,
    };
    this.open = [...this.open, question];
  }

  /** Notes the user's answer and returns the question; undefined when it must not be sent: answered, over or unknown. */
  answer(token: string, approved: boolean, now: number): Question | undefined {
    const question = this.find(token);
    if (question === undefined || !answerable(question, now)) {
      return undefined;
    }
    this.open = this.open.map((other) => (other === question ? { ...question, approved } : other));
    return question;
  }

  /** What was answered is open again: the gateway could not take the answer. Without a token, all of a side. */
  reopen(side: Side, token?: string): void {
    this.open = this.open.map((q) => (q.side === side && q.approved !== null && (token === undefined || q.token === token) ? { ...q, approved: null } : q));
  }

  /** Removes a question and returns it; undefined for one that is not here. */
  ended(token: string): Question | undefined {
    const question = this.find(token);
    if (question !== undefined) {
      this.open = this.open.filter((other) => other !== question);
    }
    return question;
  }

  /** Removes all of a side and returns them. */
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

/** Whether the buttons of a question do anything at now (ms since the epoch). */
export function answerable(question: Question, now: number): boolean {
  return question.approved === null && (question.expires === null || now < question.expires);
}

/** The preview; a tool without one of its own comes with its arguments, which are shown anyway. */
function previewOf({ tool, preview }: ConfirmationRequest): string {
  const text = preview?.trim() ?? "";
  return text === "" || text === tool || text.startsWith(`${tool} {`) ? `Run ${tool}?` : text;
}

// What steers the direction of text, or is not seen at all: a name must not be able to make
// the line that is approved read like another one. Joiners and the choice between text and
// emoji are part of ordinary words and pictures.
const UNSEEN = /(?![\n\u200c\u200d\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Text with its unseen characters written out, as JSON does. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (c) => {
    const code = c.codePointAt(0)!.toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}
