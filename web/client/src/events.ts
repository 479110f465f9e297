import type { AgentState } from "./agentstate.js";
import type { VoiceError } from "./errors.js";
import type { TurnLatency } from "./latency.js";
import type { ErrorMessage, Handback, ServerMessage, SessionStarted } from "./protocol/messages.js";

/**
 * The life of a session. `reconnecting`: the connection broke and is being restored.
 * `disconnected`: it is over, nothing more is heard or said; the event of that name follows
 * when the gateway has had its last word.
 */
export type SessionState = "connecting" | "connected" | "reconnecting" | "disconnected";

/** How a session ended. */
export interface Disconnected {
  /**
   * The gateway's reason (docs/protocol.md), or `lost` when nobody said one. `page_left`: the
   * page went away, and the next one may take the session up. `moved`: another tab has it.
   */
  reason: string;
  /** The WebSocket's close code. */
  code: number;
  /** What went wrong; undefined where it ended as it should. */
  error: VoiceError | undefined;
  /** The conversation, where it has gone on by voice. */
  handback: Handback | undefined;
}

/** What this side tells beside the gateway's messages. Times of `at` are performance.now(). */
export interface LocalEvents {
  state: SessionState;
  /** The session is open, with what the gateway said of it: once. See also `reconnected`. */
  connected: SessionStarted;
  /** What the agent does, when that changes. */
  agentState: AgentState;
  /** Any message of the gateway, also of types that this version does not know. */
  message: ServerMessage | { type: string; [field: string]: unknown };
  /** Any message sent to the gateway, for logs: tickets and tokens in it are stars. */
  sent: { type: string; [field: string]: unknown };
  /** Levels as RMS, 0 to 1, 25 a second, for each side while it is on. */
  level: { side: "user" | "model"; level: number };
  /**
   * What was sent: PCM16 at the uplink's rate, complete at `at` (performance.now()). `clockMs` says the same on the
   * microphone's audio clock, which nothing makes late: a frame without a gap before it is its own length later than
   * the one before, within 10 ms.
   * Costs nothing while nobody listens.
   */
  uplink: { pcm: Int16Array; at: number; clockMs: number };
  /** What came in, before it is played: PCM16 at the downlink's rate. */
  downlink: { item: string; pcm: Int16Array; at: number };
  /**
   * The first sample of an item sounds, `at` the loudspeaker as far as the browser tells.
   * Of the time since its first byte it waited cushionMs for the cushion.
   */
  sounding: { item: string; at: number; firstByteAt: number; cushionMs: number };
  /** How much of an item was heard; done: nothing more of it will sound. */
  played: { item: string; playedMs: number; done: boolean; at: number };
  /**
   * An item that sounded was flushed: `ms` after the flush arrived nothing of it is given
   * out any more, latencyMs later the loudspeaker is silent too, as far as the browser tells.
   */
  silenced: { item: string; ms: number; latencyMs: number };
  /** The speaker ran dry in the middle of an item; the cushion has grown to cushionMs. */
  underrun: { item: string; cushionMs: number };
  /** The microphone was turned on or off, muted, lost, found or changed. */
  microphone: { state: MicrophoneState; deviceId: string | undefined; label: string };
  /** The loudspeaker was opened, stopped by the browser, started again, changed or closed. */
  speaker: { state: SpeakerState; deviceId: string | undefined };
  /** Devices have come or gone. */
  devices: void;
  /**
   * The connection broke lostMs ago, with error; the try of that number (from 1) is made in
   * delayMs, or sooner. resumable: the same session may go on, and the newest
   * 15 s of the user's speech are kept. Not told as long as nobody can notice: see the README, Reconnection.
   */
  reconnecting: { attempt: number; delayMs: number; lostMs: number; resumable: boolean; error: VoiceError };
  /**
   * The connection is back after lostMs, where its loss was told. resumed: the same session;
   * else a new one of the same conversation, and the turns, tools and items of the old one are over.
   */
  reconnected: { resumed: boolean; lostMs: number };
  /** The way to the gateway and back, measured every few seconds. */
  network: { rttMs: number };
  /**
   * A turn's answer sounds: how long the user has waited, as far as this page knows. `latency`
   * says it again at the turn's end, with its parts; the end of speech may turn out to be earlier.
   */
  answered: Pick<TurnLatency, "turn" | "by" | "totalMs">;
  /** Once per turn that answered in speech: how long the user waited, and for whom. */
  latency: TurnLatency;
  /**
   * Every error, once: of the devices, of the way to the gateway, of the gateway. The session
   * goes on, unless its state is `disconnected`.
   */
  error: VoiceError;
  /** The last event. */
  disconnected: Disconnected;
}

/**
 * `muted` by the user; `silenced` by something else: a switch on the device, the system, a call.
 * `lost`: it went away or was taken away, and is taken up again when there is one.
 */
export type MicrophoneState = "off" | "asking" | "live" | "muted" | "silenced" | "lost";

/** `suspended`: the browser lets nothing sound, until a click or for as long as a call lasts. */
export type SpeakerState = "closed" | "suspended" | "playing";

/** Every message of the gateway by its type, and what this side adds. Its `error` comes as a VoiceError. */
export type VoiceEvents = LocalEvents & { [M in Exclude<ServerMessage, ErrorMessage> as M["type"]]: M };

type Listener<T> = (event: T) => void;

/** A set of listeners for each event. A listener that throws stops no other. */
export class Emitter<Events extends object> {
  /** By the listener that was given, what is called: for once it is not the same. */
  readonly #listeners = new Map<keyof Events, Map<Listener<never>, Listener<never>>>();

  /** Calls the listener for every event of the type; the function returned ends that, and so does off. */
  on<T extends keyof Events>(type: T, listener: Listener<Events[T]>): () => void {
    return this.#add(type, listener, listener);
  }

  /** Like on, for the next one only. */
  once<T extends keyof Events>(type: T, listener: Listener<Events[T]>): () => void {
    return this.#add(type, listener, (event) => {
      this.off(type, listener);
      listener(event);
    });
  }

  /** Calls the listener no more, whether on or once was given it. */
  off<T extends keyof Events>(type: T, listener: Listener<Events[T]>): void {
    this.#listeners.get(type)?.delete(listener);
  }

  /** Whether anybody listens: what is costly to tell is not told otherwise. */
  protected listened(type: keyof Events): boolean {
    return (this.#listeners.get(type)?.size ?? 0) > 0;
  }

  protected emit<T extends keyof Events>(type: T, event: Events[T]): void {
    for (const listener of [...(this.#listeners.get(type)?.values() ?? [])]) {
      try {
        (listener as Listener<Events[T]>)(event);
      } catch (error) {
        // Thrown again where the browser reports it, not into the audio path.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  #add<T extends keyof Events>(type: T, given: Listener<Events[T]>, called: Listener<Events[T]>): () => void {
    const all = this.#listeners.get(type) ?? new Map<Listener<never>, Listener<never>>();
    this.#listeners.set(type, all.set(given, called));
    return () => this.off(type, given);
  }
}
