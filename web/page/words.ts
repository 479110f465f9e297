// Every sentence the page says, in one place.
import type { MicFailure } from "./capture.js";
import type { Activity } from "./state.js";
import type { Closed } from "./socket.js";
import type { ErrorMessage } from "./protocol.js";
import type { Question } from "./questions.js";
import type { ToolLine } from "./transcript.js";

/** What went wrong and what to do about it. */
export interface Notice {
  title: string;
  advice: string;
}

/** The state in words: a heading and a line below it. */
export const ACTIVITY: { [A in Activity]: { title: string; hint: string } } = {
  idle: { title: "Talk to the model", hint: "Press the button, allow the microphone, and speak." },
  asking: { title: "One moment", hint: "Your browser may ask for the microphone. Allow it to speak." },
  connecting: { title: "Connecting", hint: "Opening the session with the model." },
  reconnecting: { title: "Reconnecting", hint: "The connection to the model broke. It is being restored." },
  listening: { title: "Listening", hint: "Say something." },
  hearing: { title: "You are speaking", hint: "Pause when you have finished." },
  thinking: { title: "Thinking", hint: "The model prepares its answer." },
  speaking: { title: "Speaking", hint: "Speak at any time to interrupt, or press Stop." },
  muted: { title: "Muted", hint: "The model hears silence. You can still type." },
  typing: { title: "Ready", hint: "The microphone is off. Type below, or turn it on." },
  failed: { title: "Not connected", hint: "You can start again." },
  ended: { title: "Ended", hint: "The conversation is over. You can start again." },
};

// Title and advice together stay below 120 characters: the page keeps room for
// that much, and nothing may jump when they appear (a test counts them).

export const MICROPHONE: { [F in MicFailure]: Notice } = {
  insecure: {
    title: "The microphone needs a secure address.",
    advice: "Open the page over https or as http://localhost. You can type below.",
  },
  denied: {
    title: "The microphone is blocked.",
    advice: "Allow it in the browser's address bar, then press Use mic. Or type below.",
  },
  missing: {
    title: "No microphone was found.",
    advice: "Connect one, then press Use mic. Or type below.",
  },
  busy: {
    title: "The microphone cannot be used.",
    advice: "Close other programs that use it, then press Use mic. Or type below.",
  },
  unknown: {
    title: "The microphone did not start.",
    advice: "Reload the page and try again. Or type below.",
  },
};

export const MICROPHONE_LOST: Notice = {
  title: "The microphone went away.",
  advice: "Connect it again, then press Use mic. Or type below.",
};

export const NO_AUDIO: Notice = {
  title: "The voice cannot be played here.",
  advice: "Open the page over https or as http://localhost. You can type below.",
};

export const SLOW_LINE: Notice = {
  title: "Your connection is too slow.",
  advice: "Parts of what you say are lost. A better network helps.",
};

export const TOO_LONG: Notice = {
  title: "The answer is too long.",
  advice: "Its end will not be heard. The text is complete.",
};

export const MOVING: Notice = {
  title: "The gateway is about to restart.",
  advice: "This conversation will end soon. You can start again at once.",
};

export const NO_START: Notice = {
  title: "The gateway opened no session.",
  advice: "It took the connection but did not answer. Start again, or look at its log.",
};

/** Why the connection could not be opened, from what the gateway says of itself. */
export const UNOPENED = {
  unreachable: {
    title: "The gateway cannot be reached.",
    advice: "Check that it is running and your network is up. Then start again.",
  },
  leaving: {
    title: "The gateway takes no new sessions.",
    advice: "It is starting, stopping or full. Start again in a moment.",
  },
  refused: {
    title: "The gateway refused the connection.",
    advice: "Too many sessions are open, or this address is not in its origin list.",
  },
} satisfies Record<string, Notice>;

/**
 * The close codes of voicegw.v1: 4000-4499 say that trying again may help,
 * 4500-4999 that it will not.
 */
