// Checks the installed packages as their readers see them: node whole.mjs <node_modules>.
// What npm shows is whole, its links lead somewhere, and no type is one of our own.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

for (const name of ["client", "react"]) {
  const folder = join(process.argv[2], "@voicegw", name);
  const text = (file) => readFileSync(join(folder, file), "utf8");
  for (const file of ["README.md", "CHANGELOG.md", "LICENSE", "dist/index.js", "dist/index.js.map", "dist/index.d.ts"]) {
    assert.ok(existsSync(join(folder, file)), `${name} has no ${file}`);
  }
  const { exports } = JSON.parse(text("package.json"));
  for (const target of Object.values(exports).flatMap((to) => (typeof to === "string" ? [to] : Object.values(to)))) {
    assert.ok(existsSync(join(folder, target)), `${name} gives out ${target}, which is not there`);
  }
  const files = readdirSync(folder, { recursive: true });
  for (const file of files.filter((file) => file.endsWith(".d.ts"))) {
    assert.ok(!text(file).includes("@internal"), `${name} has internal types in ${file}`);
  }
  for (const file of files.filter((file) => file.endsWith(".js") && file.startsWith("dist"))) {
    const map = JSON.parse(text(`${file}.map`));
    assert.ok(map.sourcesContent.every((source) => source.length > 0), `${name}: the map of ${file} has no sources`);
    assert.match(text(file), /\n\/\/# sourceMappingURL=\S+\.js\.map\s*$/);
  }
  const readme = text("README.md");
  const headings = [...readme.matchAll(/^#+ (.+)$/gm)].map(([, title]) => title.toLowerCase().replace(/[^\w -]/g, "").replaceAll(" ", "-"));
  for (const [, to] of readme.matchAll(/\]\(([^)]+)\)/g)) {
    // npm knows no other file of a package that names no repository.
    assert.ok(to.startsWith("https://") || headings.includes(to.slice(1)), `${name}: README.md has the link ${to}, which leads nowhere on npm`);
  }
}
assert.ok(readFileSync(join(process.argv[2], "@voicegw/react/dist/index.js"), "utf8").startsWith('"use client";'));
console.log("test-pack: the packages are whole");
