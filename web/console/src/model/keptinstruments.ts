// The instruments' data across a reload. The gateway stores only what its client has not received, so the
// page stores the rest. No audio and no secrets.
import type { Call, TurnCalls } from "./calls.js";
import type { Entry } from "./log.js";
import { fields, list, number } from "./shape.js";
import type { Turn } from "./turns.js";

/** Limits in characters of JSON; the newest data is kept. A tab has about five million characters. */
export const MOST = { tools: 400_000, turns: 100_000, log: 600_000 } as const;

/** The continuing session is the first one of the reloaded page. */
export const FIRST = 1;

export interface Kept {
  /** The start of the page's clock in ms since the epoch; it differs per page. */
  readonly origin: number;
  /** The number of secrets numbered so far. */
  readonly secrets: number;
  readonly tools: readonly TurnCalls[];
  readonly turns: readonly Turn[];
  readonly log: readonly Entry[];
}

/** The newest entries that fit, in order. */
export function newest<T>(all: readonly T[], most: number): readonly T[] {
  let length = 0;
  const tooMuch = all.findLastIndex((one) => (length += JSON.stringify(one).length) > most);
  return all.slice(tooMuch + 1);
}

/** Parses the stored data and converts times to this page's clock; null for other data. */
export function readKept(value: unknown, origin: number): Kept | null {
  const kept = fields(value);
  if (typeof kept["origin"] !== "number") {
    return null;
  }
  const by = kept["origin"] - origin;
  return { origin, secrets: number(kept["secrets"]), tools: list(kept["tools"]).flatMap((turn) => readCalls(turn, by)), turns: list(kept["turns"]).flatMap((turn) => readTurn(turn, by)), log: list(kept["log"]).flatMap((entry) => readEntry(entry, by)) };
}

function readCalls(value: unknown, by: number): TurnCalls[] {
  const turn = fields(value);
  const calls = list(turn["calls"]).flatMap((entry): Call[] => {
    const call = entry as Call;
    const { id, tool, startedAt, clamped } = fields(entry);
    const usable = typeof id === "string" && typeof tool === "string" && typeof startedAt === "number" && typeof clamped === "object" && clamped !== null;
    return usable ? [{ ...call, startedAt: startedAt + by, endedAt: later(call.endedAt, by), asked: call.asked && { ...call.asked, at: call.asked.at + by, endedAt: later(call.asked.endedAt, by) } }] : [];
  });
  const { side, turn: count } = turn;
  const usable = (side === "voice" || side === "text") && typeof turn["key"] === "string" && calls.length > 0;
  return usable ? [{ ...(value as TurnCalls), side, turn: typeof count === "number" ? count : undefined, calls }] : [];
}

function readTurn(value: unknown, by: number): Turn[] {
  const { key, turn, startedAt, status, parts } = fields(value);
  const usable = typeof key === "string" && typeof turn === "number" && typeof startedAt === "number" && typeof status === "string" && typeof parts === "object" && parts !== null;
  return usable ? [{ ...(value as Turn), startedAt: startedAt + by }] : [];
}

function readEntry(value: unknown, by: number): Entry[] {
  const { at, wall, side, direction, group, type, json } = fields(value);
  const usable = typeof at === "number" && typeof wall === "number" && [side, direction, group, type, json].every((field) => typeof field === "string");
  return usable ? [{ ...(value as Entry), at: at + by }] : [];
}

function later(time: number | undefined, by: number): number | undefined {
  return time === undefined ? undefined : time + by;
}
