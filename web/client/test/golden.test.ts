// Decodes the gateway's golden conversations in protocol/testdata; speech.txtar explains their format.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { describe, test } from "vitest";
import { parseObject, parseServerMessage } from "../src/protocol/codec.js";
import { CLIENT_FIELDS, SERVER_FIELDS, type FieldTable } from "./fields.js";

interface Line {
  file: string;
  sign: string;
  text: string;
}

const FOLDER = new URL("../../../protocol/testdata/", import.meta.url);

function conversations(): Line[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".txtar"));
  assert.ok(files.length >= 10, `${files.length} conversations`);
  return files.flatMap((file) => {
    const [prose, conversation, ...more] = readFileSync(new URL(file, FOLDER), "utf8").split("-- conversation --\n");
    assert.ok(prose !== "" && conversation !== undefined && more.length === 0, file);
    return conversation.trimEnd().split("\n").map((line) => {
      assert.match(line, /^[><!~] ./, file);
      return { file, sign: line[0]!, text: line.slice(2) };
    });
  });
}

/** The paths of all fields, including nested ones, but no deeper than the table. */
function paths(value: object, table: FieldTable, prefix = ""): string[] {
  return Object.entries(value).flatMap(([name, inner]: [string, unknown]) => {
    const within = table[name];
    const deeper = typeof inner === "object" && inner !== null && typeof within === "object";
    return [prefix + name, ...(deeper ? paths(inner, within, `${prefix}${name}.`) : [])];
  });
}

const lines = conversations();
const SERVER: { [type: string]: FieldTable } = SERVER_FIELDS;
const CLIENT: { [type: string]: FieldTable } = CLIENT_FIELDS;

/** Fields without a golden conversation: the client's own, and those of tools' own errors. */
const UNSAID = ["confirmation.request: args_source", "tool.ended: error.details", "tool.ended: error.partialSideEffects"];

describe("the golden conversations", () => {
  for (const { file, sign, text } of lines) {
    const title = `${file}: ${sign} ${text.slice(0, 70)}`;
    switch (sign) {
      case "<":
        test(title, () => {
          const message = parseServerMessage(text);
          assert.ok(message !== null, "it is known");
          const { args_source, ...read } = message as unknown as Record<string, unknown>;
          assert.deepEqual(read, JSON.parse(text), "nothing of it is lost");
          assert.equal(typeof args_source, message.type === "confirmation.request" ? "string" : "undefined");
        });
        break;
      case "~":
        test(title, () => {
          assert.equal(parseServerMessage(text), null, "it is ignored");
          assert.equal(typeof parseObject(text)?.["type"], "string", "it is still an object with a type");
        });
        break;
      case "!":
        test(title, () => assert.equal(parseServerMessage(text), null, "the gateway does not send it"));
    }
  }

  test("have no field that is missing in the types here", () => {
    for (const { file, sign, text } of lines.filter((line) => line.sign === "<" || line.sign === ">")) {
      const message = JSON.parse(text) as { type: string };
      const table = sign === "<" ? SERVER[message.type] : CLIENT[message.type];
      assert.ok(table, `${file}: ${message.type}`);
      const known = new Set(paths(table, table));
      const unknown = paths(message, table).filter((path) => !known.has(path));
      assert.deepEqual(unknown, [], `${file}: ${message.type}`);
    }
  });

  test("have every field of the types here", () => {
    for (const [sign, tables] of [["<", SERVER], [">", CLIENT]] as const) {
      for (const [type, table] of Object.entries(tables)) {
        const said = lines.filter((line) => line.sign === sign).map((line) => JSON.parse(line.text) as { type: string });
        const seen = new Set(said.filter((m) => m.type === type).flatMap((m) => paths(m, table)));
        const unseen = paths(table, table).filter((path) => !seen.has(path) && path !== "turn");
        assert.deepEqual(unseen.filter((path) => !UNSAID.includes(`${type}: ${path}`)), [], type);
      }
    }
  });
});
