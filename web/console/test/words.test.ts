import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "vitest";

const SOURCES = join(import.meta.dirname, "../src");
/** Names, signs and units, which are never translated. */
const NO_WORDS = new Set(["voicegw", "ms", "p50", "p90", "p95", "max"]);

test("no component contains text", () => {
  const found = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".tsx"))
    .flatMap((name) => textsOf(readFileSync(join(SOURCES, name), "utf8")).map((text) => `${name}: ${text}`));
  assert.deepEqual(found, []);
});

/** Text between tags, on its own line or next to an expression, and attributes that are read out. */
function textsOf(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
  const attributes = [...code.matchAll(/\s(?:aria-label|title|placeholder|alt|label)=(?:"([^"{]*)"|\{`([^`]*)`\})/g)].map(([, plain, template]) => plain ?? template ?? "");
  const between = [...code.matchAll(/(?<![=\s(])>([^<>{}()=;]*[A-Za-z][^<>{}()=;]*)(?=[<{])/g)].map(([, text]) => text!);
  return [...attributes, ...between].map((text) => text.replace(/\$\{[^}]*\}/g, "").trim()).filter((text) => /[A-Za-z]{2}/.test(text) && !NO_WORDS.has(text));
}
