// The session's state: the gateway's inspect data and this page's statistics.
import type { AgentSwitched, InspectState, SessionStarted } from "@voicegw/client";
import { budgetOf, type Budget } from "./budget.js";
import type { Happening, Watcher } from "./feed.js";

const MAX_INTENTS = 100;

/** A tool's request to the session, and its result. */
export interface Intent {
  readonly number: number;
  readonly wall: number;
  readonly turn: number | undefined;
  readonly type: string;
  /** The fields of the intent's type. */
  readonly payload: Record<string, unknown>;
  readonly applied: boolean;
  readonly why: string | undefined;
}

/** The running or last voice session. */
export class Agent implements Watcher {
  session: SessionStarted | undefined;
  running = false;
  state: InspectState | undefined;
  /** The open turn's budget; between turns, the last one's. */
  budget: Budget | undefined;
  /** Newest first. */
  intents: Intent[] = [];
  private numbers = 0;

  take(happening: Happening): void {
    if (happening.kind === "noticed" && happening.name === "disconnected") {
      this.running = false;
    } else if (happening.kind === "received" && happening.side === "voice") {
      this.received(happening.message as Inside, happening.wall);
    }
  }

  private received(message: Inside, wall: number): void {
    switch (message.type) {
      case "session.started":
        if (message.session_id !== this.session?.session_id) {
          this.state = undefined;
          this.budget = undefined;
          this.intents = [];
        }
        this.session = message;
        this.running = true;
        break;
      case "agent.switched":
        if (this.session !== undefined) {
          this.session = { ...this.session, agent: message.to };
        }
        break;
      case "inspect.state":
        this.state = message;
        this.budget = budgetOf(message.budget) ?? this.budget;
        break;
      case "inspect.intent": {
        const { type, ...payload } = message.intent;
        this.intents = [{ number: ++this.numbers, wall, turn: message.turn, type, payload, applied: message.applied, why: message.why }, ...this.intents].slice(0, MAX_INTENTS);
        break;
      }
      default:
    }
  }
}

/** The messages handled here. */
type Inside =
  | SessionStarted
  | AgentSwitched
  | InspectState
  | { type: "inspect.intent"; turn?: number; intent: { type: string; [field: string]: unknown }; applied: boolean; why?: string };
