// The messages of voicegw.v1, as docs/protocol.md of the gateway defines them.
//
// Text frames contain one JSON object with a `type`. Binary frames contain only audio: PCM16 little-endian
// mono at the negotiated rate. Durations are integers in ms, times RFC 3339 in UTC.

/** The WebSocket subprotocol of this library. */
export const SUBPROTOCOL = "voicegw.v1";

/** Sample rates of the uplink, in Hz. */
export type InputRate = 8000 | 16000 | 24000 | 44100 | 48000;
/** Sample rates of the downlink, in Hz. */
export type OutputRate = 8000 | 16000 | 24000 | 48000;

/** How much of an item's audio a client has received and played, in ms from the item's start. */
export interface AudioPosition {
  item_id: string;
  received_ms: number;
}

/** A range of the user's speech, in ms on the session's input clock. */
export interface InputRange {
  from_ms: number;
  to_ms: number;
}

/** Resumes a session after a lost connection. */
export interface ResumeRequest {
  session_id: string;
  /** The newest resume_token. A secret. */
  token: string;
  /** All messages up to this seq have arrived; the gateway repeats the later ones. */
  last_seq: number;
  /** The newest item, which continues from this position. Without it, audio that was not heard is dropped. */
  audio?: AudioPosition;
  /** The user's speech that the client still has, including audio not sent yet. */
  input?: InputRange;
}

/** Opens the session. Must be the first frame, within 10 s of the handshake. */
export interface SessionStart {
  type: "session.start";
  ticket?: string | undefined;
  provider?: string | undefined;
  agent?: string | undefined;
  voice?: string | undefined;
  input_rate: InputRate;
  output_rate: OutputRate;
  /** server: the model detects the end of speech. client: push-to-talk with input.activity. */
  turn_detection?: "server" | "client" | undefined;
  pending_request?: string | undefined;
  conversation_id?: string | undefined;
  resume?: ResumeRequest | undefined;
  /** Requests inspect.* messages; the gateway may decline. */
  inspect?: boolean | undefined;
  client?: { name?: string; version?: string; id?: string };
  /** The IANA name of the user's time zone, used for dates and times in the conversation. */
  time_zone?: string | undefined;
  /** Tools that the client runs; see tool.call. */
  tools?: ToolDeclaration[] | undefined;
}

/** A tool that the client runs. */
export interface ToolDeclaration {
  name: string;
  description: string;
  /** JSON Schema of the arguments. Without it the tool takes none. */
  schema?: object | undefined;
  /** Calls change nothing and may run twice. */
  read_only?: boolean | undefined;
  /** Default 10000. */
  timeout_ms?: number | undefined;
}

/** A typed user turn. The client chooses `id`, which becomes the transcript's id. */
export interface InputText {
  type: "input.text";
  text: string;
  id?: string;
}

/** A still image from the user. It begins no turn. Requires `images` in session.started. */
export interface InputImage {
  type: "input.image";
  mime: "image/jpeg" | "image/png";
  /** The file in base64; at most 44 KiB before encoding. */
  data: string;
}

/** Context from the page for the model. It begins no turn. Requires `context` in session.started. */
export interface InputContext {
  type: "input.context";
  /** At most 4 KiB of UTF-8. */
  text: string;
}

/** Push-to-talk: speech starts or ends. */
export interface InputActivity {
  type: "input.activity";
  active: boolean;
}

/** The user pressed stop and does not want the rest of the answer. */
export interface Interrupt {
  type: "interrupt";
}

/**
 * How much of an item the user has heard: every 200 ms while it plays, at its end, and when it is flushed
 * (`done` in the last two cases).
 */
export interface PlaybackReport {
  type: "playback";
  item_id: string;
  played_ms: number;
  done: boolean;
  /** How much of the item has arrived; the gateway need not store that part for a resume. */
  received_ms?: number;
  /** All messages up to this seq have arrived. */
  seq?: number;
}

/** The user's answer to a confirmation.request, always from a button. */
export interface ConfirmationResolve {
  type: "confirmation.resolve";
  token: string;
  approved: boolean;
}

/** Answers a tool.call with either a result or an error. */
export interface ToolResult {
  type: "tool.result";
  call_id: string;
  /** Any JSON for the model, at most 16 KiB. */
  result?: unknown;
  error?: ToolFailure;
}

/** A failed call of a client's tool. */
export interface ToolFailure {
  /** For the model. */
  message: string;
  /** The same call may succeed later. */
  retryable?: boolean;
  /** The call may have changed something despite its failure. */
  partial?: boolean;
}

/** The user hung up. */
export interface SessionEnd {
  type: "session.end";
}

