import type { WorkletUrls } from "./audio/worklets/load.js";
import type { RetryOptions } from "./connection/retry.js";
import type { InputRate, OutputRate } from "./protocol/messages.js";
import type { ClientTools } from "./tools.js";

/** The options of connect. All are optional on a page that the gateway itself serves. */
export interface ConnectOptions {
  /** The gateway's /v1/voice; http and https are accepted. Default: `v1/voice` relative to the page. */
  url?: string | URL;
  /**
   * The ticket from POST /v1/sessions or a `voice_session_start`. It works once, so a function is called for
   * each new session; with a string, the library can only resume the session, not open another.
   */
  ticket?: string | (() => string | Promise<string>);
  /**
   * An operator's key or a console's token, which permits `inspect`. Sent as a subprotocol with each
   * connection. Not for pages of your users.
   */
  key?: string | (() => string | undefined);
  provider?: string;
  agent?: string;
  voice?: string;
  /** The conversation to continue. Default: a new one with a random id. */
  conversationId?: string;
  /** A request that the agent answers first, without hearing it again. */
  pendingRequest?: string;
  /** In Hz. Default 16000. */
  inputRate?: InputRate;
  /** In Hz. Default 24000. */
  outputRate?: OutputRate;
  /**
   * Default true: uses the default microphone. false: starts with typing only; the microphone can be turned
   * on later.
   */
  microphone?: boolean | MicrophoneOptions;
  /** Default server. client: push-to-talk, see Microphone.press. */
  turnDetection?: "server" | "client";
  /** Requests inspect.* messages. */
  inspect?: boolean;
  /** Tools that this page runs for the agent, by name. They are fixed when the session begins. */
  tools?: ClientTools;
  /** The client, for the gateway's logs. `id` identifies the user if the gateway has no other name. */
  client?: { name?: string; version?: string; id?: string };
  /** The IANA name of the user's time zone, which the agent uses for dates and times. Default: this machine's. */
  timeZone?: string;
  /**
   * The name under which this tab stores the session, so that it continues when the page reloads. Stored in
   * sessionStorage until the session ends. Default `session`. Sessions open on one page at the same time need
   * different names; otherwise only the first is stored. false: nothing is stored, and the session ends with
   * its page.
   */
  keep?: string | false;
  /**
   * Default true: resumes the session that the previous page stored (see keep), unless these options ask for
   * another one. If the gateway no longer has it, a new session begins and the warning `resume_refused` is
   * emitted. "only": `open` rejects with that error instead. false: always begins a new session.
   */
  resume?: boolean | "only";
  /** Default: up to 10 attempts with growing delays. false: a lost connection ends the session. */
  reconnect?: boolean | RetryOptions;
  /** The worklets' URLs. Default: the files of this package. For pages whose bundler does not find them. */
  worklets?: WorkletUrls;
  /** Default: a context of its own, closed with the session. A given context stays open. */
  audioContext?: AudioContext;
  /** The loudspeaker, if the browser lets pages choose (setSinkId). */
  speakerId?: string;
  /** Ends the session, even while it is opening. */
  signal?: AbortSignal;
}

export interface MicrophoneOptions {
  deviceId?: string;
  /** All three default to true. */
  echoCancellation?: boolean;
  noiseSuppression?: boolean;
  autoGainControl?: boolean;
}
