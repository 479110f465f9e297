import assert from "node:assert/strict";
import { test } from "vitest";
import { type ConfirmationRequest } from "@voicegw/client";
import { answerable, Questions, visible } from "../src/model/questions.js";
import { parseServerMessage } from "../../client/src/protocol/codec.js";
import { fieldSource } from "../../client/src/protocol/source.js";
import { askedHeading, timeLeft } from "../src/words.js";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

function request(fields: string, token = "t", tool = "book"): ConfirmationRequest {
  const message = parseServerMessage(`{"type":"confirmation.request","token":"${token}","tool":"${tool}",${fields}}`);
  assert.ok(message?.type === "confirmation.request");
  return message;
}

test("a question can be answered once, before its end", () => {
  const questions = new Questions();
  questions.asked("voice", request('"preview":"Book it?","expires_at":"2026-11-20T10:05:00.000Z"'), NOW);
  const [question] = questions.list;
  assert.ok(question?.preview === "Book it?");
  assert.equal(timeLeft(question, NOW), "5:00 left");
  assert.equal(timeLeft(question, NOW + 290_001), "0:10 left");
  assert.equal(timeLeft(question, NOW + 299_999), "0:01 left");
  assert.ok(answerable(question, NOW + 299_999));
  assert.equal(timeLeft(question, NOW + 300_000), "expired");
  assert.equal(questions.answer("t", true, NOW + 300_000), undefined);
  assert.equal(questions.answer("other", true, NOW), undefined);
  assert.equal(questions.answer("t", false, NOW)?.side, "voice");
  assert.equal(questions.answer("t", true, NOW), undefined, "a second answer");
  assert.equal(timeLeft(questions.list[0]!, NOW), "declining");
  questions.reopen("text");
  assert.equal(timeLeft(questions.list[0]!, NOW), "declining", "the other side's");
  questions.reopen("voice");
  assert.ok(questions.answer("t", true, NOW));
  assert.equal(timeLeft(questions.list[0]!, NOW), "approving");
  assert.equal(questions.ended("t")?.approved, true);
  assert.equal(questions.ended("t"), undefined);
  assert.equal(questions.list.length, 0);
});

test("a wrong clock does not prevent an answer", () => {
  const questions = new Questions();
  questions.asked("voice", request('"expires_at":"2026-11-20T09:58:00.000Z"'), NOW);
  const [question] = questions.list;
  assert.ok(question !== undefined && question.expires === null && answerable(question, NOW + 600_000));
  assert.equal(timeLeft(question, NOW), "");
});

test("questions keep their order, appear once, and are limited", () => {
  const questions = new Questions();
  for (let i = 0; i < 100; i++) {
    questions.asked("voice", request('"args":{}', `t${i}`), NOW);
    questions.asked("text", request('"args":{}', `t${i}`, "again"), NOW);
  }
  assert.equal(questions.list.length, 32);
  assert.ok(questions.list.every(({ token, tool }, i) => token === `t${i}` && tool === "book"));
  assert.equal(askedHeading(2), "2 actions need your approval");
});

test("arguments for approval keep their exact source", () => {
  const questions = new Questions();
  questions.asked("voice", request('"args":{"amount":12345678901234567890,"rate":1.50,"to":["a\\u202eb"],"n":3}'), NOW);
  assert.equal(
    questions.list[0]?.args,
    '{\n  "amount": 12345678901234567890,\n  "rate": 1.50,\n  "to": [\n    "a\\u202eb"\n  ],\n  "n": 3\n}',
  );
  for (const rest of ['"args":{}', '"preview":"x"']) {
    const none = new Questions();
    none.asked("voice", request(rest), NOW);
    assert.equal(none.list[0]?.args, "", rest);
  }
});

test("a tool without its own preview is named, and its arguments are shown once", () => {
  for (const preview of ["", "book", 'book {\\"n\\":1}']) {
    const questions = new Questions();
    questions.asked("voice", request(`"preview":"${preview}","args":{"n":1}`), NOW);
    assert.equal(questions.list[0]?.preview, "Run book?", preview);
  }
});

test("a field's source is found wherever it is", () => {
  for (const [json, want] of [
    ['{"args":1}', "1"],
    ['{"a":{"args":2},"args":{"args":[]},"z":[{"args":3}]}', '{\n  "args": []\n}'],
    ['{"x":"\\"args\\":4","args":"{,\\"}","args2":5}', '"{,\\"}"'],
    ['{ "args" : [ 1e3 , -0.10 , null , {} ] }', "[\n  1e3,\n  -0.10,\n  null,\n  {}\n]"],
    ['{"\\u0061rgs":"\\u003cb\\u003e"}', '"<b>"'],
    ['{"x":"args","y":["args",{}]}', ""],
    ["{}", ""],
  ]) {
    assert.equal(fieldSource(json!, "args"), want, json);
  }
});

test("the questions of one side end together", () => {
  const questions = new Questions();
  questions.asked("voice", request('"args":{}', "a"), NOW);
  questions.asked("text", request('"args":{}', "b"), NOW);
  assert.deepEqual(
    questions.endedAll("voice").map(({ token }) => token),
    ["a"],
  );
  assert.deepEqual(
    questions.list.map(({ token }) => token),
    ["b"],
  );
});

test("invisible characters do not disguise a preview", () => {
  assert.equal(visible("a\u00adb\u061cc\u3164d\u{e0041}e"), "a\\u00adb\\u061cc\\u3164d\\u{e0041}e");
  const questions = new Questions();
  questions.asked("voice", request('"preview":"x\u202ey"', "t", "pay\u200b"), NOW);
  assert.deepEqual([questions.list[0]?.tool, questions.list[0]?.preview], ["pay\\u200b", "x\\u202ey"]);
  assert.equal(visible("two\nlines \u2764\ufe0f"), "two\nlines \u2764\ufe0f");
  assert.equal(visible("pay \u202e001\u202c\u200b"), "pay \\u202e001\\u202c\\u200b");
  assert.equal(visible("Zoë \u{1f469}\u200d\u{1f680} naïve"), "Zoë \u{1f469}\u200d\u{1f680} naïve");
});
