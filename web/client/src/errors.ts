import { DISPLACED, mayHelp } from "./connection/codes.js";
import type { ErrorMessage } from "./protocol/messages.js";
import { WORDS, ofClose, ofGateway } from "./words.js";

/** Error codes for programs. */
export type VoiceErrorCode =
  // Devices.
  /**
   * The page was loaded over plain http from another machine; browsers then have no microphone and no
   * worklets.
   */
  | "insecure_page"
  /** The user or the site settings deny the microphone. */
  | "microphone_denied"
  /** The user closed the browser's prompt without an answer. */
  | "microphone_dismissed"
  /** The operating system denies the browser the microphone. */
  | "microphone_system"
  /** The frame around this page does not delegate the microphone (`allow`, `sandbox`). */
  | "microphone_frame"
  /** The page's own Permissions-Policy header excludes the microphone. */
  | "microphone_policy"
  /** The permission was revoked during the call. */
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
  /** The worklets were not found at their URLs. */
  | "worklets_missing"
  | "audio_suspended"
  | "echo_possible"
  /** An answer is longer than the playback queue. */
  | "too_long"
  // Connection.
  /** The program does not run in a page but on a server or in a worker. */
  | "no_browser"
  /** The gateway does not answer or its certificate is not trusted; browsers do not tell them apart. */
  | "unreachable"
  /** The gateway does not answer, and the browser is offline. */
  | "offline"
  /** The option `url` is not an address. */
  | "invalid_url"
  /** The page was loaded over https, but the gateway's address is ws:. */
  | "mixed_content"
  /** The page's content security policy blocks the connection. */
  | "socket_blocked"
  /** The server at the address is not a gateway's voice endpoint. */
  | "wrong_path"
  /** The gateway answers HTTP, but the WebSocket did not open. */
  | "no_websocket"
  /** The gateway does not allow pages of this origin. */
  | "origin"
  /** The gateway or a proxy refused the connection; `gatewayCode` has the reason if the page may know it. */
  | "refused"
  | "full"
  | "lost"
  | "slow"
  | "no_start"
  /** The session cannot be resumed: the gateway no longer has it, or it belongs to another user. */
  | "resume_refused"
  /** Another tab resumed the session. */
  | "moved"
  /** The only ticket was used. */
  | "ticket"
  /** The option `ticket` failed. */
  | "ticket_failed"
  /** A typed message may not have arrived, or could not be stored for later. */
  | "unsent"
  /** The text to send has no visible character. */
  | "empty"
  /** The source is not an image, the model takes none, or there is no connection. */
  | "image"
  | "aborted"
  | "protocol"
  // The gateway sent an `error` message or an error's close code.
  | "gateway"
  | "closed";

/** Every error of this library: a code for programs, a message and advice for people. */
export class VoiceError extends Error {
  override readonly name = "VoiceError";
  /** How to fix it: one sentence for the user. */
  readonly advice: string;
  /** Whether a new attempt may succeed. */
  readonly retryable: boolean;
  /** The gateway's own error code (docs/protocol.md), if it sent one. */
  readonly gatewayCode: string | undefined;
  /** The WebSocket's close code, if it was closed. */
  readonly closeCode: number | undefined;
  /** The gateway's message. */
  readonly gatewayMessage: ErrorMessage | undefined;

  /** The message and advice default to those of the code. */
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

/** Converts an `error` message of the gateway, by voice or by text. */
export function gatewayError(said: ErrorMessage, closeCode?: number): VoiceError {
  const { message, advice } = ofGateway(said);
  return new VoiceError("gateway", message, { advice, retryable: said.retryable, gatewayCode: said.code, gatewayMessage: said, closeCode });
}

/**
 * Returns the error for a close code; undefined for a normal end. `said` is the error that the gateway sent
 * right before, if any.
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
