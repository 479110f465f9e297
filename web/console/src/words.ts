// Every sentence the page says, in one place. Those of errors come from the client library.
import type { Line, ToolLine, Outcome, Handoff } from "./model/lines.js";
import type { Notice } from "./model/notice.js";
import type { Question } from "./model/questions.js";
import type { Activity, VoiceState } from "./model/voice.js";

/** What the call is doing: a heading and a line below it. */
export const ACTIVITY: { readonly [A in Activity]: Notice } = {
  none: { title: "Not talking", advice: "Press Start talking, allow the microphone, and speak." },
  asking: { title: "One moment", advice: "Your browser may ask for the microphone. Allow it to speak." },
  connecting: { title: "Connecting", advice: "The voice agent is being called." },
  reconnecting: { title: "Reconnecting", advice: "The connection to the gateway broke. It is being restored." },
  restoring: { title: "Reconnecting", advice: "The gateway restores its connection to the model." },
  listening: { title: "Listening", advice: "Say something." },
  waiting: { title: "Ready", advice: "Hold the button or the space bar while you speak." },
  hearing: { title: "You are speaking", advice: "Pause when you have finished." },
  thinking: { title: "Thinking", advice: "The answer is on its way." },
  speaking: { title: "Speaking", advice: "Speak at any time to interrupt, or press Stop." },
  muted: { title: "Muted", advice: "The voice agent hears silence. You can still type." },
  typing: { title: "Ready", advice: "The microphone is off. Type, or turn it on." },
  ending: { title: "Hanging up", advice: "What was said goes back to the text agent." },
  failed: { title: "Not connected", advice: "You can start again." },
  ended: { title: "Ended", advice: "You can start again, or go on in writing." },
};

/** Instead of the advice of "hearing", where a button says when a turn ends. */
export const LET_GO = "Let go when you have finished.";

export const TEXT_ACTIVITY = {
  ready: "Ready",
  answering: "Thinking",
  writing: "Writing",
  stopping: "Stopping",
} as const;

export const LANES = { text: "Text agent", voice: "Voice agent" } as const;

export const EMPTY = {
  title: "Talk or type",
  text: "One conversation with two agents. The text agent writes, the voice agent speaks, and each knows what was said to the other.",
  start: "Start talking",
  hint: "Or type below: that needs no microphone.",
  examples: "Or try one of these:",
};

/** Labels of what there is to press and to fill in. */
export const LOG = "Conversation";
export const CALL = "Call with the voice agent";
export const HEARING = "You are speaking";
export const NEWEST = "Newest";
export const SEND_AGAIN = "Send again";
export const OPEN_PICTURE = "Open the picture";
export const PICTURE_GONE = "This picture is no longer kept.";
export const WRITE = "Write to the text agent";
export const NO_TEXT_AGENT = "This gateway has no text agent";
export const WRITE_HINT = "Enter sends. Shift and Enter begin a new line.";
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
export const VIEWS_LABEL = "What is shown";
export const READ_OUT = "Read out";
export const HANG_UP_FIRST = "Hang up first.";
export const CONNECTED = { live: "Connected. The voice agent is listening.", off: "Connected. Type to begin." } as const;

export const CUT = "Cut off.";
export const CUT_UNHEARD = "Cut off. What is crossed out was not heard.";

/** What the built-in simulator understands: one for each thing that there is to see. */
export const EXAMPLES: readonly string[] = [
  "Tell me about the font library",
  "Draw a lighthouse at dusk",
  "Switch to voice and tell me about the robotics lab",
  "Book a design review tomorrow from 10:00 to 11:00 with ada@example.org",
];

export const NEW_SESSION = "The connection was restored. The conversation goes on in a new session.";
export const GOES_ON = "The page was loaded again. The call goes on.";
export const MOVED = "The call moved to another tab, and goes on there.";
export const STOPPED = "Stopped before there was an answer.";
export const WAIT_FOR_ANSWER = "Wait for the answer, or press Stop.";
export const RECALLED = "This is what was said before. Go on by typing or talking, or begin a new conversation.";
export const NOT_RECALLED = "The conversation goes on, but what was said before cannot be shown here.";

const ENDING: Readonly<Record<string, string>> = {
  length_limit: "It reaches its longest time. You can start again then.",
  budget: "It has used nearly all that it may.",
  credentials_expired: "The permission to talk ends. Log in again to go on.",
};

