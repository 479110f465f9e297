// Writes dist.sum: the hashes of the console's source files and of the built files. A Go test compares them,
// to detect a stale build without node.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOTS = ["client/src", "client/build.mjs", "client/package.json", "console/src", "console/public", "console/index.html",
  "console/package.json", "console/vite.config.ts", "package-lock.json", "dist"];

function files(path) {
  return statSync(path).isDirectory() ? readdirSync(path).flatMap((name) => files(join(path, name))) : [path];
}

process.chdir(import.meta.dirname);
const lines = ROOTS.flatMap(files).sort().map((path) => `${createHash("sha256").update(readFileSync(path)).digest("hex")}  ${path}\n`);
writeFileSync("dist.sum", lines.join(""));
