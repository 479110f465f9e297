// Every call of a tool: when it waited, when it ran, and what became of it.
import type { ServerMessage, ToolCategory } from "@voicegw/client";
import { budgetOf } from "./budget.js";
import type { Call, TurnCalls } from "./calls.js";
import type { Happening, Side, Watcher } from "./feed.js";
import { FIRST } from "./keptinstruments.js";

/** So many calls are kept, the newest. */
const MAX_CALLS = 200;

/** The calls of a page, by turns. */
export class Tools implements Watcher {
  /** Oldest first. */
  turns: TurnCalls[] = [];
  private readonly asked = new Map<string, Call>();
  /** Voice sessions, and conversations of the text agent, of this page. */
  private readonly eras: Record<Side, number> = { voice: 0, text: 0 };
  /** Calls of the page before whose question will be told again. */
  private readonly askedBefore = new Set<Call>();
  /** What was kept is of a session that has not gone on yet. */
  private waiting = false;

  take(happening: Happening): void {
    switch (happening.kind) {
      case "received":
        this.received(happening.message as ServerMessage, happening.side, happening.at);
        break;
      case "lapsed":
        this.answered(happening.token, "expired", happening.at);
        break;
      case "opened":
        this.begin("voice", happening.at);
        break;
      case "anew":
        this.begin("text", happening.at);
        this.turns = [];
        break;
      case "noticed":
        if (happening.name === "disconnected") {
          this.settle("voice", happening.at);
          this.setApart();
        }
        break;
      default:
    }
  }

  /** What another page needs to show the calls of this session, and of this conversation by text. */
  keep(): readonly TurnCalls[] {
    const next: Record<Side, number> = { voice: FIRST, text: 0 };
    return this.turns.filter((turn) => turn.key === this.key(turn.side, turn.turn)).map((turn) => ({ ...turn, key: keyOf(turn.side, next[turn.side], turn.turn) }));
  }

  /** Takes up what the page before has kept, before anything has happened here. */
  restore(turns: readonly TurnCalls[]): void {
    this.turns = [...turns];
    this.waiting = true;
    for (const call of turns.flatMap(({ calls }) => calls)) {
      if (call.asked !== undefined && call.asked.outcome === undefined) {
        this.askedBefore.add(call);
      }
    }
    this.trim();
  }

  /** The session of the page before did not go on: the next one must not be taken for it. */
  private setApart(): void {
    if (this.waiting) {
      this.waiting = false;
      this.turns = this.turns.map((turn) => (turn.side === "voice" ? { ...turn, key: keyOf("voice", 0, turn.turn) } : turn));
    }
  }

  private received(message: ServerMessage, side: Side, at: number): void {
    switch (message.type) {
      case "tool.started":
        this.started(side, message, at);
        break;
      case "session.started":
        if (message.snapshot === true) {
          // What still runs is told again.
          this.settle(side, at);
        }
        break;
      case "tool.progress": {
        const call = this.find(side, message.call_id)?.call;
        if (call?.status === "running") {
          call.runMs = message.duration_ms;
        }
        break;
      }
      case "tool.ended": {
        const found = this.find(side, message.call_id);
        if (found !== undefined) {
          finish(found, message, at);
        }
        break;
      }
      case "confirmation.request":
        this.question(side, message, at);
        break;
      case "confirmation.ended":
        this.answered(message.token, message.outcome, at);
        break;
      case "inspect.call": {
        const found = this.find(side, message.call_id);
        if (found !== undefined) {
          inspected(found.call, message);
          found.turn.budget = budgetOf(message.record["budget"]) ?? found.turn.budget;
        }
        break;
      }
      case "inspect.state": {
        const turn = this.known(side, message.turn);
        if (turn !== undefined) {
          turn.budget = budgetOf(message.budget) ?? turn.budget;
        }
        break;
      }
      case "done":
        this.settle(side, at);
        break;
      default:
    }
  }

  /** A call begins. One that is known is told again: it still runs. */
  private started(side: Side, message: Extract<ServerMessage, { type: "tool.started" }>, at: number): void {
    const known = this.find(side, message.call_id)?.call;
    if (known === undefined) {
      (this.known(side, message.turn) ?? this.begun(side, message.turn)).calls.push(newCall(message.call_id, message.tool, message.category, at));
      this.trim();
    } else if (known.status === "unfinished") {
      known.status = "running";
      known.endedAt = undefined;
    }
  }

