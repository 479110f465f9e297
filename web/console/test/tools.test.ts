import assert from "node:assert/strict";
import { test } from "vitest";
import { axisOf, segmentsOf, type Call } from "../src/model/calls.js";
import type { Happening, Side } from "../src/model/feed.js";
import { Tools } from "../src/model/tools.js";
import { tookOf } from "../src/panels/words-instruments.js";
import { anew, ended, moment, opened, received } from "./feed.js";

const TOKEN = "cf_VNCCPXXF6QYIG3JBALZZ3SNRKJ";

function watched(...happenings: Happening[]): Tools {
  const tools = new Tools();
  for (const happening of happenings) {
    tools.take(happening);
  }
  return tools;
}

function started(at: number, call: string, turn = 1, tool = "kb_search", side: Side = "voice"): Happening {
  return received(at, "tool.started", { call_id: call, tool, turn, category: "retrieval" }, side);
}

function finished(at: number, call: string, fields: object = {}, side: Side = "voice"): Happening {
  return received(at, "tool.ended", { call_id: call, tool: "kb_search", turn: 1, ok: true, duration_ms: 12, ...fields }, side);
}

function inspect(at: number, call: string, queued: number, run: number, record: object = {}): Happening {
  return received(at, "inspect.call", {
    call_id: call, tool: "kb_search", turn: 1, queued_ms: queued, run_ms: run, args: { query: "lab", top_k: 3 }, envelope: { ok: true },
    record: { delivered: true, cacheHit: false, ...record },
  });
}

function only(tools: Tools): Call {
  assert.equal(tools.turns.length, 1);
  assert.equal(tools.turns[0]!.calls.length, 1);
  return tools.turns[0]!.calls[0]!;
}

function segments(call: Call, now: number): string[] {
  return segmentsOf(call, now).map(({ kind, from, to }) => `${kind} ${from}-${to}`);
}

test("a call waits, runs and ends, and inspect gives the times", () => {
  const tools = watched(opened(0), started(1000, "call_1"));
  const call = (): Call => only(tools);
  assert.deepEqual([call().status, segments(call(), 1300)], ["running", ["run 1000-1300"]]);
  tools.take(received(1810, "tool.progress", { call_id: "call_1", tool: "kb_search", duration_ms: 810 }));
  assert.equal(call().runMs, 810);
  tools.take(finished(2004, "call_1", { clamped: { top_k: { requested: 10, applied: 3 } } }));
  assert.deepEqual([call().status, segments(call(), 9000)], ["done", ["run 1000-1012"]]);
  tools.take(inspect(2005, "call_1", 400, 600));
  assert.deepEqual(segments(call(), 9000), ["queued 1000-1400", "run 1400-2000"]);
  assert.deepEqual([call().delivered, call().args, call().clamped["top_k"]?.applied], [true, { query: "lab", top_k: 3 }, 3]);
});

test("the budget from inspect belongs to the turn, and the newest counts", () => {
  const budget = (used: number): object => ({ retrieval: { used, limit: 2 }, total: { used, limit: 3 }, tool_time_ms: { used: 310, limit: 1500 } });
  const tools = watched(opened(0), started(1000, "call_1"), inspect(1100, "call_1", 0, 10, { budget: budget(1) }), received(1200, "inspect.state", { turn: 1, phase: "active", budget: budget(2) }));
  assert.deepEqual([tools.turns[0]!.budget!.retrieval, tools.turns[0]!.budget!.tool_time_ms], [{ used: 2, limit: 2 }, { used: 310, limit: 1500 }]);
  tools.take(received(1300, "inspect.state", { turn: 1, phase: "active" }));
  tools.take(inspect(1400, "call_1", 0, 10));
  assert.equal(tools.turns[0]!.budget!.total.used, 2);
});

test("a repeated call joins a running one or uses a stored result", () => {
  const tools = watched(
    opened(0), started(1000, "call_1"), started(1010, "call_2"), finished(1100, "call_1"), finished(1101, "call_2", { deduplicated: true }),
    started(1500, "call_3"), finished(1501, "call_3", { deduplicated: true }), inspect(1502, "call_3", 0, 0, { cacheHit: true, originalTurn: 1 }),
  );
  const [first, joined, memory] = tools.turns[0]!.calls;
  assert.deepEqual([first!.repeat, joined!.repeat, memory!.repeat, memory!.originalTurn], [undefined, "joined", "memory", 1]);
  assert.deepEqual([segments(joined!, 0), segments(memory!, 0)], [["shared 1010-1101"], []]);
});

