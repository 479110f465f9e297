// The calls that run at the gateway and at its neighbours (GET /v1/sessions).
import { fields, list, number, text } from "./shape.js";

export interface RunningCall {
  readonly id: string;
  readonly user: string;
  readonly agent: string;
  readonly provider: string;
  readonly model: string;
  /** What was said in it is there; empty where nothing is kept. */
  readonly conversation: string;
  /** ms since the epoch; 0 if it cannot be read. */
  readonly startedAt: number;
  /** How many turns it has had; undefined for a call of another gateway, which tells no more of it. */
  readonly turns: number | undefined;
  readonly state: CallState;
  /** The gateway that has it; empty for the one that was asked. */
  readonly node: string;
  /** In micro-dollars; undefined where it is not known, or a part of it has no price. */
  readonly costMicros: number | undefined;
}

/** away: its client is lost and may come back. lost: its gateway has died, and its client has not come back. */
export type CallState = "connecting" | "active" | "ending" | "away" | "moving" | "lost";

export interface RunningCalls {
  /** The newest first. */
  readonly calls: readonly RunningCall[];
  /** The other gateways could not be asked. */
  readonly incomplete: boolean;
}

/** Null for an answer of another shape. */
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
