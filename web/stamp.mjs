// Writes dist.sum: the hash of every file that the console is built from, and of every file
// that was built. A Go test compares it with what is there, so that a stale build is found
// without node.
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
