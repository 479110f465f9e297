// The latency of each turn, in parts.
import type { Latency, ServerMessage, TurnLatency, Usage } from "@voicegw/client";
import type { Happening, Watcher } from "./feed.js";
import { FIRST } from "./keptinstruments.js";

/** The parts of a latency. */
export const PARTS = ["detection", "provider", "gateway", "network", "cushion"] as const;
export type Part = (typeof PARTS)[number];

const MAX_TURNS = 500;

/** One turn of the voice agent. Immutable: a change replaces the object. Times are performance.now() in ms. */
export interface Turn {
  /** The number of the page's voice session and of the turn. */
  readonly key: string;
  readonly session: number;
  readonly turn: number;
  readonly startedAt: number;
  readonly status: "running" | "completed" | "interrupted" | "failed" | "unfinished";
  /** The input that began it; undefined if unknown. */
  readonly by: TurnLatency["by"] | undefined;
  /** In ms; unknown ones are absent. */
  readonly parts: Readonly<Partial<Record<Part, number>>>;
  /**
   * The response time, as the gateway defines it everywhere: from the user's last sound, text or approval to
   * the first sound sent, in ms. Undefined if unknown.
   */
  readonly totalMs: number | undefined;
  /** From the user's mouth to the user's ear, measured by this page: response time, network and jitter buffer. */
  readonly heardMs: number | undefined;
  readonly usage: Usage | undefined;
}

/** The usage of turns, in tokens and money. */
export type Spent = Pick<Usage, "input_tokens" | "output_tokens" | "estimated" | "cost">;

/** Percentiles of a number of latencies, in ms. */
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
  list: readonly Turn[] = [];
  private session = 0;
  /** The newest call's cost, as the gateway reports it everywhere, including usage after the last turn. */
  private cost: Usage["cost"];
  /** Restored data belongs to a session that has not resumed yet. */
  private waiting = false;

  /** The turns of this session, for the next page. */
  keep(): readonly Turn[] {
    return this.list.filter(({ session }) => session === this.session).map((turn) => of(turn, FIRST));
  }

  /** Restores the previous page's turns, before any event here. */
  restore(turns: readonly Turn[]): void {
    this.list = turns.slice(-MAX_TURNS);
    this.waiting = true;
  }

  take(happening: Happening): void {
    switch (happening.kind) {
      case "opened":
        this.settle();
        this.session++;
        this.cost = undefined;
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
          this.change(happening.event.turn, happening.at, () => ({ by: happening.event.by }));
        } else if (happening.name === "latency") {
          this.change(happening.event.turn, happening.at, ({ parts }) => measured(parts, happening.event));
        } else if (happening.name === "disconnected") {
          this.settle();
          if (this.waiting) {
            // The previous page's session did not resume, so the next one is different.
            this.waiting = false;
            this.list = this.list.map((turn) => of(turn, 0));
          }
        }
        break;
      default:
    }
  }

  /** Turns with a spoken answer, oldest first. */
  get answered(): Turn[] {
    return this.list.filter(({ totalMs }) => totalMs !== undefined);
  }

  /** The number of turns in the newest call. */
  get ofThisCall(): number {
    return this.list.filter(({ session }) => session === this.session).length;
  }

  /** The newest call's usage so far; null before the first turn with usage. */
  get spent(): Spent | null {
    const used = this.list.flatMap(({ session, usage }) => (session === this.session && usage !== undefined ? [usage] : []));
    return used.length === 0 ? null : used.reduce<Spent>(plus, { input_tokens: 0, output_tokens: 0, ...(this.cost === undefined ? {} : { cost: this.cost }) });
  }

  private received(message: ServerMessage, at: number): void {
    if (message.type === "session.started" && message.snapshot === true) {
      // An open turn is reported again.
      this.settle();
    } else if (message.type === "inspect.state") {
      this.cost = message.cost;
    } else if (message.type === "turn.started" && message.turn !== undefined) {
      this.change(message.turn, at, ({ status }) => ({ status: status === "unfinished" ? "running" : status }));
    } else if (message.type === "turn.ended" && message.turn !== undefined) {
      const { status, usage, latency } = message;
      this.change(message.turn, at, ({ parts }) => ({ status, usage, ...(latency === undefined ? {} : told(parts, latency)) }));
    }
  }

  private change(number: number, at: number, by: (turn: Turn) => Partial<Turn>): void {
    const key = turnKey(this.session, number);
    const known = this.list.find((turn) => turn.key === key);
    const turn = known ?? { key, session: this.session, turn: number, startedAt: at, status: "running", by: undefined, parts: {}, totalMs: undefined, heardMs: undefined, usage: undefined };
    const next = { ...turn, ...by(turn) };
    this.list = known === undefined ? [...this.list, next].slice(-MAX_TURNS) : this.list.map((other) => (other === known ? next : other));
  }

  private settle(): void {
    this.list = this.list.map((turn) => (turn.status === "running" ? { ...turn, status: "unfinished" } : turn));
  }
}

/** A turn's name, unique across the page's sessions. */
export function turnKey(session: number, turn: number): string {
  return `${session}.${turn}`;
}

function of(turn: Turn, session: number): Turn {
  return { ...turn, session, key: turnKey(session, turn.turn) };
}

/** The nearest-rank percentile (0 to 100) of sorted latencies. */
export function percentile(sorted: readonly number[], percent: number): number {
  const rank = Math.ceil((percent / 100) * sorted.length);
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1] ?? 0;
}

/** Null without latencies. */
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

/** The median and the 95th percentile at each turn, over the last `window` latencies: two lines to draw. */
export function history(waits: readonly number[], window: number): { p50: number[]; p95: number[] } {
  const lines = waits.map((_, i) => percentiles(waits.slice(Math.max(0, i + 1 - window), i + 1))!);
  return { p50: lines.map(({ p50 }) => p50), p95: lines.map(({ p95 }) => p95) };
}

function measured(parts: Turn["parts"], event: TurnLatency): Partial<Turn> {
  return { by: event.by, parts: { ...parts, network: event.networkMs, cushion: event.cushionMs }, heardMs: event.totalMs };
}

function told(parts: Turn["parts"], latency: Latency): Partial<Turn> {
  return {
    parts: { ...parts, detection: latency.detection_ms ?? 0, provider: latency.provider_ms, gateway: latency.gateway_ms },
    totalMs: latency.speech_end_to_first_audio_ms,
  };
}

/** Adds the tokens of a turn; the cost stays that of the call. */
function plus(a: Spent, b: Spent): Spent {
  return {
    ...a,
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    ...(a.estimated === true || b.estimated === true ? { estimated: true } : {}),
  };
}
