// All messages of this library for users.
import { mayHelp } from "./connection/codes.js";
import type { VoiceErrorCode } from "./errors.js";
import type { ErrorMessage } from "./protocol/messages.js";

/** An error message and advice, together at most 120 characters. */
interface Words {
  message: string;
  advice: string;
}

/** By the library's own codes. */
export const WORDS: { readonly [C in VoiceErrorCode]: Words } = {
  insecure_page: { message: "This page's address is not secure.", advice: "Open it over https or as http://localhost. Or type." },
  microphone_denied: { message: "The microphone is blocked.", advice: "Allow it in the address bar, then turn it on again. Or type." },
  microphone_dismissed: { message: "The microphone was not allowed.", advice: "Turn it on again and choose Allow. Or type." },
  microphone_system: { message: "Your system blocks the microphone.", advice: "Allow this browser to use it in the system's settings. Or type." },
  microphone_frame: { message: "This frame may not use the microphone.", advice: 'Its iframe needs allow="microphone"; a sandbox needs allow-same-origin. Or type.' },
  microphone_policy: { message: "This site's policy disables the microphone.", advice: "Its Permissions-Policy header must allow it. Or type." },
  microphone_revoked: { message: "The microphone permission was revoked.", advice: "Allow it in the address bar, then turn it on again. Or type." },
  microphone_missing: { message: "No microphone was found.", advice: "Connect one, then turn it on again. Or type." },
  microphone_busy: { message: "The microphone is in use.", advice: "Close other programs that use it, then turn it on again. Or type." },
  microphone_failed: { message: "The microphone did not start.", advice: "Reload the page and try again. Or type." },
  microphone_lost: { message: "The microphone was disconnected.", advice: "Connect it again, then turn it on. Or type." },
  microphone_silenced: { message: "No sound is coming from the microphone.", advice: "It may be switched off, or in use by a call. Or type." },
  speaker_failed: { message: "This loudspeaker cannot be used.", advice: "Choose another one, or read the answers." },
  audio_unavailable: { message: "Audio did not start.", advice: "Reload the page and try again. Or type." },
  audio_suspended: { message: "The browser stopped the sound.", advice: "Press anywhere on the page to hear the answers." },
  worklets_blocked: { message: "The page's security policy blocks audio.", advice: "Its script-src must allow the worklets. Or type." },
  worklets_missing: { message: "The audio worklets could not be loaded.", advice: "The site must serve them: see the option worklets. Or type." },
  echo_possible: { message: "The model may hear itself.", advice: "If it interrupts itself, use headphones." },
  image: { message: "The picture cannot be shown to the agent.", advice: "Try another one, or describe it." },
  too_long: { message: "The answer is too long.", advice: "Its end will not be heard. The text is complete." },
  no_browser: { message: "A conversation needs a browser page.", advice: "Start it there, on a click or a key press." },
  unreachable: { message: "The gateway cannot be reached.", advice: "Check your network, and the gateway's address and certificate." },
  offline: { message: "You are offline.", advice: "Check your network, then start again." },
  invalid_url: { message: "The gateway's address is not valid.", advice: "It must be a ws:, wss:, http: or https: address." },
  mixed_content: { message: "A page over https cannot use a ws: address.", advice: "Use the gateway's wss: address." },
  socket_blocked: { message: "The page's security policy blocks the gateway.", advice: "Its connect-src must allow the gateway's wss: address." },
  wrong_path: { message: "No voice gateway answers at this address.", advice: "Check its path, such as /v1/voice, and any proxy." },
  no_websocket: { message: "The gateway answers, but the call did not connect.", advice: "Try again. If it fails again, a proxy may block WebSockets." },
  origin: { message: "The gateway does not allow this site.", advice: "Its operator can add this page's origin to origins." },
  refused: { message: "The gateway refused the connection.", advice: "Try again in a moment, or ask its operator." },
  full: { message: "The gateway isn't accepting new calls.", advice: "It is starting, stopping or full. Start again in a moment." },
  lost: { message: "The connection was lost.", advice: "Check your network, then start again." },
  slow: { message: "Your connection is too slow.", advice: "Parts of what you say are lost. A better network helps." },
  no_start: { message: "The gateway did not open a session.", advice: "Start again in a moment." },
  resume_refused: { message: "The previous call could not be resumed.", advice: "You can start again." },
  moved: { message: "The conversation moved to another tab.", advice: "Continue in the other tab." },
  ticket: { message: "This ticket was already used.", advice: "Start again from your application." },
  ticket_failed: { message: "The page could not get a ticket.", advice: "Check that you are signed in, then start again." },
  empty: { message: "There is nothing to send.", advice: "Type something first." },
  unsent: { message: "Your last message may not have arrived.", advice: "If there is no answer, send it again." },
  aborted: { message: "The conversation was ended.", advice: "You can start again." },
  protocol: { message: "The gateway's answer is not readable.", advice: "Reload the page: it may be older than the gateway." },
  gateway: { message: "The gateway reports an error.", advice: "Trying again may help." },
  closed: { message: "The session was closed.", advice: "Start again in a moment." },
};

/** By close code, for connections that close without an error message. */
const CLOSE: Readonly<Record<number, Words>> = {
  1001: { message: "The gateway is stopping.", advice: "Start again in a moment." },
  1006: WORDS.lost,
  4003: WORDS.slow,
  4004: { message: "The call was idle for too long.", advice: "Start again when you like." },
  4005: { message: "The call reached its maximum length.", advice: "Start again to continue." },
  4007: { message: "The gateway is stopping.", advice: "The call continues on another one." },
};

/** Replacements for gateway messages that are written for programmers. */
const GATEWAY: Readonly<Record<string, Words>> = {
  ticket_missing: { message: "This gateway needs a ticket.", advice: "Start the call from your application, which gets one." },
  ticket_wrong: { message: "The gateway does not know this ticket.", advice: WORDS.ticket.advice },
  ticket_origin: { message: "This ticket is for another site.", advice: "Start the call from the site that got it." },
  ticket_used: WORDS.ticket,
  ticket_expired: { message: "This ticket has expired.", advice: WORDS.ticket.advice },
  no_speech: { message: "Nothing was said while the button was held.", advice: "Hold it while you speak." },
  confirmation_unknown: { message: "That request has expired.", advice: "Ask again, if you still want it." },
  conversation_busy: { message: "The last message is being answered.", advice: "Wait for the answer, then send it again." },
};

/** Returns the text for an error message of the gateway. */
export function ofGateway(said: ErrorMessage): Words {
  const until = Date.parse(said.until ?? "");
  if (said.code === "blocked" && !Number.isNaN(until)) {
    return { message: `You are blocked until ${timeOf(until)}.`, advice: "Try again then." };
  }
  if (Object.hasOwn(GATEWAY, said.code)) {
    return GATEWAY[said.code]!;
  }
  return { message: said.message, advice: said.retryable ? "Trying again may help." : `Code: ${said.code}.` };
}

/** Returns the text for a close code without an error message. */
export function ofClose(code: number): Words {
  return (
    CLOSE[code] ?? {
      message: WORDS.closed.message,
      advice: mayHelp(code) ? `Start again in a moment (code ${code}).` : `Trying again will not help (code ${code}).`,
    }
  );
}

/** Formats a time (ms since the epoch) for people, with the date if it is not soon. */
function timeOf(ms: number): string {
  const far = ms - Date.now() > 12 * 3600_000;
  return new Date(ms).toLocaleString([], far ? { dateStyle: "medium", timeStyle: "short" } : { timeStyle: "short" });
}