/** Answered by pong with the same t. */
export interface Ping {
  type: "ping";
  t: number;
  /** All messages up to this seq have arrived; the gateway need not store them for a resume. */
  seq?: number;
}

export type ClientMessage =
  | SessionStart
  | InputText
  | InputImage
  | InputContext
  | InputActivity
  | Interrupt
  | PlaybackReport
  | ConfirmationResolve
  | ToolResult
  | SessionEnd
  | Ping;

/** Fields of every message from the gateway. */
export interface Numbered {
  /** Rises by one with each message of a session, from 1; 0 for messages that this library makes itself. */
  seq: number;
  /** The message's turn, from 1; absent if it belongs to none. */
  turn?: number;
}

export interface SessionStarted extends Numbered {
  type: "session.started";
  session_id: string;
  /** Resumes the session. A secret: the library stores it and shows asterisks instead. */
  resume_token?: string;
  provider: string;
  model: string;
  agent?: string;
  voice?: string;
  conversation_id?: string;
  /**
   * The version of all agents that had documents when the session began. The session keeps its agent's
   * version.
   */
  agents_version?: string;
  tools_version?: string;
  input_rate: number;
  output_rate: number;
  expires_at: string | null;
  /** An earlier session continues. */
  resumed: boolean;
  /** The gateway no longer has the missed messages and sends the current state instead. */
  snapshot?: boolean;
  /** The position, in ms on the session's input clock, of the audio that the client sends next. Default 0. */
  input_ms?: number;
  /** The client sends its stored audio again from input_ms on, because another gateway continues the session. */
  input_again?: boolean;
  /** The gateway will send inspect.* messages. */
  inspect?: boolean;
  /** The model takes input.image. */
  images?: boolean;
  /** The model takes input.context. */
  context?: boolean;
}

/** The binary frames between start and end belong to this item. */
export interface AudioStart extends Numbered {
  type: "audio.start";
  item_id: string;
  /**
   * The position of these frames in the item, in ms: after a resume it continues where the client's audio
   * ends. Default 0.
   */
  from_ms?: number;
}

/** All audio of the item has been sent. */
export interface AudioEnd extends Numbered {
  type: "audio.end";
  item_id: string;
  audio_ms: number;
}

/** Drop the item's queued audio. The gateway sends no audio.end and no more audio for it. */
export interface AudioFlush extends Numbered {
  type: "audio.flush";
  item_id: string;
  /** connection_lost: after a resume, the client lacks audio that was sent. */
  reason: "user_speech" | "user_text" | "user_stop" | "user_action" | "check" | "session_end" | "connection_lost" | (string & {});
}

/** audio_ms counts samples that the client sent, from the first one. */
export interface SpeechStarted extends Numbered {
  type: "speech.started";
  audio_ms: number;
}

/** audio_ms may include the silence that a speech detector waits for. */
export interface SpeechStopped extends Numbered {
  type: "speech.stopped";
  audio_ms: number;
  /** The end of the last sound on the same clock; absent if unknown. */
  end_ms?: number;
}

/**
 * The whole text so far of one utterance: replaces an earlier message with the same `id`. Ordered by
 * started_at.
 */
export interface TranscriptMessage extends Numbered {
  type: "transcript";
  id: string;
  role: "user" | "assistant";
  text: string;
  final: boolean;
  started_at: string;
}

export interface TurnStarted extends Numbered {
  type: "turn.started";
  /** Only from the text agent. */
  conversation_id?: string;
}

/** Tokens of one turn; cached tokens are included in the input. */
export interface Usage {
  input_tokens: number;
  output_tokens: number;
  input: { text: number; audio: number; cached_text: number; cached_audio: number };
  output: { text: number; audio: number };
  /** The model did not report all of it; the numbers are estimates. */
  estimated?: boolean;
  /**
   * The turn's cost in millionths of a dollar, for a client that inspects. `unpriced` counts usage without a
   * price.
   */
  cost?: { usd_micros: number; unpriced?: number };
}

/** From the last voiced sample (or the typed text) to the first audio sent to the client, in ms. */
export interface Latency {
  /** From the user's last sound, text or approval; the sum of the other three. */
  speech_end_to_first_audio_ms: number;
  /** Until the end of speech was detected; 0 for typed turns. */
  detection_ms: number;
  provider_ms: number;
  gateway_ms: number;
}

export interface TurnEnded extends Numbered {
  type: "turn.ended";
  status: "completed" | "interrupted" | "failed";
  usage: Usage;
  /** Absent if the turn has no spoken answer. */
  latency?: Latency;
}

export type ToolCategory = "retrieval" | "action" | "utility";

export interface ToolStarted extends Numbered {
  type: "tool.started";
  call_id: string;
  tool: string;
  category?: ToolCategory;
}

