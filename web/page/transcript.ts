import type { Clamped, ToolEnded, ToolError, ToolProgress, ToolStarted, TranscriptUpsert } from "./protocol.js";

/** One utterance of either side. */
export interface Utterance {
  kind: "utterance";
  id: string;
  role: "user" | "assistant";
  text: string;
  final: boolean;
  turn: number | undefined;
  /** The answer was cut off: by the user, or by a failure. */
  cut: boolean;
  /** Typed here; the gateway has not told it back yet. */
  typed: boolean;
  at: number;
}

/** One tool call. */
export interface ToolLine {
  kind: "tool";
  id: string;
  tool: string;
  /** unfinished: the conversation ended before it did. */
  status: "running" | "done" | "failed" | "unfinished";
  /** How long it took, or has taken so far. */
  durationMs: number | undefined;
  error: ToolError | undefined;
  /** The answer of an earlier call was given. */
  deduplicated: boolean;
  clamped: Record<string, Clamped>;
  at: number;
}

/** What became of a question to the user. */
export interface Outcome {
  kind: "outcome";
  id: string;
  preview: string;
  /** approved, denied, expired, or unanswered. */
  outcome: string;
  at: number;
}

export type Line = Utterance | ToolLine | Outcome;

/** The page keeps so many lines; the whole transcript is the gateway's. */
const MAX_LINES = 500;

/**
 * The conversation as it is shown: ordered by the start of what was said.
 * The words of the user often come later than the answer to them.
 */
export class Transcript {
  private readonly ordered: Line[] = [];

  get lines(): readonly Line[] {
    return this.ordered;
  }

  clear(): void {
    this.ordered.length = 0;
  }

  /** A transcript message: new, or the whole text so far of a known one. */
  upsert(message: TranscriptUpsert): void {
    const at = Date.parse(message.started_at);
    const known = this.utterance(message);
    if (known === undefined) {
      this.insert({
        kind: "utterance",
        id: message.id,
        role: message.role,
        text: message.text,
        final: message.final,
        turn: message.turn,
        cut: false,
        typed: false,
        at: Number.isNaN(at) ? this.newest() : at,
      });
      return;
    }
    known.id = message.id;
    known.text = message.text;
    known.final = message.final;
    known.turn = message.turn ?? known.turn;
    known.typed = false;
    if (!Number.isNaN(at) && at !== known.at) {
      this.remove(known);
      known.at = at;
      this.insert(known);
    }
  }

  /** What the user typed, shown before the gateway tells it back. */
  typed(id: string, text: string): void {
    // The gateway's clock orders the lines, and ours may differ: a new line
    // of our own simply comes last.
    const at = this.newest();
    this.insert({ kind: "utterance", id, role: "user", text, final: true, turn: undefined, cut: false, typed: true, at });
  }

  toolStarted(message: ToolStarted): void {
    this.insert({
      kind: "tool",
      id: message.call_id,
      tool: message.tool,
      status: "running",
      durationMs: undefined,
      error: undefined,
      deduplicated: false,
      clamped: {},
      at: this.newest(),
    });
  }

  toolProgress(message: ToolProgress): void {
    const line = this.find("tool", message.call_id);
    if (line?.status === "running") {
      line.durationMs = message.duration_ms;
    }
  }

  toolEnded(message: ToolEnded): void {
    const line = this.find("tool", message.call_id);
    if (line === undefined) {
      return;
    }
    line.status = message.ok === false ? "failed" : "done";
    line.durationMs = message.duration_ms;
    line.error = message.error;
    line.deduplicated = message.deduplicated === true;
    line.clamped = message.clamped ?? {};
  }

  /** What became of a question, where that was known: the user's word is part of the talk. */
  outcome(token: string, preview: string, outcome: string): void {
    this.insert({ kind: "outcome", id: token, preview, outcome, at: this.newest() });
  }

  /** The answer of a turn was cut off (no turn: the newest answer). */
  cutOff(turn: number | undefined): void {
    const answers = this.ordered.filter((line) => line.kind === "utterance" && line.role === "assistant") as Utterance[];
    const cut = turn === undefined ? answers.slice(-1) : answers.filter((line) => line.turn === turn);
    for (const line of cut) {
      line.cut = true;
    }
  }

  /** The conversation is over: nothing that is open will be finished. */
  settle(): void {
    for (const line of this.ordered) {
      if (line.kind === "utterance") {
        line.final = true;
      } else if (line.kind === "tool" && line.status === "running") {
        line.status = "unfinished";
      }
    }
  }

  private utterance(message: TranscriptUpsert): Utterance | undefined {
    return (
      this.find("utterance", message.id) ??
      (this.ordered.find(
        (line) => line.kind === "utterance" && line.typed && message.role === "user" && line.text === message.text,
      ) as Utterance | undefined)
    );
  }

  private find<K extends Line["kind"]>(kind: K, id: string): Extract<Line, { kind: K }> | undefined {
    return this.ordered.find((line) => line.kind === kind && line.id === id) as Extract<Line, { kind: K }> | undefined;
  }

  private insert(line: Line): void {
    let index = this.ordered.length;
    while (index > 0 && this.ordered[index - 1]!.at > line.at) {
      index--;
    }
    this.ordered.splice(index, 0, line);
    if (this.ordered.length > MAX_LINES) {
      this.ordered.shift();
    }
  }

  private remove(line: Line): void {
    this.ordered.splice(this.ordered.indexOf(line), 1);
  }

  private newest(): number {
    return this.ordered.at(-1)?.at ?? 0;
  }
}
