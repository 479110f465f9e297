// Every sentence that this library says to a user.
import { mayHelp } from "./connection/codes.js";
import type { VoiceErrorCode } from "./errors.js";
import type { ErrorMessage } from "./protocol/messages.js";

/** What went wrong, and what to do about it. Together they have at most 120 characters. */
interface Words {
  message: string;
  advice: string;
}

/** By the library's own codes. */
export const WORDS: { readonly [C in VoiceErrorCode]: Words } = {
  microphone_insecure: {
    message: "The microphone needs a secure address.",
    advice: "Open the page over https or as http://localhost. Or type.",
  },
  microphone_denied: {
    message: "The microphone is blocked.",
    advice: "Allow it in the address bar, then turn it on again. Or type.",
  },
  microphone_missing: { message: "No microphone was found.", advice: "Connect one, then turn it on again. Or type." },
  microphone_busy: {
    message: "The microphone cannot be used.",
    advice: "Close other programs that use it, then turn it on again. Or type.",
  },
  microphone_failed: { message: "The microphone did not start.", advice: "Reload the page and try again. Or type." },
  microphone_lost: { message: "The microphone went away.", advice: "Connect it again, then turn it on. Or type." },
  microphone_silenced: {
    message: "The microphone gives silence.",
    advice: "It may be switched off, or in use by a call. Or type.",
  },
  speaker_failed: { message: "This loudspeaker cannot be used.", advice: "Choose another one, or read the answers." },
  audio_unavailable: {
    message: "The voice cannot be played here.",
    advice: "Open the page over https or as http://localhost. Or type.",
  },
  audio_suspended: { message: "The browser has stopped the sound.", advice: "Press anywhere on the page to hear the answers." },
  echo_possible: {
    message: "The model may hear itself.",
    advice: "If it interrupts itself, use headphones.",
  },
  image: { message: "The picture cannot be shown to the agent.", advice: "Try another one, or say what is on it." },
  too_long: { message: "The answer is too long.", advice: "Its end will not be heard. The text is complete." },
  no_browser: { message: "A conversation needs a page in a browser.", advice: "Begin it there, from a click or a key press." },
  unreachable: {
    message: "The gateway cannot be reached.",
    advice: "Check your network, then start again.",
  },
  refused: {
    message: "The gateway refused the connection.",
    advice: "Too many sessions are open, or this address is not in its origin list.",
  },
  full: { message: "The gateway takes no new sessions.", advice: "It is starting, stopping or full. Start again in a moment." },
  lost: { message: "The connection was lost.", advice: "Check your network, then start again." },
  slow: { message: "Your connection is too slow.", advice: "Parts of what you say are lost. A better network helps." },
  no_start: {
    message: "The gateway opened no session.",
    advice: "Start again in a moment.",
  },
  resume_refused: {
    message: "The last session could not be taken up.",
    advice: "You can start again.",
  },
  moved: { message: "The conversation moved to another tab.", advice: "Go on there." },
  ticket: {
    message: "This conversation needs a new ticket.",
    advice: "Open it from your application again: a ticket works once.",
  },
  unsent: { message: "Your last message may not have arrived.", advice: "If there is no answer, send it again." },
  aborted: { message: "The conversation was ended.", advice: "You can start again." },
  protocol: { message: "The gateway's answer cannot be read.", advice: "Reload the page: it may be older than the gateway." },
  gateway: { message: "The gateway reports an error.", advice: "Trying again may help." },
  closed: { message: "The session was closed.", advice: "Start again in a moment." },
};

/** By the close codes that come without an error of the gateway before them. */
const CLOSE: Readonly<Record<number, Words>> = {
  1001: { message: "The gateway is going away.", advice: "Start again in a moment." },
  1006: WORDS.lost,
  4003: WORDS.slow,
  4004: { message: "Nobody spoke for a while.", advice: "Start again when you like." },
  4005: { message: "The session reached its longest time.", advice: "Start again to go on." },
  4007: { message: "The gateway is going away.", advice: "The session goes on at another one." },
};

/** Errors of the gateway whose own message is for programmers. The others are in words for people. */
const GATEWAY: Readonly<Record<string, Words>> = {
  ticket_missing: { message: "This gateway asks for a ticket.", advice: WORDS.ticket.advice },
  confirmation_unknown: { message: "That question is not open any more.", advice: "Ask the model again, if you still want it." },
  conversation_busy: { message: "The last message is being answered.", advice: "Wait for the answer, then send it again." },
};

/** What an error message of the gateway means. */
export function ofGateway(said: ErrorMessage): Words {
  const until = Date.parse(said.until ?? "");
  if (said.code === "blocked" && !Number.isNaN(until)) {
    return { message: `You are blocked until ${timeOf(until)}.`, advice: "Come back then." };
  }
  if (Object.hasOwn(GATEWAY, said.code)) {
    return GATEWAY[said.code]!;
  }
  if (said.code.startsWith("ticket_")) {
    return WORDS.ticket;
  }
  return { message: said.message, advice: said.retryable ? "Trying again may help." : `Code: ${said.code}.` };
}

/** What the end of a connection means where the gateway said no error. */
export function ofClose(code: number): Words {
  return (
    CLOSE[code] ?? {
      message: WORDS.closed.message,
      advice: mayHelp(code) ? `Start again in a moment (code ${code}).` : `Trying again will not help (code ${code}).`,
    }
  );
}

/** ms since the epoch, for a person: the time, and the day where it is not soon. */
function timeOf(ms: number): string {
  const far = ms - Date.now() > 12 * 3600_000;
  return new Date(ms).toLocaleString([], far ? { dateStyle: "medium", timeStyle: "short" } : { timeStyle: "short" });
}
