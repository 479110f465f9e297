// The texts of the instruments.
import type { TurnLatency } from "@voicegw/client";
import type { Call, Segment } from "../model/calls.js";
import type { Committed, Effect } from "../model/faults.js";
import type { Direction, Group } from "../model/log.js";
import type { Part, Spent, Turn } from "../model/turns.js";
import { dollars } from "../words.js";

export const INSTRUMENTS = "Instruments";

export const TABS = { tools: "Tools", latency: "Latency", events: "Events", state: "State", faults: "Faults" } as const;

/** A short duration: 812 ms, 1.20 s, 2:05 min. */
export function duration(ms: number): string {
  const whole = Math.round(ms);
  if (whole < 1000) {
    return `${whole} ms`;
  }
  if (whole < 59_995) {
    return `${(whole / 1000).toFixed(2)} s`;
  }
  const seconds = Math.round(whole / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} min`;
}

/** Seconds with one decimal, for audible durations. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** The time of day with milliseconds. */
export function timeOfDay(wall: number): string {
  const time = new Date(wall);
  const two = (n: number): string => String(n).padStart(2, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

/** plural(1, "call", "calls") is "1 call". */
export function plural(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

// Tools.

/** A remark about a call, and why it matters. */
export interface Chip {
  readonly text: string;
  readonly tone: "plain" | "warn" | "bad" | "good";
  readonly title: string;
}

const REFUSAL: Readonly<Record<string, [text: string, title: string]>> = {
  VALIDATION: ["wrong arguments", "The arguments are not valid for this tool. The model received the errors and may try again."],
  NOT_FOUND: ["no such tool", "The model called a tool that does not exist."],
  INTERNAL: ["internal error", "The tool failed unexpectedly."],
  MODE_RESTRICTED: ["not allowed here", "The tool may not be used in this kind of conversation."],
  BUDGET_EXCEEDED: ["call limit reached", "The turn had used all of its calls. Nothing was run."],
  SESSION_INACTIVE: ["no session", "The tool needs an open voice session."],
  SESSION_ACTIVE: ["session already open", "The tool would open a session, and one is already open."],
  TRANSIENT: ["temporarily unavailable", "It failed this time. The same call may succeed later."],
  PERMANENT: ["cannot be done", "It failed, and would fail again."],
  CONFLICT: ["may already be done", "It was not run, because the action may already have been done."],
  AUTH: ["access denied", "The service behind the tool denied access."],
  RATE_LIMIT: ["too many requests", "It was called too often, or the service behind the tool accepts no more requests for now."],
  UNAVAILABLE: ["not available now", "The tool is available only at other times, or no longer in this conversation. Nothing was run."],
};

const ANSWERED: Readonly<Record<string, Chip>> = {
  approved: { text: "you approved", tone: "good", title: "The tool ran with exactly the arguments you saw, as a separate call." },
  denied: { text: "you declined", tone: "plain", title: "Nothing was run." },
  expired: { text: "expired", tone: "warn", title: "Not answered in time. Nothing was run." },
  lost: { text: "not answered", tone: "plain", title: "The session ended before you answered. Nothing was run." },
  unknown: { text: "ended unseen", tone: "plain", title: "The request was answered or expired while the connection was lost. The calls below show what ran." },
  used: { text: "answered elsewhere", tone: "plain", title: "Someone else answered first." },
};

const APPROVED_BY: Readonly<Record<string, string>> = { client: "by button", api: "by another program", spoken: "aloud" };

const NOT_DELIVERED: Readonly<Record<string, string>> = {
  cancelled: "the model cancelled the call",
  superseded: "the user kept talking",
  repeated: "the call was already answered",
  session_over: "the session had ended",
};

/** The remarks about a call. */
export function chipsOf(call: Call): Chip[] {
  return [...refusalChips(call), ...changeChips(call), ...questionChips(call), ...deliveryChips(call)];
}

function refusalChips(call: Call): Chip[] {
  const type = call.error?.type ?? "";
  if (call.status !== "failed" || asksUser(call)) {
    return [];
  }
  const [text, title] = Object.hasOwn(REFUSAL, type) ? REFUSAL[type]! : ["failed", "The tool failed."];
  const partial = call.error?.partialSideEffects === true;
  return [{ text: partial ? `${text}, part may be done` : text, tone: "bad", title: partial ? `${title} Some changes may have been made.` : title }];
}

function changeChips(call: Call): Chip[] {
  const chips: Chip[] = Object.entries(call.clamped).map(([name, { requested, applied }]) => ({
    text: `${name} ${requested} → ${applied}`,
    tone: "warn",
    title: `The model asked for ${requested}. The limit is ${applied}.`,
  }));
  if (call.repeat === "joined") {
    chips.push({ text: "joined a running call", tone: "plain", title: "The same call was already running. It ran once, and both got its answer." });
  } else if (call.repeat === "memory") {
    const when = call.originalTurn === undefined ? "before" : `in turn ${call.originalTurn}`;
    chips.push({ text: "answered from cache", tone: "plain", title: `Nothing was run again: it was done ${when}.` });
  }
  return chips;
}

function questionChips(call: Call): Chip[] {
  const chips: Chip[] = [];
  if (call.asked !== undefined) {
    const { outcome } = call.asked;
    if (outcome === undefined) {
      chips.push({ text: "needs your approval", tone: "warn", title: "Approve or decline it in the conversation." });
    } else {
      chips.push(ANSWERED[outcome] ?? { text: outcome, tone: "plain", title: "" });
    }
  }
  if (call.approvedBy !== undefined) {
    chips.push({ text: `approved ${APPROVED_BY[call.approvedBy] ?? call.approvedBy}`, tone: "good", title: "A person approved exactly these arguments." });
  }
  return chips;
}

function deliveryChips(call: Call): Chip[] {
  if (call.delivered !== false) {
    return [];
  }
  const why = NOT_DELIVERED[call.notDelivered ?? ""] ?? call.notDelivered ?? "no reason was given";
  return [{ text: "not delivered", tone: "warn", title: `The answer was not delivered to the model: ${why}.` }];
}

/** Whether the call waits for a person's approval. The model received an error, but the call has not failed. */
export function asksUser(call: Call): boolean {
  return call.status === "failed" && call.error?.type === "CONFIRMATION_REQUIRED";
}

/** A call's result in a word or two. */
export function outcomeOf(call: Call): string {
  if (asksUser(call)) {
    const outcome = call.asked?.outcome;
    return outcome === undefined ? "waiting" : outcome === "expired" || outcome === "lost" ? "not run" : "answered";
  }
  return { running: "running", done: "done", failed: "failed", unfinished: "not finished" }[call.status];
}

/** A call's duration, or a dash if nothing ran. */
export function tookOf(call: Call, now: number): string {
  if (call.asked !== undefined) {
    return duration((call.asked.endedAt ?? now) - call.asked.at);
  }
  if (call.status === "running") {
    return duration(now - call.startedAt);
  }
  if (call.status === "unfinished") {
    return duration((call.endedAt ?? now) - call.startedAt);
  }
  const ran = call.runMs ?? 0;
  if (call.repeat !== undefined || (call.status === "failed" && ran === 0)) {
    return "–";
  }
  return ran === 0 ? "< 1 ms" : duration(ran);
}

export const SEGMENT: { [K in Segment["kind"]]: string } = {
  queued: "queued",
  run: "running",
  asked: "waiting for approval",
  shared: "sharing another call",
};

const STORY: { [K in Segment["kind"]]: string } = {
  queued: "It was queued",
  run: "It ran",
  asked: "It waited for approval",
  shared: "It shared another call",
};

/** The history of a call in sentences. */
export function storyOf(call: Call, parts: readonly Segment[]): string[] {
  const story = parts.map(({ kind, from, to }) => `${STORY[kind]} for ${to - from < 1 ? "less than 1 ms" : duration(to - from)}.`);
  const remarks = chipsOf(call).map(({ title }) => title).filter((title) => title !== "");
  if (call.delivered === true) {
    remarks.push("The answer was delivered to the model.");
  }
  return [...story, ...remarks];
}

/** How to get permission to inspect. */
export const ACCESS = {
  shut: "Calls work without it. To inspect arguments, answers, state, faults and past conversations, open the link that voicegw serve printed, or run voicegw console on the gateway's machine for a new one.",
  refused: "This link was already used, or is older than 15 minutes. Calls still work. To inspect them, run voicegw console on the gateway's machine for a new link.",
  ended: "Your access has expired. Calls still work. To inspect them again, run voicegw console on the gateway's machine for a new link.",
} as const;

export const TOOLS = {
  empty: "No tool calls yet. Ask for something that has to be looked up.",
  noInspect: "Arguments and answers are for operators: open the link that voicegw console prints.",
  running: "Still running. The rest is shown when it ends.",
  args: "Arguments",
  envelope: "Answer to the model",
  record: "Audit record",
  /** A button that shows this many more turns. */
  earlier: (count: number): string => `Show earlier turns (${count})`,
} as const;

export const BUDGET_LABEL = "Used of the turn's budget";

export const BUDGET = { retrieval: "searches", total: "calls", tool_time_ms: "ms of tool time" } as const;

// Latency.

export const PART: { [P in Part]: { name: string; means: string } } = {
  detection: { name: "End-of-speech detection", means: "from your last sound until the end of your turn was detected" },
  provider: { name: "Model", means: "until the model's first sound reached the gateway" },
  gateway: { name: "Gateway", means: "added by voicegw itself" },
  network: { name: "Network", means: "after the response time: there and back, including microphone and speaker" },
  cushion: { name: "Jitter buffer", means: "after the response time: held back in this page so that the voice does not stutter" },
};

const BY: { [B in TurnLatency["by"]]: string } = { speech: "spoken", text: "typed", approval: "approved" };

const STATUS: { [S in Turn["status"]]: string } = {
  running: "in progress",
  completed: "completed",
  interrupted: "cut off",
  failed: "failed",
  unfinished: "not finished",
};

/** How a turn began and ended. */
export function turnRemark({ by, status }: Turn): string {
  return by === undefined ? STATUS[status] : `${BY[by]}, ${STATUS[status]}`;
}

/** Usage and its cost. Usage without a price is not free, so it is mentioned. */
export function used({ input_tokens, output_tokens, estimated, cost }: Spent): string {
  const money = cost === undefined ? "" : (cost.unpriced ?? 0) === 0 ? `, ${dollars(cost.usd_micros)}` : cost.usd_micros === 0 ? ", price unknown" : `, ${dollars(cost.usd_micros)} plus usage without a known price`;
  return `${estimated === true ? "about " : ""}${input_tokens} ${input_tokens === 1 ? "token" : "tokens"} in, ${output_tokens} out${money}`;
}

export function usedByCall(turns: number, spent: Spent): string {
  return `This call: ${turns === 1 ? "1 turn" : `${turns} turns`}, ${used(spent)}`;
}

/** A turn's response time in a sentence, for screen readers. */
export function waitSentence(turn: Turn): string {
  const parts = Object.entries(turn.parts).map(([part, ms]) => `${PART[part as Part].name} ${duration(ms)}`);
  return `Response time ${duration(turn.totalMs ?? 0)}${parts.length === 0 ? "" : `: ${parts.join(", ")}`}.`;
}

export const LATENCY = {
  empty: "No response times yet. Talk or type, and each part of the wait is shown here.",
  title: "Response time: from your last sound to the first sound that the gateway sent",
  heard: (ms: number): string => `You heard the answer ${duration(ms)} after your last sound: the response time, the network and the jitter buffer.`,
  partial: "This page could not measure when the answer began to play.",
  plot: "Response times of the last turns",
  plotAloud: "Response times of the last turns. The table has the figures.",
  plotEmpty: "The chart starts with the second answer.",
  median: "median (p50)",
  slow: "95th percentile (p95)",
  kept: "The audio of the last 10 minutes is kept only in this page.",
  nothing: "No audio was recorded for this turn.",
} as const;

/** A turn's number, in a heading and in running text. */
export const TURN = {
  heading: (turn: number | undefined): string => (turn === undefined ? "Between turns" : `Turn ${turn}`),
  inline: (turn: number | undefined): string => (turn === undefined ? "" : `turn ${turn}`),
  parts: (turn: number): string => `Parts of the response time in turn ${turn}`,
  audio: (turn: number): string => `Audio of turn ${turn}`,
} as const;

export const SIDE = { voice: "voice", text: "text" } as const;

export const FIGURES = { caption: "Response times in milliseconds", total: "Response time", turns: "turns", turn: "one turn" } as const;

export const AUDIO = {
  both: { name: "Both", title: "Both sides as heard: you on the left, the voice agent on the right" },
  user: { name: "You", title: "Your side only" },
  model: { name: "Voice agent", title: "Everything the voice agent said, including what was never heard" },
} as const;

/** The audio of a whole call. */
export const WHOLE_CALL = {
  title: "Sound of the whole call",
  save: "Whole call (WAV)",
  making: "Preparing …",
  means: "You on the left, the voice agent on the right, as it sounded. It is kept only in this page, until the next call or a reload.",
  full: "The recording ends after 30 minutes.",
  continued: "The part before the page was reloaded is missing.",
} as const;

// Events.

export const GROUP: { [G in Group]: string } = {
  talk: "Speech and text",
  turns: "Turns",
  tools: "Tools",
  state: "State",
  session: "Session and errors",
  audio: "Audio",
  drafts: "Partial text",
  reports: "Reports and pings",
};

export const DIRECTION: { [D in Direction]: string } = { in: "from the gateway", out: "to the gateway", here: "in this page" };

export const EVENTS = {
  search: "Search",
  searchHint: "All of these words occur in the event",
  sides: "Both agents",
  ways: "All directions",
  kinds: "Types",
  pause: "Pause",
  resume: "Resume",
  save: "Save",
  saveTitle: "Save the listed events as JSON lines, without tickets and tokens.",
  clear: "Clear",
  secrets: "Tickets and tokens are hidden, here and in saved files.",
  empty: "No events yet.",
  none: "No matching events.",
  label: "Events",
  side: "Agent",
  direction: "Direction",
  voice: "Voice",
  text: "Text",
  all: "Whole event",
  choose: "Select an event to see all of it.",
  copy: "Copy",
  copied: "Copied",
} as const;

/** The number of events shown and in total. */
export function counted(shown: number, all: number, dropped: number): string {
  const of = shown === all ? plural(all, "event", "events") : `${shown} of ${plural(all, "event", "events")}`;
  return dropped === 0 ? `${of}.` : `${of}, ${dropped} older ones dropped.`;
}

// State.

export const PHASE: Readonly<Record<string, string>> = {
  connecting: "Connecting to the model",
  active: "In conversation",
  ending: "Saying goodbye",
  ended: "Ended",
};

export const STATE = {
  empty: "No voice session yet. Start a call to see its state here.",
  noInspect: "This page may not inspect the session. Open the link that voicegw console prints, or use a ticket that allows it.",
  intents: "Requests of tools to the session",
  noIntents: "None so far.",
  session: "Session",
  now: "Now",
  here: "This page",
} as const;

export const FACT = {
  phase: "Phase",
  user: "User",
  userMuted: "no longer listened to",
  userSpeaks: "speaking",
  userSilent: "silent",
  model: "Model",
  answering: "answering",
  waiting: "waiting",
  pending: "Pending calls",
  questions: "Open questions",
  notices: "Queued for the next turn",
  disabled: "Disabled by a tool",
  nothing: "nothing",
  id: "ID",
  conversation: "Conversation",
  provider: "Provider",
  voice: "Voice",
  agent: "Agent",
  tools: "Tools version",
  rates: "Sample rates",
  expires: "Expires",
  never: "never",
  resumed: "Resumed",
  yes: "yes",
  no: "no",
  rtt: "Round trip",
  bestRtt: "Best round trip",
  unmeasured: "not measured yet",
  cushion: "Jitter buffer",
  underruns: "Underruns",
  sent: "Audio sent",
  received: "Audio received",
  droppedSlow: "Dropped, connection too slow",
  droppedOffline: "Dropped, no connection",
  bytes: "Bytes",
  messages: "Messages",
  unknown: "Unknown messages",
  gaps: "Gaps, repeats",
  reconnects: "Reconnects",
} as const;

// Faults.

/** The effect of each fault, by its name. */
const WATCH: Readonly<Record<string, string>> = {
  drop: "The provider's connection breaks without a close message. The gateway opens another one in the same call and repeats unanswered input.",
  close: "The provider closes its connection with a code. The gateway opens another one in the same call, unless the code rules out a retry.",
  goaway: "The provider warns that it will disconnect, then does. The gateway replaces the connection before that, if it can between two answers.",
  expire: "The provider's session reaches its maximum length and ends. The gateway opens another one in the same call.",
  delay: "Everything the provider sends arrives late. The model's share of the next response time grows.",
  silence: "Everything the model says is lost for a while. The gateway asks again after 10 s, and the turn fails after 15 s without an answer.",
  slow_read: "The provider reads slowly. Your audio waits in the gateway, which drops the oldest part if too much is queued.",
  duplicate_call: "The next tool call is sent twice. It runs once, and both get the same answer.",
  late_call: "The next tool call comes after its turn has ended. It still counts against that turn's budget.",
  cancel_call: "The provider withdraws the next tool call. The model gets no answer to it, and the audit records that.",
  missing_id: "The next tool call has no id. The gateway gives it one.",
  malformed: "The provider sends a broken frame. The gateway ignores it, and the call continues.",
  unknown_event: "The provider sends an event of an unknown type. The gateway ignores it, and the call continues.",
  quota: "The provider reports that its quota is exhausted. The call shows the error.",
  deaf: "The provider hears you, but never answers on this connection again. The gateway asks again after 10 s, and the turn fails after 15 s without an answer.",
  refuse_resume: "The provider refuses to resume the conversation the next time its connection is replaced. The gateway then replays the conversation to the new connection.",
  amnesia: "The provider accepts the next resumption, but has forgotten the conversation. The gateway notices that no answer comes and replaces the connection again.",
  late_handle: "The provider sends resumption handles late. A connection that breaks before then resumes from an older one.",
  no_handle: "The provider sends no more resumption handles. The gateway replays the conversation to the next connection.",
  busy_handle: "The provider sends resumption handles during answers too. Nothing changes in the call.",
  no_audio: "OpenAI Live sends no sound for a while. The gateway asks a silent model again, and replaces a connection that stays silent.",
  unplaced: "The gateway's next text, such as a result, never reaches the model. The gateway asks the model for it once.",
  undelegated: "The model claims to have done the next work, and delegates nothing. The gateway reports the claim, and the model corrects itself.",
};

export function watchFor(fault: string): string {
  return Object.hasOwn(WATCH, fault) ? WATCH[fault]! : "";
}

export const FAULTS = {
  intro: "A simulator replaces the provider. Trigger a fault and watch how the call recovers.",
  idle: "Start a call first.",
  lasting: "Duration",
  before: "Earlier faults",
  none: "No faults so far.",
  ongoing: "not over yet",
} as const;

const FAULT_OVER: { [O in NonNullable<Committed["over"]>]: string } = {
  restored: "over: reconnected to the provider",
  answered: "over: a turn was answered after it",
  ended: "over: the call has ended",
};

const WENT_ON: Readonly<Record<string, string>> = {
  resumed: "the provider remembers the conversation",
  replayed: "the gateway replayed the conversation",
  fresh: "it does not know the conversation",
};

/** One effect of a fault on the call. */
export function faultEffect({ kind, detail, ms = 0 }: Effect): string {
  switch (kind) {
    case "reconnecting":
      return `the gateway replaces the connection to the provider (${detail})`;
    case "reconnected":
      return `connected again after ${duration(ms)}; ${WENT_ON[detail] ?? detail}`;
    case "error":
      return `error ${detail}`;
    case "tool":
      return detail === "ok" ? "a tool call succeeded" : detail === "repeated" ? "a repeated tool call got the first one's answer" : `a tool call failed (${detail})`;
    case "turn":
      return `a turn ended (${detail})`;
  }
}

/** How a fault ended; empty for one that was not triggered. */
export function faultEnd({ result, over }: Committed): string {
  return result === "asking" || result === "failed" ? "" : over === undefined ? FAULTS.ongoing : FAULT_OVER[over];
}

/** The result of a request for a fault. */
export function faultResult({ result, why }: Committed): string {
  switch (result) {
    case "asking":
      return "asking the simulator";
    case "now":
      return "triggered";
    case "next_call":
      return "armed for the next tool call";
    case "failed":
      return `not triggered: ${why}`;
  }
}

// Waveform.

export const WAVE = {
  label: "Waveform of both sides",
  empty: "Both sides of a call are drawn here.",
  user: "You",
  model: "Voice agent",
  waiting: "queued",
  lost: "never heard",
  speech: "heard as speech",
  pause: "Pause",
  live: "Live",
  earlier: "Earlier",
  later: "Later",
  now: "now",
  interrupted: "cut off",
  typed: "typed",
  turn: (turn: number | undefined): string => (turn === undefined ? "turn" : `turn ${turn}`),
} as const;

/** The paused state and how far back the view is. */
export function ago(ms: number): string {
  return ms < 500 ? "paused" : `${Math.round(ms / 1000)} s back`;
}

/** Both sides in sentences, for screen readers. */
export function waveSentence(user: { speaking: boolean; spokeMs: number | undefined }, model: { heardMs: number; waitingMs: number; lostMs: number } | undefined): string {
  const you = user.speaking ? "You are speaking." : user.spokeMs === undefined ? "You have not spoken yet." : `You spoke for ${seconds(user.spokeMs)}.`;
  if (model === undefined) {
    return `${you} The voice agent has not spoken yet.`;
  }
  const rest = model.lostMs > 0 ? ` Another ${seconds(model.lostMs)} were never heard.` : model.waitingMs > 0 ? ` Another ${seconds(model.waitingMs)} are queued.` : "";
  return `${you} You heard ${seconds(model.heardMs)} of the answer.${rest}`;
}
