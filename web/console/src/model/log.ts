// All events as a list to search and save, without audio.
import type { Happening, Side, Watcher } from "./feed.js";
import type { Secrets } from "./secrets.js";

/** From the gateway, to it, or from this page. */
export type Direction = "in" | "out" | "here";

/** The topic of an event. drafts: partial text. reports: frequent reports and pings. */
export type Group = "talk" | "turns" | "tools" | "state" | "session" | "audio" | "drafts" | "reports";

export const GROUPS: readonly Group[] = ["talk", "turns", "tools", "state", "session", "audio", "drafts", "reports"];

/** One entry of the list. */
export interface Entry {
  /** Rises by one, from 1. */
  readonly number: number;
  /** performance.now() and ms since the epoch. */
  readonly at: number;
  readonly wall: number;
  readonly side: Side;
  readonly direction: Direction;
  readonly group: Group;
  readonly type: string;
  readonly turn: number | undefined;
  /** The event reports an error. */
  readonly bad: boolean;
  /** The whole event as JSON, without secrets. */
  readonly json: string;
}

/** The filter of the list; by default it passes everything. */
export interface Filter {
  text: string;
  side: Side | "";
  direction: Direction | "";
  groups: ReadonlySet<Group>;
}

const MAX_ENTRIES = 5000;
const MAX_CHARS = 8_000_000;

const GROUP_OF: Readonly<Record<string, Group>> = {
  transcript: "talk",
  "text.delta": "drafts",
  "text.done": "talk",
  "ui.image": "talk",
  interrupt: "talk",
  usage: "turns",
  latency: "turns",
  answered: "turns",
  done: "turns",
  "inspect.call": "tools",
  "inspect.state": "state",
  "inspect.intent": "state",
  playback: "reports",
  played: "reports",
  ping: "reports",
  pong: "reports",
  network: "reports",
  sounding: "audio",
  silenced: "audio",
  underrun: "audio",
  microphone: "audio",
  speaker: "audio",
};

const GROUP_OF_PREFIX: Readonly<Record<string, Group>> = {
  input: "talk",
  speech: "talk",
  turn: "turns",
  tool: "tools",
  confirmation: "tools",
  audio: "audio",
};

/** The topic of a message or event, by its type. */
export function groupOf(type: string, content: Readonly<Record<string, unknown>> = {}): Group {
  if (type === "transcript" && content["final"] === false) {
    return "drafts";
  }
  if (Object.hasOwn(GROUP_OF, type)) {
    return GROUP_OF[type]!;
  }
  const prefix = type.split(".", 1)[0]!;
  return Object.hasOwn(GROUP_OF_PREFIX, prefix) ? GROUP_OF_PREFIX[prefix]! : "session";
}

/** The newest events, up to 5000 and about 16 MB. */
export class Log implements Watcher {
  private list: Entry[] = [];
  /** Entries before this index are dropped; the array is trimmed occasionally. */
  private first = 0;
  private numbers = 0;
  private chars = 0;
  private gone = 0;

  constructor(private readonly secrets: Secrets) {}

  get length(): number {
    return this.list.length - this.first;
  }

  /** The number of entries dropped for lack of room. */
  get dropped(): number {
    return this.gone;
  }

  take(happening: Happening): void {
    const what = contentOf(happening);
    if (what === null) {
      return;
    }
    const json = JSON.stringify(this.secrets.mask(what.content));
    const turn = happening.kind === "received" ? (happening.message as { turn?: unknown }).turn : what.content["turn"];
    this.list.push({
      number: ++this.numbers,
      at: happening.at,
      wall: happening.wall,
      side: happening.side,
      direction: what.direction,
      group: groupOf(what.type, what.content),
      type: what.type,
      turn: typeof turn === "number" ? turn : undefined,
      bad: isBad(what.type, what.content),
      json,
    });
    this.chars += json.length;
    while (this.length > MAX_ENTRIES || (this.chars > MAX_CHARS && this.length > 1)) {
      this.chars -= this.list[this.first]!.json.length;
      this.first++;
      this.gone++;
    }
    if (this.first > MAX_ENTRIES) {
      this.list = this.list.slice(this.first);
      this.first = 0;
    }
  }

