// The gateway's stored conversations (GET /v1/conversations), and the cost of each turn.
import { fields, list, number, strings, text } from "./shape.js";

export interface PastCall {
  readonly conversation: string;
  readonly user: string;
  readonly agent: string;
  /** The user's first words; empty if nothing was said. */
  readonly title: string;
  readonly turns: number;
  readonly voice: boolean;
  readonly text: boolean;
  readonly calls: number;
  /** The tools called, most frequent first. */
  readonly tools: readonly { readonly tool: string; readonly calls: number }[];
  /** In micro-dollars; undefined if unknown or partly without a price. */
  readonly costMicros: number | undefined;
  /** ms since the epoch; 0 if invalid. */
  readonly begunAt: number;
  readonly lastAt: number;
}

export interface PastCalls {
  /** Most recently used first. */
  readonly calls: readonly PastCall[];
  /** The start of the next page; empty on the last one. */
  readonly next: string;
  /** Older calls are stored but not listed. */
  readonly incomplete: boolean;
}

/** Null for another shape. */
export function readPast(value: unknown): PastCalls | null {
  const answer = fields(value);
  if (!Array.isArray(answer["conversations"])) {
    return null;
  }
  const calls = list(answer["conversations"]).map((entry) => readCall(fields(entry)));
  return { calls: calls.filter(({ conversation }) => conversation !== ""), next: text(answer["next"]), incomplete: answer["incomplete"] === true };
}

function readCall(line: Readonly<Record<string, unknown>>): PastCall {
  const modes = strings(line["modes"]);
  const tools = list(line["tools"]).map((entry) => ({ tool: text(fields(entry)["tool"]), calls: number(fields(entry)["calls"]) }));
  return {
    conversation: text(line["id"]),
    user: text(line["user"]),
    agent: text(line["agent"]),
    title: text(line["title"]),
    turns: number(line["turns"]),
    voice: modes.includes("voice"),
    text: modes.includes("text"),
    calls: number(line["calls"]),
    tools: tools.filter(({ tool }) => tool !== ""),
    costMicros: costOf(line),
    begunAt: Date.parse(text(line["created_at"])) || 0,
    lastAt: Date.parse(text(line["updated_at"])) || 0,
  };
}

/** Zero means unknown or free; neither is shown. */
function costOf(line: Readonly<Record<string, unknown>>): number | undefined {
  const micros = number(line["cost_usd_micros"]);
  return micros > 0 && number(line["unpriced"]) === 0 ? micros : undefined;
}

/** Merges a reloaded first page into the known calls; later pages stay. */
export function joined(fresh: PastCalls, known: PastCalls | null): PastCalls {
  const there = new Set(fresh.calls.map(({ conversation }) => conversation));
  const oldest = fresh.calls.at(-1)?.lastAt ?? 0;
  // A call that the first page would contain but does not was deleted.
  const further = (known?.calls ?? []).filter(({ conversation, lastAt }) => !there.has(conversation) && lastAt < oldest);
  return known === null || fresh.next === "" || further.length === 0 ? fresh : { ...known, calls: [...fresh.calls, ...further] };
}

/** Appends the next page. */
export function continued(known: PastCalls, page: PastCalls): PastCalls {
  const there = new Set(known.calls.map(({ conversation }) => conversation));
  return { ...page, calls: [...known.calls, ...page.calls.filter(({ conversation }) => !there.has(conversation))] };
}

/** The stored data of a turn except its words. */
export interface PastTurn {
  readonly turn: number;
  /** From the end of the user's turn to the first sound or words; undefined if unknown. */
  readonly responseMs: number | undefined;
  readonly costMicros: number | undefined;
  readonly tools: readonly string[];
}

/** The turns of a conversation (GET /v1/conversations/{id}) with stored data. */
export function pastTurns(value: unknown): readonly PastTurn[] {
  const turns = new Map<number, { responseMs: number | undefined; micros: number; unpriced: number; tools: string[] }>();
  for (const entry of list(fields(value)["entries"]).map(fields)) {
    const turn = number(entry["turn"]);
    const kept = turns.get(turn) ?? { responseMs: undefined, micros: 0, unpriced: 0, tools: [] };
    const wait = number(entry["latency_ms"]);
    kept.responseMs = wait > 0 ? wait : kept.responseMs;
    kept.micros += number(entry["cost_usd_micros"]);
    kept.unpriced += number(entry["unpriced"]);
    kept.tools.push(...list(entry["calls"]).map((call) => text(fields(call)["tool"])));
    turns.set(turn, kept);
  }
  return [...turns]
    .map(([turn, { responseMs, micros, unpriced, tools }]): PastTurn => ({ turn, responseMs, costMicros: micros > 0 && unpriced === 0 ? micros : undefined, tools: tools.filter((tool) => tool !== "") }))
    .filter(({ turn, responseMs, costMicros, tools }) => turn > 0 && (responseMs !== undefined || costMicros !== undefined || tools.length > 0))
    .sort((a, b) => a.turn - b.turn);
}
