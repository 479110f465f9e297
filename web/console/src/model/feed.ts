// What happens, in one line of time: everything that the console shows is made of it.
import type { LocalEvents, ServerMessage } from "@voicegw/client";

/** Whose conversation it belongs to: the text agent's or the voice agent's. */
export type Side = "text" | "voice";

/** A message of a type that this version does not know. */
export interface UnknownMessage {
  type: string;
  [field: string]: unknown;
}

/** What this browser notices by itself, by the names of the client library's events. */
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

/** One thing that happened. `at` is performance.now() in ms, `wall` ms since the epoch. */
export type Happening = { at: number; wall: number } & (
  /** `wire` is the message as it came, where its turn has another number in the call than in its session. */
  | { kind: "received"; side: Side; message: ServerMessage | UnknownMessage; wire?: ServerMessage | UnknownMessage }
  /** Tickets and tokens in it are stars. To the text agent, its type is "chat". */
  | { kind: "sent"; side: Side; message: UnknownMessage }
  | ({ kind: "noticed"; side: "voice" } & Noticed)
  /** A new voice session begins; what is on the waveform starts anew. Rates in Hz. */
  | { kind: "opened"; side: "voice"; inputRate: number; outputRate: number }
  /** Audio, PCM16: of the user as it was sent, of the model as it came. */
  | { kind: "uplink"; side: "voice"; pcm: Int16Array; rate: number; clockMs: number }
  | { kind: "downlink"; side: "voice"; item: string; pcm: Int16Array; rate: number }
  /** The time of a question is up, and the gateway does not tell of it: the text agent's side. */
  | { kind: "lapsed"; side: Side; token: string }
  /** The user has begun a new conversation: what was shown is of another one. */
  | { kind: "anew"; side: Side; conversationId: string }
);

/** What happened, without its time: that is when it is told. */
export type Told<H extends Happening = Happening> = H extends Happening ? Omit<H, "at" | "wall"> : never;

/** Something that is made of happenings. */
export interface Watcher {
  take(happening: Happening): void;
}

/** A watcher that can go on where another page has stopped, in the same session. */
export interface LastingWatcher extends Watcher {
  /** What another page needs, as JSON without secrets and of a bounded length. */
  keep?(): string;
  /** Takes up what the page before has kept; nothing if something has happened here already. */
  restore?(kept: string): void;
}
