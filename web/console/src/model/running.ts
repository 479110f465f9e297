// The running calls of the gateway and its cluster (GET /v1/sessions).
import { fields, list, number, text } from "./shape.js";

export interface RunningCall {
  readonly id: string;
  readonly user: string;
  readonly agent: string;
  readonly provider: string;
  readonly model: string;
  /** The conversation with its transcript; empty if none is stored. */
  readonly conversation: string;
  /** ms since the epoch; 0 if invalid. */
  readonly startedAt: number;
  /** The number of turns; undefined for a call on another gateway, for which less is known. */
  readonly turns: number | undefined;
  readonly state: CallState;
  /** The call's gateway; empty for the one that answered. */
  readonly node: string;
  /** In micro-dollars; undefined if unknown or partly without a price. */
  readonly costMicros: number | undefined;
}

/**
 * away: the client lost its connection and may return. lost: the gateway has died, and the client has not
 * returned.
 */
export type CallState = "connecting" | "active" | "ending" | "away" | "moving" | "lost";

export interface RunningCalls {
  /** Newest first. */
  readonly calls: readonly RunningCall[];
  /** The other gateways did not answer. */
  readonly incomplete: boolean;
}

/** Null for another shape. */
export function readRunning(value: unknown): RunningCalls | null {
  const answer = fields(value);
  if (!Array.isArray(answer["sessions"])) {
    return null;
  }
  const calls = list(answer["sessions"]).map((entry) => readCall(fields(entry)));
  return { calls: calls.filter(({ id }) => id !== "").sort((a, b) => b.startedAt - a.startedAt), incomplete: answer["incomplete"] === true };
}

function readCall(line: Readonly<Record<string, unknown>>): RunningCall {
  const micros = line["cost_usd_micros"];
  return {
    id: text(line["id"]),
    user: text(line["user"]),
    agent: text(line["agent"]),
    provider: text(line["provider"]),
    model: text(line["model"]),
    conversation: text(line["conversation_id"]),
    startedAt: Date.parse(text(line["started_at"])) || 0,
    turns: typeof line["turn"] === "number" ? line["turn"] : undefined,
    state: stateOf(line),
    node: text(line["node"]),
    costMicros: typeof micros === "number" && number(line["unpriced"]) === 0 ? micros : undefined,
  };
}

function stateOf(line: Readonly<Record<string, unknown>>): CallState {
  if (line["node_gone"] === true) {
    return "lost";
  }
  if (line["moving"] === true) {
    return "moving";
  }
  if (line["away"] === true) {
    return "away";
  }
  const phase = text(line["phase"]);
  return phase === "connecting" || phase === "ending" ? phase : "active";
}
