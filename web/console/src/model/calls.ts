// A call of a tool, and where it stands on its turn's axis of time.
import type { Clamped, ToolCategory, ToolError } from "@voicegw/client";
import type { Budget } from "./budget.js";
import type { Side } from "./feed.js";

// Calls and turns are never changed: another object takes the place of one that is different, so that a component
// sees by identity whether what it shows is still true.

/** A call that a person has to approve. */
export interface Asked {
  readonly at: number;
  readonly endedAt: number | undefined;
  /** approved, denied, expired, used. */
  readonly outcome: string | undefined;
}

/** One call. Times are performance.now() in ms. What only inspect tells may be absent. */
export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly category: ToolCategory | undefined;
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  /** unfinished: the conversation ended before it did. */
  readonly status: "running" | "done" | "failed" | "unfinished";
  /** From the model's call until the tool began; undefined where nobody told. */
  readonly queuedMs: number | undefined;
  /** The tool's own time, or so far; of a repeat that of the call that ran. */
  readonly runMs: number | undefined;
  readonly error: ToolError | undefined;
  readonly clamped: Readonly<Record<string, Clamped>>;
  /** Nothing ran: it joined a call that was running, or got the answer of an earlier one. */
  readonly repeat: "joined" | "memory" | undefined;
  readonly originalTurn: number | undefined;
  readonly asked: Asked | undefined;
  /** Who approved what this call has run: client, api or spoken. */
  readonly approvedBy: string | undefined;
  readonly delivered: boolean | undefined;
  readonly notDelivered: string | undefined;
  readonly args: unknown;
  readonly envelope: Record<string, unknown> | undefined;
  readonly record: Record<string, unknown> | undefined;
}

/** The calls of one turn, in the order they were made. */
export interface TurnCalls {
  readonly key: string;
  readonly side: Side;
  readonly turn: number | undefined;
  readonly calls: readonly Call[];
  readonly budget: Budget | undefined;
}

/** A stretch of a call. asked: a person is asked. shared: another call runs for it. */
export interface Segment {
  kind: "queued" | "run" | "asked" | "shared";
  from: number;
  to: number;
}

/** The stretches of a call, in order; what goes on reaches to now. */
export function segmentsOf(call: Call, now: number): Segment[] {
  const end = call.endedAt ?? now;
  if (call.repeat !== undefined) {
    return call.repeat === "joined" ? [{ kind: "shared", from: call.startedAt, to: end }] : [];
  }
  const segments: Segment[] = [];
  const began = call.startedAt + (call.queuedMs ?? 0);
  if (began > call.startedAt) {
    segments.push({ kind: "queued", from: call.startedAt, to: began });
  }
  const ran = call.status === "running" ? end - began : (call.runMs ?? end - began);
  // What succeeded has run, however short.
  if (call.asked === undefined && (ran > 0 || call.status === "done")) {
    segments.push({ kind: "run", from: began, to: began + ran });
  }
  if (call.asked !== undefined) {
    segments.push({ kind: "asked", from: call.asked.at, to: call.asked.endedAt ?? now });
  }
  return segments;
}

/** The time axis of a turn: where it begins, and how many ms it shows. All that is drawn fits on it, to scale. */
export function axisOf(calls: readonly Call[], now: number): { from: number; ms: number } {
  const from = Math.min(...calls.map(({ startedAt }) => startedAt));
  const ends = calls.flatMap((call) => [call.startedAt, ...segmentsOf(call, now).map(({ to }) => to)]);
  return { from, ms: rounded(Math.max(20, ...ends.map((end) => end - from))) };
}

/** The next larger of 20, 50, 100, 200, 500 and so on. */
function rounded(ms: number): number {
  const power = 10 ** Math.floor(Math.log10(ms));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= ms - 1e-9)!;
}
