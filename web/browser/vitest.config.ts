// The tests in real Chromium. scripts/test-web.sh builds what they need and runs them.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["**/*.test.ts"],
    // A browser and a gateway take about a core; more of them would only wait for each other.
    maxWorkers: 2,
    maxConcurrency: 3,
    pool: "forks",
    testTimeout: 180_000,
    hookTimeout: 60_000,
    reporters: ["verbose"],
  },
});
