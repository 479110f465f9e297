// What was said, as files that people keep: plain text, and WebVTT (https://www.w3.org/TR/webvtt1/, read 2026-11-26).
import type { Line, ToolLine, Utterance } from "./lines.js";

/** A cue lasts until the next one, but not longer, in ms. */
const LONGEST_CUE = 10_000;
/** The last one, and one that shares its time with the next, in ms. */
const SHORTEST_CUE = 1_000;

/** One line for each thing said and each tool called, with the time since the first. */
export function asText(lines: readonly Line[]): string {
  const kept = said(lines);
  const first = kept[0]?.at ?? 0;
  return kept.map((line) => `[${clock(line.at - first)}] ${line.kind === "tool" ? toolText(line) : `${speaker(line)}: ${flat(line.text)}${line.cut ? " [cut off]" : ""}`}\n`).join("");
}

/** What was said by voice or typed, as cues; tools are notes, which no player shows. */
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

/** In one line: an empty one would end a cue. */
function flat(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** `-->` and tags mean something in a cue. */
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
