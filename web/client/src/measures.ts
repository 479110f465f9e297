import { TurnLatencies, UplinkClock, type TurnLatency } from "./latency.js";
import type { ClientMessage, ServerMessage } from "./protocol/messages.js";
import { addTurn, newTally } from "./stats.js";

/** What is measured in a conversation: its counts, and how long the user waits for each answer. */
export class Measures {
  readonly tally = newTally();
  readonly #rate: number;
  readonly #tell: (latency: TurnLatency) => void;
  readonly #answered: (waited: Pick<TurnLatency, "turn" | "by" | "totalMs">) => void;
  #uplink: UplinkClock;
  #latencies: TurnLatencies;

  /** rate of the uplink in Hz. `answered` is called when an answer sounds, `tell` when all is known of its turn. */
  constructor(rate: number, tell: (latency: TurnLatency) => void, answered: (waited: Pick<TurnLatency, "turn" | "by" | "totalMs">) => void) {
    this.#rate = rate;
    this.#tell = tell;
    this.#answered = answered;
    this.#uplink = new UplinkClock(rate);
    this.#latencies = new TurnLatencies(this.#uplink);
  }

  /** Another session is measured from here on. */
  renew(): void {
    this.#uplink = new UplinkClock(this.#rate);
    this.#latencies = new TurnLatencies(this.#uplink);
  }

  /** The same session was taken up again: what has come of the newest frames, nobody knows. */
  resumed(): void {
    this.#uplink.lose();
  }

  /** The connection is back; told: its loss was told, too. */
  back({ resumed, lostMs }: { resumed: boolean; lostMs: number }, told: boolean): void {
    this.tally.reconnects++;
    this.tally.resumes += Number(resumed);
    this.tally.lostMs += lostMs;
    this.tally.unnoticed += Number(!told);
  }

  roundTrip(rttMs: number): void {
    this.tally.rttMs = rttMs;
    this.tally.bestRttMs = Math.min(rttMs, this.tally.bestRttMs ?? rttMs);
  }

  /** A frame of the uplink was sent, complete at `at`. */
  audio(pcm: ArrayBuffer, at: number): void {
    this.#uplink.sent(pcm.byteLength / 2, at);
  }

  sent(message: ClientMessage, at: number): void {
    if (message.type === "input.text" && message.id !== undefined) {
      this.#latencies.acted(message.id, at);
    } else if (message.type === "confirmation.resolve" && message.approved) {
      this.#latencies.acted(message.token, at);
    }
  }

  message(message: ServerMessage): void {
    this.#note(this.#latencies.message(message, performance.now(), this.tally.bestRttMs));
  }

  /** An item of this session sounds, which has waited so long for that. */
  sounding(item: string, at: number, waitedMs: number): void {
    this.#note(this.#latencies.sounding(item, at, waitedMs));
    const waited = this.#latencies.waited(item);
    if (waited !== undefined) {
      this.#answered(waited);
    }
  }

  #note(latency: TurnLatency | undefined): void {
    if (latency !== undefined) {
      addTurn(this.tally, latency);
      this.#tell(latency);
    }
  }
}
