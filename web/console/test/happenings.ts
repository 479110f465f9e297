// Test events with a given clock.
import type { ServerMessage, TranscriptMessage } from "@voicegw/client";
import type { Happening, Noticed, Side, UnknownMessage } from "../src/model/feed.js";

export const NOW = Date.parse("2026-11-20T10:00:00.000Z");

let seq = 0;

type Sent<M> = M extends ServerMessage ? Omit<M, "seq"> : never;

/** A message of the gateway, numbered. */
export function message<M extends Sent<ServerMessage>>(fields: M): ServerMessage {
  return { seq: ++seq, ...fields } as unknown as ServerMessage;
}

export function received(side: Side, fields: Sent<ServerMessage>, wall = NOW): Happening {
  return { at: wall - NOW, wall, kind: "received", side, message: message(fields) };
}

export function sent(side: Side, fields: UnknownMessage, wall = NOW): Happening {
  return { at: wall - NOW, wall, kind: "sent", side, message: fields };
}

export function noticed(what: Noticed, wall = NOW): Happening {
  return { at: wall - NOW, wall, kind: "noticed", side: "voice", ...what };
}

export function started(more: Partial<Sent<ServerMessage> & { type: "session.started" }> = {}, wall = NOW): Happening {
  return received(
    "voice",
    { type: "session.started", session_id: "voice-a", provider: "gemini", model: "live", input_rate: 16000, output_rate: 24000, expires_at: null, resumed: false, ...more },
    wall,
  );
}

/** A transcript that began so many seconds after NOW. */
export function said(id: string, role: "user" | "assistant", text: string, second: number, more: Partial<TranscriptMessage> = {}): TranscriptMessage {
  return { type: "transcript", seq: ++seq, id, role, text, final: true, started_at: new Date(NOW + second * 1000).toISOString(), ...more };
}
