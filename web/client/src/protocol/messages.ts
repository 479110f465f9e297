// The messages of voicegw.v1, as the gateway's client protocol defines them.
//
// Text frames are one JSON object with a `type`; binary frames are audio and
// nothing else: PCM16 little-endian mono at the negotiated rate, no header.
// Durations are integers in milliseconds, times RFC 3339 in UTC. The source is
// docs/protocol.md of the gateway.

/** The WebSocket subprotocol this library speaks. */
export const SUBPROTOCOL = "voicegw.v1";

/** Sampling rates of the uplink, in Hz. */
export type InputRate = 8000 | 16000 | 24000 | 44100 | 48000;
/** Sampling rates of the downlink, in Hz. */
export type OutputRate = 8000 | 16000 | 24000 | 48000;

/** Which audio of an item a client has, queued or played: ms from the item's beginning. */
export interface AudioPosition {
  item_id: string;
  received_ms: number;
}

/** A piece of what the user has said, in ms on the session's input clock. */
export interface InputRange {
  from_ms: number;
  to_ms: number;
}

/** Takes up a session that has lost its connection. */
export interface ResumeRequest {
  session_id: string;
  /** The newest resume_token. A secret. */
  token: string;
  /** All messages up to it have come; what was said after it is said again. */
  last_seq: number;
  /** The newest item: it goes on from there. Without it what was not heard is dropped. */
  audio?: AudioPosition;
  /** What is kept of what the user has said, up to what was recorded last. */
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
  /** server: the model hears when the user stops. client: push-to-talk, by input.activity. */
  turn_detection?: "server" | "client" | undefined;
  pending_request?: string | undefined;
  conversation_id?: string | undefined;
  resume?: ResumeRequest | undefined;
  /** Asks for inspect.* messages; the gateway may decline. */
  inspect?: boolean | undefined;
  client?: { name?: string; version?: string; id?: string };
  /** The IANA name of the user's time zone: the date and the times of the conversation are in it. */
  time_zone?: string | undefined;
  /** Tools that the client runs: see tool.call. */
  tools?: ToolDeclaration[] | undefined;
}

/** A tool that the client runs. */
export interface ToolDeclaration {
  name: string;
  description: string;
  /** JSON Schema of its arguments. Without it the tool takes no arguments. */
  schema?: object | undefined;
  /** A call changes nothing and may run twice. */
  read_only?: boolean | undefined;
  /** Default 10000. */
  timeout_ms?: number | undefined;
}

/** A typed user turn. `id` is ours and becomes the id of its transcript. */
export interface InputText {
  type: "input.text";
  text: string;
  id?: string;
}

/** A still image that the user shows. It begins no turn. Only where session.started says `images`. */
export interface InputImage {
  type: "input.image";
  mime: "image/jpeg" | "image/png";
  /** The file in base64: at most 44 KiB of it. */
  data: string;
}

/** What the page tells the model without a turn. Only where session.started says `context`. */
export interface InputContext {
  type: "input.context";
  /** At most 4 KiB of UTF-8. */
  text: string;
}

/** Push-to-talk: speech starts, speech ends. */
export interface InputActivity {
  type: "input.activity";
  active: boolean;
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
  /** How much of the item has come: the gateway need not keep that for a resume. */
  received_ms?: number;
  /** All messages up to it have come. */
  seq?: number;
}

/** The user's answer to a confirmation.request, always from a button. */
export interface ConfirmationResolve {
  type: "confirmation.resolve";
  token: string;
  approved: boolean;
}

/** Answers a tool.call, with one of result and error. */
export interface ToolResult {
  type: "tool.result";
  call_id: string;
  /** For the model: any JSON, of at most 16 KiB. */
  result?: unknown;
  error?: ToolFailure;
}

