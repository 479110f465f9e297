// The tool calls: when each waited and ran, and its result.
import type { ServerMessage, ToolCategory } from "@voicegw/client";
import { budgetOf } from "./budget.js";
import type { Call, TurnCalls } from "./calls.js";
import type { Happening, Side, Watcher } from "./feed.js";
import { FIRST } from "./keptinstruments.js";

/** The most calls kept, newest first. */
const MAX_CALLS = 200;

/** The page's calls, by turn. */
export class Tools implements Watcher {
  /** Oldest first. */
  turns: readonly TurnCalls[] = [];
  /** Calls with open questions, by token. */
  private readonly asked = new Map<string, Place>();
  /** Counts this page's voice sessions and conversations with the text agent. */
  private readonly eras: Record<Side, number> = { voice: 0, text: 0 };
  /** Calls of the previous page whose question will be repeated. */
  private askedBefore: readonly Place[] = [];
  /** Restored data belongs to a session that has not resumed yet. */
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

  /** The calls of this session and this text conversation, for the next page. */
  keep(): readonly TurnCalls[] {
    const next: Record<Side, number> = { voice: FIRST, text: 0 };
    return this.turns.filter((turn) => turn.key === this.key(turn.side, turn.turn)).map((turn) => ({ ...turn, key: keyOf(turn.side, next[turn.side], turn.turn) }));
  }

  /** Restores the previous page's calls, before any event here. */
  restore(turns: readonly TurnCalls[]): void {
    this.turns = [...turns];
    this.waiting = true;
    this.askedBefore = turns.flatMap(({ key, calls }) => calls.filter(({ asked }) => asked !== undefined && asked.outcome === undefined).map(({ id }) => ({ turn: key, id })));
    this.trim();
  }

