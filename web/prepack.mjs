// npm runs this before it packs a package (`prepack`). It installs the tools if needed, builds the packages
// and copies the licence, because npm packs no file from outside a package.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const web = fileURLToPath(new URL(".", import.meta.url));

function npm(...line) {
  // npm pack --json prints JSON to the standard output, which must contain nothing else.
  execFileSync("npm", line, { cwd: web, stdio: ["ignore", 2, 2], shell: process.platform === "win32" });
}

if (!existsSync(new URL("node_modules/rolldown", import.meta.url))) {
  npm("ci", "--ignore-scripts", "--no-audit", "--no-fund");
}
// The React package is compiled against the client's types.
for (const name of ["client", "react"]) {
  npm("run", "--silent", "build", "-w", name);
}
copyFileSync(new URL("../LICENSE", import.meta.url), `${process.cwd()}/LICENSE`);