/** The tool still runs after its latency budget, or reports its progress. */
export interface ToolProgress extends Numbered {
  type: "tool.progress";
  call_id: string;
  tool: string;
  category?: ToolCategory;
  /** So far. */
  duration_ms: number;
  /** The tool's description of its current step. */
  text?: string;
  /** The completed fraction, from 0 to 1; absent if the tool does not report it. */
  fraction?: number;
}

/**
 * The progress of a job that an earlier call started; the call's answer has the same `job_id`. It belongs to
 * no turn.
 */
export interface JobProgress extends Numbered {
  type: "job.progress";
  job_id: string;
  tool: string;
  /** The job's name. */
  name: string;
  /** The job's description of its current step. */
  text?: string;
  /** The completed fraction, from 0 to 1; absent if the tool does not report it. */
  fraction?: number;
}

/** Data from a running tool for the page, in a format of their own. */
export interface ToolMessage extends Numbered {
  type: "tool.message";
  call_id: string;
  tool: string;
  category?: ToolCategory;
  /** The kind of data. */
  name: string;
  data: unknown;
}

/** The error in a tool's envelope. `type` comes from a fixed list; the text is written for the model. */
export interface ToolError {
  type: string;
  message: string;
  retryable?: boolean;
  partialSideEffects?: boolean;
  suggestion?: string;
  details?: unknown;
  /** For CONFIRMATION_REQUIRED: the contents of confirmation.request. */
  confirmation_request?: Record<string, unknown>;
}

/** An argument that was lowered to its limit. */
export interface Clamped {
  requested: number;
  applied: number;
}

export interface ToolEnded extends Numbered {
  type: "tool.ended";
  call_id: string;
  tool: string;
  category?: ToolCategory;
  ok: boolean;
  duration_ms: number;
  error?: ToolError;
  /** The answer is that of an earlier call; the tool did not run again. */
  deduplicated?: boolean;
  /** By the argument's name. */
  clamped?: Record<string, Clamped>;
}

/** A tool asks for the user's approval; confirmation.resolve answers. */
export interface ConfirmationRequest extends Numbered {
  type: "confirmation.request";
  token: string;
  tool: string;
  /** The arguments of the call. Show args_source to people, because long numbers are rounded here. */
  args: Record<string, unknown>;
  /** The arguments exactly as sent, as indented JSON; long numbers are not rounded. */
  args_source: string;
  preview: string;
  expires_at: string;
}

/** The request was answered or expired. */
export interface ConfirmationEnded extends Numbered {
  type: "confirmation.ended";
  token: string;
  tool: string;
  /**
   * Two outcomes come from this library. `lost`: the session that asked is over. `unknown`: the request ended
   * while offline, and its outcome is not known.
   */
  outcome: "approved" | "denied" | "expired" | "lost" | "unknown" | (string & {});
}

/** The user is blocked for a while (the ignore_user contract). */
export interface Timeout extends Numbered {
  type: "timeout";
  /** In ms since the epoch. */
  timeoutUntil: number;
  durationSeconds: number;
  message: string;
}

/** The text agent invites the user to continue by voice. Only in its stream. */
export interface VoiceSessionStart extends Numbered {
  type: "voice_session_start";
  sessionId: string;
  pendingRequest: string;
  /** For connect({ticket}). Works once, within a minute. */
  ticket: string;
  url: string;
  expires_at: string;
}

/** An image from a tool. */
export interface UiImage extends Numbered {
  type: "ui.image";
  id: string;
  /** Relative to the gateway's root. */
  url: string;
  prompt: string;
  /** In pixels. */
  width: number;
  height: number;
  expires_at: string;
}

/** A piece of the text agent's answer. Only in its stream. */
export interface TextDelta extends Numbered {
  type: "text.delta";
  item_id: string;
  text: string;
}

/**
 * The whole of one text of the text agent. cut: the model's length limit ended it. refused: the model or a
 * filter refused to answer.
 */
export interface TextDone extends Numbered {
  type: "text.done";
  item_id: string;
  text: string;
  cut?: boolean;
  refused?: boolean;
}

/** A tool that the client must run. By voice it is one declared in session.start, and the library runs it. */
export interface ToolCallMessage extends Numbered {
  type: "tool.call";
  call_id: string;
  name: string;
  args: unknown;
  /** How long the gateway still waits. */
  timeout_ms?: number;
  /** An earlier connection delivered the same call, so it may be running or done. */
  again?: boolean;
}

/** Tokens of a turn of the text agent. */
export interface UsageMessage extends Numbered, Usage {
  type: "usage";
}

/** The last message of a turn of the text agent. */
export interface Done extends Numbered {
  type: "done";
  conversation_id: string;
  status: "completed" | "failed";
}

