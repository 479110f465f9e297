import assert from "node:assert/strict";
import { test } from "vitest";
import { VoiceError } from "../src/errors.js";
import { ServerSentEventParser, parseServerSentEvents, type ServerSentEvent } from "../src/sse.js";
import { random } from "./random.js";

function parse(...pieces: string[]): ServerSentEvent[] {
  const parser = new ServerSentEventParser();
  return pieces.flatMap((piece) => parser.push(piece));
}

const data = (...pieces: string[]): string[] => parse(...pieces).map((event) => event.data);

test("the standard's own examples", () => {
  assert.deepEqual(data("data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
  assert.deepEqual(parse(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"), [
    { event: "message", data: "first event", id: "1" },
    { event: "message", data: "second event", id: "" },
    { event: "message", data: " third event", id: "" },
  ]);
  assert.deepEqual(data("data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
  assert.deepEqual(data("data:test\n\ndata: test\n\n"), ["test", "test"]);
});

test("all line ends work, also split between two chunks", () => {
  assert.deepEqual(data("data: a\r\n\r\ndata: b\r\rdata: c\n\n"), ["a", "b", "c"]);
  assert.deepEqual(data("data: a\r", "\n\r", "\ndata: b\r", "\r", "data: c\r\n", "\r\n"), ["a", "b", "c"]);
  assert.deepEqual(data("data: a\r\ndata: b\r", "\n\n"), ["a\nb"]);
});

test("events have a type and an id", () => {
  assert.deepEqual(parse("event: tool.started\nid: 7\ndata: {}\n\ndata: {}\n\nid: \0\ndata: x\n\n"), [
    { event: "tool.started", data: "{}", id: "7" },
    { event: "message", data: "{}", id: "7" },
    { event: "message", data: "x", id: "7" },
  ]);
});

test("comments, unknown fields and events without data are ignored", () => {
  assert.deepEqual(data(": ping\n\nretry: 1000\n\nevent: empty\n\ndatax: 1\n\n: data: 2\n\ndata: 3\n\n"), ["3"]);
});

test("an unfinished event at the end of the stream is ignored", () => {
  assert.deepEqual(data("data: a\n\ndata: b\n"), ["a"]);
});

test("one byte order mark at the beginning is removed", () => {
  assert.deepEqual(data("\uFEFFdata: a\n\n"), ["a"]);
  assert.deepEqual(data("", "\uFEFFdata: a\n\n\uFEFFdata: b\n\n"), ["a"]);
});

test("an endless event is an error and does not exhaust memory", () => {
  assert.throws(() => parse("data: ", "x".repeat(1 << 21)), VoiceError);
  const parser = new ServerSentEventParser();
  assert.throws(() => {
    for (let i = 0; i < 2000; i++) {
      parser.push(`data: ${"x".repeat(1000)}\n`);
    }
  }, VoiceError);
});

/** A stream of random events, and the events. */
function randomStream(next: () => number): { text: string; events: ServerSentEvent[] } {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)]!;
  const end = (): string => pick(["\n", "\r\n", "\r"]);
  const events: ServerSentEvent[] = [];
  let text = pick(["", "\uFEFF"]);
  let id = "";
  for (let i = 0; i < 12; i++) {
    const lines = Array.from({ length: 1 + Math.floor(next() * 3) }, () => pick(["", "{}", " x", "grüße", "🦊", "日本", ":", "a: b", "\u2028"]));
    const event = pick(["", "text.delta"]);
    if (next() < 0.3) {
      text += `: comment${end()}`;
    }
    if (event !== "") {
      text += `event:${event}${end()}`;
    }
    if (next() < 0.5) {
      id = String(i);
      text += `id: ${id}${end()}`;
    }
    text += lines.map((line) => `data: ${line}${end()}`).join("");
    // A line feed after a carriage return would belong to it.
    text += text.endsWith("\r") ? "\r\n" : pick(["\n", "\r\n"]);
    events.push({ event: event || "message", data: lines.join("\n"), id });
  }
  return { text, events };
}

async function read(bytes: Uint8Array, next: () => number): Promise<ServerSentEvent[]> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; ) {
        const to = at + Math.floor(next() * 9);
        controller.enqueue(bytes.slice(at, to));
        at = to;
      }
      controller.close();
    },
  });
  const events: ServerSentEvent[] = [];
  for await (const event of parseServerSentEvents(body)) {
    events.push(event);
  }
  return events;
}

test("the division into chunks does not matter, even within a letter", async () => {
  for (let seed = 1; seed <= 300; seed++) {
    const next = random(seed);
    const { text, events } = randomStream(next);
    assert.deepEqual(await read(new TextEncoder().encode(text), next), events, `seed ${seed}`);
  }
});

test("arbitrary bytes cause no fault", async () => {
  for (let seed = 1; seed <= 300; seed++) {
    const next = random(seed);
    const bytes = Uint8Array.from({ length: 200 }, () => (next() < 0.5 ? "\r\n:data id\0"[Math.floor(next() * 11)]!.charCodeAt(0) : Math.floor(next() * 256)));
    await read(bytes, next);
  }
});

test("ending the loop ends the request", async () => {
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode("data: x\n\n")),
    cancel: () => {
      cancelled = true;
    },
  });
  for await (const event of parseServerSentEvents(body)) {
    assert.equal(event.data, "x");
    break;
  }
  assert.ok(cancelled);
});
