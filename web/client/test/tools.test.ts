// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test, vi } from "vitest";
import type { ServerMessage, ToolCallMessage, ToolResult } from "../src/protocol/messages.js";
import { VoiceSession } from "../src/session.js";
import { Tools, type ClientTools } from "../src/tools.js";
import { FakeWebSocket, installNetwork, pass, removeNetwork, settle } from "./fakes.js";

vi.mock("../src/audio/setup.js", () => ({
  AudioSetup: class {
    ready = false;
    open = async (): Promise<void> => undefined;
    close = (): void => undefined;
  },
}));

const call = (id: string, fields: Partial<ToolCallMessage> = {}): ToolCallMessage => ({ type: "tool.call", seq: 1, call_id: id, name: "open", args: { path: "/a" }, ...fields });
const ended = (id: string): ServerMessage => ({ type: "tool.ended", seq: 2, call_id: id, tool: "open", ok: true, duration_ms: 1 });

/** Tools, with their answers recorded. */
function answering(tools: ClientTools): { tools: Tools; answers: ToolResult[] } {
  const answers: ToolResult[] = [];
  return { tools: new Tools(tools, (answer) => answers.push(answer)), answers };
}

describe("a page's tool", () => {
  const run = vi.fn<(args: { path: string }, call: { id: string; signal: AbortSignal }) => unknown>();
  const open = { open: { description: "Opens.", run } };
  beforeEach(() => void run.mockReset());

  test("runs once and repeats its result when asked again", async () => {
    run.mockResolvedValue({ title: "A" });
    const { tools, answers } = answering(open);
    tools.told(call("1"), false);
    tools.told(call("1", { again: true }), false);
    await new Promise(setImmediate);
    tools.told(call("1", { again: true }), false);
    assert.equal(run.mock.calls.length, 1);
    assert.deepEqual(run.mock.calls[0]![0], { path: "/a" });
    assert.deepEqual(answers, Array(2).fill({ type: "tool.result", call_id: "1", result: { title: "A" } }));
  });

  test("is notified when its result is no longer needed, and then sends none", async () => {
    let finish!: (value: unknown) => void;
    run.mockImplementation(() => new Promise((resolve) => (finish = resolve)));
    const { tools, answers } = answering(open);
    tools.told(call("1"), false);
    const { signal } = run.mock.calls[0]![1];
    assert.equal(signal.aborted, false);
    tools.told(ended("1"), false);
    assert.equal(signal.aborted, true);
    finish(1);
    await new Promise(setImmediate);
    assert.deepEqual(answers, []);
  });

  test("that the previous page began is not run again unless it is read-only", async () => {
    run.mockReturnValue(undefined);
    const { tools, answers } = answering({ ...open, look: { description: "Looks.", readOnly: true, run } });
    tools.told(call("1", { again: true }), true);
    tools.told(call("2", { again: true, name: "look" }), true);
    tools.told(call("3", { again: true }), false); // it never arrived
    tools.told(call("4"), true); // new
    await new Promise(setImmediate);
    assert.deepEqual(run.mock.calls.map(([, { id }]) => id), ["2", "3", "4"]);
    assert.equal(answers.find((a) => a.call_id === "1")?.error?.partial, true);
    assert.deepEqual(answers.find((a) => a.call_id === "2"), { type: "tool.result", call_id: "2", result: null });
  });

  const circle: Record<string, unknown> = {};
  circle["itself"] = circle;
  for (const [what, tool, error] of [
    ["an error", () => Promise.reject(new Error("No such page.")), { message: "No such page." }],
    ["an error with details", () => { throw Object.assign(new Error("Busy."), { retryable: true, partial: true }); }, { message: "Busy.", retryable: true, partial: true }],
    ["a rejection without an error", () => Promise.reject(null), { message: "It failed." }],
    ["a long result", () => "x".repeat(16_384), { message: "It was done, but its answer is too long or is not JSON.", partial: true }],
    ["a circular object", () => circle, { message: "It was done, but its answer is too long or is not JSON.", partial: true }],
    ["a function", () => () => 1, { message: "It was done, but its answer is too long or is not JSON.", partial: true }],
  ] as const) {
    test(`that returns ${what} has failed`, async () => {
      run.mockImplementation(tool);
      const { tools, answers } = answering(open);
      tools.told(call("1"), false);
      await new Promise(setImmediate);
      assert.deepEqual(answers, [{ type: "tool.result", call_id: "1", error }]);
    });
  }

  test("must be declared; inherited names do not count", async () => {
    const { tools, answers } = answering(open);
    tools.told(call("1", { name: "toString" }), false);
    await new Promise(setImmediate);
    assert.match(answers[0]!.error!.message, /toString/);
  });
});

describe("a session with tools", () => {
  beforeEach(installNetwork);
  afterEach(removeNetwork);

  test("declares them at each connection, runs them, and repeats a lost result", async () => {
    const run = vi.fn(() => "done");
    const session = new VoiceSession({
      url: "ws://gateway/v1/voice", microphone: false, keep: false,
      tools: { open: { description: "Opens.", schema: { type: "object" }, readOnly: true, timeoutMs: 500, run } },
    });
    const opened = session.open();
    await settle();
    const first = FakeWebSocket.last;
    first.start({ resume_token: "t" });
    await opened;
    const declared = [{ name: "open", description: "Opens.", schema: { type: "object" }, read_only: true, timeout_ms: 500 }];
    assert.deepEqual(first.of("session.start")[0]!.tools, declared);
    first.say({ type: "tool.call", seq: 2, call_id: "call_1", name: "open", args: {} });
    await settle();
    assert.deepEqual(first.of("tool.result"), [{ type: "tool.result", call_id: "call_1", result: "done" }]);
    first.drop();
    await pass(1000);
    const second = FakeWebSocket.last;
    assert.notEqual(second, first);
    second.start({ seq: 3, resumed: true });
    assert.deepEqual(second.of("session.start")[0]!.tools, declared);
    second.say({ type: "tool.call", seq: 4, call_id: "call_1", name: "open", args: {}, again: true });
    await settle();
    assert.deepEqual(second.of("tool.result"), first.of("tool.result"));
    assert.equal(run.mock.calls.length, 1);
    void session.disconnect();
    second.drop(1000);
  });
});
