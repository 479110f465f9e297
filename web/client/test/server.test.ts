// The library on a server: it can be imported and rendered, but a conversation fails.
import assert from "node:assert/strict";
import { test } from "vitest";
import { VoiceError, VoiceSession, connect, keptSession, listMicrophones, listSpeakers } from "../src/index.js";

const noBrowser = (error: unknown): boolean => error instanceof VoiceError && error.code === "no_browser" && !error.retryable;

test("on a server connect rejects with a VoiceError that explains it", async () => {
  await assert.rejects(connect(), noBrowser);
  await assert.rejects(connect({ url: "ws://127.0.0.1:1/v1/voice", microphone: false, resume: "only" }), noBrowser);
});

test("a session created on a server has ended and reports the reason once", async () => {
  const session = new VoiceSession();
  const codes: (string | undefined)[] = [];
  session.on("disconnected", ({ error }) => codes.push(error?.code));
  await assert.rejects(session.open(), noBrowser);
  await assert.rejects(session.open(), noBrowser);
  assert.equal(session.state, "disconnected");
  assert.equal((await session.disconnect()).error?.code, "no_browser");
  assert.deepEqual(codes, ["no_browser"]);
});

test("components can render on a server", async () => {
  assert.equal(keptSession(), null);
  assert.deepEqual([await listMicrophones(), await listSpeakers()], [[], []]);
});
