// Lists every field of every message. tsc compares it with the types: a missing or additional field is a compile error.
import type { ClientMessage, ServerMessage } from "../src/protocol/messages.js";

/** true: a value, a list, or an object whose names the protocol does not define. */
type Field<V> = V extends string | number | boolean | readonly unknown[] ? true : V extends object ? (string extends keyof V ? true : Fields<V>) : true;
type Fields<T> = { [F in keyof T]-?: unknown extends T[F] ? true : Field<NonNullable<T[F]>> };

/** Messages by their type. */
type ByType<M extends { type: string }> = { [T in M["type"]]: Fields<Extract<M, { type: T }>> };

const numbered = { type: true, seq: true, turn: true } as const;
const tool = { ...numbered, call_id: true, tool: true, category: true } as const;
const usage = {
  input_tokens: true,
  output_tokens: true,
  input: { text: true, audio: true, cached_text: true, cached_audio: true },
  output: { text: true, audio: true },
  estimated: true,
  cost: { usd_micros: true, unpriced: true },
} as const;

export const SERVER_FIELDS = {
  "session.started": {
    ...numbered,
    session_id: true,
    resume_token: true,
    provider: true,
    model: true,
    agent: true,
    voice: true,
    conversation_id: true,
    agents_version: true,
    tools_version: true,
    input_rate: true,
    output_rate: true,
    expires_at: true,
    resumed: true,
    snapshot: true,
    input_ms: true,
    input_again: true,
    inspect: true,
    images: true,
    context: true,
  },
  "audio.start": { ...numbered, item_id: true, from_ms: true },
  "audio.end": { ...numbered, item_id: true, audio_ms: true },
  "audio.flush": { ...numbered, item_id: true, reason: true },
  "speech.started": { ...numbered, audio_ms: true },
  "speech.stopped": { ...numbered, audio_ms: true, end_ms: true },
  transcript: { ...numbered, id: true, role: true, text: true, final: true, started_at: true },
  "turn.started": { ...numbered, conversation_id: true },
  "turn.ended": {
    ...numbered,
    status: true,
    usage,
    latency: { speech_end_to_first_audio_ms: true, detection_ms: true, provider_ms: true, gateway_ms: true },
  },
  "tool.started": tool,
  "tool.progress": { ...tool, duration_ms: true, text: true, fraction: true },
  "job.progress": { ...numbered, job_id: true, tool: true, name: true, text: true, fraction: true },
  "tool.message": { ...tool, name: true, data: true },
  "tool.ended": {
    ...tool,
    ok: true,
    duration_ms: true,
    error: { type: true, message: true, retryable: true, partialSideEffects: true, suggestion: true, details: true, confirmation_request: true },
    deduplicated: true,
    clamped: true,
  },
  "confirmation.request": { ...numbered, token: true, tool: true, args: true, args_source: true, preview: true, expires_at: true },
  "confirmation.ended": { ...numbered, token: true, tool: true, outcome: true },
  timeout: { ...numbered, timeoutUntil: true, durationSeconds: true, message: true },
  voice_session_start: { ...numbered, sessionId: true, pendingRequest: true, ticket: true, url: true, expires_at: true },
  "ui.image": { ...numbered, id: true, url: true, prompt: true, width: true, height: true, expires_at: true },
  "text.delta": { ...numbered, item_id: true, text: true },
  "text.done": { ...numbered, item_id: true, text: true, cut: true, refused: true },
  "tool.call": { ...numbered, call_id: true, name: true, args: true, timeout_ms: true, again: true },
  usage: { ...numbered, ...usage },
  done: { ...numbered, conversation_id: true, status: true },
  "agent.switched": { ...numbered, from: true, to: true, reason: true },
  "answer.stopped": { ...numbered, item_id: true, check: true, outcome: true, reason: true },
  "claim.unmatched": { ...numbered, item_id: true, kind: true, text: true, reason: true },
  "provider.reconnecting": { ...numbered, reason: true },
  "provider.reconnected": { ...numbered, reason: true, lost_ms: true, how: true },
  "session.moving": { ...numbered, reason: true, deadline: true },
  "session.ending": { ...numbered, reason: true, after: true },
  "session.ended": { ...numbered, reason: true, handback: { conversation_id: true, summary: true } },
  error: { ...numbered, code: true, message: true, retryable: true, ref: true, until: true, retry_after_ms: true },
  pong: { ...numbered, t: true },
  "inspect.call": { ...numbered, call_id: true, tool: true, queued_ms: true, run_ms: true, record: true, args: true, envelope: true },
  "inspect.state": {
    ...numbered,
    phase: true,
    speaking: true,
    responding: true,
    awaiting: true,
    questions: true,
    notices: true,
    muted: true,
    suppressed: { audio: true, transcript: true },
    budget: true,
    cost: { usd_micros: true, unpriced: true },
  },
  "inspect.intent": { ...numbered, intent: true, applied: true, why: true },
} satisfies ByType<ServerMessage>;

export const CLIENT_FIELDS = {
  "session.start": {
    type: true,
    ticket: true,
    provider: true,
    agent: true,
    voice: true,
    input_rate: true,
    output_rate: true,
    turn_detection: true,
    pending_request: true,
    conversation_id: true,
    time_zone: true,
    resume: { session_id: true, token: true, last_seq: true, audio: { item_id: true, received_ms: true }, input: { from_ms: true, to_ms: true } },
    inspect: true,
    client: { name: true, version: true, id: true },
    tools: true,
  },
  "input.text": { type: true, text: true, id: true },
  "input.image": { type: true, mime: true, data: true },
  "input.context": { type: true, text: true },
  "input.activity": { type: true, active: true },
  interrupt: { type: true },
  playback: { type: true, item_id: true, played_ms: true, done: true, received_ms: true, seq: true },
  "confirmation.resolve": { type: true, token: true, approved: true },
  "tool.result": { type: true, call_id: true, result: true, error: { message: true, retryable: true, partial: true } },
  "session.end": { type: true },
  ping: { type: true, t: true, seq: true },
} satisfies ByType<ClientMessage>;

/** A table of fields, or of the fields of one field. */
export type FieldTable = { readonly [name: string]: true | FieldTable };
