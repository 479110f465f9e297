// The measurements in Chromium; scripts/bench-web.sh runs them one after the other.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["bench/*.measure.ts"], fileParallelism: false, pool: "forks", testTimeout: 3_600_000, hookTimeout: 60_000, reporters: [["default", { summary: false }]] },
});
