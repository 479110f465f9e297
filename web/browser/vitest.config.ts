// The tests in real Chromium. scripts/test-web.sh builds what they need and runs them.
import { cpus } from "node:os";
import { defineConfig } from "vitest/config";

/** Those that look: they take every core, and no time of theirs matters. */
const LOOKING = ["console/looks-*.test.ts", "console/instruments.test.ts", "console/text.test.ts"];

/** For so long it is looked at how busy the machine is, in ms. */
const LOOK_MS = 2000;

/** The share of the processors that other programs take now, but for those that give way (nice). */
async function taken(): Promise<number> {
  const ticks = () => cpus().map(({ times: { user, nice, sys, irq, idle } }) => [user + sys + irq, idle + nice] as const);
  const before = ticks();
  await new Promise((over) => setTimeout(over, LOOK_MS));
  const spent = ticks().map(([busy, idle], i) => [busy - before[i]![0], idle - before[i]![1]] as const);
  const [busy, idle] = spent.reduce(([busy, idle], [more, less]) => [busy + more, idle + less], [0, 0]);
  return busy / Math.max(1, busy + idle);
}

/** How many files of tests talk at once: on busy processors pages are late. This file is read for each project; it is looked at once. */
async function atOnce(): Promise<number> {
  const share = Number((process.env["VOICEGW_TAKEN"] ??= String(await taken())));
  if (share >= 0.5 && process.env["VOICEGW_TAKEN_SAID"] === undefined) {
    process.env["VOICEGW_TAKEN_SAID"] = "yes";
    console.log(`Other programs take ${Math.round(100 * share)} % of the processors: the tests run one by one, which takes longer.`);
  }
  return share < 0.5 ? 2 : 1;
}
const together = await atOnce();

export default defineConfig({
  test: {
    maxConcurrency: 1, // two stories of a file at once made pages late on two idle cores, too
    pool: "forks",
    testTimeout: 600_000,
    hookTimeout: 60_000,
    reporters: ["verbose"],
    setupFiles: ["harness/cleanup.ts"],
    projects: [
      // Those that talk mostly wait, for what is said and heard in real time. More at once than two files are late.
      { extends: true, test: { name: "talking", include: ["**/*.test.ts"], exclude: LOOKING, maxWorkers: together, sequence: { groupOrder: 0 } } },
      // A browser and a gateway take about a core; more of them would only wait for each other.
      { extends: true, test: { name: "looking", include: LOOKING, maxWorkers: 2, sequence: { groupOrder: 1 } } },
    ],
  },
});
