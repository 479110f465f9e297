// The conversations that the gateway keeps (GET /v1/conversations), and what each turn of one has cost.
import { fields, list, number, strings, text } from "./shape.js";

export interface PastCall {
  readonly conversation: string;
  readonly user: string;
  readonly agent: string;
  /** How the user began; empty where nothing was said. */
  readonly title: string;
  readonly turns: number;
  readonly voice: boolean;
  readonly text: boolean;
  readonly calls: number;
  /** The tools that were called, the one that was called most first. */
  readonly tools: readonly { readonly tool: string; readonly calls: number }[];
  /** In micro-dollars; undefined where it is not known, or a part of it has no price. */
  readonly costMicros: number | undefined;
  /** ms since the epoch; 0 if it cannot be read. */
  readonly begunAt: number;
  readonly lastAt: number;
}

export interface PastCalls {
  /** The one first that was used last. */
  readonly calls: readonly PastCall[];
  /** Where the next page begins; empty on the last one. */
  readonly next: string;
  /** Older ones are kept that are not listed. */
  readonly incomplete: boolean;
}

/** Null for an answer of another shape. */
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

/** A cost of nothing is not told, and neither is that nothing is known. */
function costOf(line: Readonly<Record<string, unknown>>): number | undefined {
  const micros = number(line["cost_usd_micros"]);
  return micros > 0 && number(line["unpriced"]) === 0 ? micros : undefined;
}

/** A first page that was asked for again, before what is known already; the further pages stay. */
export function joined(fresh: PastCalls, known: PastCalls | null): PastCalls {
  const there = new Set(fresh.calls.map(({ conversation }) => conversation));
  const oldest = fresh.calls.at(-1)?.lastAt ?? 0;
  // What the first page would have named, had it not been removed, is gone.
  const further = (known?.calls ?? []).filter(({ conversation, lastAt }) => !there.has(conversation) && lastAt < oldest);
  return known === null || fresh.next === "" || further.length === 0 ? fresh : { ...known, calls: [...fresh.calls, ...further] };
}

/** The next page behind what is known. */
export function continued(known: PastCalls, page: PastCalls): PastCalls {
  const there = new Set(known.calls.map(({ conversation }) => conversation));
  return { ...page, calls: [...known.calls, ...page.calls.filter(({ conversation }) => !there.has(conversation))] };
}

/** What is kept of one turn beside its words. */
export interface PastTurn {
  readonly turn: number;
  /** From the end of the user's turn to the first sound, or the first words; undefined where it is not known. */
  readonly responseMs: number | undefined;
  readonly costMicros: number | undefined;
  readonly tools: readonly string[];
}

/** The turns of a conversation (GET /v1/conversations/{id}) of which something is kept. */
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
