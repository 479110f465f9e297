// All texts of the page. Error messages come from the client library.
import type { Line, ToolLine, Outcome, Handoff } from "./model/lines.js";
import type { Notice } from "./model/notice.js";
import type { Question } from "./model/questions.js";
import type { Activity, VoiceState } from "./model/voice.js";

/** The call's activity: a heading and a line below it. */
export const ACTIVITY: { readonly [A in Activity]: Notice } = {
  none: { title: "Not talking", advice: "Press Start talking, allow the microphone, and speak." },
  asking: { title: "One moment", advice: "Your browser may ask to use the microphone. Allow it." },
  connecting: { title: "Connecting", advice: "Calling the voice agent." },
  reconnecting: { title: "Reconnecting", advice: "The connection to the gateway was lost. Reconnecting." },
  restoring: { title: "Reconnecting", advice: "The gateway lost its connection to the model. Your speech is saved for a few seconds." },
  listening: { title: "Listening", advice: "Say something." },
  waiting: { title: "Ready", advice: "Hold the button or the space bar while you talk." },
  hearing: { title: "You are speaking", advice: "Pause when you are done." },
  thinking: { title: "Thinking", advice: "The answer is on its way." },
  speaking: { title: "Speaking", advice: "Talk at any time to interrupt, or press Stop." },
  muted: { title: "Muted", advice: "The voice agent hears silence. You can still type." },
  silenced: { title: "Microphone silent", advice: "It is switched off, or muted by your system. You can still type." },
  typing: { title: "Ready", advice: "The microphone is off. Type, or turn it on." },
  ending: { title: "Hanging up", advice: "Sending the conversation to the text agent." },
  failed: { title: "Not connected", advice: "You can start again." },
  ended: { title: "Ended", advice: "You can start again, or continue in writing." },
};

/** Replaces the advice of "hearing" if a button ends the turn. */
export const LET_GO = "Release when you are done.";

export const TEXT_ACTIVITY = {
  ready: "Ready",
  answering: "Thinking",
  writing: "Writing",
  stopping: "Stopping",
} as const;

export const LANES = { text: "Text agent", voice: "Voice agent" } as const;

export const EMPTY = {
  title: "Talk or type",
  text: "One conversation with two agents. The text agent writes, the voice agent speaks, and both know the whole conversation.",
  start: "Start talking",
  hint: "Or type below. No microphone needed.",
  simulated: "The built-in simulator replaces the models. It follows a script and does not understand speech, but it answers these examples:",
};

/** Labels of buttons and fields. */
export const LOG = "Conversation";
export const CALL = "Call with the voice agent";
export const TOOL = "Tool";
export const CLOSE = "Close";
export const HEARING = "You are speaking";
export const NEWEST = "Latest";
/** A button that shows this many more lines. */
export const earlierLines = (count: number): string => `Show earlier (${count})`;
export const SEND_AGAIN = "Send again";
export const OPEN_PICTURE = "Open the picture";
export const PICTURE_GONE = "This picture is no longer available.";
export const WRITE = "Write to the text agent";
export const NO_TEXT_AGENT = "This gateway has no text agent";
export const WRITE_HINT = "Enter to send, Shift+Enter for a new line.";
export const SEND = "Send to the text agent";
export const STOP_TEXT = "Stop the answer";
export const TYPE = "Type to the voice agent";
export const TYPE_HERE = "Or type to the voice agent";
export const SEND_TO_VOICE = "Send to the voice agent";
export const START_AGAIN = "Start again";
export const WITHOUT_MICROPHONE = "Start without a microphone";
export const CHANGE = "Change";
export const PUSH_TO_TALK = "push-to-talk";
export const MUTE = "Mute";
export const UNMUTE = "Unmute";
/** The page's title during a call, visible in the browser's tabs. */
export const pageTitle = (title: string): string => (title === "" ? "voicegw" : `${title} · voicegw`);
export const USE_MICROPHONE = "Use mic";
export const HOLD = "Hold to talk";
export const STOP = "Stop";
export const HANG_UP = "Hang up";
export const TRY_NOW = "Try now";
export const APPROVE = "Approve";
export const DECLINE = "Decline";
export const NEW_CONVERSATION = "New conversation";
export const SETTINGS = "Settings";
export const KEYS = "Keyboard shortcuts";
export const VIEWS = { text: "Text", voice: "Voice", instruments: "Instruments" } as const;
export const VIEWS_LABEL = "View";
export const READ_OUT = "Announcements";
export const HANG_UP_FIRST = "Hang up first.";
export const CONNECTED = { live: "Connected. The voice agent is listening.", off: "Connected. Type to begin." } as const;

