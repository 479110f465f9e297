import type { ServerMessage } from "./protocol.js";
import type { PlayNotice } from "./worklets/messages.js";
import type { Notice } from "./words.js";

/** Everything the view shows apart from the transcript and the meters. */
export interface State {
  /** failed: it ended before it was open. */
  phase: "idle" | "asking" | "connecting" | "open" | "ended" | "failed";
  mic: "off" | "live" | "muted";
  userSpeaking: boolean;
  /** The item that sounds. */
  sounding: string | null;
  /** An answer is owed: the user has said or typed something. */
  owed: boolean;
  reconnecting: boolean;
  provider: string;
  model: string;
  /** From the end of speech to the first audio, of the last turn. */
  answeredInMs: number | null;
  /** What went wrong, in words. It stands until something makes it untrue. */
  notice: Notice | null;
  /** Why the gateway ended the session. */
  reason: string | undefined;
}

export const IDLE: State = {
  phase: "idle",
  mic: "off",
  userSpeaking: false,
  sounding: null,
  owed: false,
  reconnecting: false,
  provider: "",
  model: "",
  answeredInMs: null,
  notice: null,
  reason: undefined,
};

/** What the conversation is doing, one word per state. */
export type Activity =
  | "idle"
  | "asking"
  | "connecting"
  | "reconnecting"
  | "hearing"
  | "speaking"
  | "thinking"
  | "muted"
  | "typing"
  | "listening"
  | "ended"
  | "failed";

/** Only one thing is said at a time; this is the order of what matters. */
export function activity(state: State): Activity {
  if (state.phase !== "open") {
    return state.phase;
  }
  if (state.userSpeaking) {
    return "hearing";
  }
  if (state.sounding !== null) {
    return "speaking";
  }
  if (state.reconnecting) {
    return "reconnecting";
  }
  if (state.owed) {
    return "thinking";
  }
  if (state.mic === "live") {
    return "listening";
  }
  return state.mic === "muted" ? "muted" : "typing";
}

/** The state after a message of the gateway. */
export function onMessage(state: State, message: ServerMessage): State {
  switch (message.type) {
    case "session.started":
      return { ...state, phase: "open", provider: message.provider ?? "", model: message.model ?? "" };
    case "speech.started":
      return { ...state, userSpeaking: true };
    case "speech.stopped":
      return { ...state, userSpeaking: false, owed: true };
    case "turn.ended":
      return {
        ...state,
        owed: false,
        answeredInMs: message.latency?.speech_end_to_first_audio_ms ?? state.answeredInMs,
      };
    case "audio.flush":
      return { ...state, sounding: state.sounding === message.item_id ? null : state.sounding };
    case "error":
      return { ...state, owed: false };
    case "provider.reconnecting":
      return { ...state, reconnecting: true };
    case "provider.reconnected":
      return { ...state, reconnecting: false };
    default:
      return state;
  }
}

/** The state after a notice of the playback worklet. */
export function onPlayback(state: State, notice: PlayNotice): State {
  if (notice.type === "sounding") {
    return { ...state, sounding: notice.item, owed: false };
  }
  if (notice.type === "report" && notice.done && notice.item === state.sounding) {
    return { ...state, sounding: null };
  }
  return state;
}
