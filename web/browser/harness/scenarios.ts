import { readFileSync } from "node:fs";
import { join } from "node:path";
import { babble, within, type Sound } from "./signals.ts";

/** Returns speech-like utterances, each from one second of the recording to another. */
export function utterances(...times: [from: number, to: number][]): Sound {
  return (t) => times.reduce((sum, [from, to]) => sum + within(babble, from, to)(t), 0);
}

/** The model speaks at length after the first utterance and reports the length of the second. */
export const STORY = `
name: story
rules:
  - when: {utterance: 1}
    heard: Tell me a story.
    do:
      - say: >-
          Once there was a lighthouse at the end of the world, and in the lighthouse lived a keeper who had never seen a ship.
          Every evening he climbed the hundred and seven steps, lit the lamp, and wrote into his book that nobody had come.
          Then one night, when the wind had blown the stars away, he heard somebody knock at the door of the lighthouse.
  - when: {utterance: 2}
    heard: Stop, please.
    do:
      - say: "I have stopped. You spoke for \${seconds} seconds."
otherwise: auto
`;

/** Returns the simulator's own scenario with `rule` before its rules. */
export function ownScenarioAnd(rule: string): string {
  const own = readFileSync(join(import.meta.dirname, "../../../sim/scenario/default.yaml"), "utf8");
  return own.replace(/^rules:$/m, `rules:\n${rule}`);
}
