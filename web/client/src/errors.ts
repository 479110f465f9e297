import { DISPLACED, mayHelp } from "./connection/codes.js";
import type { ErrorMessage } from "./protocol/messages.js";
import { WORDS, ofClose, ofGateway } from "./words.js";

/** What went wrong, as a word that a program can switch on. */
export type VoiceErrorCode =
  // The devices.
  /** The page came over plain http from another machine: browsers then offer no microphone and no worklets. */
  | "insecure_page"
  /** The user or the site settings refuse the microphone. */
  | "microphone_denied"
  /** The user closed the browser's question without an answer. */
  | "microphone_dismissed"
  /** The operating system refuses the browser the microphone. */
  | "microphone_system"
  /** The frame around this page does not pass the microphone on (`allow`, `sandbox`). */
  | "microphone_frame"
  /** The page's own Permissions-Policy header excludes the microphone. */
  | "microphone_policy"
  /** The permission was withdrawn during the call. */
  | "microphone_revoked"
  | "microphone_missing"
  | "microphone_busy"
  | "microphone_failed"
  | "microphone_lost"
  | "microphone_silenced"
  | "speaker_failed"
  | "audio_unavailable"
  /** The page's content security policy blocks the worklets. */
  | "worklets_blocked"
  /** The worklets are not where they are looked for. */
  | "worklets_missing"
  | "audio_suspended"
  | "echo_possible"
  /** An answer is longer than what may wait to be played. */
  | "too_long"
  // The way to the gateway.
  /** There is no page here: the program runs on a server, or in a worker. */
  | "no_browser"
  /** Nothing answers, or its certificate is not trusted: browsers do not say which. */
  | "unreachable"
  /** Nothing answers, and the browser has no network. */
  | "offline"
  /** The option `url` is not an address. */
  | "invalid_url"
  /** The page came over https, and the gateway's address is ws:. */
  | "mixed_content"
  /** The page's content security policy blocks the connection. */
  | "socket_blocked"
  /** Something answers, but not a gateway's voice endpoint. */
  | "wrong_path"
  /** The gateway answers to HTTP, but the WebSocket did not open. */
  | "no_websocket"
  /** The gateway does not allow pages of this origin. */
  | "origin"
  /** The gateway or a proxy refused the connection: `gatewayCode` says why, where the page may know. */
  | "refused"
  | "full"
  | "lost"
  | "slow"
  | "no_start"
  /** The session cannot be taken up again: the gateway has it no more, or gives it to somebody else. */
  | "resume_refused"
  /** Another tab has taken the session up. */
  | "moved"
  /** The only ticket has been used. */
  | "ticket"
  /** The option `ticket` failed to bring one. */
  | "ticket_failed"
  /** What was typed may not have arrived, or could not be kept until it can be sent. */
  | "unsent"
  /** What was to be sent as typed has nothing that can be seen. */
  | "empty"
  /** What was to be shown is no image, the model takes none, or there is no connection. */
  | "image"
  | "aborted"
  | "protocol"
  // What the gateway said: a code of its `error` message or a close code.
  | "gateway"
  | "closed";

/** Every error of this library: a word for programs and sentences for people. */
export class VoiceError extends Error {
  override readonly name = "VoiceError";
  /** What to do about it, in a sentence for the user. */
  readonly advice: string;
  /** Whether trying again may help. */
  readonly retryable: boolean;
  /** The gateway's own error code (docs/protocol.md), where it said one. */
  readonly gatewayCode: string | undefined;
  /** The WebSocket's close code, where it has been closed. */
  readonly closeCode: number | undefined;
  /** The gateway's message. */
  readonly gatewayMessage: ErrorMessage | undefined;

  /** Without a message or an advice it has those of its code. */
  constructor(
    readonly code: VoiceErrorCode,
    message?: string,
    more: {
      advice?: string;
      retryable?: boolean;
      gatewayCode?: string | undefined;
      closeCode?: number | undefined;
      gatewayMessage?: ErrorMessage | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message ?? WORDS[code].message, more.cause === undefined ? {} : { cause: more.cause });
    this.advice = more.advice ?? WORDS[code].advice;
    this.retryable = more.retryable ?? false;
    this.gatewayCode = more.gatewayCode;
    this.closeCode = more.closeCode;
    this.gatewayMessage = more.gatewayMessage;
  }
}

/** An `error` message of the gateway, by voice or by text, in sentences for the user. */
export function gatewayError(said: ErrorMessage, closeCode?: number): VoiceError {
  const { message, advice } = ofGateway(said);
  return new VoiceError("gateway", message, { advice, retryable: said.retryable, gatewayCode: said.code, gatewayMessage: said, closeCode });
}

/**
 * What a closed connection means; undefined where it ended as it should. `said` is the
 * error that the gateway sent right before, if it did.
 */
export function closeError(closeCode: number, said: ErrorMessage | null): VoiceError | undefined {
  if (closeCode === 1000) {
    return undefined;
  }
  if (closeCode === DISPLACED) {
    return new VoiceError("moved", undefined, { closeCode });
  }
  if (said !== null) {
    return gatewayError(said, closeCode);
  }
  const { message, advice } = ofClose(closeCode);
  const code = closeCode === 1006 ? "lost" : "closed";
  return new VoiceError(code, message, { advice, retryable: mayHelp(closeCode), closeCode });
}
