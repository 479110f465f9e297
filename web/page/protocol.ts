// The messages of voicegw.v1, as the gateway's client protocol defines them.
//
// Text frames are one JSON object with a `type`; binary frames are audio and
// nothing else: PCM16 little-endian mono at the negotiated rate, no header.
// Durations are integers in milliseconds, times RFC 3339 in UTC.

import { fieldSource } from "./source.js";

/** The WebSocket subprotocol this page speaks. */
export const SUBPROTOCOL = "voicegw.v1";

/** Sampling rates a session may be opened with, in Hz. */
export type Rate = 8000 | 16000 | 24000 | 44100 | 48000;

/** Opens the session. Must be the first frame, within 10 s of the handshake. */
export interface SessionStart {
  type: "session.start";
  provider?: string;
  input_rate: Rate;
  output_rate: Rate;
  client: { name: string; version: string };
}

/** A typed user turn. `id` is ours; the gateway may use it for the transcript. */
export interface InputText {
  type: "input.text";
  text: string;
  id?: string;
}

/** The user pressed stop: the answer that is on its way is not wanted. */
export interface Interrupt {
  type: "interrupt";
}

/**
 * What the user has heard of one item: every 200 ms while it sounds, once at
 * its end and once when it was flushed (`done` in both).
 */
export interface PlaybackReport {
  type: "playback";
  item_id: string;
  played_ms: number;
  done: boolean;
}

/** The user's answer to a confirmation.request, always from a button. */
export interface ConfirmationResolve {
  type: "confirmation.resolve";
  token: string;
  approved: boolean;
}

/** The user hung up. */
export interface SessionEnd {
  type: "session.end";
}

export type ClientMessage =
  | SessionStart
  | InputText
  | Interrupt
  | PlaybackReport
  | ConfirmationResolve
  | SessionEnd;

/** What every message of the gateway carries. */
interface Numbered {
  /** Rises by one with every message of a session. */
  seq?: number;
  /** The turn the message belongs to, from 1. */
  turn?: number;
}

export interface SessionStarted extends Numbered {
  type: "session.started";
  session_id: string;
  provider?: string;
  model?: string;
  /** The negotiated downlink rate in Hz. */
  output_rate?: number;
}

/** The binary frames between start and end belong to this item. */
export interface AudioStart extends Numbered {
  type: "audio.start";
  item_id: string;
}

export interface AudioEnd extends Numbered {
  type: "audio.end";
  item_id: string;
}

/** Drop what is queued of the item. No audio.end and no byte of it follows. */
export interface AudioFlush extends Numbered {
  type: "audio.flush";
  item_id: string;
  reason?: string;
}

export interface SpeechStarted extends Numbered {
  type: "speech.started";
}

export interface SpeechStopped extends Numbered {
  type: "speech.stopped";
}

/** The whole text so far of one utterance: an upsert by `id`. */
export interface TranscriptUpsert extends Numbered {
  type: "transcript";
  id: string;
  role: "user" | "assistant";
  text: string;
  final: boolean;
  started_at: string;
}

export interface TurnStarted extends Numbered {
  type: "turn.started";
  turn: number;
}

export interface TurnEnded extends Numbered {
  type: "turn.ended";
  turn: number;
  status: "completed" | "interrupted" | "failed";
  latency?: { speech_end_to_first_audio_ms?: number };
}

export interface ToolStarted extends Numbered {
  type: "tool.started";
  call_id: string;
  tool: string;
}

/** The tool has outlasted its latency budget and still runs. */
export interface ToolProgress extends Numbered {
  type: "tool.progress";
  call_id: string;
  tool: string;
  /** So far. */
  duration_ms: number;
}

/** The error of a tool's envelope; `type` is one of a fixed list. */
export interface ToolError {
  type?: string;
  message?: string;
  partialSideEffects?: boolean;
}

/** An argument that was lowered to what is allowed. */
export interface Clamped {
  requested: number;
  applied: number;
}

export interface ToolEnded extends Numbered {
  type: "tool.ended";
  call_id: string;
  tool: string;
  ok?: boolean;
  duration_ms?: number;
  error?: ToolError;
  /** The answer is that of an earlier call: nothing was run. */
  deduplicated?: boolean;
  /** By the argument's name. */
  clamped?: Record<string, Clamped>;
}

