// Injects faults into a simulated provider.
import { signal } from "@preact/signals";
import type { ServerMessage } from "@voicegw/client";
import type { Happening, Watcher } from "./feed.js";

/** A fault. `for`: it has a duration, by default for_ms. */
export interface Fault {
  readonly do: string;
  readonly label: string;
  readonly for: boolean;
  readonly for_ms?: number;
}

/** An injected fault. */
export interface Committed {
  readonly number: number;
  readonly wall: number;
  readonly fault: Fault;
  readonly forMs: number | undefined;
  /** asking: the gateway has not answered. failed: it refused; `why` has the reason. */
  readonly result: "asking" | "now" | "next_call" | "failed";
  readonly why: string;
  /** The effects on the call so far, oldest first. */
  readonly effects: readonly Effect[];
  /** How it ended: the connection is back, a later turn was answered, or the call ended. Undefined before. */
  readonly over: "restored" | "answered" | "ended" | undefined;
}

/** An effect of a fault on the call. */
export interface Effect {
  readonly wall: number;
  readonly kind: "reconnecting" | "reconnected" | "error" | "tool" | "turn";
  /** The reason, the kind of recovery, the error code, the tool's outcome, or the turn's status. */
  readonly detail: string;
  /** How long a restored connection was lost. */
  readonly ms?: number;
}

const MAX_EFFECTS = 12;

const MAX_COMMITTED = 50;

/** Client for the gateway's /v1/simulator. Addresses are relative to the page. */
export class Faults implements Watcher {
  /** Null without a simulator or permission. */
  readonly list = signal<readonly Fault[] | null>(null);
  /** Newest first. */
  readonly committed = signal<readonly Committed[]>([]);
  private numbers = 0;

  constructor(private readonly request: typeof fetch = (...args) => fetch(...args)) {}

  /** Loads the available faults. */
  async load(): Promise<void> {
    try {
      const response = await this.request("v1/simulator");
      const answer = response.ok ? ((await response.json()) as { faults?: unknown }) : {};
      this.list.value = Array.isArray(answer.faults) ? answer.faults.filter(isFault) : null;
    } catch {
      this.list.value = null;
    }
  }

  /** Injects a fault into a session's connection to its provider. */
  async commit(fault: Fault, sessionId: string, forMs?: number): Promise<void> {
    const number = ++this.numbers;
    const asked: Committed = { number, wall: Date.now(), fault, forMs: fault.for ? forMs : undefined, result: "asking", why: "", effects: [], over: undefined };
    this.committed.value = [asked, ...this.committed.value].slice(0, MAX_COMMITTED);
    const done = await this.post(fault, sessionId, asked.forMs);
    this.committed.value = this.committed.value.map((known) => (known.number === number ? { ...known, ...done } : known));
  }

  take(happening: Happening): void {
    if (happening.kind === "noticed" && happening.name === "disconnected") {
      this.note(undefined, happening.wall);
    } else if (happening.kind === "received" && happening.side === "voice") {
      const effect = effectOf(happening.message as ServerMessage, happening.wall);
      if (effect !== undefined) {
        this.note(effect, happening.wall);
      }
    }
  }

  /** Adds an effect, or the end of the call, to each open fault. */
  private note(effect: Effect | undefined, wall: number): void {
    if (!this.committed.value.some(ongoing)) {
      return;
    }
    this.committed.value = this.committed.value.map((fault) => {
      if (!ongoing(fault)) {
        return fault;
      }
      const effects = effect === undefined ? fault.effects : [...fault.effects, effect].slice(-MAX_EFFECTS);
      return { ...fault, effects, over: effect === undefined ? "ended" : overBy(fault, effects, wall) };
    });
  }

  private async post(fault: Fault, sessionId: string, forMs: number | undefined): Promise<Pick<Committed, "result" | "why">> {
    try {
      const response = await this.request("v1/simulator/faults", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ session_id: sessionId, do: fault.do, ...(forMs === undefined ? {} : { for_ms: forMs }) }),
      });
      const answer = (await response.json()) as { when?: string; error?: { message?: string } };
      if (!response.ok) {
        return { result: "failed", why: answer.error?.message ?? `HTTP ${response.status}` };
      }
      return { result: answer.when === "next_call" ? "next_call" : "now", why: "" };
    } catch (error) {
      return { result: "failed", why: error instanceof Error ? error.message : String(error) };
    }
  }
}

function ongoing({ result, over }: Committed): boolean {
  return over === undefined && (result === "now" || result === "next_call");
}

function effectOf(message: ServerMessage, wall: number): Effect | undefined {
  switch (message.type) {
    case "provider.reconnecting":
      return { wall, kind: "reconnecting", detail: message.reason ?? "" };
    case "provider.reconnected":
      return { wall, kind: "reconnected", detail: message.how ?? "", ms: message.lost_ms ?? 0 };
    case "error":
      return { wall, kind: "error", detail: message.code ?? "" };
    case "tool.ended":
      return { wall, kind: "tool", detail: message.deduplicated === true ? "repeated" : message.ok === false ? (message.error?.type ?? "failed") : "ok" };
    case "turn.ended":
      return { wall, kind: "turn", detail: message.status };
    default:
      return undefined;
  }
}

/** A fault is over when the connection is back, or, if none was replaced, when a later turn was answered. */
function overBy({ result, wall: began, forMs = 0 }: Committed, effects: readonly Effect[], wall: number): Committed["over"] {
  const newest = effects.at(-1)!;
  if (newest.kind === "reconnected") {
    return "restored";
  }
  const away = effects.findLast(({ kind }) => kind === "reconnecting" || kind === "reconnected")?.kind === "reconnecting";
  const due = result === "next_call" ? effects.some(({ kind }) => kind === "tool") : wall - began >= forMs;
  return newest.kind === "turn" && newest.detail === "completed" && !away && due ? "answered" : undefined;
}

function isFault(value: unknown): value is Fault {
  const fault = value as Partial<Fault> | null;
  return typeof fault?.do === "string" && typeof fault.label === "string";
}
