// The voice agent's state, and how each event changes it.
import type { Disconnected, LocalEvents, MicrophoneState, ServerMessage, SessionStarted, SessionState, VoiceErrorCode } from "@voicegw/client";
import type { Happening, Noticed } from "./feed.js";
import { noticeOf, type Notice } from "./notice.js";
import * as words from "../words.js";

/** The open session, or the last one. */
export interface SessionFacts {
  readonly id: string;
  readonly provider: string;
  readonly model: string;
  readonly voice: string;
  readonly agent: string;
  readonly inspect: boolean;
}

/** The length of a call so far, across sessions and pages. */
export interface CallLength {
  /** When it first opened, in ms since the epoch on this machine's clock; null before. */
  readonly began: number | null;
  readonly turns: number;
  /** The number of the session's newest turn. */
  readonly turn: number | undefined;
}

/** A connection being restored. Times are ms since the epoch. */
export interface Retry {
  readonly attempt: number;
  /** When the next attempt starts. */
  readonly at: number;
  /** When the connection was lost. */
  readonly lostAt: number;
  /** Speech until then is stored and heard later; later speech may be lost. */
  readonly keptUntil: number;
}

/** How much speech the client library stores, in ms. */
const KEPT_MS = 15_000;

/** The event that clears a notice. turn: the model continues. microphone, sound: they work again. call: none. */
type Subject = "turn" | "microphone" | "sound" | "call";

/** Everything shown of a call except its lines and levels. */
export interface VoiceState extends CallLength {
  /** ending: silent, waiting for the gateway's last message. failed: it ended before it was open. */
  readonly phase: "none" | "connecting" | "open" | "reconnecting" | "ending" | "ended" | "failed";
  readonly microphone: MicrophoneState;
  /** The device in use, by the browser's name. */
  readonly microphoneLabel: string;
  readonly microphoneId: string;
  readonly session: SessionFacts | null;
  /** Push-to-talk, and whether the button is pressed. */
  readonly pushToTalk: boolean;
  readonly pressed: boolean;
  readonly userSpeaking: boolean;
  /** The playing item. */
  readonly sounding: string | null;
  /** The user waits for an answer. */
  readonly owed: boolean;
  /** The gateway is restoring its connection to the model. */
  readonly restoring: boolean;
  /** The connection to the gateway broke. */
  readonly retry: Retry | null;
  /** The response time of the last turn that has one, as reported by the gateway. */
  readonly answeredInMs: number | null;
  /** The current problem. Its subject determines what clears it. */
  readonly notice: Notice | null;
  readonly about: Subject;
  /** The gateway's reason for the session's end. */
  readonly reason: string;
}

export const SILENT: VoiceState = {
  phase: "none",
  microphone: "off",
  microphoneLabel: "",
  microphoneId: "",
  session: null,
  pushToTalk: false,
  pressed: false,
  userSpeaking: false,
  sounding: null,
  owed: false,
  restoring: false,
  retry: null,
  began: null,
  turns: 0,
  turn: undefined,
  answeredInMs: null,
  notice: null,
  about: "call",
  reason: "",
};

/** A call is running, so another cannot start. */
export function running({ phase }: VoiceState): boolean {
  return phase !== "none" && phase !== "ended" && phase !== "failed";
}

/** Whether Stop would stop something. */
export function stoppable(state: VoiceState): boolean {
  return state.phase === "open" && (state.sounding !== null || state.owed);
}

/** The call's activity in one word. */
export type Activity =
  | "none"
  | "asking"
  | "connecting"
  | "reconnecting"
  | "hearing"
  | "speaking"
  | "restoring"
  | "thinking"
  | "waiting"
  | "listening"
  | "muted"
  | "silenced"
  | "typing"
  | "ending"
  | "ended"
  | "failed";

/** Only one activity is shown; the most important comes first. */
export function activity(state: VoiceState): Activity {
  if (state.phase === "connecting") {
    return state.microphone === "asking" ? "asking" : "connecting";
  }
  if (state.phase !== "open") {
    return state.phase;
  }
  if (state.userSpeaking || state.pressed) {
    return "hearing";
  }
  if (state.sounding !== null) {
    return "speaking";
  }
  if (state.restoring) {
    return "restoring";
  }
  if (state.owed) {
    return "thinking";
  }
  switch (state.microphone) {
    case "live":
      return state.pushToTalk ? "waiting" : "listening";
    case "muted":
    case "silenced":
      return state.microphone;
    default:
      return "typing";
  }
}

/** Returns the state after an event of the voice agent's side. */
export function afterVoice(state: VoiceState, happening: Happening): VoiceState {
  switch (happening.kind) {
    case "received":
      return afterMessage(state, happening.message as ServerMessage, happening.wall);
    case "sent":
      return afterSent(state, happening.message.type, happening.message["active"] === true);
    case "noticed":
      return afterNoticed(state, happening, happening.wall);
    default:
      return state;
  }
}

