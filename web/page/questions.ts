import type { ConfirmationRequest } from "./protocol.js";

/** A question that only the user may answer, with a button. */
export interface Question {
  readonly token: string;
  readonly tool: string;
  /** What would be done, for a person. */
  readonly preview: string;
  /** The exact arguments, as formatted JSON; empty for none. */
  readonly args: string;
  /** When it ends on this machine's clock (ms since the epoch); null when that cannot be told. */
  readonly expires: number | null;
  /** What the user has pressed; null before. */
  approved: boolean | null;
}

/** More than a gateway ever asks at once. */
const MAX_OPEN = 32;

/** The questions that are open, oldest first. */
export class Questions {
  private readonly open: Question[] = [];

  get list(): readonly Question[] {
    return this.open;
  }

  /** A confirmation.request that came at now (ms since the epoch). */
  asked(message: ConfirmationRequest, now: number): void {
    if (this.open.length >= MAX_OPEN || this.find(message.token) !== undefined) {
      return;
    }
    const end = Date.parse(message.expires_at ?? "");
    this.open.push({
      token: message.token,
      tool: message.tool,
      preview: visible(previewOf(message)),
      args: message.args === "{}" ? "" : visible(message.args ?? ""),
      // What has just been asked cannot be over: this clock is wrong then, and
      // the gateway says when it ends.
      expires: end > now ? end : null,
      approved: null,
    });
  }

  /** Notes the user's answer; false when it must not be sent: answered, over or unknown. */
  answer(token: string, approved: boolean, now: number): boolean {
    const question = this.find(token);
    if (question === undefined || !answerable(question, now)) {
      return false;
    }
    question.approved = approved;
    return true;
  }

  /** What was answered is open again: the gateway could not take the answer. */
  reopen(): void {
    for (const question of this.open) {
      question.approved = null;
    }
  }

  /** Removes a question and returns it; undefined for one that is not here. */
  ended(token: string): Question | undefined {
    const question = this.find(token);
    if (question !== undefined) {
      this.open.splice(this.open.indexOf(question), 1);
    }
    return question;
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

// What steers the direction of text, or is not seen at all: a name must not be
// able to make the line that is approved read like another one.
const UNSEEN = /[\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Text with its unseen characters written out, as JSON does. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
