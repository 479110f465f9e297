// Measures how long a user waits for an answer, and for which part. Pure: times are arguments.
import type { Latency, ServerMessage } from "./protocol/messages.js";

/** A turn's latency in whole ms, as experienced here. The total is the sum of the five parts. */
export interface TurnLatency {
  turn: number;
  /** The input that began the turn. */
  by: "speech" | "text" | "approval";
  /** From the capture of the last voiced sample, or the sending of the text, until the answer plays. */
  totalMs: number;
  /** Until the gateway detected the end of speech. */
  detectionMs: number;
  providerMs: number;
  gatewayMs: number;
  /** How long the answer's first audio was buffered before it played. */
  cushionMs: number;
  /** The rest: network in both directions, capture and playback. */
  networkMs: number;
}

/** The number of uplink frames remembered: at least 20 s. */
const MARKS = 1000;

/** Maps positions on the gateway's clock, which counts sent samples, to capture times. */
export class UplinkClock {
  readonly #rate: number;
  #marks: { endMs: number; at: number }[] = [];
  #samples = 0;
  /** Earlier positions are forgotten; infinite if the clock knows nothing. */
  #fromMs = 0;

  /** rate in Hz. */
  constructor(rate: number) {
    this.#rate = rate;
  }

  /** Records `samples` sent samples, the last captured at `at`. */
  sent(samples: number, at: number): void {
    this.#samples += samples;
    this.#marks.push({ endMs: (this.#samples * 1000) / this.#rate, at });
    if (this.#marks.length >= 2 * MARKS) {
      this.#fromMs = Math.max(this.#fromMs, this.#marks[MARKS - 1]!.endMs);
      this.#marks = this.#marks.slice(MARKS);
    }
  }

  /**
   * The session was resumed. The gateway may not have counted the last samples, so the clock knows nothing
   * from here on.
   */
  lose(): void {
    this.#fromMs = Infinity;
  }

  /** When the sample at `ms` was captured: the newest time if it lies ahead, null if unknown. */
  at(ms: number): number | null {
    const mark = this.#marks[this.#marks.findLastIndex((m) => m.endMs < ms) + 1] ?? this.#marks.at(-1);
    if (mark === undefined || ms < this.#fromMs) {
      return null;
    }
    return mark.at - Math.max(0, mark.endMs - ms);
  }
}

/** The beginning of a turn's wait. */
interface Begun {
  by: TurnLatency["by"];
  /** Null if the capture time of the last sound is unknown, as after a resume. */
  at: number | null;
  /** When speech.stopped arrived. */
  toldAt?: number;
}

interface Turn {
  begun?: Begun | undefined;
  firstItem?: string;
  sounding?: { at: number; cushionMs: number };
  /** The gateway's measurements from turn.ended. */
  ended?: { latency: Latency; bestRttMs: number | null } | undefined;
}

/** The most open turns; the oldest is forgotten first. */
const MAX_TURNS = 8;

/**
 * Combines this page's measurements with those of the gateway in turn.ended. Serves one session, because each
 * counts turns from 1. Times are ms on one clock of this machine.
 */
export class TurnLatencies {
  readonly #uplink: UplinkClock;
  readonly #turns = new Map<number, Turn>();
  /** When typed texts and approvals were sent, by id and token. */
  readonly #acts = new Map<string, number>();
  /** When an approval was sent whose turn has not begun. */
  #approvedAt: number | undefined;

  constructor(uplink: UplinkClock) {
    this.#uplink = uplink;
  }

