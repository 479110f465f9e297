// Builds the console into web/dist, which is committed and embedded in the gateway.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const { version } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8")) as { version: string };
const gateway = process.env["VOICEGW"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  // Addresses are relative: a proxy may serve the page below a path of its own.
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
  // `npm run dev -w console` shows changes at once, with a gateway of `make run` behind it.
  server: { proxy: { "/v1": { target: gateway, ws: true }, "/readyz": gateway, "/healthz": gateway } },
});
