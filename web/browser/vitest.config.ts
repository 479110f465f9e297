// The tests in Chromium. scripts/test-web.sh builds their programs and runs them.
import { cpus } from "node:os";
import { defineConfig } from "vitest/config";

/** Tests of looks: they use every core and don't depend on time. */
const LOOKING = ["console/looks-*.test.ts", "console/instruments.test.ts", "console/text.test.ts"];

/** How long the load of the machine is measured, in ms. */
const LOOK_MS = 2000;

/** The share of the processors that other programs use now, except niced ones. */
async function taken(): Promise<number> {
  const ticks = () => cpus().map(({ times: { user, nice, sys, irq, idle } }) => [user + sys + irq, idle + nice] as const);
  const before = ticks();
  await new Promise((over) => setTimeout(over, LOOK_MS));
  const spent = ticks().map(([busy, idle], i) => [busy - before[i]![0], idle - before[i]![1]] as const);
  const [busy, idle] = spent.reduce(([busy, idle], [more, less]) => [busy + more, idle + less], [0, 0]);
  return busy / Math.max(1, busy + idle);
}

/**
 * The number of talking test files that run at once; busy processors make pages late. Vitest reads this file for each
 * project, so the measurement is cached.
 */
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
    maxConcurrency: 1, // two tests of a file at once made pages late on two idle cores, too
    pool: "forks",
    testTimeout: 600_000,
    hookTimeout: 60_000,
    retry: 1, // pages are late on a machine that becomes busy; the report names repeated tests
    reporters: ["verbose"],
    setupFiles: ["harness/cleanup.ts"],
    projects: [
      // Talking tests mostly wait for real-time audio. More than two files at once are late.
      { extends: true, test: { name: "talking", include: ["**/*.test.ts"], exclude: LOOKING, maxWorkers: together, sequence: { groupOrder: 0 } } },
      // A browser and a gateway take about a core; more would only wait for each other.
      { extends: true, test: { name: "looking", include: LOOKING, maxWorkers: 2, sequence: { groupOrder: 1 } } },
    ],
  },
});