export const CUT = "Cut off.";
export const CUT_UNHEARD = "Cut off. What is crossed out was not heard.";

/** Requests that the built-in simulator understands, one for each feature. */
export const EXAMPLES: readonly string[] = [
  "Tell me about the font library",
  "Draw a lighthouse at dusk",
  "Switch to voice and tell me about the robotics lab",
  "Book a design review tomorrow at 10",
];

/** The losses of a session that could not be resumed. */
export interface Lost {
  /** How long the user's speech was not heard. */
  readonly speechMs: number;
  /** An answer was playing or expected. */
  readonly answer: boolean;
  readonly tools: number;
  readonly questions: number;
}

/** The session continues after an outage that was longer than the stored speech. */
export const resumed = (unheardMs: number): string => `Reconnected. ${span(unheardMs)} of what you said was lost.`;

/** The call continues in another session; lists the losses. */
export function newSession({ speechMs, answer, tools, questions }: Lost): string {
  const lost = [
    speechMs === 0 ? "" : `what you said in the last ${span(Math.max(1000, speechMs))}`,
    answer ? "the rest of the answer" : "",
    tools === 0 ? "" : tools === 1 ? "the result of a running tool" : `the results of ${tools} running tools`,
    questions === 0 ? "" : questions === 1 ? "an approval request" : `${questions} approval requests`,
  ].filter((part) => part !== "");
  return `Reconnected. The conversation continues in a new session. ${lost.length === 0 ? "Nothing was lost." : `Lost: ${lost.join(", ")}.`}`;
}

export const switched = ({ from, to, reason = "" }: { from: string; to: string; reason?: string }): string => `Switched from ${from} to ${to}${reason === "" ? "." : `: ${reason}`}`;
export const RELOADED = "The page was reloaded. The call continues.";
export const MOVED = "The call moved to another tab and continues there.";
export const STOPPED = "Stopped before the answer began.";
export const WAIT_FOR_ANSWER = "Wait for the answer, or press Stop.";
export const RECALLED = "This is your earlier conversation. Continue by typing or talking, or start a new one.";
export const NOT_RECALLED = "The conversation continues, but its earlier part cannot be shown here.";

const ENDING: Readonly<Record<string, string>> = {
  length_limit: "It reaches the maximum length of a call. You can start again then.",
  budget: "It has almost reached its spending limit.",
  credentials_expired: "Your access expires. Log in again to continue.",
};

/** session.ending: what will happen, and in how many ms. */
export function endingNotice(reason: string | undefined, after: number | undefined): Notice {
  const whole = Math.round((after ?? 0) / 1000);
  const title = `The call ends ${whole > 0 ? `in ${whole} s` : "soon"}.`;
  return { title, advice: reason !== undefined && Object.hasOwn(ENDING, reason) ? ENDING[reason]! : "You can start again then." };
}

/** timeout: the end of the block, in ms since the epoch. */
export function shutOut(until: number | undefined): string {
  if (until === undefined || !Number.isFinite(until)) {
    return "You are temporarily blocked.";
  }
  return `You are blocked until ${clock(until)}.`;
}