export const CLOSE: Readonly<Record<number, Notice>> = {
  1001: { title: "The gateway is going away.", advice: "It stops or restarts. Start again in a moment." },
  1006: { title: "The connection was lost.", advice: "Check your network, then start again." },
  1008: { title: "The gateway refused this session.", advice: "Its rules do not allow it. Ask whoever runs it." },
  1009: { title: "A message was too big for the gateway.", advice: "Reload the page. If it happens again, report it." },
  1011: { title: "Something went wrong in the gateway.", advice: "Start again. If it happens again, look at its log." },
  4001: { title: "The model cannot be reached.", advice: "Its provider does not answer. Start again in a moment." },
  4002: { title: "The connection to the model was lost.", advice: "Start again in a moment." },
  4003: { title: "Your connection is too slow.", advice: "Audio could not be delivered. Start again on a better network." },
  4004: { title: "Nobody spoke for a while.", advice: "Start again when you like." },
  4005: { title: "The session reached its longest time.", advice: "Start again to go on." },
  4029: { title: "Too many sessions or messages.", advice: "Wait a minute, then start again." },
  4500: { title: "The gateway did not understand this page.", advice: "Reload it: it may be older than the gateway." },
  4501: { title: "This gateway asks for a ticket.", advice: "Open the conversation from the application that gives them." },
  4502: { title: "The ticket was used or came too late.", advice: "Open the conversation from your application again." },
  4503: { title: "You are blocked for now.", advice: "New conversations are refused until the block ends." },
  4504: { title: "The session was not opened in time.", advice: "Reload the page and start again." },
  4505: { title: "This provider is not known here.", advice: "Reload the page and choose another one." },
};

/** Codes so general that what the gateway said just before says more. */
const GENERAL = new Set([1008, 1009, 1011, 4503]);

/**
 * What a closed connection means; null when it ended as it should. `said` is
 * the newest error message of the session.
 */
export function closeNotice(closed: Closed, said: Notice | null): Notice | null {
  if (closed.code === 1000) {
    return null;
  }
  if (said !== null && GENERAL.has(closed.code)) {
    return said;
  }
  const known = CLOSE[closed.code];
  if (known !== undefined) {
    return known;
  }
  if (closed.code >= 4500 && closed.code < 5000) {
    return { title: "The gateway closed the session.", advice: `Trying again will not help (code ${closed.code}).` };
  }
  return { title: "The session was closed.", advice: `Start again; it may help (code ${closed.code}).` };
}

/** Errors that the page knows more about than their message says. */
const ERROR: Record<string, Notice> = {
  confirmation_unknown: { title: "That question is not open any more.", advice: "If you still want it, ask the model again." },
  confirmation_used: { title: "That was answered already.", advice: "Each question is answered once. The first answer counts." },
  confirmation_expired: { title: "Your answer came too late.", advice: "Nothing was done. Ask the model again if you want it." },
  store_unavailable: { title: "Your answer could not be recorded.", advice: "Nothing was done. Press the button again in a moment." },
  session_ending: { title: "The session is about to end.", advice: "It takes nothing more. You can start again then." },
};

/** An error message of the gateway. Its text is written for users. */
export function errorNotice(error: ErrorMessage): Notice {
  if (error.code === "blocked") {
    return blockedNotice(Date.parse(error.until ?? ""));
  }
  if (Object.hasOwn(ERROR, error.code)) {
    return ERROR[error.code]!;
  }
  return { title: sentence(error.message), advice: error.retryable === true ? "Trying again may help." : `Code: ${error.code}.` };
}

/** until is ms since the epoch; NaN where the gateway did not say. */
function blockedNotice(until: number): Notice {
  if (Number.isNaN(until)) {
    return CLOSE[4503]!;
  }
  const when = new Date(until);
  const far = until - Date.now() > 12 * 3600_000;
  const text = when.toLocaleString([], far ? { dateStyle: "medium", timeStyle: "short" } : { timeStyle: "short" });
  return { title: `You are blocked until ${text}.`, advice: "New conversations are refused until then." };
}

/** session.ending: what will happen by itself, and when (in ms). */
export function endingNotice(reason: string | undefined, after: number | undefined): Notice {
  const seconds = Math.round((after ?? 0) / 1000);
  const when = seconds > 0 ? ` in ${seconds} s` : " soon";
  return reason === "length_limit"
    ? { title: `The session ends${when}.`, advice: "It reaches its longest time. You can start again then." }
    : { title: `The session ends${when}.`, advice: "You can start again then." };
}

