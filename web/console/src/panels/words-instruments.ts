// Every sentence that the instruments say.
import type { TurnLatency } from "@voicegw/client";
import type { Call, Segment } from "../model/calls.js";
import type { Committed } from "../model/faults.js";
import type { Direction, Group } from "../model/log.js";
import type { Part, Turn } from "../model/turns.js";

export const TABS = { tools: "Tools", latency: "Latency", events: "Events", state: "State", faults: "Faults" } as const;

/** A length of time, short: 812 ms, 1.20 s, 2:05 min. */
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

/** The same with tenths of a second, for what people hear. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** The time of day with milliseconds. */
export function timeOfDay(wall: number): string {
  const time = new Date(wall);
  const two = (n: number): string => String(n).padStart(2, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

/** One or many: plural(1, "call", "calls"). */
export function plural(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

// Tools.

/** A remark at a call: what, and why it matters. */
export interface Chip {
  readonly text: string;
  readonly tone: "plain" | "warn" | "bad" | "good";
  readonly title: string;
}

const REFUSAL: Readonly<Record<string, [text: string, title: string]>> = {
  VALIDATION: ["wrong arguments", "The arguments did not fit the tool. The model was told which, and may try again."],
  NOT_FOUND: ["no such tool", "The model called a tool that does not exist."],
  INTERNAL: ["fault in the tool", "The tool failed in a way that nobody expected."],
  MODE_RESTRICTED: ["not allowed here", "The tool may not be used in this kind of conversation."],
  BUDGET_EXCEEDED: ["over budget", "The turn had used up its calls. Nothing was run."],
  SESSION_INACTIVE: ["no session for it", "The tool needs a session that is not there."],
  SESSION_ACTIVE: ["session open already", "The tool would open a session, and one is open."],
  TRANSIENT: ["does not work now", "It failed for the moment; the same call may succeed later."],
  PERMANENT: ["cannot be done", "It failed, and would fail again."],
  CONFLICT: ["may have been done", "It was not run: the same may have been done before."],
  AUTH: ["access refused", "The tool was not let in."],
  RATE_LIMIT: ["too much at once", "The tool's service takes no more for now."],
};

const ANSWERED: Readonly<Record<string, Chip>> = {
  approved: { text: "you approved", tone: "good", title: "The arguments that you saw have been run, as a call of their own." },
  denied: { text: "you declined", tone: "plain", title: "Nothing was run." },
  expired: { text: "nobody answered", tone: "warn", title: "The question ended unanswered. Nothing was run." },
  lost: { text: "not answered", tone: "plain", title: "The session ended before the question was answered. Nothing was run." },
  unknown: { text: "ended unseen", tone: "plain", title: "The question ended while the connection was away: answered, or too late. The calls below show what was run." },
  used: { text: "answered elsewhere", tone: "plain", title: "Somebody else had answered the question before." },
};

const APPROVED_BY: Readonly<Record<string, string>> = { client: "by button", api: "by another program", spoken: "aloud" };

const NOT_DELIVERED: Readonly<Record<string, string>> = {
  cancelled: "the model took the call back",
  superseded: "the user spoke on",
  repeated: "the call had its answer before",
  session_over: "the session was over",
};

/** What is remarkable about a call. */
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
  return [{ text: partial ? `${text}, part may be done` : text, tone: "bad", title: partial ? `${title} Something may have been changed all the same.` : title }];
}

function changeChips(call: Call): Chip[] {
  const chips: Chip[] = Object.entries(call.clamped).map(([name, { requested, applied }]) => ({
    text: `${name} ${requested} → ${applied}`,
    tone: "warn",
    title: `The model asked for ${requested}; more than ${applied} is not allowed here.`,
  }));
  if (call.repeat === "joined") {
    chips.push({ text: "repeat: joined", tone: "plain", title: "The same call was running. It ran once, and both got its answer." });
  } else if (call.repeat === "memory") {
    const when = call.originalTurn === undefined ? "before" : `in turn ${call.originalTurn}`;
    chips.push({ text: "repeat: from memory", tone: "plain", title: `Nothing was run: the answer was made ${when}.` });
  }
  return chips;
}

function questionChips(call: Call): Chip[] {
  const chips: Chip[] = [];
  if (call.asked !== undefined) {
    const { outcome } = call.asked;
    if (outcome === undefined) {
      chips.push({ text: "asks you", tone: "warn", title: "It waits for your answer, a button in the conversation." });
    } else {
      chips.push(ANSWERED[outcome] ?? { text: outcome, tone: "plain", title: "" });
    }
  }
  if (call.approvedBy !== undefined) {
    chips.push({ text: `approved ${APPROVED_BY[call.approvedBy] ?? call.approvedBy}`, tone: "good", title: "A person has approved exactly these arguments." });
  }
  return chips;
}

function deliveryChips(call: Call): Chip[] {
  if (call.delivered !== false) {
    return [];
  }
  const why = NOT_DELIVERED[call.notDelivered ?? ""] ?? call.notDelivered ?? "nobody said why";
  return [{ text: "not told to the model", tone: "warn", title: `The answer was not given to the model: ${why}.` }];
}

/** Whether it has not failed, although the model was told so: a person is asked first. */
export function asksUser(call: Call): boolean {
  return call.status === "failed" && call.error?.type === "CONFIRMATION_REQUIRED";
}

/** How a call went, in a word or two. */
export function outcomeOf(call: Call): string {
  if (asksUser(call)) {
    const outcome = call.asked?.outcome;
    return outcome === undefined ? "waiting" : outcome === "expired" || outcome === "lost" ? "not run" : "answered";
  }
  return { running: "running", done: "done", failed: "failed", unfinished: "not finished" }[call.status];
}

/** How long a call took, for the end of its line; a dash where nothing ran. */
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
  queued: "waited to begin",
  run: "ran",
  asked: "waited for your answer",
  shared: "shared another call",
};

/** What stood between the call and its answer, in sentences. */
export function storyOf(call: Call, parts: readonly Segment[]): string[] {
  const story = parts.map(({ kind, from, to }) => `It ${SEGMENT[kind]} for ${to - from < 1 ? "less than 1 ms" : duration(to - from)}.`);
  const remarks = chipsOf(call).map(({ title }) => title).filter((title) => title !== "");
  if (call.delivered === true) {
    remarks.push("The model was given the answer.");
  }
  return [...story, ...remarks];
}

/** What is missing where the page may not look inside, and how to get it. */
export const ACCESS = {
  shut: "Talking works. To look inside as well (arguments, answers, state, faults, a conversation from before), open the link that voicegw serve printed, or that voicegw console prints on the gateway's machine.",
  refused: "This link has been used, or is older than 15 minutes. Talking works; to look inside, open a new one: voicegw console prints it on the gateway's machine.",
  ended: "The gateway was started again, or half a day has passed. Talking works; to look inside again, open a new link: voicegw console prints it on the gateway's machine.",
} as const;

export const TOOLS = {
  empty: "No tool has been called yet. Ask for something that has to be looked up.",
  noInspect: "Arguments and answers are for operators: open the link that voicegw console prints.",
  running: "It still runs; the rest is shown when it has ended.",
  args: "Arguments as they ran",
  envelope: "Answer to the model",
  record: "Line in the audit",
} as const;

export const BUDGET = { retrieval: "searches", total: "calls", tool_time_ms: "ms of tools" } as const;

// Latency.

export const PART: { [P in Part]: { name: string; means: string } } = {
  detection: { name: "Noticing", means: "from your last sound until it was known that you had finished" },
  provider: { name: "Model", means: "until the model's first sound reached the gateway" },
  gateway: { name: "Gateway", means: "what voicegw itself took" },
  network: { name: "Network", means: "the way there and back, with the time in microphone and loudspeaker" },
  cushion: { name: "Cushion", means: "held back in this page, so that the voice does not stutter" },
};

const BY: { [B in TurnLatency["by"]]: string } = { speech: "spoken", text: "typed", approval: "approved" };

const STATUS: { [S in Turn["status"]]: string } = {
  running: "going on",
  completed: "completed",
  interrupted: "interrupted",
  failed: "failed",
  unfinished: "not finished",
};

/** How a turn began and ended. */
export function turnRemark({ by, status }: Turn): string {
  return by === undefined ? STATUS[status] : `${BY[by]}, ${STATUS[status]}`;
}

/** The wait of a turn in a sentence, for those who do not see the bar. */
export function waitSentence(turn: Turn): string {
  const parts = Object.entries(turn.parts).map(([part, ms]) => `${PART[part as Part].name} ${duration(ms)}`);
  return `${duration(turn.totalMs ?? 0)} until the answer: ${parts.join(", ")}.`;
}

export const LATENCY = {
  empty: "No turn has been answered yet. Speak or type, and the wait is taken apart here.",
  title: "From the end of your turn to the first sound of the answer",
  partial: "Only the gateway's part is known of this one.",
  plot: "Waits of the last turns",
  plotEmpty: "The plot begins with the second answer.",
  median: "half are faster (p50)",
  slow: "95 % are faster (p95)",
  kept: "The last 10 minutes of both sides are kept in this page, and nowhere else.",
  nothing: "Nothing is recorded of this turn.",
} as const;

export const AUDIO = {
  both: { name: "Both", title: "Both sides as they sounded: you on the left, the voice agent on the right" },
  user: { name: "You", title: "Your side alone" },
  model: { name: "Voice agent", title: "All that the voice agent said, also what was never heard" },
} as const;

// Events.

export const GROUP: { [G in Group]: string } = {
  talk: "Speech and text",
  turns: "Turns",
  tools: "Tools",
  state: "State",
  session: "Session and errors",
  audio: "Audio",
  drafts: "Text while it grows",
  reports: "Reports and pings",
};

export const DIRECTION: { [D in Direction]: string } = { in: "from the gateway", out: "to the gateway", here: "in this page" };

export const EVENTS = {
  search: "Search",
  searchHint: "Words that occur in it",
  sides: "Both agents",
  ways: "All directions",
  kinds: "Kinds",
  pause: "Pause",
  resume: "Go on",
  save: "Save",
  saveTitle: "Save what is listed as lines of JSON. Tickets and tokens are not in it.",
  clear: "Clear",
  secrets: "Tickets and tokens are hidden, here and in what is saved.",
  empty: "Nothing has happened yet.",
  none: "Nothing fits.",
  choose: "Choose a line to see all of it.",
  copy: "Copy",
  copied: "Copied",
} as const;

/** How many lines are shown, of how many. */
export function counted(shown: number, all: number, dropped: number): string {
  const of = shown === all ? plural(all, "line", "lines") : `${shown} of ${plural(all, "line", "lines")}`;
  return dropped === 0 ? `${of}.` : `${of}, ${dropped} older ones dropped.`;
}

// State.

export const PHASE: Readonly<Record<string, string>> = {
  connecting: "Connecting to the model",
  active: "The conversation goes on",
  ending: "Saying goodbye",
  ended: "Over",
};

export const STATE = {
  empty: "No voice session yet. Start a call, and its facts are shown here.",
  noInspect: "The gateway does not show the inside of this session. It does to a page that was opened by the link that voicegw console prints, or with a ticket made for it.",
  intents: "What tools wanted of the session",
  noIntents: "Nothing so far.",
  session: "Session",
  now: "Now",
  here: "This page",
} as const;

// Faults.

/** What to watch for, by the fault's word. */
const WATCH: Readonly<Record<string, string>> = {
  drop: "The provider's connection is dropped. Watch: the session ends with its reason, and this page goes on with the conversation in a new one.",
  close: "The provider closes its connection with a code. Watch: the reason that the client is given, and a new session.",
  goaway: "The provider announces that it will leave, and leaves. Watch: the announcement, then a new session of the same conversation.",
  expire: "The provider's session reaches its longest time. Watch: the reason, then a new session of the same conversation.",
  delay: "All that the provider sends is held for a while. Watch: the model's part of the next wait.",
  silence: "The provider says nothing, and what was due is lost. Watch: the model is asked again, at last the turn fails with a reason.",
  duplicate_call: "The next call comes twice. Watch: it runs once, and its repeat is answered from memory.",
  late_call: "The next call comes after the turn has ended. Watch: it goes on with the budget of that turn.",
  cancel_call: "The next call is taken back. Watch: no answer is given to it, and the audit says so.",
  missing_id: "The next call has no id. Watch: it is recognised by what it asks for.",
  malformed: "A frame is cut in the middle. Watch: it is counted, and the session goes on.",
  unknown_event: "An event comes that nobody knows. Watch: nothing.",
  quota: "The provider says that the quota is used up. Watch: the reason that the client is given.",
  slow_read: "The provider reads slowly. Watch: what you say waits, and old audio is dropped rather than new.",
};

export function watchFor(fault: string): string {
  return Object.hasOwn(WATCH, fault) ? WATCH[fault]! : "";
}

export const FAULTS = {
  intro: "A simulator stands in for the provider. Press a fault, and watch what becomes of the conversation.",
  idle: "Start a call first: a fault needs a connection to break.",
  lasting: "How long it lasts",
  before: "Before that",
  none: "No fault so far.",
} as const;

/** What became of a fault that was asked for. */
export function faultResult({ result, why }: Committed): string {
  switch (result) {
    case "asking":
      return "asking the simulator";
    case "now":
      return "it happens now";
    case "next_call":
      return "at the next call of a tool";
    case "failed":
      return `not done: ${why}`;
  }
}

// Waveform.

export const WAVE = {
  label: "Waveform of both sides",
  empty: "What both sides say is drawn here while a call goes on.",
  user: "You",
  model: "Voice agent",
  waiting: "waits to sound",
  lost: "never heard",
  speech: "heard as speech",
  pause: "Pause",
  live: "Back to now",
  earlier: "Earlier",
  later: "Later",
  now: "now",
  interrupted: "interrupted",
  typed: "typed",
  turn: (turn: number | undefined): string => (turn === undefined ? "turn" : `turn ${turn}`),
} as const;

/** That it stands still, and how far back one looks. */
export function ago(ms: number): string {
  return ms < 500 ? "stands still" : `${Math.round(ms / 1000)} s back`;
}

/** Both sides in sentences, for those who do not see the waveform. */
export function waveSentence(user: { speaking: boolean; spokeMs: number | undefined }, model: { heardMs: number; waitingMs: number; lostMs: number } | undefined): string {
  const you = user.speaking ? "You are speaking." : user.spokeMs === undefined ? "You have not spoken yet." : `You spoke for ${seconds(user.spokeMs)}.`;
  if (model === undefined) {
    return `${you} The model has not spoken yet.`;
  }
  const rest = model.lostMs > 0 ? ` ${seconds(model.lostMs)} more were never heard.` : model.waitingMs > 0 ? ` ${seconds(model.waitingMs)} more wait.` : "";
  return `${you} Of the model's answer ${seconds(model.heardMs)} were heard.${rest}`;
}