/** session.ending: what will happen by itself, and when (in ms). */
export function endingNotice(reason: string | undefined, after: number | undefined): Notice {
  const whole = Math.round((after ?? 0) / 1000);
  const title = `The call ends ${whole > 0 ? `in ${whole} s` : "soon"}.`;
  return { title, advice: reason !== undefined && Object.hasOwn(ENDING, reason) ? ENDING[reason]! : "You can start again then." };
}

/** timeout: until when the user is shut out, in ms since the epoch. */
export function shutOut(until: number | undefined): string {
  if (until === undefined || !Number.isFinite(until)) {
    return "You are shut out for a while.";
  }
  return `You are shut out until ${clock(until)}.`;
}

const ENDED: Readonly<Record<string, string>> = {
  server_shutdown: "The gateway is stopping. Start again in a moment.",
  tool_ended: "The voice agent said goodbye. You can start again.",
  blocked: "You are shut out for a while.",
  idle: "Nobody spoke for a while. You can start again.",
  moved: "It goes on in another tab.",
  length_limit: "The call reached its longest time. You can start again.",
  budget: "What this call, or you today, may use is used up.",
  operator_ended: "An operator ended the call.",
  credentials_expired: "The permission to talk has ended. Log in again.",
};

/** Why a call ended, in words; the ordinary advice for an unknown reason. */
export function endedAdvice(reason: string): string {
  return Object.hasOwn(ENDED, reason) ? ENDED[reason]! : ACTIVITY.ended.advice;
}

/** The last turn's delay. */
export function answeredIn(ms: number | null): string {
  return ms === null ? "" : `Answered in ${(ms / 1000).toFixed(2)} s`;
}

/** The next try to connect, at a time in ms since the epoch. */
export function nextTry({ attempt, at }: { attempt: number; at: number }, now: number): string {
  const left = Math.ceil((at - now) / 1000);
  return left > 0 ? `Try ${attempt} in ${left} s.` : `Try ${attempt}, now.`;
}

/** What becomes of what the user says while the connection is restored. */
export function whatIsSaid({ microphone, retry }: VoiceState, now: number): string {
  if (retry === null || microphone !== "live") {
    return "";
  }
  return now < retry.keptUntil ? "What you say is kept." : "What you say is not heard yet.";
}

// Tools.

/** What an error of a tool means to the user, by its type. */
const TOOL_ERROR: Readonly<Record<string, string>> = {
  VALIDATION: "failed: wrong arguments",
  NOT_FOUND: "failed: not found",
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
  const notes = Object.entries(line.clamped).map(([name, { requested, applied }]) => `${name} lowered from ${requested} to ${applied}`);
  return [toolOutcome(line), ...notes].join(", ");
}

function toolOutcome({ state, durationMs, deduplicated, error }: ToolLine): string {
  switch (state) {
    case "running":
      return durationMs === undefined ? "working" : `still at work, ${atLeastASecond(durationMs)}`;
    case "unfinished":
      return "not finished";
    case "done":
      if (deduplicated) {
        return "given from memory";
      }
      return durationMs === undefined ? "done" : `done in ${duration(durationMs)}`;
    case "failed": {
      const type = error?.type ?? "";
      const text = Object.hasOwn(TOOL_ERROR, type) ? TOOL_ERROR[type]! : "failed";
      return error?.partialSideEffects === true ? `${text}; part of it may have been done` : text;
    }
  }
}

function atLeastASecond(ms: number): string {
  return `${Math.max(1, Math.round(ms / 1000))} s`;
}

