import { TurnLatencies, UplinkClock, type TurnLatency } from "./latency.js";
import type { ClientMessage, ServerMessage } from "./protocol/messages.js";
import { addTurn, newTally } from "./stats.js";

/** The statistics of a conversation and the latency of each answer. */
export class Measures {
  readonly tally = newTally();
  readonly #rate: number;
  readonly #tell: (latency: TurnLatency) => void;
  readonly #answered: (waited: Pick<TurnLatency, "turn" | "by" | "totalMs">) => void;
  #uplink: UplinkClock;
  #latencies: TurnLatencies;

  /**
   * rate is the uplink's in Hz. `answered` is called when an answer plays, `tell` when the turn's latency is
   * complete.
   */
  constructor(rate: number, tell: (latency: TurnLatency) => void, answered: (waited: Pick<TurnLatency, "turn" | "by" | "totalMs">) => void) {
    this.#rate = rate;
    this.#tell = tell;
    this.#answered = answered;
    this.#uplink = new UplinkClock(rate);
    this.#latencies = new TurnLatencies(this.#uplink);
  }

  /** A new session begins. */
  renew(): void {
    this.#uplink = new UplinkClock(this.#rate);
    this.#latencies = new TurnLatencies(this.#uplink);
  }

  /** The session was resumed. The newest frames may not have arrived. */
  resumed(): void {
    this.#uplink.lose();
  }

  /** The connection is back. `told`: the loss was reported. */
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

  /** An item of this session plays after waitedMs in the buffer. */
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