/** Another agent continues the conversation. */
export interface AgentSwitched extends Numbered {
  type: "agent.switched";
  from: string;
  to: string;
  /** A short reason from the previous agent or the operator. */
  reason?: string;
}

/** The assistant says that it has done something, and no tool call of the conversation has done it. */
export interface ClaimUnmatched extends Numbered {
  type: "claim.unmatched";
  /** The utterance: the id of its transcript or text. */
  item_id: string;
  /** The kind of action, such as "book". */
  kind: string;
  text: string;
  /** waits_for_approval: a call of that kind waits for the user. */
  reason: "no_side_effect" | "waits_for_approval";
}

/** A check of the operator has stopped the rest of an answer. */
export interface AnswerStopped extends Numbered {
  type: "answer.stopped";
  /** The utterance: the id of its transcript or text. */
  item_id: string;
  /** The name of the check. */
  check: string;
  /** What follows: given words, nothing, or the end of the conversation. */
  outcome: "replace" | "cut" | "end";
  /** late: the check did not decide in time. */
  reason: "matched" | "late" | "failed";
}

/** The gateway lost its connection to the model and is restoring it. */
export interface ProviderReconnecting extends Numbered {
  type: "provider.reconnecting";
  reason?: string;
}

/** The connection is back after lost_ms. */
export interface ProviderReconnected extends Numbered {
  type: "provider.reconnected";
  reason?: string;
  lost_ms?: number;
  /** The memory of the model. resumed: everything; replayed: the conversation as text; fresh: nothing. */
  how?: "resumed" | "replayed" | "fresh" | (string & {});
}

/** The gateway drains at the deadline. The client should resume the session elsewhere. */
export interface SessionMoving extends Numbered {
  type: "session.moving";
  reason?: string;
  deadline?: string;
}

/** The session ends in `ms`. */
export interface SessionEnding extends Numbered {
  type: "session.ending";
  reason: string;
  after?: number;
}

/** Returns a conversation that continued by voice to the text agent. */
export interface Handback {
  conversation_id: string;
  summary: string;
}

/** The last message of a session. */
export interface SessionEnded extends Numbered {
  type: "session.ended";
  reason: string;
  handback?: Handback;
}

export interface ErrorMessage extends Numbered {
  type: "error";
  code: string;
  message: string;
  retryable: boolean;
  /** The subject of the error, such as a field or an id. */
  ref?: string;
  /** When the block ends, for "blocked". */
  until?: string;
  retry_after_ms?: number;
}

export interface Pong extends Numbered {
  type: "pong";
  t: number;
}

/** One finished call with all its data. Only with inspect. */
export interface InspectCall extends Numbered {
  type: "inspect.call";
  call_id: string;
  tool: string;
  /** From the model's call until the tool began; 0 if nothing ran. */
  queued_ms: number;
  run_ms: number;
  /** The audit record (docs/audit.md). */
  record: Record<string, unknown>;
  /** As run, after defaults and clamps. */
  args: unknown;
  /** The answer that the model received. */
  envelope: Record<string, unknown>;
}

/** The orchestrator's state after a step. Only with inspect. */
export interface InspectState extends Numbered {
  type: "inspect.state";
  phase: "connecting" | "active" | "ending" | "ended";
  speaking: boolean;
  responding: boolean;
  /** Unanswered calls. */
  awaiting: number;
  /** Open confirmation requests. */
  questions: number;
  notices: number;
  muted: boolean;
  suppressed: { audio: boolean; transcript: boolean };
  /** The open turn's budget; absent between turns. */
  budget?: Record<string, unknown>;
  /** The session's cost so far, in all turns and between them. */
  cost?: Usage["cost"];
}

/** An intent that a tool returned, applied or refused. Only with inspect. */
export interface InspectIntent extends Numbered {
  type: "inspect.intent";
  intent: { type: string; [field: string]: unknown };
  applied: boolean;
  why?: string;
}

export type ServerMessage =
  | SessionStarted
  | AudioStart
  | AudioEnd
  | AudioFlush
  | SpeechStarted
  | SpeechStopped
  | TranscriptMessage
  | TurnStarted
  | TurnEnded
  | ToolStarted
  | ToolProgress
  | JobProgress
  | ToolMessage
  | ToolEnded
  | ConfirmationRequest
  | ConfirmationEnded
  | Timeout
  | VoiceSessionStart
  | UiImage
  | TextDelta
  | TextDone
  | ToolCallMessage
  | UsageMessage
  | Done
  | AgentSwitched
  | ClaimUnmatched
  | AnswerStopped
  | ProviderReconnecting
  | ProviderReconnected
  | SessionMoving
  | SessionEnding
  | SessionEnded
  | ErrorMessage
  | Pong
  | InspectCall
  | InspectState
  | InspectIntent;
