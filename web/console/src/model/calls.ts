// Tool calls and their position on their turn's time axis.
import type { Clamped, ToolCategory, ToolError } from "@voicegw/client";
import type { Budget } from "./budget.js";
import type { Side } from "./feed.js";

// Calls and turns are immutable. A change replaces the object, so that components can compare identities.

/** A call that needs a person's approval. */
export interface Asked {
  readonly at: number;
  readonly endedAt: number | undefined;
  /** approved, denied, expired, used. */
  readonly outcome: string | undefined;
}

/** One call. Times are performance.now() in ms. Data from inspect may be absent. */
export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly category: ToolCategory | undefined;
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  /** unfinished: the conversation ended before the call. */
  readonly status: "running" | "done" | "failed" | "unfinished";
  /** From the model's call until the tool began; undefined if unknown. */
  readonly queuedMs: number | undefined;
  /** The tool's running time, or so far; for a repeat, that of the original call. */
  readonly runMs: number | undefined;
  readonly error: ToolError | undefined;
  readonly clamped: Readonly<Record<string, Clamped>>;
  /** Nothing ran: the call joined a running one or got the answer of an earlier one. */
  readonly repeat: "joined" | "memory" | undefined;
  readonly originalTurn: number | undefined;
  readonly asked: Asked | undefined;
  /** Who approved this call: client, api or spoken. */
  readonly approvedBy: string | undefined;
  readonly delivered: boolean | undefined;
  readonly notDelivered: string | undefined;
  readonly args: unknown;
  readonly envelope: Record<string, unknown> | undefined;
  readonly record: Record<string, unknown> | undefined;
}

/** The calls of a turn in order. */
export interface TurnCalls {
  readonly key: string;
  readonly side: Side;
  readonly turn: number | undefined;
  readonly calls: readonly Call[];
  readonly budget: Budget | undefined;
}

/** A phase of a call. asked: waiting for approval. shared: another call runs for it. */
export interface Segment {
  kind: "queued" | "run" | "asked" | "shared";
  from: number;
  to: number;
}

/** The phases of a call in order; a running one extends to now. */
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
  // A successful call has run, however briefly.
  if (call.asked === undefined && (ran > 0 || call.status === "done")) {
    segments.push({ kind: "run", from: began, to: began + ran });
  }
  if (call.asked !== undefined) {
    segments.push({ kind: "asked", from: call.asked.at, to: call.asked.endedAt ?? now });
  }
  return segments;
}

/** The time axis of a turn: its start and length in ms. Everything drawn fits on it, to scale. */
export function axisOf(calls: readonly Call[], now: number): { from: number; ms: number } {
  const from = Math.min(...calls.map(({ startedAt }) => startedAt));
  const ends = calls.flatMap((call) => [call.startedAt, ...segmentsOf(call, now).map(({ to }) => to)]);
  return { from, ms: rounded(Math.max(20, ...ends.map((end) => end - from))) };
}

/** Rounds up to 20, 50, 100, 200, 500 and so on. */
function rounded(ms: number): number {
  const power = 10 ** Math.floor(Math.log10(ms));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= ms - 1e-9)!;
}
