// The lines of a call that are kept when the page is loaded again: while the call runs, nobody
// else has them.
import type { Line } from "./lines.js";
import { fields, list, pictureUrl, text } from "./shape.js";

/** So much is kept, the newest: an hour of talk fits in, and a tab has some megabytes. */
const MAX_LINES = 200;
const MAX_LENGTH = 200_000;

/** Of these lines, those that are kept. */
export function linesToKeep(lines: readonly Line[]): readonly Line[] {
  const newest = lines.slice(-MAX_LINES);
  let length = 0;
  const tooMuch = newest.findLastIndex((line) => (length += JSON.stringify(line).length) > MAX_LENGTH);
  return newest.slice(tooMuch + 1);
}

/** Reads lines of a source again; what is not one of them is left out. */
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
