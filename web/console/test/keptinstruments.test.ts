import assert from "node:assert/strict";
import { test, vi } from "vitest";
import { Instruments } from "../src/instruments.js";
import type { Call } from "../src/model/calls.js";
import type { Happening } from "../src/model/feed.js";
import { MOST, newest, readKept } from "../src/model/keptinstruments.js";
import { anew, ended, moment, opened, received } from "./feed.js";

const TOKEN = "cf_VNCCPXXF6QYIG3JBALZZ3SNRKJ";

function instruments(...happenings: Happening[]): Instruments {
  const all = new Instruments(() => {});
  for (const happening of happenings) {
    all.take(happening);
  }
  return all;
}

function call(at: number, id: string, turn = 1): Happening[] {
  return [
    received(at, "turn.started", { turn }),
    received(at + 10, "tool.started", { call_id: id, tool: "kb_search", turn, category: "retrieval" }),
    received(at + 50, "tool.ended", { call_id: id, tool: "kb_search", turn, ok: true, duration_ms: 30 }),
    received(at + 90, "turn.ended", { turn, status: "completed", usage: { input_tokens: 9, output_tokens: 4 }, latency: { speech_end_to_first_audio_ms: 812, provider_ms: 800, gateway_ms: 12 } }),
  ];
}

/** The instruments of the reloaded page: its clock began some ms later. */
function reloaded(before: Instruments, later: number): Instruments {
  const kept = before.keep();
  const after = instruments();
  vi.spyOn(performance, "now").mockReturnValue(performance.now() - later);
  after.restore(kept);
  vi.restoreAllMocks();
  return after;
}

const ASKED = [
  received(2000, "turn.started", { turn: 2 }),
  received(2010, "tool.started", { call_id: "c2", tool: "book", turn: 2, category: "action" }),
  received(2020, "confirmation.request", { token: TOKEN, tool: "book", turn: 2 }),
];

test("tools, response times and events survive a reload, on the new page's clock", () => {
  const after = reloaded(instruments(opened(0), ...call(1000, "c1"), ...ASKED), 5000);
  assert.deepEqual(after.tools.turns.map(({ key, calls }) => [key, calls[0]!.id, calls[0]!.status]), [["voice 1 1", "c1", "done"], ["voice 1 2", "c2", "running"]]);
  const { startedAt, endedAt } = after.tools.turns[0]!.calls[0]!;
  assert.ok(Math.abs(startedAt - (1010 - 5000)) < 1000 && endedAt! - startedAt === 40, `${startedAt} to ${endedAt}`);
  assert.deepEqual(after.turns.answered.map(({ key, totalMs }) => [key, totalMs]), [["1.1", 812]]);
  assert.deepEqual(after.log.after(0).map(({ number, type }) => `${number} ${type}`).slice(0, 3), ["1 opened", "2 turn.started", "3 tool.started"]);

  // The session continues: repeated messages update known entries.
  for (const happening of [received(10, "session.started", { session_id: "voice-1", resumed: true, snapshot: true }), opened(11), ...ASKED.map((happening) => ({ ...happening, at: 20 }))]) {
    after.take(happening as Happening);
  }
  const waits = (): Call => after.tools.turns[1]!.calls[0]!;
  assert.deepEqual([after.tools.turns.length, waits().status, waits().asked?.outcome], [2, "running", undefined]);
  assert.ok(waits().asked!.at < 0, "the question was asked before the reload");
  after.take(received(30, "confirmation.ended", { token: TOKEN, outcome: "approved", turn: 2 }));
  assert.equal(waits().asked!.outcome, "approved");
  for (const happening of call(100, "c3", 3)) {
    after.take(happening);
  }
  assert.deepEqual(after.turns.list.map(({ key, status }) => `${key} ${status}`), ["1.1 completed", "1.2 running", "1.3 completed"]);
  assert.equal(after.turns.ofThisCall, 3);
});

test("a session that has ended is not mixed with the next one", () => {
  const after = reloaded(instruments(opened(0), ...call(1000, "c1")), 0);
  after.take(ended(10));
  for (const happening of [opened(20), ...call(30, "c1")]) {
    after.take(happening);
  }
  assert.deepEqual(after.tools.turns.map(({ key }) => key), ["voice 0 1", "voice 1 1"]);
  assert.deepEqual(after.turns.list.map(({ key }) => key), ["0.1", "1.1"]);
});

test("only the continuing session is stored, without secrets", () => {
  const all = instruments(
    opened(0), ...call(1000, "c1"), ended(1500), opened(2000),
    received(2001, "session.started", { session_id: "voice-1", resume_token: "s3cret", turn: 0 }),
    ...call(3000, "c9"), ...ASKED,
    received(3000, "inspect.call", { call_id: "c9", turn: 1, args: { token: "s3cret", note: TOKEN }, envelope: { error: { details: { token: TOKEN } } }, record: {} }),
  );
  const kept = all.keep();
  assert.ok(!kept.includes("s3cret") && !kept.includes(TOKEN), kept);
  assert.deepEqual(readKept(JSON.parse(kept), 0)!.turns.map(({ key }) => key), ["1.1", "1.2"]);
  assert.deepEqual(readKept(JSON.parse(kept), 0)!.tools.flatMap(({ calls }) => calls.map(({ id }) => id)), ["c9", "c2"]);
  const after = reloaded(all, 0);
  after.take(received(0, "session.started", { session_id: "voice-1", resume_token: "another" }));
  assert.equal(after.log.after(0).filter(({ json }) => json.includes("(hidden 1)") && json.includes("resume_token")).length, 1, "numbers are not reused");
});

test("the stored size is limited, and the newest entries stay", () => {
  assert.deepEqual(newest(["aaa", "bb", "c"], 7), ["bb", "c"]);
  assert.deepEqual(newest(["aaa"], 4), []);
  const all = instruments(opened(0));
  for (let i = 0; i < 3000; i++) {
    all.take(received(i, "tool.started", { call_id: `c${i}`, tool: "kb_search", turn: i, category: "retrieval" }));
    all.take(received(i, "inspect.call", { call_id: `c${i}`, turn: i, args: { query: "x".repeat(5000) }, envelope: {}, record: {} }));
  }
  const kept = all.keep();
  assert.ok(kept.length < MOST.tools + MOST.turns + MOST.log + 10_000, `${kept.length} characters`);
  assert.equal(readKept(JSON.parse(kept), 0)!.tools.at(-1)!.calls[0]!.id, "c2999");
});

test("invalid stored data restores nothing, and a page that has continued loses nothing", () => {
  for (const wrong of ["", "{", "null", "[]", '{"origin":"x"}', '{"origin":1,"tools":[{},{"key":"k","side":"voice","calls":[{}]}],"turns":[7,{"key":"1"}],"log":[{"at":1}]}']) {
    const after = instruments();
    after.restore(wrong);
    assert.deepEqual([after.tools.turns, after.turns.list, after.log.length], [[], [], 0], wrong);
  }
  const kept = instruments(opened(0), ...call(1000, "c1")).keep();
  const running = instruments(opened(0));
  running.restore(kept);
  assert.deepEqual([running.log.length, running.tools.turns.length], [1, 0]);
  running.take({ ...anew(1), ...moment(1) } as Happening);
});