function afterMessage(state: VoiceState, message: ServerMessage, wall: number): VoiceState {
  switch (message.type) {
    case "session.started":
      // A resumed session repeats what was missed. A new one, or a snapshot, starts from its own messages.
      return {
        ...(message.resumed === true && message.snapshot !== true ? state : unheard(state)),
        ...(message.resumed === true ? {} : { turn: undefined }),
        // A call continues across sessions after a lost connection.
        began: state.began ?? wall,
        session: factsOf(message),
      };
    case "speech.started":
      return { ...state, userSpeaking: true };
    case "speech.stopped":
      return { ...state, userSpeaking: false, owed: true };
    case "turn.started":
      // The model continues, so earlier problems are over.
      return { ...over(state, "turn"), turns: state.turns + Number(message.turn === undefined || message.turn !== state.turn), turn: message.turn };
    case "turn.ended":
      return { ...state, owed: false, answeredInMs: message.latency?.speech_end_to_first_audio_ms ?? state.answeredInMs };
    case "error":
      return { ...state, owed: false };
    case "agent.switched":
      return { ...state, session: state.session === null ? null : { ...state.session, agent: message.to } };
    case "provider.reconnecting":
      return { ...state, restoring: true };
    case "provider.reconnected":
      return { ...state, restoring: false };
    case "session.ending":
      return { ...state, notice: words.endingNotice(message.reason, message.after), about: "call" };
    case "timeout":
      return { ...state, notice: { title: message.message, advice: words.shutOut(message.timeoutUntil) }, about: "call" };
    default:
      return state;
  }
}

function afterSent(state: VoiceState, type: string, active: boolean): VoiceState {
  switch (type) {
    case "input.text":
      return { ...state, owed: true };
    case "input.activity":
      return { ...state, pressed: active, owed: !active };
    case "interrupt":
      return { ...state, owed: false };
    default:
      return state;
  }
}

function afterNoticed(state: VoiceState, noticed: Noticed, wall: number): VoiceState {
  switch (noticed.name) {
    case "state":
      return afterState(state, noticed.event);
    case "sounding":
      return { ...state, sounding: noticed.event.item, owed: false };
    case "played":
      return noticed.event.done && noticed.event.item === state.sounding ? { ...state, sounding: null } : state;
    case "microphone":
      return afterMicrophone(state, noticed.event);
    case "speaker":
      return noticed.event.state === "playing" ? over(state, "sound") : state;
    case "reconnecting":
      return { ...state, phase: "reconnecting", retry: retryOf(noticed.event, wall) };
    case "reconnected":
      return { ...state, phase: "open", retry: null };
    case "error":
      return { ...state, notice: noticeOf(noticed.event), about: subjectOf(noticed.event.code) };
    case "disconnected":
      return afterEnd(state, noticed.event);
    default:
      return state;
  }
}

function retryOf({ attempt, delayMs, lostMs, resumable }: LocalEvents["reconnecting"], wall: number): Retry {
  return { attempt, at: wall + delayMs, lostAt: wall - lostMs, keptUntil: resumable ? wall - lostMs + KEPT_MS : 0 };
}

function afterState(state: VoiceState, event: SessionState): VoiceState {
  if (event !== "disconnected") {
    return { ...state, phase: event === "connected" ? "open" : event, retry: event === "connected" ? null : state.retry };
  }
  // The event "disconnected" reports how it ended.
  return { ...interrupted(state), phase: "ending", retry: null };
}

function afterMicrophone(state: VoiceState, event: { state: MicrophoneState; deviceId: string | undefined; label: string }): VoiceState {
  const on = isOn(event.state);
  return {
    ...(on && event.state !== "silenced" ? over(state, "microphone") : state),
    microphone: event.state,
    microphoneLabel: on ? event.label : "",
    microphoneId: on ? (event.deviceId ?? "") : "",
    userSpeaking: on && state.userSpeaking,
  };
}

/** Whether the call has a microphone, even a silent one. */
export function isOn(microphone: MicrophoneState): boolean {
  return microphone === "live" || isMuted(microphone);
}

/** Whether the voice agent hears silence, by the user's choice or the system's. */
export function isMuted(microphone: MicrophoneState): boolean {
  return microphone === "muted" || microphone === "silenced";
}

function subjectOf(code: VoiceErrorCode): Subject {
  // Without worklets there is no microphone either.
  if (code.startsWith("microphone_") || code.startsWith("worklets_") || code === "insecure_page" || code === "audio_unavailable") {
    return "microphone";
  }
  return code.startsWith("audio_") || code === "speaker_failed" ? "sound" : "turn";
}

/** The state without a notice of this subject. */
function over(state: VoiceState, subject: Subject): VoiceState {
  return state.about === subject ? { ...state, notice: null, about: "call" } : state;
}

/** Ends everything open on the gateway's side. */
function unheard(state: VoiceState): VoiceState {
  return { ...state, userSpeaking: false, owed: false, restoring: false };
}

/** Ends everything open. */
function interrupted(state: VoiceState): VoiceState {
  return { ...unheard(state), pressed: false, sounding: null };
}

function afterEnd(state: VoiceState, event: Disconnected): VoiceState {
  return {
    ...interrupted(state),
    phase: state.session === null ? "failed" : "ended",
    microphone: "off",
    microphoneLabel: "",
    microphoneId: "",
    retry: null,
    notice: event.error === undefined || event.error.code === "aborted" ? null : noticeOf(event.error),
    about: "call",
    reason: event.reason,
  };
}

function factsOf(message: SessionStarted): SessionFacts {
  return {
    id: message.session_id,
    provider: message.provider ?? "",
    model: message.model ?? "",
    voice: message.voice ?? "",
    agent: message.agent ?? "",
    inspect: message.inspect === true,
  };
}