/** A call of a client's tool has failed. */
export interface ToolFailure {
  /** For the model. */
  message: string;
  /** The same call may succeed later. */
  retryable?: boolean;
  /** Something may have been changed all the same. */
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
  /** All messages up to it have come: the gateway need not keep them for a resume. */
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

/** What every message of the gateway carries. */
export interface Numbered {
  /** Rises by one with every message of a session, from 1; 0 where this library says it itself. */
  seq: number;
  /** The turn the message belongs to, from 1; absent where it belongs to none. */
  turn?: number;
}

export interface SessionStarted extends Numbered {
  type: "session.started";
  session_id: string;
  /** Takes the session up again. A secret: the library keeps it, and shows stars in its place. */
  resume_token?: string;
  provider: string;
  model: string;
  agent?: string;
  voice?: string;
  conversation_id?: string;
  /** Of all agents that had documents when the session began, which keeps its agent as it was. */
  agents_version?: string;
  tools_version?: string;
  input_rate: number;
  output_rate: number;
  expires_at: string | null;
  /** A session that was open before goes on. */
  resumed: boolean;
  /** What was missed is not kept any more: how things stand is said anew. */
  snapshot?: boolean;
  /** Where the audio that is sent next stands on the session's input clock, in ms. Absent: 0. */
  input_ms?: number;
  /** What was kept from input_ms on is sent again first: another gateway goes on with the session. */
  input_again?: boolean;
  /** inspect.* messages will come. */
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
  /** Where in the item they begin, in ms: after a resume it goes on from what the client has. Absent: 0. */
  from_ms?: number;
}

/** All audio of the item has been sent. */
export interface AudioEnd extends Numbered {
  type: "audio.end";
  item_id: string;
  audio_ms: number;
}

/** Drop what is queued of the item. No audio.end and no byte of it follows. */
export interface AudioFlush extends Numbered {
  type: "audio.flush";
  item_id: string;
  /** connection_lost: after a resume, the client does not have what was sent of it. */
  reason: "user_speech" | "user_text" | "user_stop" | "user_action" | "session_end" | "connection_lost" | (string & {});
}

/** audio_ms counts on the client's audio clock: since the first sample it sent. */
export interface SpeechStarted extends Numbered {
  type: "speech.started";
  audio_ms: number;
}

/** audio_ms may include the silence that a speech detector waits for. */
export interface SpeechStopped extends Numbered {
  type: "speech.stopped";
  audio_ms: number;
  /** Where the last sound ended, on the same clock; absent where it is not known. */
  end_ms?: number;
}

/** The whole text so far of one utterance: an upsert by `id`, ordered by started_at. */
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
  /** Of the text agent alone. */
  conversation_id?: string;
}

/** Tokens of one turn; cached ones are a subset. */
export interface Usage {
  input_tokens: number;
  output_tokens: number;
  input: { text: number; audio: number; cached_text: number; cached_audio: number };
  output: { text: number; audio: number };
  /** The model has not reported all of it, and the numbers are a guess. */
  estimated?: boolean;
  /** What the turn has cost, in millionths of a dollar, for a client that inspects; what could not be priced is counted apart. */
  cost?: { usd_micros: number; unpriced?: number };
}

/** From the last voiced sample (or the typed text) to the first audio sent to the client, in ms. */
export interface Latency {
  /** From the user's last sound, text or approval. The sum of the three below. */
  speech_end_to_first_audio_ms: number;
  /** Until the end of speech was known; 0 for typed turns. */
  detection_ms: number;
  provider_ms: number;
  gateway_ms: number;
}

export interface TurnEnded extends Numbered {
  type: "turn.ended";
  status: "completed" | "interrupted" | "failed";
  usage: Usage;
  /** Absent where no audio answered. */
  latency?: Latency;
}

export type ToolCategory = "retrieval" | "action" | "utility";

export interface ToolStarted extends Numbered {
  type: "tool.started";
  call_id: string;
  tool: string;
  category?: ToolCategory;
}

/** The tool has outlasted its latency budget and still runs, or says how far it is. */
export interface ToolProgress extends Numbered {
  type: "tool.progress";
  call_id: string;
  tool: string;
  category?: ToolCategory;
  /** So far. */
  duration_ms: number;
  /** What the tool says that it is at. */
  text?: string;
  /** How much is done, from 0 to 1; absent where the tool does not say it. */
  fraction?: number;
}

/** How far long work is that an earlier call has begun; `job_id` is that of the call's answer. It belongs to no turn. */
export interface JobProgress extends Numbered {
  type: "job.progress";
  job_id: string;
  tool: string;
  /** What the work is called. */
  name: string;
  /** What it says that it is at. */
  text?: string;
  /** How much is done, from 0 to 1; absent where the tool does not say it. */
  fraction?: number;
}

/** What a running tool tells the page, in a form that only the two know. */
export interface ToolMessage extends Numbered {
  type: "tool.message";
  call_id: string;
  tool: string;
  category?: ToolCategory;
  /** What data is. */
  name: string;
  data: unknown;
}

/** The error of a tool's envelope; `type` is one of a fixed list. Its words are written for the model. */
export interface ToolError {
  type: string;
  message: string;
  retryable?: boolean;
  partialSideEffects?: boolean;
  suggestion?: string;
  details?: unknown;
  /** Of CONFIRMATION_REQUIRED: what confirmation.request asks, too. */
  confirmation_request?: Record<string, unknown>;
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
  category?: ToolCategory;
  ok: boolean;
  duration_ms: number;
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
  /** What will be run with. Show people args_source: this has JavaScript's numbers. */
  args: Record<string, unknown>;
  /** The arguments exactly as they were sent, as indented JSON: long numbers stay what they are. */
  args_source: string;
  preview: string;
  expires_at: string;
}