const ENDED: Record<string, string> = {
  server_shutdown: "The gateway is stopping. Start again in a moment.",
  user_goodbye: "You said goodbye. You can start again.",
  task_done: "The task is done. You can start again.",
  inactivity: "Nobody spoke for a while. You can start again.",
  provider_leaving: "The model's session is over. You can start again.",
  length_limit: "The session reached its longest time. You can start again.",
};

/** Why the session ended, in words; the ordinary hint for an unknown reason. */
export function endedHint(reason: string | undefined): string {
  return (reason !== undefined && Object.hasOwn(ENDED, reason) ? ENDED[reason] : undefined) ?? ACTIVITY.ended.hint;
}

/** The last turn's delay. */
export function answeredIn(ms: number | null): string {
  return ms === null ? "" : `Answered in ${(ms / 1000).toFixed(2)} s`;
}

/** What an error of a tool means to the user, by its type. */
const TOOL_ERROR: Record<string, string> = {
  VALIDATION: "failed: wrong arguments",
  NOT_FOUND: "failed: there is no such tool",
  INTERNAL: "failed: a fault in the tool",
  MODE_RESTRICTED: "not run: not allowed here",
  BUDGET_EXCEEDED: "not run: enough for this turn",
  CONFIRMATION_REQUIRED: "needs your answer first",
  SESSION_INACTIVE: "failed: there is no session for it",
  SESSION_ACTIVE: "failed: a session is open already",
  TRANSIENT: "failed: does not work at the moment",
  PERMANENT: "failed: it cannot be done",
  CONFLICT: "not run: it may have been done before",
  AUTH: "failed: access was refused",
  RATE_LIMIT: "not run: too much at once",
};

/** How a tool call goes, or went. */
export function toolStatus(line: ToolLine): string {
  const notes = Object.entries(line.clamped).map(([name, { requested, applied }]) => `${name} ${requested} → ${applied}`);
  return [toolOutcome(line), ...notes].join(", ");
}

function toolOutcome({ status, durationMs, deduplicated, error }: ToolLine): string {
  switch (status) {
    case "running":
      return durationMs === undefined ? "working" : `still at work, ${seconds(durationMs)}`;
    case "unfinished":
      return "not finished";
    case "done":
      if (deduplicated) {
        return "given from memory";
      }
      return durationMs === undefined ? "done" : `done in ${durationMs} ms`;
    case "failed": {
      const type = error?.type ?? "";
      const text = Object.hasOwn(TOOL_ERROR, type) ? TOOL_ERROR[type]! : "failed";
      return error?.partialSideEffects === true ? `${text}; part of it may have been done` : text;
    }
  }
}

function seconds(ms: number): string {
  return ms < 950 ? "1 s" : `${Math.round(ms / 1000)} s`;
}

/** What became of a question, in one word or two. */
export const OUTCOME: Readonly<Record<string, string>> = {
  approved: "approved",
  denied: "declined",
  expired: "not answered in time",
  unanswered: "not answered",
};

/** The heading above so many open questions. */
export function askedHeading(count: number): string {
  return count > 1 ? `${count} actions wait for your answer` : "The model asks before it acts";
}

/** What screen readers are told of a new question. */
export function askedAloud(question: Question): string {
  return `The model asks before it acts: ${question.preview} Press Approve or Decline, below the transcript.`;
}

/** The time that a question has left, or what was answered. */
export function timeLeft({ approved, expires }: Question, now: number): string {
  if (approved !== null) {
    return approved ? "approving" : "declining";
  }
  if (expires === null) {
    return "";
  }
  const left = Math.ceil((expires - now) / 1000);
  return left <= 0 ? "the time is up" : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`;
}

function sentence(text: string): string {
  const trimmed = text.trim().replace(/\.$/, "");
  return `${trimmed.charAt(0).toUpperCase()}${trimmed.slice(1)}.`;
}