/** A short time, with as much of it as says something. */
export function duration(ms: number): string {
  if (ms < 1) {
    return "less than 1 ms";
  }
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

/** A time in minutes and seconds, as people say it. */
export function span(ms: number): string {
  const whole = Math.max(0, Math.round(ms / 1000));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

// Questions.

/** What became of a question. */
const OUTCOME: Readonly<Record<string, string>> = {
  approved: "approved",
  denied: "declined",
  expired: "not answered in time",
  unanswered: "not answered",
  lost: "not answered",
  unknown: "ended while the connection was away",
  answered: "answered before",
};

export function outcomeOf({ outcome, elsewhere }: Outcome): string {
  const word = Object.hasOwn(OUTCOME, outcome) ? OUTCOME[outcome]! : outcome;
  return elsewhere ? `${word}, but not here` : word;
}

/** The heading above so many open questions. */
export function askedHeading(count: number): string {
  return count > 1 ? `${count} actions wait for your answer` : "One action waits for your answer";
}

/** Who asks. */
export const ASKS = { text: "The text agent asks before it acts", voice: "The voice agent asks before it acts" } as const;

export const NO_ARGUMENTS = "It takes no arguments.";
export const EXACT_ARGUMENTS = "Exact arguments";

/** What screen readers are told of a new question. */
export function askedAloud(question: Question): string {
  return `${ASKS[question.side]}: ${question.preview} Press Approve or Decline, above the text field. The key Q goes there.`;
}

/** The time that a question has left, or what was answered. */
export function timeLeft({ approved, expires }: Question, now: number): string {
  if (approved !== null) {
    return approved ? "approving" : "declining";
  }
  return expires === null ? "" : countdown(expires, now, "the time is up");
}

/** Minutes and seconds until a time; `over` after it. */
export function countdown(until: number, now: number, over: string): string {
  const left = Math.ceil((until - now) / 1000);
  return left <= 0 ? over : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`;
}

// The way to voice and back.

export function handoffTitle(line: Handoff): string {
  if (line.to === "text") {
    return "Back in text";
  }
  switch (line.state) {
    case "offered":
      return "Go on by voice";
    case "over":
      return "Not gone on by voice";
    case "taken":
      return line.request === "" ? "Call started" : "Handed to voice";
  }
}

/** How much was said in a call; empty where that is not known. */
export function callLength({ turns, ms }: Handoff): string {
  const parts = [turns === undefined ? "" : `${turns} ${turns === 1 ? "turn" : "turns"}`, ms === undefined ? "" : span(ms)];
  return parts.filter((part) => part !== "").join(", ");
}

export const ANSWERED_FIRST = "Answered first";
export const INVITATION_OVER = "The time is up. Ask the text agent again.";
export const TALK = "Talk";
export const TIME_IS_UP = "The time is up";
export const HANDED_BACK = "What the text agent was told";

// Settings and help.

export const SETUP = {
  title: "Settings",
  call: "Voice agent",
  later: "Changes here count from the next call.",
  provider: "Provider",
  agent: "Agent",
  voice: "Voice",
  standard: "Default",
  turns: "When you have finished speaking",
  automatic: "The model notices",
  pushToTalk: "Push-to-talk",
  pending: "Answered first",
  pendingHint: "Asked as soon as the next call begins. Leave it empty to speak first yourself.",
  devices: "Microphone and loudspeaker",
  atOnce: "Changes here count at once, in a running call too.",
  microphone: "Microphone",
  speaker: "Loudspeaker",
  browsers: "The browser's default",
  gone: "Not connected at the moment",
  unnamed: "Devices have names once you have allowed the microphone.",
  inUse: "In use",
  echo: "Echo cancellation",
  echoHint: "Without it, use headphones: the voice agent would hear itself.",
  noise: "Noise suppression",
  noiseHint: "Takes fans and streets out of what you say.",
  rates: "Sound quality",
  ratesHint: "8 kHz sounds like a telephone. Counts from the next call.",
  inputRate: "What you say",
  outputRate: "What you hear",
  page: "This page",
  theme: "Colours",
  system: "As the system",
  light: "Light",
  dark: "Dark",
  readOut: "Read out by a screen reader",
  unheard: "What cannot be heard",
  all: "All that is said",
  shortcuts: "Single-key shortcuts",
  shortcutsHint: "Turn them off if you control this page by speech.",
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
    ["Esc", "Stop: the agent falls silent or stops writing"],
    ["Space", "Hold it to talk, with push-to-talk, where no field has the focus"],
    ["M", "Mute and unmute the microphone"],
    ["Q", "Go to the question that waits for an answer"],
    ["Enter", "Send what you have written"],
    ["Shift + Enter", "A new line in what you write"],
    ["?", "These shortcuts"],
  ],
  more: "Single keys do nothing while a field has the focus. They can be turned off in the settings. No key answers a question by itself.",
} as const;

// What is read out.

/** A line in words, for those who do not see it; empty for what need not be said. */
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

/** After "Ready", where there is room. */
export const WITH_SIMULATOR = ", with the built-in simulator";

/** How the gateway is. */
export const GATEWAY = {
  unknown: "Looking for the gateway",
  ready: "Ready",
  simulator: "Ready",
  reconnecting: "Reconnecting",
  leaving: "The gateway takes no new sessions",
  unreachable: "The gateway cannot be reached",
} as const;

/** The time of day, with the date where that is another day. */
export function clock(time: number): string {
  const when = new Date(time);
  const far = Math.abs(time - Date.now()) > 12 * 3600_000;
  return when.toLocaleString([], far ? { dateStyle: "medium", timeStyle: "short" } : { timeStyle: "short" });
}
