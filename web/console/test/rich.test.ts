import assert from "node:assert/strict";
import { test } from "vitest";
import { readRich, type Block, type Span } from "../src/model/rich.js";

function spans(all: readonly Span[]): string {
  return all.map((span) => (span.kind === "text" ? span.text : span.kind === "link" ? `<${span.text}|${span.url}>` : `<${span.kind} ${span.text}>`)).join("");
}

function shown(block: Block): string {
  switch (block.kind) {
    case "paragraph":
      return spans(block.spans);
    case "heading":
      return `# ${spans(block.spans)}`;
    case "list":
      return block.items.map((item) => `${block.ordered ? "1" : "-"} ${spans(item)}`).join("; ");
    case "code":
      return `\`${block.text}\``;
  }
}

test("markup is read, and other text is unchanged", () => {
  for (const [text, ...want] of [
    [""],
    ["Plain words.", "Plain words."],
    ["one\ntwo\n\nthree", "one\ntwo", "three"],
    ["## Found\n- a\n* b\n• c", "# Found", "- a; - b; - c"],
    ["1. a\n2) b\n- c", "1 a; 1 b", "- c"],
    ["a **bold** and `code`", "a <bold bold> and <code code>"],
    ["2 * 3 * 4 and a_b_c, 5 ** 2", "2 * 3 * 4 and a_b_c, 5 ** 2"],
    ["```js\nlet a = `**x**`;\n```\nafter", "`let a = `**x**`;`", "after"],
    ["<b>not</b> &amp; this", "<b>not</b> &amp; this"],
    ["1990. was a year\n-5 degrees\n#tag", "1990. was a year\n-5 degrees\n#tag"],
  ]) {
    assert.deepEqual(readRich(text!).map(shown), want, text);
  }
});

test("addresses are links, without the punctuation of the sentence", () => {
  for (const [text, want] of [
    ["See https://example.org/a_b?c=d#e.", "See <https://example.org/a_b?c=d#e|https://example.org/a_b?c=d#e>."],
    ["(http://example.org)", "(<http://example.org|http://example.org>)"],
    ["the [page](https://example.org/x)!", "the <page|https://example.org/x>!"],
    ["[no](javascript:alert(1)) ftp://example.org", "[no](javascript:alert(1)) ftp://example.org"],
    ["`https://example.org`", "<code https://example.org>"],
  ] as const) {
    assert.deepEqual(readRich(text).map(shown), [want]);
  }
});

test("a growing text is never lost", () => {
  const whole = "## Found\n\nSee **this** and `that`:\n- [one](https://example.org/1)\n- two\n```\ncode\n```\nend";
  for (let n = 1; n <= whole.length; n++) {
    const words = readRich(whole.slice(0, n)).map(shown).join(" ");
    assert.ok(!words.includes("undefined"));
    assert.ok(n < 12 || words.includes("Found"));
  }
});

test("every text is read quickly", () => {
  // Much longer than any answer, so that quadratic time would take minutes.
  const hard = ["*", "[", "`", "**a", "https://", "- ", "\n", "[a](", "https://a........."].map((part) => part.repeat(80_000 / part.length));
  const begun = performance.now();
  hard.forEach(readRich);
  assert.ok(performance.now() - begun < 20_000);
});
