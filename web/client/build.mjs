// Builds dist: the library, the text agent's part beside it, the two worklets (each one file
// that imports nothing, as a bundler copies them), and the types.
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL(".", import.meta.url));
const { version } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));

async function bundle(name, input) {
  const made = await rolldown({
    input: { [name]: input },
    cwd: root,
    // The text agent's part is small because it is used beside the rest.
    external: ["./index.js"],
    tsconfig: false,
    transform: {
      target: "es2022",
      define: { CLIENT_VERSION: JSON.stringify(version) },
      // A field that is given no value where it is declared needs no code there.
      typescript: { removeClassFieldsWithoutInitializer: true },
    },
  });
  const { output } = await made.write({ dir: "dist", format: "es", minify: true, comments: { annotation: false }, entryFileNames: "[name].js" });
  await made.close();
  if (output.length !== 1) {
    throw new Error(`${name} must be one file, not ${output.map((o) => o.fileName).join(", ")}`);
  }
}

rmSync(new URL("dist", import.meta.url), { recursive: true, force: true });
await bundle("index", "src/index.ts");
await bundle("chat", "src/chat.ts");
await bundle("worklets/capture", "src/audio/worklets/capture.ts");
await bundle("worklets/playback", "src/audio/worklets/playback.ts");
const tsc = createRequire(import.meta.url).resolve("typescript/package.json").replace("package.json", "bin/tsc");
execFileSync(process.execPath, [tsc, "-p", root, "--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--outDir", "dist", "--rootDir", "src"], { stdio: "inherit" });