  /** Records that the text with this id, or the approval with this token, was sent. */
  acted(id: string, at: number): void {
    remember(this.#acts, id, at);
  }

  /**
   * An item's first sample plays after cushionMs in the buffer. Returns the latency if the turn has already
   * ended: a busy page may learn of the sound later.
   */
  sounding(item: string, at: number, cushionMs: number): TurnLatency | undefined {
    for (const [number, turn] of this.#turns) {
      if (turn.firstItem === item) {
        turn.sounding = { at, cushionMs };
        return this.#settled(number, turn);
      }
    }
    return undefined;
  }

  /** How long the user has waited for the item that now plays, if known. */
  waited(item: string): Pick<TurnLatency, "turn" | "by" | "totalMs"> | undefined {
    for (const [turn, { firstItem, begun, sounding, ended }] of this.#turns) {
      if (firstItem === item && begun?.at != null && sounding !== undefined && ended === undefined) {
        return { turn, by: begun.by, totalMs: Math.round(sounding.at - begun.at) };
      }
    }
    return undefined;
  }

  /**
   * Handles a message that arrived at `at`; bestRttMs is the fastest round trip so far. Returns the latency
   * of a turn that ended after its answer played.
   */
  message(message: ServerMessage, at: number, bestRttMs: number | null): TurnLatency | undefined {
    switch (message.type) {
      case "speech.stopped":
        this.#stopped(message.turn, message.end_ms, at);
        return undefined;
      case "transcript":
        this.#begin(message.turn, "text", this.#take(message.id));
        return undefined;
      case "confirmation.ended":
        this.#approvedAt = message.outcome === "approved" ? this.#take(message.token) : this.#approvedAt;
        return undefined;
      case "turn.started":
        this.#begin(message.turn, "approval", this.#approvedAt);
        this.#approvedAt = undefined;
        return undefined;
      case "audio.start":
        this.#turn(message.turn).firstItem ??= message.item_id;
        return undefined;
      case "turn.ended":
        return this.#ended(message.turn, message.latency, bestRttMs);
      default:
        return undefined;
    }
  }

  #stopped(number: number | undefined, endMs: number | undefined, toldAt: number): void {
    const turn = this.#turn(number);
    // A user may pause and continue, so the last end of speech before the answer counts. The answer may begin
    // before the end of speech is detected.
    if (turn.firstItem === undefined || turn.begun === undefined) {
      turn.begun = endMs === undefined ? undefined : { by: "speech", at: this.#uplink.at(endMs), toldAt };
    }
  }

  #begin(number: number | undefined, by: TurnLatency["by"], at: number | undefined): void {
    if (at !== undefined) {
      this.#turn(number).begun ??= { by, at };
    }
  }

  #ended(number = 0, latency: Latency | undefined, bestRttMs: number | null): TurnLatency | undefined {
    const turn = this.#turn(number);
    turn.ended = latency && { latency, bestRttMs };
    return this.#settled(number, turn);
  }

  /** Returns the latency of a turn that has ended and played, and forgets the turn. */
  #settled(number: number, { begun, sounding, ended }: Turn): TurnLatency | undefined {
    if (!begun || !sounding || !ended) {
      return undefined;
    }
    this.#turns.delete(number);
    const { detection_ms: detectionMs = 0, provider_ms: providerMs, gateway_ms: gatewayMs } = ended.latency;
    const cushionMs = Math.round(sounding.cushionMs);
    const totalMs = Math.round(sounding.at - began(begun, detectionMs, ended.bestRttMs));
    const networkMs = Math.max(0, totalMs - detectionMs - providerMs - gatewayMs - cushionMs);
    return { turn: number, by: begun.by, totalMs, detectionMs, providerMs, gatewayMs, cushionMs, networkMs };
  }

  #take(id: string): number | undefined {
    const at = this.#acts.get(id);
    this.#acts.delete(id);
    return at;
  }

  #turn(number = 0): Turn {
    const known = this.#turns.get(number) ?? {};
    remember(this.#turns, number, known);
    return known;
  }
}

/**
 * Returns when a wait began. If the capture time is unknown, it is estimated from the arrival of
 * speech.stopped, the detection time and one round trip.
 */
function began({ at, toldAt = 0 }: Begun, detectionMs: number, bestRttMs: number | null): number {
  return at ?? toldAt - detectionMs - (bestRttMs ?? 0);
}

/** Adds a value; beyond the limit the oldest is removed. */
function remember<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= MAX_TURNS) {
      return;
    }
    map.delete(oldest);
  }
}