test("a refused call has not run", () => {
  const tools = watched(opened(0), started(1000, "call_1"), finished(1001, "call_1", { ok: false, duration_ms: 0, error: { type: "BUDGET_EXCEEDED", message: "…" } }));
  const call = only(tools);
  assert.deepEqual([call.status, call.error?.type, segments(call, 2000)], ["failed", "BUDGET_EXCEEDED", []]);
});

test("a successful call has run, however short", () => {
  const call = only(watched(opened(0), started(1000, "call_1"), finished(1001, "call_1", { duration_ms: 0 })));
  assert.deepEqual(segments(call, 2000), ["run 1000-1000"]);
});

test("a question belongs to the call it blocks, and its approval runs another one", () => {
  const tools = watched(
    opened(0), started(1000, "call_1"), received(1005, "confirmation.request", { token: TOKEN, tool: "kb_search", turn: 1 }),
    finished(1006, "call_1", { ok: false, duration_ms: 0, error: { type: "CONFIRMATION_REQUIRED", message: "…" } }),
  );
  const call = (): Call => only(tools);
  assert.deepEqual(segments(call(), 4000), ["asked 1005-4000"]);
  tools.take(received(9005, "confirmation.ended", { token: "cf_OTHER", outcome: "denied" }));
  assert.equal(call().asked?.outcome, undefined);
  tools.take(received(13_405, "confirmation.ended", { token: TOKEN, tool: "kb_search", outcome: "approved" }));
  assert.deepEqual([call().asked?.outcome, segments(call(), 20_000)], ["approved", ["asked 1005-13405"]]);
  tools.take(received(13_500, "confirmation.ended", { token: TOKEN, tool: "kb_search", outcome: "denied" }));
  assert.equal(call().asked?.outcome, "approved");
  tools.take(started(13_500, "call_2", 2));
  tools.take(received(13_600, "tool.ended", { call_id: "call_2", tool: "kb_search", turn: 2, ok: true, duration_ms: 90 }));
  tools.take(received(13_601, "inspect.call", { call_id: "call_2", tool: "kb_search", turn: 2, queued_ms: 2, run_ms: 90, record: { delivered: true, confirmation: "approved", confirmedBy: "client" }, envelope: {} }));
  const [, second] = tools.turns;
  assert.deepEqual([second!.turn, second!.calls[0]!.approvedBy], [2, "client"]);
});

test("two questions of one tool belong to two calls, which do not run during that time", () => {
  const question = (at: number, token: string): Happening => received(at, "confirmation.request", { token, tool: "kb_search", turn: 1 });
  const [first, second] = watched(opened(0), started(1000, "call_1"), started(1001, "call_2"), question(1002, "t1"), question(1003, "t2")).turns[0]!.calls;
  assert.deepEqual([segments(first!, 1010), segments(second!, 1010)], [["asked 1002-1010"], ["asked 1003-1010"]]);
});

test("a question without an end expires", () => {
  const tools = watched(
    started(1000, "call_1_1", 1, "image_generate", "text"), received(1005, "confirmation.request", { token: TOKEN, tool: "image_generate", turn: 1 }, "text"),
    { ...moment(9000), kind: "lapsed", side: "text", token: TOKEN },
  );
  assert.deepEqual([only(tools).asked?.outcome, only(tools).asked?.endedAt], ["expired", 9000]);
});

test("an undelivered result has a reason", () => {
  const call = only(watched(opened(0), started(1000, "call_1"), finished(1100, "call_1"), inspect(1101, "call_1", 0, 99, { delivered: false, notDelivered: "superseded" })));
  assert.deepEqual([call.delivered, call.notDelivered], [false, "superseded"]);
});

