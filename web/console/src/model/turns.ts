// How long the user waited in each turn, and for whom.
import type { Latency, ServerMessage, TurnLatency, Usage } from "@voicegw/client";
import type { Happening, Watcher } from "./feed.js";
import { FIRST } from "./keptinstruments.js";

/** The parts of a wait. */
export const PARTS = ["detection", "provider", "gateway", "network", "cushion"] as const;
export type Part = (typeof PARTS)[number];

const MAX_TURNS = 500;

/** One turn of the voice agent. Times are performance.now() in ms. */
export interface Turn {
  /** Voice session of this page and number of the turn. */
  readonly key: string;
  readonly session: number;
  readonly turn: number;
  readonly startedAt: number;
  status: "running" | "completed" | "interrupted" | "failed" | "unfinished";
  /** How the user took it; undefined where nobody told. */
  by: TurnLatency["by"] | undefined;
  /** In ms; those that are not known are absent. */
  parts: Partial<Record<Part, number>>;
  /** From the end of what the user said to the first sound, or what is known of it, in ms; undefined where no audio answered. */
  totalMs: number | undefined;
  /** Measured from mouth to ear; false while the gateway's part alone is known. */
  whole: boolean;
  usage: Usage | undefined;
}

/** What turns have used, in tokens and money. */
export type Spent = Pick<Usage, "input_tokens" | "output_tokens" | "estimated" | "cost">;

/** What so many waits have in common, in ms. */
export interface Percentiles {
  n: number;
  p50: number;
  p90: number;
  p95: number;
  max: number;
}

/** The newest 500 turns of the voice agent. */
export class Turns implements Watcher {
  /** Oldest first. */
  list: Turn[] = [];
  private session = 0;
  /** What was kept is of a session that has not gone on yet. */
  private waiting = false;

  /** What another page needs to show the turns of this session. */
  keep(): readonly Turn[] {
    return this.list.filter(({ session }) => session === this.session).map((turn) => of(turn, FIRST));
  }

  /** Takes up what the page before has kept, before anything has happened here. */
  restore(turns: readonly Turn[]): void {
    this.list = turns.slice(-MAX_TURNS);
    this.waiting = true;
  }

  take(happening: Happening): void {
    switch (happening.kind) {
      case "opened":
        this.settle();
        this.session++;
        this.waiting = false;
        break;
      case "anew":
        this.list = [];
        break;
      case "received":
        if (happening.side === "voice") {
          this.received(happening.message as ServerMessage, happening.at);
        }
        break;
      case "noticed":
        if (happening.name === "answered") {
          const turn = this.turn(happening.event.turn, happening.at);
          turn.by = happening.event.by;
          turn.totalMs = turn.whole ? turn.totalMs : happening.event.totalMs;
        } else if (happening.name === "latency") {
          measured(this.turn(happening.event.turn, happening.at), happening.event);
        } else if (happening.name === "disconnected") {
          this.settle();
          if (this.waiting) {
            // The session of the page before did not go on: the next one must not be taken for it.
            this.waiting = false;
            this.list = this.list.map((turn) => of(turn, 0));
          }
        }
        break;
      default:
    }
  }

  /** Turns that were answered in speech, oldest first. */
  get answered(): Turn[] {
    return this.list.filter(({ totalMs }) => totalMs !== undefined);
  }

  /** How many turns of the newest call there were. */
  get ofThisCall(): number {
    return this.list.filter(({ session }) => session === this.session).length;
  }

  /** What the newest call has used so far; null before the first turn that has. */
  get spent(): Spent | null {
    const used = this.list.flatMap(({ session, usage }) => (session === this.session && usage !== undefined ? [usage] : []));
    return used.length === 0 ? null : used.reduce<Spent>(plus, { input_tokens: 0, output_tokens: 0 });
  }

  private received(message: ServerMessage, at: number): void {
    if (message.type === "session.started" && message.snapshot === true) {
      // A turn that is still open is told again.
      this.settle();
    } else if (message.type === "turn.started" && message.turn !== undefined) {
      const turn = this.turn(message.turn, at);
      turn.status = turn.status === "unfinished" ? "running" : turn.status;
    } else if (message.type === "turn.ended" && message.turn !== undefined) {
      const turn = this.turn(message.turn, at);
      turn.status = message.status;
      turn.usage = message.usage;
      if (message.latency !== undefined && !turn.whole) {
        told(turn, message.latency, turn.totalMs);
      }
    }
  }

  private turn(number: number, at: number): Turn {
    const key = turnKey(this.session, number);
    let turn = this.list.findLast((known) => known.key === key);
    if (turn === undefined) {
      turn = { key, session: this.session, turn: number, startedAt: at, status: "running", by: undefined, parts: {}, totalMs: undefined, whole: false, usage: undefined };
      this.list.push(turn);
      if (this.list.length > MAX_TURNS) {
        this.list.shift();
      }
    }
    return turn;
  }

  private settle(): void {
    for (const turn of this.list) {
      turn.status = turn.status === "running" ? "unfinished" : turn.status;
    }
  }
}

/** The name of a turn among all sessions of this page. */
export function turnKey(session: number, turn: number): string {
  return `${session}.${turn}`;
}

function of(turn: Turn, session: number): Turn {
  return { ...turn, session, key: turnKey(session, turn.turn) };
}

/** The wait below which so many percent (0 to 100) of them are: the nearest rank. */
export function percentile(sorted: readonly number[], percent: number): number {
  const rank = Math.ceil((percent / 100) * sorted.length);
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1] ?? 0;
}

/** Null for no waits at all. */
export function percentiles(waits: readonly number[]): Percentiles | null {
  if (waits.length === 0) {
    return null;
  }
  const sorted = [...waits].sort((a, b) => a - b);
  return {
    n: sorted.length,
    p50: percentile(sorted, 50),
    p90: percentile(sorted, 90),
    p95: percentile(sorted, 95),
    max: sorted.at(-1)!,
  };
}

/** Half and 95 % of the waits up to each turn, over the last `window` of them: two lines to draw. */
export function history(waits: readonly number[], window: number): { p50: number[]; p95: number[] } {
  const lines = waits.map((_, i) => percentiles(waits.slice(Math.max(0, i + 1 - window), i + 1))!);
  return { p50: lines.map(({ p50 }) => p50), p95: lines.map(({ p95 }) => p95) };
}

function measured(turn: Turn, event: TurnLatency): void {
  turn.by = event.by;
  turn.parts = {
    detection: event.detectionMs,
    provider: event.providerMs,
    gateway: event.gatewayMs,
    network: event.networkMs,
    cushion: event.cushionMs,
  };
  turn.totalMs = event.totalMs;
  turn.whole = true;
}

/** The gateway's part; what was measured here, if anything was, stays the figure. */
function told(turn: Turn, latency: Latency, measuredMs: number | undefined): void {
  turn.parts = { detection: latency.detection_ms ?? 0, provider: latency.provider_ms, gateway: latency.gateway_ms };
  turn.totalMs = measuredMs ?? latency.speech_end_to_first_audio_ms;
}

function plus(a: Spent, b: Spent): Spent {
  const costs = [a.cost, b.cost].filter((cost) => cost !== undefined);
  const sum = (of: (cost: NonNullable<Usage["cost"]>) => number): number => costs.reduce((all, cost) => all + of(cost), 0);
  return {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    ...(a.estimated === true || b.estimated === true ? { estimated: true } : {}),
    ...(costs.length === 0 ? {} : { cost: { usd_micros: sum((cost) => cost.usd_micros), unpriced: sum((cost) => cost.unpriced ?? 0) } }),
  };
}
