// Saves a conversation as plain text or WebVTT (https://www.w3.org/TR/webvtt1/, read 2026-11-26).
import type { Line, ToolLine, Utterance } from "./lines.js";

/** A cue lasts until the next one, at most this long, in ms. */
const LONGEST_CUE = 10_000;
/** The length of the last cue, and of one at the same time as the next, in ms. */
const SHORTEST_CUE = 1_000;

/** One line per utterance and tool call, with the time since the first. */
export function asText(lines: readonly Line[]): string {
  const kept = said(lines);
  const first = kept[0]?.at ?? 0;
  return kept.map((line) => `[${clock(line.at - first)}] ${line.kind === "tool" ? toolText(line) : `${speaker(line)}: ${flat(line.text)}${line.cut ? " [cut off]" : ""}`}\n`).join("");
}

/** Spoken and typed text as cues. Tool calls are notes, which players do not show. */
export function asVtt(lines: readonly Line[]): string {
  const kept = said(lines);
  const first = kept[0]?.at ?? 0;
  const blocks = kept.map((line, i) => {
    if (line.kind === "tool") {
      return `NOTE ${escape(toolText(line))}`;
    }
    const from = line.at - first;
    const next = kept.slice(i + 1).find(({ kind }) => kind === "utterance");
    const lasts = Math.min(LONGEST_CUE, Math.max(SHORTEST_CUE, (next?.at ?? line.at) - line.at));
    return `${stamp(from)} --> ${stamp(from + lasts)}\n<v ${speaker(line)}>${escape(flat(line.text))}`;
  });
  return `${["WEBVTT", ...blocks].join("\n\n")}\n`;
}

function said(lines: readonly Line[]): (Utterance | ToolLine)[] {
  return lines.filter((line): line is Utterance | ToolLine => line.kind === "tool" || (line.kind === "utterance" && line.text !== ""));
}

function speaker({ role }: Utterance): string {
  return role === "user" ? "User" : "Agent";
}

function toolText({ tool, state, durationMs, error }: ToolLine): string {
  const how = state === "done" ? "done" : error === undefined ? state : `${state}: ${error.type}, ${flat(error.message)}`;
  return `Tool ${tool}: ${how}${durationMs === undefined ? "" : ` (${durationMs} ms)`}`;
}

/** On one line, because an empty line would end a cue. */
function flat(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** `-->` and tags have a meaning in a cue. */
function escape(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function clock(ms: number): string {
  return stamp(ms).replace(/\.\d+$/, "");
}

function stamp(ms: number): string {
  const two = (n: number): string => String(n).padStart(2, "0");
  const whole = Math.max(0, Math.round(ms));
  return `${two(Math.floor(whole / 3_600_000))}:${two(Math.floor(whole / 60_000) % 60)}:${two(Math.floor(whole / 1000) % 60)}.${String(whole % 1000).padStart(3, "0")}`;
}