  private answered(token: string, outcome: string, at: number): void {
    const asked = this.asked.get(token)?.asked;
    if (asked !== undefined) {
      asked.endedAt = at;
      asked.outcome = outcome;
      this.asked.delete(token);
    }
  }

  // The question comes between a call's beginning and its end; several come in their order.
  private question(side: Side, message: Extract<ServerMessage, { type: "confirmation.request" }>, at: number): void {
    const call = this.known(side, message.turn)?.calls.find((c) => c.tool === message.tool && c.status === "running" && (c.asked === undefined || this.askedBefore.has(c)));
    if (call !== undefined) {
      this.askedBefore.delete(call);
      call.asked = { at: call.asked?.at ?? at, endedAt: undefined, outcome: undefined };
      this.asked.set(message.token, call);
    }
  }

  private begin(side: Side, at: number): void {
    this.settle(side, at);
    this.eras[side]++;
    this.waiting = false;
  }

  /** Nothing that is open will be finished. */
  private settle(side: Side, at: number): void {
    for (const turn of this.turns) {
      for (const call of turn.side === side ? turn.calls : []) {
        if (call.status === "running") {
          call.status = "unfinished";
          call.endedAt = at;
        }
      }
    }
  }

  private key(side: Side, turn: number | undefined): string {
    return keyOf(side, this.eras[side], turn);
  }

  private known(side: Side, turn: number | undefined): TurnCalls | undefined {
    const key = this.key(side, turn);
    return this.turns.findLast((known) => known.key === key);
  }

  private begun(side: Side, turn: number | undefined): TurnCalls {
    const fresh: TurnCalls = { key: this.key(side, turn), side, turn, calls: [], budget: undefined };
    this.turns.push(fresh);
    return fresh;
  }

  private find(side: Side, id: string): Found | undefined {
    const era = `${side} ${this.eras[side]} `;
    for (const turn of this.turns.toReversed()) {
      const call = turn.key.startsWith(era) ? turn.calls.find((c) => c.id === id) : undefined;
      if (call !== undefined) {
        return { turn, call };
      }
    }
    return undefined;
  }

  private trim(): void {
    let count = this.turns.reduce((sum, { calls }) => sum + calls.length, 0);
    for (; count > MAX_CALLS; count--) {
      const gone = this.turns[0]!.calls.shift();
      for (const [token, call] of this.asked) {
        if (call === gone) {
          this.asked.delete(token);
        }
      }
      if (this.turns[0]!.calls.length === 0) {
        this.turns.shift();
      }
    }
  }
}

function keyOf(side: Side, era: number, turn: number | undefined): string {
  return `${side} ${era} ${turn ?? ""}`;
}

/** A call and the turn it belongs to. */
interface Found {
  turn: TurnCalls;
  call: Call;
}

function finish({ turn, call }: Found, message: Extract<ServerMessage, { type: "tool.ended" }>, at: number): void {
  call.status = message.ok === false ? "failed" : "done";
  call.endedAt = at;
  call.runMs = message.duration_ms;
  call.error = message.error;
  call.clamped = message.clamped ?? {};
  if (message.deduplicated === true) {
    const joined = turn.calls.some(
      (other) => other !== call && other.tool === call.tool && other.repeat === undefined && other.startedAt <= call.startedAt && (other.endedAt ?? Infinity) > call.startedAt,
    );
    call.repeat = joined ? "joined" : "memory";
  }
}

function newCall(id: string, tool: string, category: ToolCategory | undefined, at: number): Call {
  return {
    id,
    tool,
    category,
    startedAt: at,
    endedAt: undefined,
    status: "running",
    queuedMs: undefined,
    runMs: undefined,
    error: undefined,
    clamped: {},
    repeat: undefined,
    originalTurn: undefined,
    asked: undefined,
    approvedBy: undefined,
    delivered: undefined,
    notDelivered: undefined,
    args: undefined,
    envelope: undefined,
    record: undefined,
  };
}

function inspected(call: Call, message: Extract<ServerMessage, { type: "inspect.call" }>): void {
  const { record } = message;
  call.queuedMs = message.queued_ms;
  call.runMs = message.run_ms;
  call.args = message.args;
  call.envelope = message.envelope;
  call.record = record;
  call.originalTurn = numberOf(record["originalTurn"]);
  call.delivered = record["delivered"] === true;
  call.notDelivered = textOf(record["notDelivered"]);
  call.approvedBy = record["confirmation"] === "approved" ? (textOf(record["confirmedBy"]) ?? "client") : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
