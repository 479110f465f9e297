import assert from "node:assert/strict";
import { afterEach, test, vi } from "vitest";
import { chat, type ChatTurn } from "../src/chat.js";
import { VoiceError } from "../src/errors.js";
import type { ServerMessage } from "../src/protocol/messages.js";

/** The arguments of fetch. */
let asked: { url: string; init: RequestInit } | undefined;

function answer(response: Response | (() => Promise<Response>)): void {
  vi.stubGlobal("fetch", async (url: string | URL, init: RequestInit) => {
    asked = { url: String(url), init };
    return typeof response === "function" ? response() : response;
  });
}

function stream(...messages: (object | string)[]): Response {
  const text = messages.map((m) => `id: 1\nevent: x\ndata: ${typeof m === "string" ? m : JSON.stringify(m)}\n\n`).join("");
  return new Response(text, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

async function all(turn: ChatTurn = { message: "Hello" }, signal?: AbortSignal): Promise<{ messages: ServerMessage[]; error: VoiceError | undefined }> {
  const messages: ServerMessage[] = [];
  try {
    for await (const message of chat("http://127.0.0.1:8080/v1/chat", turn, signal)) {
      messages.push(message);
    }
  } catch (error) {
    assert.ok(error instanceof VoiceError, String(error));
    return { messages, error };
  }
  return { messages, error: undefined };
}

const DELTA = { type: "text.delta", seq: 1, turn: 1, item_id: "text_1", text: "Wren" };
const DONE = { type: "done", seq: 2, turn: 1, conversation_id: "c-7", status: "completed" };

afterEach(() => vi.unstubAllGlobals());

test("a turn yields its messages up to done, without unknown ones", async () => {
  answer(stream(DELTA, { type: "weather.report", seq: 2 }, "no json", DONE, DELTA));
  const { messages, error } = await all();
  assert.deepEqual(messages.map((m) => m.type), ["text.delta", "done"]);
  assert.equal(error, undefined);
});

test("a custom fetch supplies credentials", async () => {
  answer(stream(DONE));
  const withToken: typeof fetch = (input, init) => fetch(input, { ...init, headers: { ...(init?.headers as Record<string, string>), authorization: "Bearer t" } });
  for await (const message of chat("/v1/chat", { message: "Hello" }, undefined, withToken)) {
    assert.equal(message.type, "done");
  }
  assert.equal((asked?.init.headers as Record<string, string>)["authorization"], "Bearer t");
  assert.equal((asked?.init.headers as Record<string, string>)["content-type"], "application/json");
});

test("only requested fields are sent", async () => {
  answer(stream(DONE));
  await all({ conversationId: "c-7", user: "ada", agent: undefined, message: "Hello", timeZone: "Asia/Kolkata" });
  assert.equal(asked?.url, "http://127.0.0.1:8080/v1/chat");
  assert.equal(asked.init.method, "POST");
  assert.deepEqual(asked.init.headers, { "content-type": "application/json", accept: "text/event-stream" });
  assert.deepEqual(JSON.parse(asked.init.body as string), { conversation_id: "c-7", user: "ada", message: "Hello", time_zone: "Asia/Kolkata" });

  answer(stream(DONE));
  await all({ conversationId: "c-7", confirmation: { token: "cf_1", approved: false } });
  assert.deepEqual(JSON.parse(asked.init.body as string), { conversation_id: "c-7", confirmation: { token: "cf_1", approved: false }, time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone });
});

test("a stream without done is lost after its messages", async () => {
  answer(stream(DELTA));
  const { messages, error } = await all();
  assert.equal(messages.length, 1);
  assert.equal(error?.code, "lost");
  assert.equal(error.retryable, true);
  assert.equal(error.message, "The answer broke off.");
});

test("a failing stream is lost", async () => {
  const cause = new TypeError("network error");
  let pulls = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (++pulls > 1) {
        controller.error(cause);
      } else {
        controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(DELTA)}\n\n`));
      }
    },
  });
  answer(new Response(body, { headers: { "content-type": "text/event-stream" } }));
  const { messages, error } = await all();
  assert.equal(messages.length, 1);
  assert.equal(error?.code, "lost");
  assert.equal(error.cause, cause);
});

test("a missing gateway is unreachable", async () => {
  answer(() => Promise.reject(new TypeError("fetch failed")));
  assert.equal((await all()).error?.code, "unreachable");
});

test("an aborted turn reports it, before and during the answer", async () => {
  const give = new AbortController();
  answer(async () => {
    give.abort();
    throw give.signal.reason;
  });
  assert.equal((await all({ message: "Hello" }, give.signal)).error?.code, "aborted");

  const stop = new AbortController();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      stop.abort();
      controller.error(stop.signal.reason);
    },
  });
  answer(new Response(body, { headers: { "content-type": "text/event-stream" } }));
  assert.equal((await all({ message: "Hello" }, stop.signal)).error?.code, "aborted");
  assert.equal(asked?.init.signal, stop.signal);
});

test("ending the loop ends the turn", async () => {
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(DELTA)}\n\n`)),
    cancel: () => {
      cancelled = true;
    },
  });
  answer(new Response(body, { headers: { "content-type": "text/event-stream" } }));
  for await (const message of chat("/v1/chat", { message: "Hello" })) {
    assert.equal(message.type, "text.delta");
    break;
  }
  assert.ok(cancelled);
});

const REFUSALS: [number, object | string, Partial<VoiceError>][] = [
  [400, { code: "invalid_message", message: "message is missing." }, { code: "gateway", gatewayCode: "invalid_message", message: "message is missing.", retryable: false }],
  [403, { code: "blocked", message: "…", until: "2026-11-20T10:20:00.000Z" }, { code: "gateway", gatewayCode: "blocked", retryable: false }],
  [409, { code: "conversation_busy", message: "…" }, { gatewayCode: "conversation_busy", message: "The last message is being answered.", retryable: true }],
  [503, { code: "draining", message: "The gateway is shutting down; ask another one." }, { gatewayCode: "draining", retryable: true }],
  [502, "<html>Bad gateway</html>", { code: "unreachable", retryable: true }],
  [503, "", { code: "full", retryable: true }],
  [429, "slow down", { code: "full", retryable: true }],
  [403, "Forbidden", { code: "refused", retryable: false }],
  [404, { code: 7 }, { code: "refused" }],
  [500, "null", { code: "unreachable" }],
];
for (const [status, said, wanted] of REFUSALS) {
  test(`${status} ${JSON.stringify(said)} becomes a VoiceError with a text`, async () => {
    answer(new Response(typeof said === "string" ? said : JSON.stringify({ error: said }), { status }));
    const { error } = await all();
    assert.ok(error);
    for (const [field, value] of Object.entries(wanted)) {
      assert.deepEqual(error[field as keyof VoiceError], value, field);
    }
    assert.ok(error.message !== "" && error.advice !== "");
  });
}

test("a response that is not a stream is a protocol error", async () => {
  answer(new Response("<html>Hello</html>", { headers: { "content-type": "text/html" } }));
  assert.equal((await all()).error?.code, "protocol");
});
