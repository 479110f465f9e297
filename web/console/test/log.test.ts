import assert from "node:assert/strict";
import { test } from "vitest";
import { VoiceError } from "@voicegw/client";
import type { Happening, Side } from "../src/model/feed.js";
import { GROUPS, Log, Search, toLines, type Filter } from "../src/model/log.js";
import { Secrets } from "../src/model/secrets.js";
import * as feed from "./feed.js";

const ALL: Filter = { text: "", side: "", direction: "", groups: new Set(GROUPS) };

function received(type: string, fields: object = {}, side: Side = "voice"): Happening {
  return feed.received(10, type, fields, side);
}

function sent(type: string, fields: object = {}): Happening {
  return feed.sent(10, type, fields);
}

function filled(...happenings: Happening[]): Log {
  const log = new Log(new Secrets());
  for (const happening of happenings) {
    log.take(happening);
  }
  return log;
}

function types(log: Log, filter: Partial<Filter> = {}): string[] {
  return new Search(log, { ...ALL, ...filter }).now().map(({ type }) => type);
}

test("messages of both directions and local events are in one order, without audio", () => {
  const log = filled(
    feed.opened(10),
    sent("session.start"),
    received("session.started", { session_id: "voice-1" }),
    feed.uplink(10, feed.ms(20, 16000)),
    feed.downlink(10, "i", feed.ms(20, 24000)),
    { ...feed.moment(10), kind: "noticed", side: "voice", name: "state", event: "connected" },
    feed.anew(10),
  );
  assert.deepEqual(types(log), ["opened", "session.start", "session.started", "state", "anew"]);
  assert.deepEqual(
    new Search(log, ALL).now().map(({ direction }) => direction),
    ["here", "out", "in", "here", "here"],
  );
});

test("it can be searched by words, side, direction and kind", () => {
  const log = filled(
    received("tool.ended", { tool: "kb_search", ok: false, turn: 2 }),
    received("tool.ended", { tool: "kb_search", ok: true, turn: 3 }, "text"),
    sent("input.text", { text: "Search the KB" }),
    sent("playback", { item_id: "i", played_ms: 200 }),
  );
  assert.deepEqual(types(log, { text: "KB_search" }), ["tool.ended", "tool.ended"]);
  assert.deepEqual(types(log, { text: " false  kb_search " }), ["tool.ended"]);
  assert.deepEqual(types(log, { side: "text" }), ["tool.ended"]);
  assert.deepEqual(types(log, { direction: "out" }), ["input.text", "playback"]);
  assert.deepEqual(types(log, { groups: new Set(["talk"]) }), ["input.text"]);
  assert.deepEqual(types(log, { groups: new Set(GROUPS.filter((group) => group !== "reports")), direction: "out" }), ["input.text"]);
});

test("every type has a kind, unknown ones too", () => {
  const log = filled(received("speech.started"), received("turn.ended"), received("confirmation.request"), received("inspect.state"),
    received("audio.flush"), received("provider.reconnecting"), received("toString"), received("pong"));
  assert.deepEqual(
    new Search(log, ALL).now().map(({ group }) => group),
    ["talk", "turns", "tools", "state", "audio", "session", "session", "reports"],
  );
});

test("growing text differs from final text", () => {
  const log = filled(received("transcript", { text: "It op", final: false }), received("transcript", { text: "It opens.", final: true }), received("text.delta", { text: "It" }, "text"));
  assert.deepEqual(types(log, { groups: new Set(["talk"]) }), ["transcript"]);
  assert.deepEqual(types(log, { groups: new Set(["drafts"]) }), ["transcript", "text.delta"]);
});

test("errors are marked", () => {
  const log = filled(
    received("tool.ended", { ok: false }),
    received("tool.ended", { ok: true }),
    received("turn.ended", { status: "failed" }),
    received("turn.ended", { status: "interrupted" }),
    received("error", { code: "no_answer" }),
    feed.ended(10),
    { ...feed.moment(10), kind: "noticed", side: "voice", name: "disconnected", event: { reason: "lost", code: 1006, error: new VoiceError("lost", "Gone."), handback: undefined } },
  );
  assert.deepEqual(
    new Search(log, ALL).now().map(({ bad }) => bad),
    [true, false, true, false, true, false, true],
  );
});

