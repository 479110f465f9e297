// What a conversation is made of, as it is shown. A line is never changed: another one
// takes its place, so that whoever shows it sees by its identity whether it is the same.
import type { Clamped, ToolError } from "@voicegw/client";
import type { Side } from "./feed.js";

interface Placed {
  /** Its name in the transcript, the same for as long as it is there. */
  readonly key: string;
  readonly side: Side;
  /** Where it stands: ms since the epoch, on the gateway's clock where that is known. */
  readonly at: number;
  /** It was here before the page was loaded again. */
  readonly restored?: boolean;
}

/** One utterance of either side. */
export interface Utterance extends Placed {
  readonly kind: "utterance";
  readonly role: "user" | "assistant";
  readonly text: string;
  /** hearing: the user speaks and there is no text yet. open: more of it may come. */
  readonly state: "hearing" | "open" | "final";
  readonly turn: number | undefined;
  /** The answer was cut off: by the user, by a failure, or by the model's length limit. */
  readonly cut: boolean;
  /** Of an answer that was cut off while it was spoken: so many characters were heard. */
  readonly heard: number | undefined;
  /** Written, not spoken. */
  readonly typed: boolean;
  /** Shown here before the gateway has told it back. */
  readonly pending: boolean;
}

/** One tool call. */
export interface ToolLine extends Placed {
  readonly kind: "tool";
  readonly tool: string;
  /** unfinished: the session ended before it did. */
  readonly state: "running" | "done" | "failed" | "unfinished";
  /** How long it took, or has taken so far. */
  readonly durationMs: number | undefined;
  readonly error: ToolError | undefined;
  /** The answer of an earlier call was given. */
  readonly deduplicated: boolean;
  readonly clamped: Readonly<Record<string, Clamped>>;
}

/** A picture that a tool has made. */
export interface Picture extends Placed {
  readonly kind: "picture";
  /** Relative to the page. */
  readonly url: string;
  readonly prompt: string;
  /** In pixels; 0 where not known. */
  readonly width: number;
  readonly height: number;
}

/** What became of a question to the user. */
export interface Outcome extends Placed {
  readonly kind: "outcome";
  readonly preview: string;
  /** approved, denied, expired, or unanswered. */
  readonly outcome: string;
  /** Answered, but not on this page. */
  readonly elsewhere: boolean;
}

/** The conversation goes over from one agent to the other. */
export interface Handoff extends Placed {
  readonly kind: "handoff";
  readonly to: Side;
  /** offered: the text agent invites, until `expires`. over: the invitation was not taken. failed: the other side was never told. */
  readonly state: "offered" | "taken" | "over" | "failed";
  /** What is answered first; empty for nothing. */
  readonly request: string;
  /** ms since the epoch on this machine's clock; null when that cannot be told. */
  readonly expires: number | null;
  /** Back to text: what was said, in the gateway's words, and how much. */
  readonly summary: string;
  readonly turns: number | undefined;
  readonly ms: number | undefined;
}

/** Something went wrong and there is no answer. */
export interface Trouble extends Placed {
  readonly kind: "trouble";
  readonly title: string;
  readonly advice: string;
  /** What can be sent again; empty where that would not help. */
  readonly again: string;
}

/** Something about the conversation itself. */
export interface Remark extends Placed {
  readonly kind: "remark";
  readonly text: string;
}

export type Line = Utterance | ToolLine | Picture | Outcome | Handoff | Trouble | Remark;
export type Kind = Line["kind"];
export type LineOf<K extends Kind> = Extract<Line, { kind: K }>;
