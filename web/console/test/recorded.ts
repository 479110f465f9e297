// A recorded conversation as events.
import type { Happening } from "../src/model/feed.js";
import { downlink, moment, uplink } from "./feed.js";
import conversation from "./testdata/conversation.jsonl?raw";

const RATE = 16000;
const FRAME_MS = 20;

type Audio = [side: "u" | "d", at: number, samples: number, peak: number, item?: string];

/** Samples with the recorded loudness. */
function samples(count: number, peak: number): Int16Array {
  return Int16Array.from({ length: count }, (_, i) => (i % 2 === 0 ? peak : -peak));
}

function happening(line: string, clockMs: number): Happening {
  const entry = JSON.parse(line) as Audio | Happening;
  if (!Array.isArray(entry)) {
    return { ...entry, ...moment(entry.at) };
  }
  const [side, at, count, peak, item] = entry;
  return side === "u" ? uplink(at, samples(count, peak), RATE, clockMs) : downlink(at, item!, samples(count, peak));
}

/** testdata/conversation.jsonl; its first line describes it. */
export function recorded(): Happening[] {
  const [, ...lines] = conversation.trimEnd().split("\n");
  // The microphone's clock was not recorded; it ran without a gap.
  let clockMs = 0;
  return lines.map((line) => happening(line, line.startsWith('["u"') ? (clockMs += FRAME_MS) : clockMs));
}