const ENDED: Readonly<Record<string, string>> = {
  server_shutdown: "The gateway is stopping. Start again in a moment.",
  tool_ended: "The voice agent said goodbye. You can start again.",
  blocked: "You are temporarily blocked.",
  idle: "The call was idle for too long. You can start again.",
  moved: "It continues in another tab.",
  length_limit: "The call reached its maximum length. You can start again.",
  budget: "The spending limit of this call, or your limit for today, is reached.",
  operator_ended: "An operator ended the call.",
  credentials_expired: "Your access has expired. Log in again.",
};

/** Why a call ended; general advice for an unknown reason. */
export function endedAdvice(reason: string): string {
  return Object.hasOwn(ENDED, reason) ? ENDED[reason]! : ACTIVITY.ended.advice;
}

/** The response time of the last turn. */
export function answeredIn(ms: number | null): string {
  return ms === null ? "" : `Answered in ${(ms / 1000).toFixed(2)} s`;
}

/** The next attempt to connect, at a time in ms since the epoch. */
export function nextTry({ attempt, at }: { attempt: number; at: number }, now: number): string {
  const left = Math.ceil((at - now) / 1000);
  return left > 0 ? `Reconnecting in ${left} s (attempt ${attempt}).` : `Reconnecting now (attempt ${attempt}).`;
}

/** Whether the user's speech is stored while reconnecting. */
export function whatIsSaid({ microphone, retry }: VoiceState, now: number): string {
  if (retry === null || microphone !== "live") {
    return "";
  }
  return now < retry.keptUntil ? "Your speech is saved." : "Your speech is not saved any more.";
}

// Tools.

/** Tool errors in the user's terms, by type. */
const TOOL_ERROR: Readonly<Record<string, string>> = {
  VALIDATION: "failed: wrong arguments",
  NOT_FOUND: "failed: not found",
  INTERNAL: "failed: internal error",
  MODE_RESTRICTED: "not run: not allowed here",
  BUDGET_EXCEEDED: "not run: call limit reached",
  CONFIRMATION_REQUIRED: "needs your approval",
  SESSION_INACTIVE: "failed: no session is open",
  SESSION_ACTIVE: "failed: a session is already open",
  TRANSIENT: "failed: temporarily unavailable",
  PERMANENT: "failed: cannot be done",
  CONFLICT: "not run: it may have been done before",
  AUTH: "failed: access denied",
  RATE_LIMIT: "not run: too many requests",
  UNAVAILABLE: "not run: not available now",
};

/** The status or result of a tool call. */
export function toolStatus(line: ToolLine): string {
  const notes = Object.entries(line.clamped).map(([name, { requested, applied }]) => `${name} lowered from ${requested} to ${applied}`);
  return [toolOutcome(line), ...notes].join(", ");
}

function toolOutcome({ state, durationMs, deduplicated, error }: ToolLine): string {
  switch (state) {
    case "running":
      return durationMs === undefined ? "running" : `still running, ${atLeastASecond(durationMs)}`;
    case "unfinished":
      return "not finished";
    case "done":
      if (deduplicated) {
        return "already done, not repeated";
      }
      return durationMs === undefined ? "done" : `done in ${duration(durationMs)}`;
    case "failed": {
      const type = error?.type ?? "";
      const text = Object.hasOwn(TOOL_ERROR, type) ? TOOL_ERROR[type]! : "failed";
      return error?.partialSideEffects === true ? `${text}; part of it may be done` : text;
    }
  }
}

function atLeastASecond(ms: number): string {
  return `${Math.max(1, Math.round(ms / 1000))} s`;
}

