// Stores the lines of a running call across a reload; until it ends, the page has the only copy.
import type { Line } from "./lines.js";
import { fields, list, pictureUrl, text } from "./shape.js";

/** The most lines stored, newest first: an hour of talk, far below a tab's storage. */
const MAX_LINES = 200;
const MAX_LENGTH = 200_000;

/** Returns the lines to store. */
export function linesToKeep(lines: readonly Line[]): readonly Line[] {
  const newest = lines.slice(-MAX_LINES);
  let length = 0;
  const tooMuch = newest.findLastIndex((line) => (length += JSON.stringify(line).length) > MAX_LENGTH);
  return newest.slice(tooMuch + 1);
}

/** Parses a source's stored lines and skips invalid ones. */
export function readLines(value: unknown, source: string): readonly Line[] {
  return list(value).flatMap((entry): Line[] => {
    const line = fields(entry);
    const usable = text(line["key"]).startsWith(`${source}:`) && typeof line["at"] === "number" && line["side"] === "voice";
    return usable && isLine(line) ? [line as unknown as Line] : [];
  });
}

function isLine(line: Readonly<Record<string, unknown>>): boolean {
  switch (line["kind"]) {
    case "utterance":
      return (line["role"] === "user" || line["role"] === "assistant") && typeof line["text"] === "string";
    case "tool":
      return typeof line["tool"] === "string" && typeof line["clamped"] === "object" && line["clamped"] !== null;
    case "picture":
      return pictureUrl(text(line["url"])) !== "" && typeof line["prompt"] === "string";
    default:
      return false;
  }
}
