// Reads and writes the text frames of voicegw.v1.
import type { ServerMessage } from "./messages.js";
import { fieldSource } from "./source.js";

// An example value for each required type.
const TEXT = "";
const NUMBER = 0;
const TRUTH = false;
const OBJECT = {};

// The required fields. Optional ones may be absent.
const REQUIRED: { [T in ServerMessage["type"]]: Record<string, unknown> } = {
  "session.started": { session_id: TEXT, output_rate: NUMBER },
  "audio.start": { item_id: TEXT },
  "audio.end": { item_id: TEXT },
  "audio.flush": { item_id: TEXT },
  "speech.started": {},
  "speech.stopped": {},
  transcript: { id: TEXT, role: TEXT, text: TEXT, final: TRUTH, started_at: TEXT },
  "turn.started": { turn: NUMBER },
  "turn.ended": { turn: NUMBER, status: TEXT },
  "tool.started": { call_id: TEXT, tool: TEXT },
  "tool.progress": { call_id: TEXT, tool: TEXT, duration_ms: NUMBER },
  "job.progress": { job_id: TEXT, tool: TEXT, name: TEXT },
  "tool.message": { call_id: TEXT, tool: TEXT, name: TEXT },
  "tool.ended": { call_id: TEXT, tool: TEXT },
  "confirmation.request": { token: TEXT, tool: TEXT },
  "confirmation.ended": { token: TEXT, outcome: TEXT },
  timeout: { message: TEXT },
  voice_session_start: { sessionId: TEXT, ticket: TEXT },
  "ui.image": { url: TEXT },
  "text.delta": { item_id: TEXT, text: TEXT },
  "text.done": { item_id: TEXT, text: TEXT },
  "tool.call": { call_id: TEXT, name: TEXT },
  usage: {},
  done: { conversation_id: TEXT, status: TEXT },
  "agent.switched": { from: TEXT, to: TEXT },
  "answer.stopped": { item_id: TEXT, check: TEXT },
  "claim.unmatched": { item_id: TEXT, text: TEXT },
  "provider.reconnecting": {},
  "provider.reconnected": {},
  "session.moving": {},
  "session.ending": {},
  "session.ended": {},
  error: { code: TEXT, message: TEXT },
  pong: { t: NUMBER },
  "inspect.call": { call_id: TEXT, tool: TEXT },
  "inspect.state": { phase: TEXT },
  "inspect.intent": { intent: OBJECT },
};

/**
 * Parses a text frame. Returns null for messages that this version does not know or cannot use, because a
 * newer gateway must not break an older page.
 */
export function parseServerMessage(frame: string): ServerMessage | null {
  const message = parseObject(frame);
  const type = message?.["type"];
  if (message === null || typeof type !== "string" || !Object.hasOwn(REQUIRED, type)) {
    return null;
  }
  for (const [name, want] of Object.entries(REQUIRED[type as ServerMessage["type"]])) {
    if (typeof message[name] !== typeof want || message[name] === null) {
      return null;
    }
  }
  if (type === "confirmation.request") {
    message["args_source"] = fieldSource(frame, "args");
  }
  return message as unknown as ServerMessage;
}

/** Parses the object in a text frame, of any type; null for anything else. */
export function parseObject(frame: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(frame);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
