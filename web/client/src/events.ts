import type { AgentState } from "./agentstate.js";
import type { VoiceError } from "./errors.js";
import type { TurnLatency } from "./latency.js";
import type { ErrorMessage, Handback, ServerMessage, SessionStarted } from "./protocol/messages.js";

/**
 * The state of a session. `reconnecting`: the connection was lost and is being restored. `disconnected`: the
 * session is over and silent; the event of the same name follows after the gateway's last message.
 */
export type SessionState = "connecting" | "connected" | "reconnecting" | "disconnected";

/** How a session ended. */
export interface Disconnected {
  /**
   * The gateway's reason (docs/protocol.md); `lost` without one. `page_left`: the page closed, and the next
   * page may resume the session. `moved`: another tab resumed it.
   */
  reason: string;
  /** The WebSocket's close code. */
  code: number;
  /** The cause; undefined after a normal end. */
  error: VoiceError | undefined;
  /** The conversation, if it continued by voice. */
  handback: Handback | undefined;
}

/** Events of this library, in addition to the gateway's messages. `at` is performance.now(). */
export interface LocalEvents {
  state: SessionState;
  /** The session is open. Emitted once; see also `reconnected`. */
  connected: SessionStarted;
  /** The agent's state changed. */
  agentState: AgentState;
  /** Any message from the gateway, including unknown types. */
  message: ServerMessage | { type: string; [field: string]: unknown };
  /** Any message sent to the gateway, for logs. Tickets and tokens are replaced with asterisks. */
  sent: { type: string; [field: string]: unknown };
  /** RMS levels, 0 to 1, 25 per second for each side while it is on. */
  level: { side: "user" | "model"; level: number };
  /**
   * Sent audio: PCM16 at the uplink's rate, complete at `at` (performance.now()). `clockMs` is the same
   * instant on the microphone's audio clock, which delays do not affect: consecutive frames differ by the
   * frame's length, within 10 ms. Costs nothing without listeners.
   */
  uplink: { pcm: Int16Array; at: number; clockMs: number };
  /** Received audio before it plays: PCM16 at the downlink's rate. */
  downlink: { item: string; pcm: Int16Array; at: number };
  /**
   * The first sample of an item plays, according to the browser's clock. It waited cushionMs
   * for the buffer since its first byte arrived.
   */
  sounding: { item: string; at: number; firstByteAt: number; cushionMs: number };
  /** How much of an item was heard. done: no more of it will play. */
  played: { item: string; playedMs: number; done: boolean; at: number };
  /**
   * A playing item was flushed. Its output stopped `ms` after the flush arrived; the loudspeaker is silent
   * latencyMs later according to the browser.
   */
  silenced: { item: string; ms: number; latencyMs: number };
  /** The speaker ran dry within the item; the buffer has grown to cushionMs. */
  underrun: { item: string; cushionMs: number };
  /** The microphone was turned on or off, muted, lost, replaced or changed. */
  microphone: { state: MicrophoneState; deviceId: string | undefined; label: string };
  /** The loudspeaker was opened, stopped by the browser, restarted, changed or closed. */
  speaker: { state: SpeakerState; deviceId: string | undefined };
  /** Devices were added or removed. */
  devices: void;
  /**
   * The connection broke lostMs ago with `error`. The attempt (from 1) starts in delayMs or sooner.
   * resumable: the same session may continue, and the newest 15 s of the user's speech are stored. Not
   * emitted for outages that the user cannot notice; see the README, Reconnection.
   */
  reconnecting: { attempt: number; delayMs: number; lostMs: number; resumable: boolean; error: VoiceError };
  /**
   * The connection is back after lostMs; follows `reconnecting`. resumed: it is the same session. Otherwise
   * it is a new session of the same conversation, and the old one's turns, tools and items are over.
   */
  reconnected: { resumed: boolean; lostMs: number };
  /** The round-trip time to the gateway, measured every few seconds. */
  network: { rttMs: number };
  /**
   * A turn's answer plays: the wait measured by this page. `latency` repeats it at the turn's end, with
   * its parts and perhaps an earlier end of speech.
   */
  answered: Pick<TurnLatency, "turn" | "by" | "totalMs">;
  /** How long the user waited for a spoken answer, and which part took how long. Once per turn. */
  latency: TurnLatency;
  /**
   * Every error of the devices, the connection and the gateway, once. The session continues unless its state
   * is `disconnected`.
   */
  error: VoiceError;
  /** The last event. */
  disconnected: Disconnected;
}

/**
 * `muted` by the user; `silenced` by a switch on the device, the system or a call. `lost`: unplugged or
 * revoked; the session uses it again when it returns.
 */
export type MicrophoneState = "off" | "asking" | "live" | "muted" | "silenced" | "lost";

/** `suspended`: the browser plays nothing until a click, or during another call. */
export type SpeakerState = "closed" | "suspended" | "playing";

/**
 * All messages of the gateway by type, and the library's events. The gateway's `error` arrives as a
 * VoiceError.
 */
export type VoiceEvents = LocalEvents & { [M in Exclude<ServerMessage, ErrorMessage> as M["type"]]: M };

type Listener<T> = (event: T) => void;

/** Listeners by event. A listener that throws does not stop the others. */
export class Emitter<Events extends object> {
  /** Maps each listener to the function called, which differs for once. */
  readonly #listeners = new Map<keyof Events, Map<Listener<never>, Listener<never>>>();

  /** Calls the listener for every event of the type. The returned function removes it, as off does. */
  on<T extends keyof Events>(type: T, listener: Listener<Events[T]>): () => void {
    return this.#add(type, listener, listener);
  }

  /** Like on, for the next event only. */
  once<T extends keyof Events>(type: T, listener: Listener<Events[T]>): () => void {
    return this.#add(type, listener, (event) => {
      this.off(type, listener);
      listener(event);
    });
  }

  /** Removes a listener added with on or once. */
  off<T extends keyof Events>(type: T, listener: Listener<Events[T]>): void {
    this.#listeners.get(type)?.delete(listener);
  }

  /** Whether the event has listeners, so that costly events can be skipped. */
  protected listened(type: keyof Events): boolean {
    return (this.#listeners.get(type)?.size ?? 0) > 0;
  }

  protected emit<T extends keyof Events>(type: T, event: Events[T]): void {
    for (const listener of [...(this.#listeners.get(type)?.values() ?? [])]) {
      try {
        (listener as Listener<Events[T]>)(event);
      } catch (error) {
        // Rethrown for the browser to report, outside of the audio path.
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
