// The unit tests of all packages here. The client is tested from its sources. The tests in Chromium are in
// browser/ and run separately.
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  resolve: {
    alias: [
      { find: /^@voicegw\/client\/element$/, replacement: new URL("./client/src/element.ts", import.meta.url).pathname },
      { find: /^@voicegw\/client\/chat$/, replacement: new URL("./client/src/chat.ts", import.meta.url).pathname },
      { find: /^@voicegw\/client$/, replacement: new URL("./client/src/index.ts", import.meta.url).pathname },
    ],
  },
  // By default Vitest leaves one processor free, which halves the speed on two, and ends a test after 5 s, which some
  // take on a busy machine.
  test: { include: ["{client,react,console}/test/**/*.test.{ts,tsx}"], maxWorkers: availableParallelism(), testTimeout: 60_000 },
});
