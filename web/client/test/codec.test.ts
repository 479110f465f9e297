import assert from "node:assert/strict";
import { test } from "vitest";
import { parseObject, parseServerMessage } from "../src/protocol/codec.js";
import { fieldSource } from "../src/protocol/source.js";
import { random } from "./random.js";

test("known messages are read; unknown, incomplete and broken ones are ignored", () => {
  const flush = parseServerMessage('{"type":"audio.flush","seq":7,"item_id":"i1","reason":"barge_in","later":1}');
  assert.ok(flush?.type === "audio.flush" && flush.item_id === "i1");
  for (const frame of [
    "",
    "{",
    "null",
    "[]",
    "7",
    '{"type":"audio.sparkle","item_id":"i1"}',
    '{"type":"toString"}',
    '{"type":7}',
    '{"type":"audio.flush"}',
    '{"type":"audio.flush","item_id":7}',
    '{"type":"tool.progress","call_id":"c","tool":"t"}',
    '{"type":"confirmation.request","tool":"t"}',
    '{"type":"confirmation.ended","token":"t"}',
    '{"type":"inspect.intent","intent":null}',
    '{"type":"transcript","id":"t","role":"user","text":"x","started_at":"now"}',
  ]) {
    assert.equal(parseServerMessage(frame), null, frame);
  }
});

test("arguments for approval keep their exact source: numbers stay as written", () => {
  const message = parseServerMessage('{"type":"confirmation.request","token":"t","tool":"pay","args":{"to":12345678901234567890,"sum":1.10,"list":[1e2,[]],"note":"a: \\"b\\", {c}"}}');
  assert.ok(message?.type === "confirmation.request");
  assert.equal(
    message.args_source,
    '{\n  "to": 12345678901234567890,\n  "sum": 1.10,\n  "list": [\n    1e2,\n    []\n  ],\n  "note": "a: \\"b\\", {c}"\n}',
  );
});

test("the last of repeated fields counts, as in JSON.parse", () => {
  const source = '{"args":{"to":"ada"},"x":{"args":1},"args":{"to":"eve"}}';
  assert.deepEqual(JSON.parse(fieldSource(source, "args")), { to: "eve" });
  assert.deepEqual((JSON.parse(source) as { args: unknown }).args, { to: "eve" });
  assert.equal(fieldSource('{"b":1}', "args"), "");
});

/** Any JSON value, with strings that are hard to parse. */
function anything(next: () => number, depth = 3): unknown {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)]!;
  const word = (): string => pick(["", "type", "args", 'q"uote', "back\\slash", "{", "}", "[", "]", ",", ":", "\u0000\n\t", "🦊", "\u2028", "__proto__", "audio.start"]);
  const count = Math.floor(next() * 4);
  switch (Math.floor(next() * (depth > 0 ? 7 : 5))) {
    case 0:
      return null;
    case 1:
      return next() < 0.5;
    case 2:
      return pick([0, -0, 1.5, -1e-7, 1e21, 9007199254740993]);
    case 3:
    case 4:
      return word();
    case 5:
      return Array.from({ length: count }, () => anything(next, depth - 1));
    default:
      return Object.fromEntries(Array.from({ length: count }, () => [word(), anything(next, depth - 1)]));
  }
}

test("fieldSource agrees with JSON.parse", () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const next = random(seed);
    const args = anything(next);
    const frame = JSON.stringify({ before: anything(next), args, after: anything(next) }, undefined, seed % 3);
    assert.deepEqual(JSON.parse(fieldSource(frame, "args")), JSON.parse(JSON.stringify(args)), `seed ${seed}: ${frame}`);
  }
});

test("no frame throws", () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const next = random(seed);
    const frame = JSON.stringify({ type: "confirmation.request", token: "t", tool: "t", ...(anything(next) as object), args: anything(next) }) ?? "";
    const cut = frame.slice(0, Math.floor(next() * (frame.length + 1)));
    for (const text of [frame, cut]) {
      parseServerMessage(text);
      parseObject(text);
    }
  }
});