  /** Restores the previous page's entries, before any event here. */
  restore(entries: readonly Entry[]): void {
    for (const entry of entries.slice(-MAX_ENTRIES)) {
      this.list.push({ ...entry, number: ++this.numbers });
      this.chars += entry.json.length;
    }
  }

  clear(): void {
    this.list = [];
    this.first = 0;
    this.chars = 0;
    this.gone = 0;
  }

  /** The entries after the one with that number, oldest first. */
  after(number: number): readonly Entry[] {
    return this.list.slice(Math.max(this.first, this.list.length - (this.numbers - number)));
  }

  /** The number of the oldest entry, or of the next one if empty. */
  get oldest(): number {
    return this.list[this.first]?.number ?? this.numbers + 1;
  }
}

/** The entries of a log that pass a filter. It examines each entry once. */
export class Search {
  private found: Entry[] = [];
  private seen = 0;
  private readonly words: readonly string[];

  constructor(
    private readonly log: Log,
    private readonly filter: Filter,
  ) {
    this.words = filter.text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  }

  /** The matching entries, oldest first; the same array if nothing has changed. */
  now(): readonly Entry[] {
    const fresh = this.log.after(this.seen);
    this.seen = fresh.at(-1)?.number ?? this.seen;
    const fitting = fresh.filter((entry) => fits(entry, this.filter, this.words));
    const { oldest } = this.log;
    if (fitting.length > 0 || (this.found[0]?.number ?? oldest) < oldest) {
      this.found = [...this.found.filter(({ number }) => number >= oldest), ...fitting];
    }
    return this.found;
  }
}

/** Formats entries as lines of JSON, to save. */
export function toLines(entries: readonly Entry[]): string {
  return entries
    .map(({ wall, side, direction, json }) => {
      const head = JSON.stringify({ time: new Date(wall).toISOString(), side, direction });
      return `${head.slice(0, -1)},"event":${json}}\n`;
    })
    .join("");
}

function fits(entry: Entry, filter: Filter, words: readonly string[]): boolean {
  if (!filter.groups.has(entry.group)) {
    return false;
  }
  if ((filter.side !== "" && entry.side !== filter.side) || (filter.direction !== "" && entry.direction !== filter.direction)) {
    return false;
  }
  // All words must occur: "kb_search failed" finds entries with both.
  return words.length === 0 || words.every((word) => entry.json.toLowerCase().includes(word));
}

interface Content {
  type: string;
  direction: Direction;
  content: Record<string, unknown>;
}

function contentOf(happening: Happening): Content | null {
  switch (happening.kind) {
    case "received":
      return { type: happening.message.type, direction: "in", content: (happening.wire ?? happening.message) as unknown as Record<string, unknown> };
    case "sent":
      return { type: happening.message.type, direction: "out", content: happening.message };
    case "noticed":
      return noticed(happening.name, happening.event);
    case "opened":
      return noticed("opened", { input_rate: happening.inputRate, output_rate: happening.outputRate });
    case "anew":
      return noticed("anew", { conversation_id: happening.conversationId });
    case "lapsed":
      return noticed("confirmation.lapsed", { token: happening.token });
    case "uplink":
    case "downlink":
      return null;
  }
}

function noticed(type: string, event: unknown): Content {
  const fields = typeof event === "object" && event !== null ? plain(event) : { value: event };
  return { type, direction: "here", content: { type, ...fields } };
}

// The fields of an event. JSON omits an error's message, and this page's times have too many digits.
function plain(event: object): Record<string, unknown> {
  const fields: Record<string, unknown> = event instanceof Error ? { message: event.message } : {};
  for (const [name, value] of Object.entries(event)) {
    fields[name] = value instanceof Error ? plain(value) : typeof value === "number" ? Math.round(value * 10) / 10 : value;
  }
  return fields;
}

function isBad(type: string, content: Record<string, unknown>): boolean {
  if (type === "tool.ended") {
    return content["ok"] === false;
  }
  if (type === "turn.ended" || type === "done") {
    return content["status"] === "failed";
  }
  return type === "error" || type === "underrun" || (type === "disconnected" && content["error"] !== undefined);
}