/** The question is answered, or was not in time. */
export interface ConfirmationEnded extends Numbered {
  type: "confirmation.ended";
  token: string;
  tool: string;
  /**
   * Two are this library's own. `lost`: the session that asked is over, and its question with
   * it. `unknown`: it ended while there was no connection, and nobody says any more how.
   */
  outcome: "approved" | "denied" | "expired" | "lost" | "unknown" | (string & {});
}

/** The user is shut out for a while (the ignore_user contract). */
export interface Timeout extends Numbered {
  type: "timeout";
  /** In ms since the epoch. */
  timeoutUntil: number;
  durationSeconds: number;
  message: string;
}

/** The text agent invites to go on by voice (its stream only). */
export interface VoiceSessionStart extends Numbered {
  type: "voice_session_start";
  sessionId: string;
  pendingRequest: string;
  /** For connect({ticket}); works once, for a minute. */
  ticket: string;
  url: string;
  expires_at: string;
}

/** A picture that a tool has made. */
export interface UiImage extends Numbered {
  type: "ui.image";
  id: string;
  /** From the root of the gateway. */
  url: string;
  prompt: string;
  /** In pixels. */
  width: number;
  height: number;
  expires_at: string;
}

/** A piece of the text agent's answer (its stream only). */
export interface TextDelta extends Numbered {
  type: "text.delta";
  item_id: string;
  text: string;
}

/**
 * The whole of one text of the text agent. cut: the model's length limit ended it.
 * refused: the model, or a filter, would not answer.
 */
export interface TextDone extends Numbered {
  type: "text.done";
  item_id: string;
  text: string;
  cut?: boolean;
  refused?: boolean;
}

/** A tool that the client is to run: by voice one that session.start has declared. The library runs it. */
export interface ToolCallMessage extends Numbered {
  type: "tool.call";
  call_id: string;
  name: string;
  args: unknown;
  /** How long the gateway still waits. */
  timeout_ms?: number;
  /** It was asked before, on a connection that is gone: the call may be under way, or done. */
  again?: boolean;
}

/** The tokens of a turn of the text agent. */
export interface UsageMessage extends Numbered, Usage {
  type: "usage";
}

/** The last message of a turn of the text agent. */
export interface Done extends Numbered {
  type: "done";
  conversation_id: string;
  status: "completed" | "failed";
}

/** Another agent goes on with the conversation. */
export interface AgentSwitched extends Numbered {
  type: "agent.switched";
  from: string;
  to: string;
  /** A few words of the agent before, or of whoever has switched. */
  reason?: string;
}

/** The gateway has lost its connection to the model and restores it. */
export interface ProviderReconnecting extends Numbered {
  type: "provider.reconnecting";
  reason?: string;
}

/** It is restored after lost_ms. */
export interface ProviderReconnected extends Numbered {
  type: "provider.reconnected";
  reason?: string;
  lost_ms?: number;
  /** What the model still knows. resumed: all; replayed: what was said, as text; fresh: nothing. */
  how?: "resumed" | "replayed" | "fresh" | (string & {});
}

/** The gateway is about to leave, at the deadline: the session is to be taken up again, anywhere. */
export interface SessionMoving extends Numbered {
  type: "session.moving";
  reason?: string;
  deadline?: string;
}

/** The session will end by itself, after ms. */
export interface SessionEnding extends Numbered {
  type: "session.ending";
  reason: string;
  after?: number;
}

/** Gives a conversation back that has gone on by voice. */
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
  /** What it is about: a field, an id. */
  ref?: string;
  /** When it will be over: of "blocked". */
  until?: string;
  retry_after_ms?: number;
}

export interface Pong extends Numbered {
  type: "pong";
  t: number;
}

/** One finished call with all that is known of it. Only with inspect. */
export interface InspectCall extends Numbered {
  type: "inspect.call";
  call_id: string;
  tool: string;
  /** From the model's call until the tool began; 0 where nothing ran. */
  queued_ms: number;
  run_ms: number;
  /** The audit's record (docs/audit.md). */
  record: Record<string, unknown>;
  /** As run: after defaults and clamps. */
  args: unknown;
  /** The answer that the model was given. */
  envelope: Record<string, unknown>;
}

/** What the orchestrator's state looks like after a step. Only with inspect. */
export interface InspectState extends Numbered {
  type: "inspect.state";
  phase: "connecting" | "active" | "ending" | "ended";
  speaking: boolean;
  responding: boolean;
  /** Calls that are owed an answer. */
  awaiting: number;
  /** Confirmations that are open. */
  questions: number;
  notices: number;
  muted: boolean;
  suppressed: { audio: boolean; transcript: boolean };
  /** The open turn's account; absent between turns. */
  budget?: Record<string, unknown>;
  /** What the session has cost so far, in all its turns and between them. */
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
