// The conversation from before this page (GET /v1/conversations/{id}), as lines.
import type { Side } from "./feed.js";
import type { Handoff, Line } from "./lines.js";
import { fields, list, number, pictureUrl, text, type Fields } from "./shape.js";

interface Entry {
  at: number;
  side: Side;
  role: string;
  text: string;
  session: string;
  interrupted: boolean;
  calls: readonly Fields[];
}

/** Converts a conversation to lines, without one session that the page has itself; empty for another shape. */
export function recalled(value: unknown, except?: string): readonly Line[] {
  const all = list(fields(value)["entries"]).map((entry) => readEntry(fields(entry)));
  const entries = all.filter(({ session }) => except === undefined || session !== except);
  const lines: Line[] = [];
  let before: Entry | undefined;
  entries.forEach((entry, i) => {
    if (before?.session !== entry.session && !(before === undefined && entry.session === "")) {
      lines.push(...crossings(before, entry, i));
    }
    lines.push(...linesOf(entry, `recalled-${i}`));
    before = entry;
  });
  if (before !== undefined && before.session !== "") {
    lines.push(crossing("text", before.at, entries.length));
  }
  return lines;
}

function crossings(before: Entry | undefined, entry: Entry, i: number): readonly Line[] {
  const back = before !== undefined && before.session !== "" ? [crossing("text", before.at, i)] : [];
  return entry.session === "" ? back : [...back, crossing("voice", entry.at, i)];
}

function crossing(to: Side, at: number, i: number): Handoff {
  return {
    kind: "handoff",
    key: `recalled-${to}-${i}`,
    side: to === "voice" ? "text" : "voice",
    to,
    state: "taken",
    request: "",
    expires: null,
    summary: "",
    turns: undefined,
    ms: undefined,
    at,
  };
}

function linesOf(entry: Entry, key: string): readonly Line[] {
  const placed = { side: entry.side, at: entry.at };
  if (entry.role === "notice") {
    return notice(entry, key);
  }
  const lines: Line[] = entry.calls.flatMap((call, i) => callOf(call, placed, `${key}-call-${i}`));
  if (entry.text !== "" && (entry.role === "user" || entry.role === "assistant")) {
    lines.push({
      ...placed,
      kind: "utterance",
      key,
      role: entry.role,
      text: entry.text,
      state: "final",
      turn: undefined,
      cut: entry.interrupted,
      heard: undefined,
      typed: entry.side === "text",
      pending: false,
    });
  }
  return lines;
}

function callOf(call: Fields, placed: { side: Side; at: number }, key: string): readonly Line[] {
  const envelope = fields(call["envelope"]);
  const error = fields(envelope["error"]);
  const duration = fields(envelope["meta"])["duration"];
  const line: Line = {
    ...placed,
    kind: "tool",
    key,
    tool: text(call["tool"]),
    state: call["ok"] === true ? "done" : "failed",
    durationMs: typeof duration === "number" ? duration : undefined,
    error: text(error["type"]) === "" ? undefined : { type: text(error["type"]), message: text(error["message"]) },
    deduplicated: false,
    clamped: {},
  };
  const prompt = text(fields(call["args"])["prompt"]);
  const pictures = list(fields(envelope["data"])["images"]).map((image, i) => pictureOf(fields(image), prompt, placed, `${key}-${i}`));
  return [line, ...pictures.flat()];
}

function pictureOf(image: Fields, prompt: string, placed: { side: Side; at: number }, key: string): readonly Line[] {
  const url = pictureUrl(text(image["url"]));
  if (url === "") {
    return [];
  }
  return [{ ...placed, kind: "picture", key, url, prompt, width: number(image["width"]), height: number(image["height"]) }];
}

/** A note about a question; other notes are for the model. */
function notice(entry: Entry, key: string): readonly Line[] {
  const note = /The user (?:was asked to approve (?<asked>\S+): (?<outcome>\w+)|(?<verb>approved|declined) (?<tool>\S+))/.exec(entry.text)?.groups;
  if (note === undefined) {
    return [];
  }
  const outcome = note["outcome"] ?? (note["verb"] === "approved" ? "approved" : "denied");
  return [{ kind: "outcome", key, side: entry.side, at: entry.at, preview: note["asked"] ?? note["tool"] ?? "", outcome, elsewhere: false }];
}

function readEntry(entry: Fields): Entry {
  const at = Date.parse(text(entry["at"]));
  return {
    at: Number.isNaN(at) ? 0 : at,
    side: entry["side"] === "voice" ? "voice" : "text",
    role: text(entry["role"]),
    text: text(entry["text"]),
    session: text(entry["session_id"]),
    interrupted: entry["interrupted"] === true,
    calls: list(entry["calls"]).map(fields),
  };
}
