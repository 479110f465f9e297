// Builds dist: the library, the text agent's entry, the two worklets (each a single file without imports,
// because bundlers copy them), source maps and types.
import { readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { writeTypes } from "./types.mjs";

const root = fileURLToPath(new URL(".", import.meta.url));
const { version } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));

async function bundle(name, input) {
  const made = await rolldown({
    input: { [name]: input },
    cwd: root,
    // The text agent's entry imports the rest of the library instead of including it.
    external: ["./index.js"],
    tsconfig: false,
    transform: {
      target: "es2022",
      define: { CLIENT_VERSION: JSON.stringify(version) },
      // Fields without an initial value need no code.
      typescript: { removeClassFieldsWithoutInitializer: true },
    },
  });
  const { output } = await made.write({ dir: "dist", format: "es", minify: true, sourcemap: true, comments: { annotation: false }, entryFileNames: "[name].js" });
  await made.close();
  const chunks = output.filter(({ type }) => type === "chunk");
  if (chunks.length !== 1) {
    throw new Error(`${name} must be one file, not ${chunks.map((o) => o.fileName).join(", ")}`);
  }
}

rmSync(new URL("dist", import.meta.url), { recursive: true, force: true });
await bundle("index", "src/index.ts");
await bundle("chat", "src/chat.ts");
await bundle("element", "src/element.ts");
await bundle("worklets/capture", "src/audio/worklets/capture.ts");
await bundle("worklets/playback", "src/audio/worklets/playback.ts");
writeTypes(root);
