// The tests in real Chromium. scripts/test-web.sh builds what they need and runs them.
import { defineConfig } from "vitest/config";

/** Those that look: they take every core, and no time of theirs matters. */
const LOOKING = ["console/looks-*.test.ts", "console/instruments.test.ts", "console/text.test.ts"];

export default defineConfig({
  test: {
    maxConcurrency: 2,
    pool: "forks",
    testTimeout: 180_000,
    hookTimeout: 60_000,
    reporters: ["verbose"],
    setupFiles: ["harness/cleanup.ts"],
    projects: [
      // Those that talk mostly wait, for what is said and heard in real time. More pages at once than these four are late.
      { extends: true, test: { name: "talking", include: ["**/*.test.ts"], exclude: LOOKING, maxWorkers: 2, sequence: { groupOrder: 0 } } },
      // A browser and a gateway take about a core; more of them would only wait for each other.
      { extends: true, test: { name: "looking", include: LOOKING, maxWorkers: 2, sequence: { groupOrder: 1 } } },
    ],
  },
});
