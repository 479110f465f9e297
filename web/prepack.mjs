// What npm runs in a package before it packs it (`prepack`): makes whole what a clean clone
// has not. The tools are installed where they are not, the packages are built, and the
// licence is laid beside them, since npm packs no file from outside of a package.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const web = fileURLToPath(new URL(".", import.meta.url));

function npm(...line) {
  // npm pack --json prints its answer to the standard output, and nothing else may stand there.
  execFileSync("npm", line, { cwd: web, stdio: ["ignore", 2, 2], shell: process.platform === "win32" });
}

if (!existsSync(new URL("node_modules/rolldown", import.meta.url))) {
  npm("ci", "--ignore-scripts", "--no-audit", "--no-fund");
}
// The React package is compiled against the types of the client.
for (const name of ["client", "react"]) {
  npm("run", "--silent", "build", "-w", name);
}
copyFileSync(new URL("../LICENSE", import.meta.url), `${process.cwd()}/LICENSE`);
