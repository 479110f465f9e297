// Selects the type declarations of the package: those that the entries need, without internal ones.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Writes them to dist. */
export function writeTypes(root) {
  const tsc = createRequire(import.meta.url).resolve("typescript/package.json").replace("package.json", "bin/tsc");
  const options = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--stripInternal", "--outDir", "dist", "--rootDir", "src"];
  execFileSync(process.execPath, [tsc, "-p", root, ...options], { stdio: "inherit" });
  const dist = join(root, "dist");
  const needed = new Set();
  for (const entry of ["index.d.ts", "chat.d.ts", "element.d.ts"]) {
    follow(join(dist, entry), needed);
  }
  for (const name of readdirSync(dist, { recursive: true })) {
    if (name.endsWith(".d.ts") && !needed.has(join(dist, name))) {
      rmSync(join(dist, name));
    }
  }
  // The worklets export nothing; only their URLs are used.
  for (const worklet of ["capture", "playback"]) {
    writeFileSync(join(dist, "worklets", `${worklet}.d.ts`), "export {};\n");
  }
}

/** Adds a declaration file and its imports. */
function follow(file, needed) {
  if (needed.has(file)) {
    return;
  }
  if (!existsSync(file)) {
    throw new Error(`the types import ${file}, which is not there`);
  }
  needed.add(file);
  for (const [, path] of readFileSync(file, "utf8").matchAll(/(?:from|import\() ?"(\.[^"]+)\.js"/g)) {
    follow(join(dirname(file), `${path}.d.ts`), needed);
  }
}
