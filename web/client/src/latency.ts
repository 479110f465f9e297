// How long a user waits for an answer, and for whom. Pure: every time is given.
import type { Latency, ServerMessage } from "./protocol/messages.js";

/** One turn's wait in whole ms, as it was here: the total is the sum of the other five. */
export interface TurnLatency {
  turn: number;
  /** How the user took the turn. */
  by: "speech" | "text" | "approval";
  /** From mouth to ear: from the last voiced sample's capture, or the text's sending, until the answer sounds. */
  totalMs: number;
  /** Until the gateway knew that the user had stopped. */
  detectionMs: number;
  providerMs: number;
  gatewayMs: number;
  /** The first audio of the answer waited so long to be played. */
  cushionMs: number;
  /** The rest: there and back, capture and play. */
  networkMs: number;
}

/** So many frames of the uplink are remembered, at least: 20 s of them. */
const MARKS = 1000;

/** When each sample of the uplink was captured, on the clock that the gateway counts: samples sent. */
export class UplinkClock {
  readonly #rate: number;
  #marks: { endMs: number; at: number }[] = [];
  #samples = 0;
  /** What is before that is forgotten, or not known any more: then it is infinite. */
  #fromMs = 0;

  /** rate in Hz. */
  constructor(rate: number) {
    this.#rate = rate;
  }

  /** So many samples more were sent, the last of them captured at `at`. */
  sent(samples: number, at: number): void {
    this.#samples += samples;
    this.#marks.push({ endMs: (this.#samples * 1000) / this.#rate, at });
    if (this.#marks.length >= 2 * MARKS) {
      this.#fromMs = Math.max(this.#fromMs, this.#marks[MARKS - 1]!.endMs);
      this.#marks = this.#marks.slice(MARKS);
    }
  }

  /**
   * The session was taken up again: of what was sent last, nobody knows how much the gateway
   * has counted. From here on the clock knows nothing.
   */
  lose(): void {
    this.#fromMs = Infinity;
  }

  /** When the sample at ms was captured; the newest for one that is yet to come, null for one that is not known. */
  at(ms: number): number | null {
    const mark = this.#marks[this.#marks.findLastIndex((m) => m.endMs < ms) + 1] ?? this.#marks.at(-1);
    if (mark === undefined || ms < this.#fromMs) {
      return null;
    }
    return mark.at - Math.max(0, mark.endMs - ms);
  }
}

/** Where a turn's wait began. */
interface Begun {
  by: TurnLatency["by"];
  /** Null where the capture of the last sound is not known: after a session was taken up again. */
  at: number | null;
  /** When speech.stopped arrived. */
  toldAt?: number;
}

interface Turn {
  begun?: Begun | undefined;
  firstItem?: string;
  sounding?: { at: number; cushionMs: number };
  /** What the gateway said of itself at the turn's end. */
  ended?: { latency: Latency; bestRttMs: number | null } | undefined;
}

/** So many turns are open at most; older ones are forgotten. */
const MAX_TURNS = 8;

/**
 * Puts together what is known here and what the gateway says of itself at a turn's end. For
 * one session: another one counts its turns from 1. Times are in ms of one clock of this
 * machine.
 */
export class TurnLatencies {
  readonly #uplink: UplinkClock;
  readonly #turns = new Map<number, Turn>();
  /** When typed texts and approvals were sent, by their ids and tokens. */
  readonly #acts = new Map<string, number>();
  /** An approval whose turn is yet to begin. */
  #approvedAt: number | undefined;

  constructor(uplink: UplinkClock) {
    this.#uplink = uplink;
  }

  /** A typed text of that id, or an approval of that token, was sent. */
  acted(id: string, at: number): void {
    remember(this.#acts, id, at);
  }

  /**
   * The first sample of an item sounds, after it waited for cushionMs. Returns the latency of a
   * turn that has ended already: a page that is held up may hear of the sound after the end.
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

  /** How long the turn of an item that sounds has made the user wait, as far as is known by now. */
  waited(item: string): Pick<TurnLatency, "turn" | "by" | "totalMs"> | undefined {
    for (const [turn, { firstItem, begun, sounding, ended }] of this.#turns) {
      if (firstItem === item && begun?.at != null && sounding !== undefined && ended === undefined) {
        return { turn, by: begun.by, totalMs: Math.round(sounding.at - begun.at) };
      }
    }
    return undefined;
  }

  /**
   * A message that came at `at`; bestRttMs is the fastest round trip so far. Returns the latency
   * of a turn that ends and whose answer sounded.
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
    // The user may pause and go on: the last word counts, until the answer begins. The answer may begin before the end of speech is detected.
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

  /** The latency of a turn that has ended and sounded; the turn is forgotten then. */
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

/** When a wait began. Where the capture is not known, the end had been for detectionMs when the gateway learnt of it, and for a round trip more when speech.stopped arrived. */
function began({ at, toldAt = 0 }: Begun, detectionMs: number, bestRttMs: number | null): number {
  return at ?? toldAt - detectionMs - (bestRttMs ?? 0);
}

/** Notes a value; of too many the oldest is forgotten. */
function remember<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= MAX_TURNS) {
      return;
    }
    map.delete(oldest);
  }
}
