// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { Outbox } from "../src/connection/outbox.js";
import type { VoiceError } from "../src/errors.js";
import { VoiceSession } from "../src/session.js";
import { FakeWebSocket, installNetwork, removeNetwork, settle } from "./fakes.js";

vi.mock("../src/audio/setup.js", () => ({
  AudioSetup: class {
    ready = false;
    open = async (): Promise<void> => undefined;
    close = (): void => undefined;
  },
}));

beforeEach(installNetwork);
afterEach(removeNetwork);

test("the page's context is sent and does not count as speech", async () => {
  const session = new VoiceSession({ url: "ws://gateway/v1/voice", microphone: false, keep: false });
  const errors: VoiceError[] = [];
  session.on("error", (error) => errors.push(error));
  const opened = session.open();
  await settle();
  const gateway = FakeWebSocket.last;
  gateway.start({ context: true });
  await opened;
  const before = session.agentState;
  session.sendContext("order 42");
  assert.deepEqual(gateway.of("input.context"), [{ type: "input.context", text: "order 42" }]);
  assert.equal(session.agentState, before);
  assert.equal(gateway.of("input.text").length, 0);
  gateway.drop();
  for (let i = 0; i < 33; i++) {
    session.sendContext(`order ${i}`);
  }
  assert.deepEqual(errors.map(({ code }) => code), ["unsent"]);
  void session.disconnect();
});

test("context waits for a connection, also to another session of the conversation", () => {
  for (const resumed of [true, false]) {
    const outbox = new Outbox();
    outbox.keep({ type: "input.context", text: "order 42" });
    outbox.keep({ type: "input.text", text: "And this?" });
    outbox.keep({ type: "confirmation.resolve", token: "t", approved: true });
    const types = outbox.take(resumed).map(({ type }) => type);
    assert.deepEqual(types, resumed ? ["input.context", "input.text", "confirmation.resolve"] : ["input.context", "input.text"]);
  }
});
