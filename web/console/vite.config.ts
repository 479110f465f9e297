// Builds the console into web/dist, which is committed and embedded in the gateway.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const { version } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8")) as { version: string };
const gateway = process.env["VOICEGW"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  // Relative addresses work behind a proxy with a path prefix.
  base: "./",
  define: { CONSOLE_VERSION: JSON.stringify(version) },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: "es2022",
    // The content security policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // `npm run dev -w console` reloads changes, with a gateway from `make run`.
  server: { proxy: { "/v1": { target: gateway, ws: true }, "/readyz": gateway, "/healthz": gateway } },
});
