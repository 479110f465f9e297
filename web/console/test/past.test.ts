import assert from "node:assert/strict";
import { test } from "vitest";
import { CallsControl } from "../src/control/calls.js";
import { continued, joined, pastTurns, readPast, type PastCalls } from "../src/model/past.js";

const TALK = {
  id: "c-7", user: "ada", agent: "billing", title: "Hello", turns: 2, modes: ["text", "voice"], calls: 3, tools: [{ tool: "kb_search", calls: 3 }, "nonsense"],
  cost_usd_micros: 1250, created_at: "2026-11-26T10:00:00.000Z", updated_at: "2026-11-26T10:02:00.000Z",
};

function page(next: string, ...ids: (readonly [id: string, minute: number])[]): PastCalls {
  const answer = { conversations: ids.map(([id, minute]) => ({ ...TALK, id, updated_at: `2026-11-26T10:${String(minute).padStart(2, "0")}:00Z` })), next };
  return readPast(answer) ?? assert.fail("the page cannot be read");
}

function ids({ calls }: PastCalls): string {
  return calls.map(({ conversation }) => conversation).join(" ");
}

test("past conversations are read with their known fields", () => {
  assert.deepEqual(readPast({ conversations: [TALK, { user: "without an id" }, "nonsense"], next: "1z", incomplete: true }), {
    next: "1z",
    incomplete: true,
    calls: [
      {
        conversation: "c-7", user: "ada", agent: "billing", title: "Hello", turns: 2, voice: true, text: true, calls: 3, tools: [{ tool: "kb_search", calls: 3 }],
        costMicros: 1250, begunAt: Date.UTC(2026, 10, 26, 10), lastAt: Date.UTC(2026, 10, 26, 10, 2),
      },
    ],
  });
  const unpriced = readPast({ conversations: [{ id: "c-8", cost_usd_micros: 9, unpriced: 1 }] })?.calls[0];
  assert.equal(unpriced?.costMicros, undefined);
  for (const answer of [null, {}, { conversations: {} }, { error: { code: "not_found" } }]) {
    assert.equal(readPast(answer), null);
  }
});

test("a reloaded first page keeps the further pages, and removed entries disappear", () => {
  const first = page("2", ["d", 4], ["c", 3]);
  const all = continued(first, page("", ["c", 3], ["b", 2], ["a", 1]));
  assert.equal(ids(all), "d c b a");
  assert.equal(ids(joined(page("2", ["b", 9], ["d", 4]), all)), "b d c a", "b is in use again");
  assert.equal(ids(joined(page("2", ["d", 4], ["b", 2]), all)), "d b a", "c was removed");
  assert.equal(joined(page("2", ["d", 4], ["c", 3]), all).next, "", "the end stays the end");
  assert.equal(ids(joined(page("", ["d", 4]), all)), "d", "there is only one page");
  assert.equal(ids(joined(first, null)), "d c");
});

test("a turn shows its response time, cost and tools if they are stored", () => {
  const entries = [
    { role: "notice", text: "the beginning" },
    { turn: 1, role: "user", text: "Hello", cost_usd_micros: 100 },
    { turn: 1, role: "assistant", latency_ms: 812, cost_usd_micros: 20, calls: [{ tool: "kb_search" }, {}] },
    { turn: 2, role: "user", text: "And?" },
    { turn: 3, role: "user", text: "So?", cost_usd_micros: 5, unpriced: 1, latency_ms: 90 },
  ];
  assert.deepEqual(pastTurns({ entries }), [
    { turn: 1, responseMs: 812, costMicros: 120, tools: ["kb_search"] },
    { turn: 3, responseMs: 90, costMicros: undefined, tools: [] },
  ]);
  assert.deepEqual(pastTurns(null), []);
});

test("a gateway without a list differs from one that does not answer", async () => {
  const answers: (Response | null)[] = [Response.json({ conversations: [TALK] }), Response.json({ error: { code: "not_found" } }, { status: 404 }), Response.json({ error: {} }, { status: 503 }), null];
  const asked: string[] = [];
  const control = new CallsControl(((to: string) => {
    asked.push(to);
    const next = answers.shift();
    return next == null ? Promise.reject(new TypeError("no network")) : Promise.resolve(next);
  }) as typeof fetch);
  const first = await control.past();
  assert.equal(typeof first === "object" && first !== null ? first.calls.length : first, 1);
  assert.equal(await control.past("1z&x"), "none");
  assert.equal(await control.past(), null);
  assert.equal(await control.past(), null);
  assert.deepEqual(asked.slice(0, 2), ["v1/conversations?limit=25", "v1/conversations?limit=25&after=1z%26x"]);
});
