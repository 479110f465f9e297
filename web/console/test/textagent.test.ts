// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import type { VoiceError } from "@voicegw/client";
import type { Told } from "../src/model/feed.js";
import { TextAgent } from "../src/control/textagent.js";

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** A request of the page, and functions to answer it. */
interface Request {
  body: { conversation_id?: string; message?: string; confirmation?: { token: string; approved: boolean } };
  aborted: () => boolean;
  say(message: object): void;
  done(): void;
  refuse(status: number, code: string): void;
}

let requests: Request[];
let log: string[];

beforeEach(() => {
  requests = [];
  log = [];
  vi.stubGlobal("fetch", (_url: URL, { body, signal }: { body: string; signal: AbortSignal }) => {
    return new Promise<Response>((resolve, reject) => {
      let stream!: ReadableStreamDefaultController<Uint8Array>;
      const opened = new ReadableStream<Uint8Array>({ start: (controller) => void (stream = controller) });
      const write = (message: object): void => {
        resolve(new Response(opened, { headers: { "content-type": "text/event-stream" } }));
        stream.enqueue(new TextEncoder().encode(`data: ${JSON.stringify({ seq: 1, ...message })}\n\n`));
      };
      signal.addEventListener("abort", () => {
        reject(signal.reason as Error);
        stream.error(signal.reason);
      });
      requests.push({
        body: JSON.parse(body) as Request["body"],
        aborted: () => signal.aborted,
        say: write,
        done: () => write({ type: "done", conversation_id: "c", status: "completed" }),
        refuse: (status, code) => resolve(Response.json({ error: { code, message: "no" } }, { status })),
      });
    });
  });
});

afterEach(() => void vi.unstubAllGlobals());

function agent(): TextAgent {
  const record = (what: Told): void => {
    if (what.kind === "received" || what.kind === "sent") {
      log.push(`${what.kind} ${JSON.stringify(what.message)}`);
    }
  };
  return new TextAgent({
    happened: record,
    asking: (message) => void log.push(`asking ${message ?? "about a question"}`),
    answered: (error: VoiceError | null, token) => void log.push(`answered ${error?.gatewayCode ?? error?.code ?? "well"} ${token ?? ""}`.trim()),
  });
}

async function request(n: number): Promise<Request> {
  await vi.waitFor(() => assert.ok(requests.length > n, `there is no request ${n}`));
  return requests[n]!;
}

async function logged(want: string): Promise<void> {
  await vi.waitFor(() => assert.ok(log.includes(want), `${want} is not in ${log.join("; ")}`));
}

test("one message is answered at a time", async () => {
  const text = agent();
  assert.ok(text.say("c", "Hello"));
  assert.ok(!text.say("c", "And?"), "while the first is answered");
  const first = await request(0);
  assert.deepEqual(first.body, { conversation_id: "c", message: "Hello", inspect: true, time_zone: ZONE });
  first.say({ type: "text.delta", item_id: "t", text: "Good" });
  first.done();
  await logged("answered well");
  assert.ok(text.say("c", "And?"));
  assert.ok(log[0] === "asking Hello" && log.some((line) => line.includes('"Good"')));
});

test("the answer to a question waits for its turn, and its token is not in the log", async () => {
  const text = agent();
  text.say("c", "Book it");
  const first = await request(0);
  text.resolve("c", "cf_secret", true);
  text.resolve("c", "cf_other", false);
  assert.equal(requests.length, 1);
  first.done();
  const second = await request(1);
  assert.deepEqual(second.body, { conversation_id: "c", confirmation: { token: "cf_secret", approved: true }, inspect: true, time_zone: ZONE });
  second.done();
  (await request(2)).done();
  await logged("answered well cf_other");
  assert.ok(!log.some((line) => line.startsWith("sent") && line.includes("cf_")));
});

test("a refusal is reported with the gateway's code, and the next answer is sent", async () => {
  const text = agent();
  text.resolve("c", "a", true);
  text.resolve("c", "b", true);
  (await request(0)).refuse(410, "confirmation_expired");
  await logged("answered confirmation_expired a");
  (await request(1)).done();
  await logged("answered well b");
});

test("a cancelled answer is not a failure", async () => {
  const text = agent();
  text.say("c", "Tell me all");
  const first = await request(0);
  first.say({ type: "text.delta", item_id: "t", text: "Once" });
  await vi.waitFor(() => assert.ok(log.some((line) => line.includes("Once"))));
  text.stop();
  assert.ok(first.aborted());
  await logged("answered well");
});

test("leaving a conversation drops its waiting messages", async () => {
  const text = agent();
  text.say("c", "Book it");
  await request(0);
  text.resolve("c", "a", true);
  text.leave();
  await logged("answered well");
  text.say("d", "Hello");
  assert.deepEqual((await request(1)).body, { conversation_id: "d", message: "Hello", inspect: true, time_zone: ZONE });
  assert.equal(requests.length, 2);
});