/** A tool asks whether it may do something; confirmation.resolve answers. */
export interface ConfirmationRequest extends Numbered {
  type: "confirmation.request";
  token: string;
  tool: string;
  /** What will be run with, exactly: an object on the wire, its indented JSON here. */
  args?: string;
  preview?: string;
  expires_at?: string;
}

/** The question is answered, or was not in time. */
export interface ConfirmationEnded extends Numbered {
  type: "confirmation.ended";
  token: string;
  tool?: string;
  /** approved, denied or expired. */
  outcome: string;
}

/** The user was blocked for a while (the ignore_user contract). */
export interface Timeout extends Numbered {
  type: "timeout";
  message: string;
}

export interface ProviderReconnecting extends Numbered {
  type: "provider.reconnecting";
}

export interface ProviderReconnected extends Numbered {
  type: "provider.reconnected";
}

/** The gateway is about to leave; this page does not resume, it says so. */
export interface SessionMoving extends Numbered {
  type: "session.moving";
}

/** The session will end by itself. */
export interface SessionEnding extends Numbered {
  type: "session.ending";
  reason?: string;
  /** Milliseconds until then. */
  after?: number;
}

export interface SessionEnded extends Numbered {
  type: "session.ended";
  reason?: string;
}

export interface ErrorMessage extends Numbered {
  type: "error";
  code: string;
  message: string;
  retryable?: boolean;
  /** When it will be over: of "blocked". */
  until?: string;
}

export type ServerMessage =
  | SessionStarted
  | AudioStart
  | AudioEnd
  | AudioFlush
  | SpeechStarted
  | SpeechStopped
  | TranscriptUpsert
  | TurnStarted
  | TurnEnded
  | ToolStarted
  | ToolProgress
  | ToolEnded
  | ConfirmationRequest
  | ConfirmationEnded
  | Timeout
  | ProviderReconnecting
  | ProviderReconnected
  | SessionMoving
  | SessionEnding
  | SessionEnded
  | ErrorMessage;

type FieldType = "string" | "number" | "boolean";

// The fields the page cannot do without. Optional ones are checked where they
// are used, so that a gateway may leave them out.
const REQUIRED: { [T in ServerMessage["type"]]: Record<string, FieldType> } = {
  "session.started": { session_id: "string" },
  "audio.start": { item_id: "string" },
  "audio.end": { item_id: "string" },
  "audio.flush": { item_id: "string" },
  "speech.started": {},
  "speech.stopped": {},
  transcript: { id: "string", role: "string", text: "string", final: "boolean", started_at: "string" },
  "turn.started": { turn: "number" },
  "turn.ended": { turn: "number", status: "string" },
  "tool.started": { call_id: "string", tool: "string" },
  "tool.progress": { call_id: "string", tool: "string", duration_ms: "number" },
  "tool.ended": { call_id: "string", tool: "string" },
  "confirmation.request": { token: "string", tool: "string" },
  "confirmation.ended": { token: "string", outcome: "string" },
  timeout: { message: "string" },
  "provider.reconnecting": {},
  "provider.reconnected": {},
  "session.moving": {},
  "session.ending": {},
  "session.ended": {},
  error: { code: "string", message: "string" },
};

/**
 * Reads one text frame. Returns null for whatever the page does not know or
 * cannot use: a newer gateway must not break an older page.
 */
export function parseServerMessage(frame: string): ServerMessage | null {
  let value: unknown;
  try {
    value = JSON.parse(frame);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) {
    return null;
  }
  const message = value as Record<string, unknown>;
  const type = message["type"];
  if (typeof type !== "string" || !Object.hasOwn(REQUIRED, type)) {
    return null;
  }
  const fields = REQUIRED[type as ServerMessage["type"]];
  for (const [name, want] of Object.entries(fields)) {
    if (typeof message[name] !== want) {
      return null;
    }
  }
  if (type === "confirmation.request") {
    message["args"] = fieldSource(frame, "args");
  }
  return message as unknown as ServerMessage;
}
