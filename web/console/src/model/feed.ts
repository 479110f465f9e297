// Events in order of time, from which the console derives everything that it shows.
import type { LocalEvents, ServerMessage } from "@voicegw/client";

/** The agent concerned: text or voice. */
export type Side = "text" | "voice";

/** A message of a type that this version does not know. */
export interface UnknownMessage {
  type: string;
  [field: string]: unknown;
}

/** Events from this browser, by their names in the client library. */
export const NOTICED = [
  "state",
  "sounding",
  "played",
  "silenced",
  "underrun",
  "microphone",
  "speaker",
  "reconnecting",
  "reconnected",
  "network",
  "answered",
  "latency",
  "error",
  "disconnected",
] as const satisfies readonly (keyof LocalEvents)[];

export type Noticed = { [N in (typeof NOTICED)[number]]: { name: N; event: LocalEvents[N] } }[(typeof NOTICED)[number]];

/** An event. `at` is performance.now() in ms, `wall` ms since the epoch. */
export type Happening = { at: number; wall: number } & (
  /** `wire`: the message as received, if its turn has another number in the call than in its session. */
  | { kind: "received"; side: Side; message: ServerMessage | UnknownMessage; wire?: ServerMessage | UnknownMessage }
  /** Tickets and tokens are replaced with asterisks. Messages to the text agent have the type "chat". */
  | { kind: "sent"; side: Side; message: UnknownMessage }
  | ({ kind: "noticed"; side: "voice" } & Noticed)
  /** A new voice session begins, and the waveform restarts. Rates in Hz. */
  | { kind: "opened"; side: "voice"; inputRate: number; outputRate: number }
  /** PCM16 of the user as sent, and of the model as received. */
  | { kind: "uplink"; side: "voice"; pcm: Int16Array; rate: number; clockMs: number }
  | { kind: "downlink"; side: "voice"; item: string; pcm: Int16Array; rate: number }
  /** A question of the text agent has expired; the gateway does not report this. */
  | { kind: "lapsed"; side: Side; token: string }
  /** The user began a new conversation. */
  | { kind: "anew"; side: Side; conversationId: string }
);

/** An event without its time, which is set when it is published. */
export type Told<H extends Happening = Happening> = H extends Happening ? Omit<H, "at" | "wall"> : never;

/** Derives something from events. */
export interface Watcher {
  take(happening: Happening): void;
}

/** A watcher whose data survives a reload during a session. */
export interface LastingWatcher extends Watcher {
  /** Returns data for the next page as JSON, without secrets and of limited length. */
  keep?(): string;
  /** Restores the previous page's data, unless events have already happened here. */
  restore?(kept: string): void;
}
