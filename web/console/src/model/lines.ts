// The lines of a conversation as shown. They are immutable: a change replaces the object, so that components
// can compare identities.
import type { Clamped, ToolError } from "@voicegw/client";
import type { Side } from "./feed.js";

interface Placed {
  /** Its permanent name in the transcript. */
  readonly key: string;
  readonly side: Side;
  /** Its position: ms since the epoch, on the gateway's clock if known. */
  readonly at: number;
  /** It is from before a reload. */
  readonly restored?: boolean;
}

/** One utterance of either side. */
export interface Utterance extends Placed {
  readonly kind: "utterance";
  readonly role: "user" | "assistant";
  readonly text: string;
  /** hearing: the user speaks, without text yet. open: more may follow. */
  readonly state: "hearing" | "open" | "final";
  readonly turn: number | undefined;
  /** The answer was cut off by the user, a failure, or the model's length limit. */
  readonly cut: boolean;
  /** In an answer that was cut off while it was spoken: the number of characters heard. */
  readonly heard: number | undefined;
  /** Typed, not spoken. */
  readonly typed: boolean;
  /** Shown before the gateway has confirmed it. */
  readonly pending: boolean;
}

/** One tool call. */
export interface ToolLine extends Placed {
  readonly kind: "tool";
  readonly tool: string;
  /** unfinished: the session ended before the call. */
  readonly state: "running" | "done" | "failed" | "unfinished";
  /** Its duration, or so far. */
  readonly durationMs: number | undefined;
  readonly error: ToolError | undefined;
  /** The answer is that of an earlier call. */
  readonly deduplicated: boolean;
  readonly clamped: Readonly<Record<string, Clamped>>;
}

/** An image from a tool. */
export interface Picture extends Placed {
  readonly kind: "picture";
  /** Relative to the page. */
  readonly url: string;
  readonly prompt: string;
  /** In pixels; 0 if unknown. */
  readonly width: number;
  readonly height: number;
}

/** The outcome of a question to the user. */
export interface Outcome extends Placed {
  readonly kind: "outcome";
  readonly preview: string;
  /** approved, denied, expired, or unanswered. */
  readonly outcome: string;
  /** Answered, but not on this page. */
  readonly elsewhere: boolean;
}

/** A handoff from one agent to the other. */
export interface Handoff extends Placed {
  readonly kind: "handoff";
  readonly to: Side;
  /**
   * offered: the text agent invites until `expires`. over: not accepted. failed: the other agent never
   * received it.
   */
  readonly state: "offered" | "taken" | "over" | "failed";
  /** The first question; empty for none. */
  readonly request: string;
  /** ms since the epoch on this machine's clock; null if unknown. */
  readonly expires: number | null;
  /** Back to text: the gateway's summary of the call, and its length. */
  readonly summary: string;
  readonly turns: number | undefined;
  readonly ms: number | undefined;
}

/** An error instead of an answer. */
export interface Trouble extends Placed {
  readonly kind: "trouble";
  readonly title: string;
  readonly advice: string;
  /** The message to send again; empty if that would not help. */
  readonly again: string;
}

/** A remark about the conversation itself. */
export interface Remark extends Placed {
  readonly kind: "remark";
  readonly text: string;
}

export type Line = Utterance | ToolLine | Picture | Outcome | Handoff | Trouble | Remark;
export type Kind = Line["kind"];
export type LineOf<K extends Kind> = Extract<Line, { kind: K }>;