test("the text agent's calls are separate and need no inspect", () => {
  const tools = watched(opened(0), started(1000, "call_1"), started(1000, "call_1_1", 1, "extract_contacts", "text"), finished(1050, "call_1_1", {}, "text"));
  assert.deepEqual(tools.turns.map(({ side, turn, calls }) => [side, turn, calls[0]!.tool, calls[0]!.status]), [
    ["voice", 1, "kb_search", "running"],
    ["text", 1, "extract_contacts", "done"],
  ]);
  assert.equal(tools.turns[1]!.calls[0]!.delivered, undefined);
  tools.take(started(1100, "call_1_2", 1, "image_generate", "text"));
  tools.take(received(1200, "done", { conversation_id: "c-1", status: "failed" }, "text"));
  assert.deepEqual([tools.turns[1]!.calls[1]!.status, tools.turns[0]!.calls[0]!.status], ["unfinished", "running"]);
});

test("the end of a session leaves no running call, and the next one counts anew", () => {
  const tools = watched(opened(0), started(1000, "call_1"), ended(1500));
  assert.deepEqual([only(tools).status, segments(only(tools), 9000)], ["unfinished", ["run 1000-1500"]]);
  tools.take(opened(2000));
  tools.take(started(2100, "call_1"));
  assert.equal(tools.turns.length, 2);
  tools.take(anew(3000));
  assert.equal(tools.turns.length, 0);
});

test("a repeated message or one of an unknown call changes nothing", () => {
  const tools = watched(opened(0), started(1000, "call_1"), started(1000, "call_1"), finished(1100, "call_9"), inspect(1100, "call_9", 1, 1),
    received(1100, "confirmation.request", { token: TOKEN, tool: "kb_search", turn: 7 }), received(1100, "inspect.state", { turn: 8, phase: "active" }));
  assert.equal(only(tools).status, "running");
});

test("the axis is a round number of ms and covers everything on it", () => {
  const asked = watched(
    opened(0), started(1000, "call_1"), finished(1035, "call_1", { duration_ms: 35 }), started(1040, "call_2"),
    received(1045, "confirmation.request", { token: TOKEN, tool: "kb_search", turn: 1 }), finished(1046, "call_2", { ok: false, duration_ms: 0 }),
  ).turns[0]!.calls;
  assert.deepEqual(axisOf(asked, 2800), { from: 1000, ms: 2000 });
  assert.deepEqual(axisOf(asked, 61_000), { from: 1000, ms: 100_000 });
  const at = (ms: number): number => axisOf(watched(started(1000, "call_1"), finished(1000 + ms, "call_1", { duration_ms: ms })).turns[0]!.calls, 0).ms;
  assert.deepEqual([0, 1, 20, 21, 50, 101, 200, 1204, 9999].map(at), [20, 20, 20, 50, 50, 200, 200, 2000, 10_000]);
});

test("the newest 200 calls are stored", () => {
  const tools = watched(opened(0));
  for (let i = 0; i < 500; i++) {
    tools.take(started(i, `call_${i}`, Math.floor(i / 2)));
    tools.take(received(i, "confirmation.request", { token: `t${i}`, tool: "kb_search", turn: Math.floor(i / 2) }));
  }
  assert.equal(tools.turns.length, 100);
  assert.equal(tools.turns[0]!.calls[0]!.id, "call_300");
  tools.take(received(600, "confirmation.ended", { token: "t0", outcome: "denied" }));
  tools.take(received(600, "confirmation.ended", { token: "t499", outcome: "denied" }));
  assert.equal(tools.turns.at(-1)!.calls.at(-1)!.asked!.outcome, "denied");
});

test("after a snapshot only repeated calls still run", () => {
  const tools = watched(opened(0), started(1000, "call_1"), started(1000, "call_2"), finished(1500, "call_3"), received(9000, "session.started", { resumed: true, snapshot: true }), started(9001, "call_2"));
  assert.deepEqual(tools.turns[0]!.calls.map(({ id, status, startedAt, endedAt }) => [id, status, startedAt, endedAt]), [
    ["call_1", "unfinished", 1000, 9000],
    ["call_2", "running", 1000, undefined],
  ]);
  assert.equal(tookOf(tools.turns[0]!.calls[0]!, 20_000), "8.00 s", "its last known duration");
});
