// How long the user waited in each turn, and for whom.
import type { Latency, ServerMessage, TurnLatency, Usage } from "@voicegw/client";
import type { Happening, Watcher } from "./feed.js";
import { FIRST } from "./keptinstruments.js";

/** The parts of a wait. */
export const PARTS = ["detection", "provider", "gateway", "network", "cushion"] as const;
export type Part = (typeof PARTS)[number];

const MAX_TURNS = 500;

/** One turn of the voice agent. It is never changed: another object takes its place. Times are performance.now() in ms. */
export interface Turn {
  /** Voice session of this page and number of the turn. */
  readonly key: string;
  readonly session: number;
  readonly turn: number;
  readonly startedAt: number;
  readonly status: "running" | "completed" | "interrupted" | "failed" | "unfinished";
  /** How the user took it; undefined where nobody told. */
  readonly by: TurnLatency["by"] | undefined;
  /** In ms; those that are not known are absent. */
  readonly parts: Readonly<Partial<Record<Part, number>>>;
  /** The response time, as the gateway tells it everywhere: from the user's last sound, text or approval to the first sound sent, in ms. Undefined where it is not known. */
  readonly totalMs: number | undefined;
  /** From mouth to ear, as this page has measured it: the response time, the network and the jitter buffer. */
  readonly heardMs: number | undefined;
  readonly usage: Usage | undefined;
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
  list: readonly Turn[] = [];
  private session = 0;
  /** What the newest call has cost, as the gateway tells it everywhere: usage after the last turn included. */
  private cost: Usage["cost"];
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
    return used.length === 0 ? null : used.reduce<Spent>(plus, { input_tokens: 0, output_tokens: 0, ...(this.cost === undefined ? {} : { cost: this.cost }) });
  }

  private received(message: ServerMessage, at: number): void {
    if (message.type === "session.started" && message.snapshot === true) {
      // A turn that is still open is told again.
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

function measured(parts: Turn["parts"], event: TurnLatency): Partial<Turn> {
  return { by: event.by, parts: { ...parts, network: event.networkMs, cushion: event.cushionMs }, heardMs: event.totalMs };
}

function told(parts: Turn["parts"], latency: Latency): Partial<Turn> {
  return {
    parts: { ...parts, detection: latency.detection_ms ?? 0, provider: latency.provider_ms, gateway: latency.gateway_ms },
    totalMs: latency.speech_end_to_first_audio_ms,
  };
}

/** The tokens of a turn added to those before; the cost stays that of the call. */
function plus(a: Spent, b: Spent): Spent {
  return {
    ...a,
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    ...(a.estimated === true || b.estimated === true ? { estimated: true } : {}),
  };
}