  /** The previous page's session did not resume, so the next one is different. */
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
          // Running calls are reported again.
          this.settle(side, at);
        }
        break;
      case "tool.progress": {
        const found = this.find(side, message.call_id);
        if (found?.call.status === "running") {
          this.change(found, { runMs: message.duration_ms });
        }
        break;
      }
      case "tool.ended": {
        const found = this.find(side, message.call_id);
        if (found !== undefined) {
          this.change(found, finished(found, message, at));
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
          this.change(found, inspected(message), budgetOf(message.record["budget"]));
        }
        break;
      }
      case "inspect.state": {
        const turn = this.known(side, message.turn);
        if (turn !== undefined) {
          this.replace({ ...turn, budget: budgetOf(message.budget) ?? turn.budget });
        }
        break;
      }
      case "done":
        this.settle(side, at);
        break;
      default:
    }
  }

  /** A call begins, or a running one is reported again. */
  private started(side: Side, message: Extract<ServerMessage, { type: "tool.started" }>, at: number): void {
    const known = this.find(side, message.call_id);
    if (known === undefined) {
      const turn = this.known(side, message.turn) ?? this.begun(side, message.turn);
      this.replace({ ...turn, calls: [...turn.calls, newCall(message.call_id, message.tool, message.category, at)] });
      this.trim();
    } else if (known.call.status === "unfinished") {
      this.change(known, { status: "running", endedAt: undefined });
    }
  }

  private answered(token: string, outcome: string, at: number): void {
    const place = this.asked.get(token);
    const found = place === undefined ? undefined : this.at(place);
    if (found?.call.asked !== undefined) {
      this.change(found, { asked: { ...found.call.asked, endedAt: at, outcome } });
    }
    this.asked.delete(token);
  }

  // A question comes between a call's start and its end; several come in order.
  private question(side: Side, message: Extract<ServerMessage, { type: "confirmation.request" }>, at: number): void {
    const turn = this.known(side, message.turn);
    const before = (call: Call): boolean => this.askedBefore.some((place) => place.turn === turn?.key && place.id === call.id);
    const call = turn?.calls.find((c) => c.tool === message.tool && c.status === "running" && (c.asked === undefined || before(c)));
    if (turn !== undefined && call !== undefined) {
      this.askedBefore = this.askedBefore.filter((place) => place.turn !== turn.key || place.id !== call.id);
      this.change({ turn, call }, { asked: { at: call.asked?.at ?? at, endedAt: undefined, outcome: undefined } });
      this.asked.set(message.token, { turn: turn.key, id: call.id });
    }
  }

  private begin(side: Side, at: number): void {
    this.settle(side, at);
    this.eras[side]++;
    this.waiting = false;
  }

  /** Ends all open calls as unfinished. */
  private settle(side: Side, at: number): void {
    this.turns = this.turns.map((turn) =>
      turn.side === side && turn.calls.some(({ status }) => status === "running")
        ? { ...turn, calls: turn.calls.map((call) => (call.status === "running" ? { ...call, status: "unfinished", endedAt: at } : call)) }
        : turn,
    );
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
    this.turns = [...this.turns, fresh];
    return fresh;
  }

  private find(side: Side, id: string): Found | undefined {
    const era = `${side} ${this.eras[side]} `;
    const turn = this.turns.findLast(({ key, calls }) => key.startsWith(era) && calls.some((call) => call.id === id));
    return turn === undefined ? undefined : this.at({ turn: turn.key, id });
  }

  private at({ turn: key, id }: Place): Found | undefined {
    const turn = this.turns.findLast((known) => known.key === key);
    const call = turn?.calls.find((known) => known.id === id);
    return turn === undefined || call === undefined ? undefined : { turn, call };
  }

  /** Replaces the turn with the same key. */
  private replace(turn: TurnCalls): void {
    this.turns = this.turns.map((known) => (known.key === turn.key ? turn : known));
  }

  private change({ turn, call }: Found, by: Partial<Call>, budget = turn.budget): void {
    this.replace({ ...turn, budget, calls: turn.calls.map((known) => (known === call ? { ...call, ...by } : known)) });
  }

  private trim(): void {
    let count = this.turns.reduce((sum, { calls }) => sum + calls.length, 0);
    for (; count > MAX_CALLS; count--) {
      const [oldest, ...rest] = this.turns as [TurnCalls, ...TurnCalls[]];
      const [gone, ...calls] = oldest.calls;
      for (const [token, place] of this.asked) {
        if (place.turn === oldest.key && place.id === gone?.id) {
          this.asked.delete(token);
        }
      }
      this.turns = calls.length === 0 ? rest : [{ ...oldest, calls }, ...rest];
    }
  }
}

function keyOf(side: Side, era: number, turn: number | undefined): string {
  return `${side} ${era} ${turn ?? ""}`;
}

/** A call and its turn. */
interface Found {
  readonly turn: TurnCalls;
  readonly call: Call;
}

/** A call's position: the key of its turn, and its id. */
interface Place {
  readonly turn: string;
  readonly id: string;
}

function finished({ turn, call }: Found, message: Extract<ServerMessage, { type: "tool.ended" }>, at: number): Partial<Call> {
  const joined = turn.calls.some(
    (other) => other !== call && other.tool === call.tool && other.repeat === undefined && other.startedAt <= call.startedAt && (other.endedAt ?? Infinity) > call.startedAt,
  );
  return {
    status: message.ok === false ? "failed" : "done",
    endedAt: at,
    runMs: message.duration_ms,
    error: message.error,
    clamped: message.clamped ?? {},
    repeat: message.deduplicated !== true ? call.repeat : joined ? "joined" : "memory",
  };
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

function inspected(message: Extract<ServerMessage, { type: "inspect.call" }>): Partial<Call> {
  const { record } = message;
  return {
    queuedMs: message.queued_ms,
    runMs: message.run_ms,
    args: message.args,
    envelope: message.envelope,
    record,
    originalTurn: numberOf(record["originalTurn"]),
    delivered: record["delivered"] === true,
    notDelivered: textOf(record["notDelivered"]),
    approvedBy: record["confirmation"] === "approved" ? (textOf(record["confirmedBy"]) ?? "client") : undefined,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