test("times of this page have limited precision", () => {
  const log = filled(feed.sounding(17697.63321768726, "a"));
  assert.match(new Search(log, ALL).now()[0]!.json, /"at":17697\.6,/);
});

test("a local error is shown completely", () => {
  const log = filled({ ...feed.moment(10), kind: "noticed", side: "voice", name: "error", event: new VoiceError("slow", "The line is slow.", { retryable: true }) });
  const reported = JSON.parse(new Search(log, ALL).now()[0]!.json) as Record<string, unknown>;
  assert.deepEqual([reported["type"], reported["code"], reported["message"], reported["retryable"]], ["error", "slow", "The line is slow.", true]);
});

test("it is saved as JSON lines without secrets", () => {
  const log = filled(
    received("session.started", { session_id: "voice-1", resume_token: "rt_secret" }),
    sent("session.start", { ticket: "tk_secret", resume: { token: "rt_secret", session_id: "voice-1" } }),
    received("confirmation.request", { token: "cf_VNCCPXXF6QYIG3JBALZZ3SNRKJ", preview: "Book “Lunch”?\n" }),
    received("tool.ended", { error: { confirmation_request: { token: "cf_VNCCPXXF6QYIG3JBALZZ3SNRKJ" } } }),
  );
  const text = toLines(new Search(log, ALL).now());
  assert.doesNotMatch(text, /secret|cf_VNCC/);
  const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line) as { time: string; side: string; direction: string; event: { type: string } });
  assert.deepEqual(lines.map(({ event }) => event.type), ["session.started", "session.start", "confirmation.request", "tool.ended"]);
  assert.ok(lines.every(({ time, side }) => /^2026-11-20T10:00:\d\d\.\d{3}Z$/.test(time) && side === "voice"));
  assert.equal(lines[1]!.direction, "out");
});

test("the newest 5000 are stored, and fewer if they are long", () => {
  const log = new Log(new Secrets());
  for (let i = 1; i <= 12_000; i++) {
    log.take(received("pong", { t: i }));
  }
  const kept = new Search(log, ALL).now();
  assert.deepEqual([kept.length, log.length, log.dropped, kept[0]!.number, kept.at(-1)!.number], [5000, 5000, 7000, 7001, 12_000]);
  for (let i = 0; i < 10; i++) {
    log.take(received("transcript", { text: "x".repeat(1_000_000) }));
  }
  assert.equal(log.length, 7);
  log.clear();
  assert.deepEqual([log.length, log.dropped, types(log).length], [0, 0, 0]);
  log.take(received("pong"));
  assert.equal(new Search(log, ALL).now()[0]!.number, 12_011);
});

test("a search includes new entries and drops entries that the log has dropped", () => {
  const log = new Log(new Secrets());
  const search = new Search(log, { ...ALL, text: "even" });
  const take = (from: number, to: number): void => {
    for (let i = from; i <= to; i++) {
      log.take(received("pong", { t: i, is: i % 2 === 0 ? "even" : "odd" }));
    }
  };
  take(1, 10);
  const before = search.now();
  assert.deepEqual(before.map(({ number }) => number), [2, 4, 6, 8, 10]);
  take(11, 11);
  assert.equal(search.now(), before, "no match has arrived");
  take(12, 5006);
  assert.deepEqual([search.now().length, search.now()[0]!.number, search.now().at(-1)!.number], [2500, 8, 5006]);
  take(5007, 5009);
  assert.deepEqual(search.now().map(({ json }) => json), new Search(log, { ...ALL, text: "even" }).now().map(({ json }) => json));
  log.clear();
  assert.equal(search.now().length, 0);
  take(1, 4);
  assert.deepEqual(search.now().map(({ number }) => number), [5011, 5013]);
});
