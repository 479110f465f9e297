import type { WorkletUrls } from "./audio/worklets/load.js";
import type { RetryOptions } from "./connection/retry.js";
import type { InputRate, OutputRate } from "./protocol/messages.js";
import type { ClientTools } from "./tools.js";

/** What connect needs; everything may be left out on a page that the gateway itself serves. */
export interface ConnectOptions {
  /** The gateway's /v1/voice. Default: `v1/voice` beside the page. http and https are understood. */
  url?: string | URL;
  /**
   * The ticket from POST /v1/sessions or a `voice_session_start`. It works once, so a
   * function is asked again for each new connection; with a string there is no reconnecting
   * but by resume.
   */
  ticket?: string | (() => string | Promise<string>);
  /**
   * An operator's key, or a console's token: it lets `inspect` look inside. It is offered as a
   * subprotocol at each new connection. Not for pages of your users.
   */
  key?: string | (() => string | undefined);
  provider?: string;
  agent?: string;
  voice?: string;
  /** The conversation that goes on. Default: a new one of a random name. */
  conversationId?: string;
  /** Answered first, without being asked again. */
  pendingRequest?: string;
  /** Default 16000 Hz. */
  inputRate?: InputRate;
  /** Default 24000 Hz. */
  outputRate?: OutputRate;
  /** Default true: asks for the default microphone. false: typing only; it can be turned on later. */
  microphone?: boolean | MicrophoneOptions;
  /** Default server. client: push-to-talk, see Microphone.press. */
  turnDetection?: "server" | "client";
  /** Asks for inspect.* messages. */
  inspect?: boolean;
  /** Tools that this page runs for the agent, by the names that the model calls. The session keeps those it began with. */
  tools?: ClientTools;
  /** Who calls, for the gateway's logs. `id` is the user where the gateway has no other name. */
  client?: { name?: string; version?: string; id?: string };
  /** The IANA name of the user's time zone, in which the agent takes dates and times. Default: this machine's. */
  timeZone?: string;
  /**
   * Under which name this tab keeps what the session needs to go on when the page is loaded
   * again: in sessionStorage, cleared when the session ends. Default `session`; sessions that
   * are open on one page at the same time need names of their own, or only the first is kept.
   * false: nothing is kept, and the session ends with its page.
   */
  keep?: string | false;
  /**
   * Default true: the session that the page before has left (see keep) is taken up, unless
   * these options ask for another one; where the gateway has it no more, a new one begins, with
   * a warning `resume_refused`. "only": no new one begins, `open` rejects with that error. false:
   * a new one begins, whatever was left.
   */
  resume?: boolean | "only";
  /** Default: up to 10 tries with growing pauses. false: a broken connection ends the session. */
  reconnect?: boolean | RetryOptions;
  /** Default: the files of this package. For pages whose bundler does not find them. */
  worklets?: WorkletUrls;
  /** Default: one of our own, closed with the session. One that is given stays open. */
  audioContext?: AudioContext;
  /** The loudspeaker, where the browser lets a page choose (setSinkId). */
  speakerId?: string;
  /** Ends the session, also while it is being opened. */
  signal?: AbortSignal;
}

export interface MicrophoneOptions {
  deviceId?: string;
  /** Defaults true, all three. */
  echoCancellation?: boolean;
  noiseSuppression?: boolean;
  autoGainControl?: boolean;
}