/** A short duration with two significant digits. */
export function duration(ms: number): string {
  if (ms < 1) {
    return "less than 1 ms";
  }
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

/** A duration in minutes and seconds. */
export function span(ms: number): string {
  const whole = Math.max(0, Math.round(ms / 1000));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

// Questions.

/** The outcome of a question. */
const OUTCOME: Readonly<Record<string, string>> = {
  approved: "approved",
  denied: "declined",
  expired: "not answered in time",
  unanswered: "not answered",
  lost: "not answered",
  unknown: "ended while the connection was lost",
  answered: "already answered",
};

export function outcomeOf({ outcome, elsewhere }: Outcome): string {
  const word = Object.hasOwn(OUTCOME, outcome) ? OUTCOME[outcome]! : outcome;
  return elsewhere ? `${word} elsewhere` : word;
}

/** The heading above the open questions. */
export function askedHeading(count: number): string {
  return count > 1 ? `${count} actions need your approval` : "One action needs your approval";
}

/** The agent that asks. */
export const ASKS = { text: "The text agent needs your approval", voice: "The voice agent needs your approval" } as const;

export const NO_ARGUMENTS = "No arguments.";
export const EXACT_ARGUMENTS = "Exact arguments";

/** The announcement of a new question to screen readers. */
export function askedAloud(question: Question): string {
  return `${ASKS[question.side]}: ${question.preview} Press Approve or Decline, above the text field. Press Q to go there.`;
}

/** The time left to answer a question, or its answer. */
export function timeLeft({ approved, expires }: Question, now: number): string {
  if (approved !== null) {
    return approved ? "approving" : "declining";
  }
  return expires === null ? "" : countdown(expires, now, "expired");
}

/** Minutes and seconds until a time; `over` after it. */
export function countdown(until: number, now: number, over: string): string {
  const left = Math.ceil((until - now) / 1000);
  return left <= 0 ? over : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`;
}

// Switching to voice and back.

export function handoffTitle(line: Handoff): string {
  if (line.to === "text") {
    return line.state === "failed" ? "Call lost" : "Back to text";
  }
  switch (line.state) {
    case "offered":
      return "Continue by voice";
    case "over":
      return "Not continued by voice";
    case "failed":
      return "Not handed over";
    case "taken":
      return line.request === "" ? "Call started" : "Handed to voice";
  }
}

/** The length of a call; empty if unknown. */
export function callLength({ turns, ms }: Handoff): string {
  const parts = [turns === undefined ? "" : `${turns} ${turns === 1 ? "turn" : "turns"}`, ms === undefined ? "" : span(ms)];
  return parts.filter((part) => part !== "").join(", ");
}

export const ANSWERED_FIRST = "First question";
export const INVITATION_OVER = "The invitation has expired. Ask the text agent again.";
export const NOT_HANDED_OVER = "The voice agent could not be reached. Your question is still here.";
export const CALL_LOST = "The connection was not restored. The text agent did not receive this conversation, and its end may be missing here.";
export const ASK_BY_VOICE = "Ask by voice";
export const TALK = "Talk";
export const TIME_IS_UP = "Expired";
export const HANDED_BACK = "Sent to the text agent";

// Settings and help.

export const SETUP = {
  title: "Settings",
  call: "Voice agent",
  later: "Applies to the next call.",
  provider: "Provider",
  agent: "Agent",
  voice: "Voice",
  standard: "Default",
  turns: "End of your turn",
  automatic: "Detected by the model",
  pushToTalk: "Push-to-talk",
  pending: "First question",
  pendingHint: "Asked as soon as the next call starts. Leave it empty to talk first.",
  devices: "Microphone and speaker",
  atOnce: "Applies immediately, also in a running call.",
  microphone: "Microphone",
  speaker: "Speaker",
  browsers: "Browser default",
  volume: "Volume",
  gone: "Not connected",
  unnamed: "Allow the microphone to see the names of devices.",
  inUse: "In use",
  test: "Test your devices",
  testMicrophone: "Test the microphone",
  testStop: "Stop the test",
  testSpeaker: "Play a test tone",
  testInCall: "The call uses your devices. Test them before the next call.",
  echo: "Echo cancellation",
  echoHint: "Without it, use headphones, or the voice agent hears itself.",
  noise: "Noise suppression",
  noiseHint: "Removes background noise such as fans and traffic.",
  rates: "Audio quality",
  ratesHint: "8 kHz sounds like a telephone. Applies to the next call.",
  inputRate: "What you say",
  outputRate: "What you hear",
  page: "This page",
  theme: "Theme",
  system: "System",
  light: "Light",
  dark: "Dark",
  readOut: "Screen reader announces",
  unheard: "Only what cannot be heard",
  all: "Everything that is said",
  shortcuts: "Single-key shortcuts",
  link: "Link with these settings",
  linkHint: "Opens this page with the current settings, except devices, volume and first question.",
  code: "Code for this configuration",
  codeHint: "Starts a call with these settings in your own page. It contains no key: your server requests a ticket.",
  codeFor: "For",
  javascript: "JavaScript",
  react: "React",
  shortcutsHint: "Turn them off if you control this page by voice.",
} as const;

/** Results of the device tests. */
export const DEVICE_TEST = {
  microphone: {
    off: "",
    asking: "Allow the microphone in the address bar.",
    none: "Say a few words.",
    heard: "The microphone works.",
    faint: "You are too quiet. Speak louder, move closer, or turn the microphone up.",
    silent: "No sound is coming from this microphone. It may be muted. Turn it on, or choose another one.",
  },
  speaker: {
    off: "",
    playing: "A tone is playing.",
    played: "The tone has ended. If you did not hear it, choose another speaker or turn up the volume.",
    failed: "The tone could not be played. Choose another speaker.",
  },
} as const;

export function standardIs(name: string): string {
  return `Default (${name})`;
}

export function rate(hertz: number): string {
  const khz = `${hertz / 1000} kHz`;
  return hertz === 8000 ? `${khz}, telephone` : khz;
}

export const HELP = {
  title: KEYS,
  keys: [
    ["Esc", "Stop the agent's speech or text"],
    ["Space", "With push-to-talk: hold to talk"],
    ["M", "Mute and unmute the microphone"],
    ["Q", "Go to the action that needs your approval"],
    ["Enter", "Send your message"],
    ["Shift + Enter", "New line"],
    ["?", "These shortcuts"],
  ],
  more: "Single keys do nothing while you are in a text field. You can turn them off in the settings. No single key approves or declines anything.",
} as const;

// Announcements.

/** A line as announced to screen readers; empty if it needs no announcement. */
export function aloud(line: Line): string {
  switch (line.kind) {
    case "utterance":
      return `${speaker(line)}: ${line.text}${line.cut ? " (cut off)" : ""}`;
    case "tool":
      return line.state === "failed" ? `Tool ${line.tool}: ${toolStatus(line)}` : "";
    case "picture":
      return `Picture: ${line.prompt}`;
    case "outcome":
      return `${line.preview} ${outcomeOf(line)}`;
    case "handoff":
      return [handoffTitle(line), callLength(line), line.request].filter((part) => part !== "").join(". ");
    case "trouble":
      return `${line.title} ${line.advice}`;
    case "remark":
      return line.text;
  }
}

export function speaker({ role, side }: { role: "user" | "assistant"; side: "text" | "voice" }): string {
  return role === "user" ? "You" : LANES[side];
}

/** After "Ready", if there is room. */
export const WITH_SIMULATOR = ", with the built-in simulator";

/** The gateway's status. */
export const GATEWAY = {
  unknown: "Looking for the gateway",
  ready: "Ready",
  simulator: "Ready",
  reconnecting: "Reconnecting",
  leaving: "The gateway accepts no new calls",
  unreachable: "Cannot reach the gateway",
} as const;

/** Formats micro-dollars with four decimals, because a call costs cents. */
export function dollars(micros: number): string {
  return `$${(micros / 1_000_000).toFixed(4)}`;
}

/** The time of day, with the date if it is another day. */
export function clock(time: number): string {
  const when = new Date(time);
  const far = Math.abs(time - Date.now()) > 12 * 3600_000;
  return when.toLocaleString([], far ? { dateStyle: "medium", timeStyle: "short" } : { timeStyle: "short" });
}
