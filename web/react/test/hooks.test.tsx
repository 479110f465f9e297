// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { VoiceError, gatewayError, type ConfirmationRequest, type TranscriptMessage, type VoiceSession } from "@voicegw/client";
import { StrictMode, act, createElement } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, describe, test, vi } from "vitest";
import { useConfirmations, useLevel, useTranscript, useVoiceSession, type Confirmation, type TranscriptLine, type VoiceCall, type VoiceControls } from "../src/index.js";
import { FakeSession } from "./fake.js";

vi.mock("@voicegw/client", async (original) => ({ ...(await original<object>()), VoiceSession: (await import("./fake.js")).FakeSession }));

interface Seen {
  call: VoiceCall & VoiceControls;
  lines: readonly TranscriptLine[];
  questions: readonly Confirmation[];
  user: number;
  model: number;
}

/** The component's newest values and number of renders. */
let seen: Seen;
let renderings = 0;

function Page({ voice }: { voice?: string }): null {
  const call = useVoiceSession(voice === undefined ? {} : { voice });
  const { session } = call;
  seen = { call, lines: useTranscript(session), questions: useConfirmations(session), user: useLevel(session, "user"), model: useLevel(session, "model") };
  renderings++;
  return null;
}

let root: Root;

async function render(props: { voice?: string } = {}): Promise<void> {
  await act(async () => root.render(createElement(StrictMode, null, createElement(Page, props))));
}

/** Runs `what` and waits for the resulting renders. */
const happens = (what: () => unknown): Promise<void> => act(async () => void what());

async function started(): Promise<FakeSession> {
  await happens(() => seen.call.connect());
  await happens(() => FakeSession.last.started());
  return FakeSession.last;
}

const said = (id: string, text: string, second: number, more: Partial<TranscriptMessage> = {}): TranscriptMessage => ({
  type: "transcript",
  seq: 1,
  turn: 1,
  id,
  role: "user",
  text,
  final: true,
  started_at: `2026-11-20T10:00:0${second}.000Z`,
  ...more,
});

const asked = (token: string, more: Partial<ConfirmationRequest> = {}): ConfirmationRequest => ({
  type: "confirmation.request",
  seq: 1,
  token,
  tool: "send_message",
  args: {},
  args_source: '{\n  "to": "ada"\n}',
  preview: "Send it?",
  expires_at: "2026-11-20T10:05:00.000Z",
  ...more,
});

const texts = (): string[] => seen.lines.map((line) => line.text);

beforeEach(async () => {
  sessionStorage.clear();
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  FakeSession.all = [];
  renderings = 0;
  root = createRoot(document.createElement("div"));
  await render();
});

afterEach(async () => {
  await act(async () => root.unmount());
});

describe("a reloaded page", () => {
  const kept = (leftAt: number | null): void =>
    sessionStorage.setItem("voicegw.session.session", JSON.stringify({ sessionId: "voice-1", conversationId: "c-7", leftAt, url: "", token: "rt_1", wishes: [], pages: 1, pressed: false, heard: [] }));

  test("continues its conversation and starts no other", async () => {
    kept(1000);
    await render({ voice: "Puck" });
    await happens(() => seen.call.resume());
    assert.deepEqual(FakeSession.last.options, { voice: "Puck", resume: "only" });
    assert.equal(seen.call.state, "connecting");
    await happens(() => seen.call.resume());
    assert.equal(FakeSession.all.length, 1);
  });

  test("does nothing without an open call, or if the call may be open in another tab", async () => {
    await happens(() => seen.call.resume());
    kept(null);
    await happens(() => seen.call.resume());
    assert.deepEqual([FakeSession.all.length, seen.call.state], [0, "idle"]);
  });
});

describe("useVoiceSession", () => {
  test("is idle at first, also if effects run twice", () => {
    assert.equal(seen.call.state, "idle");
    assert.equal(seen.call.session, null);
    assert.equal(FakeSession.all.length, 0);
  });

  test("opens a conversation once and reports its state", async () => {
    await happens(() => seen.call.connect());
    assert.equal(seen.call.state, "connecting");
    await happens(() => seen.call.connect());
    await happens(() => FakeSession.last.tell("microphone", { state: "live", deviceId: "d", label: "Headset" }));
    await happens(() => FakeSession.last.started());
    assert.equal(FakeSession.all.length, 1);
    assert.equal(seen.call.state, "connected");
    assert.equal(seen.call.session, FakeSession.last as unknown as VoiceSession);
    assert.equal(seen.call.microphone?.label, "Headset");
    await happens(() => FakeSession.last.change("reconnecting"));
    assert.equal(seen.call.state, "reconnecting");
  });

  test("connect resolves when the session opens, and does not reject if it fails", async () => {
    let settled = "";
    await happens(() => seen.call.connect().then(() => (settled = "resolved")));
    assert.equal(settled, "");
    const error = new VoiceError("unreachable");
    await happens(() => FakeSession.last.finish({ reason: "lost", code: 1006, error, handback: undefined }));
    assert.equal(settled, "resolved");
    assert.equal(seen.call.state, "disconnected");
    assert.equal(seen.call.error, error);
  });

  test("a warning stays until it is dismissed or another conversation begins", async () => {
    const session = await started();
    const warning = new VoiceError("slow");
    await happens(() => session.tell("error", warning));
    assert.equal(seen.call.warning, warning);
    await happens(() => seen.call.dismiss());
    assert.equal(seen.call.warning, undefined);
  });

  test("a final error is not also a warning", async () => {
    const session = await started();
    await happens(() => {
      session.change("disconnected");
      session.tell("error", new VoiceError("lost"));
    });
    assert.equal(seen.call.warning, undefined);
  });

  test("reports the agent's state and the user's mute", async () => {
    await happens(() => seen.call.mute(true));
    const session = await started();
    assert.deepEqual([seen.call.agentState, seen.call.muted], ["listening", false]);
    await happens(() => session.tell("agentState", "speaking"));
    await happens(() => seen.call.mute(true));
    assert.deepEqual([seen.call.agentState, seen.call.muted, session.muted], ["speaking", true, true]);
    session.muted = false;
    await happens(() => session.tell("microphone", { state: "live", deviceId: undefined, label: "" }));
    assert.equal(seen.call.muted, false);
  });

  test("uses the options at the time of the start", async () => {
    await render({ voice: "Puck" });
    await render({ voice: "Kore" });
    await started();
    assert.deepEqual(FakeSession.last.options, { voice: "Kore" });
  });

  test("its functions never change", async () => {
    const { connect, disconnect, mute, dismiss } = seen.call;
    await started();
    assert.deepEqual([seen.call.connect, seen.call.disconnect, seen.call.mute, seen.call.dismiss], [connect, disconnect, mute, dismiss]);
  });

  test("ends with the component", async () => {
    const session = await started();
    await act(async () => root.render(null));
    assert.equal(session.ends, 1);
  });

  test("starts another conversation after the end and ignores the last one", async () => {
    const first = await started();
    await happens(() => seen.call.disconnect());
    assert.equal(seen.call.state, "disconnected");
    assert.equal(seen.call.disconnected?.reason, "client_ended");
    assert.equal(seen.call.session, first as unknown as VoiceSession, "the transcript stays");
    await started();
    assert.equal(seen.call.state, "connected");
    assert.equal(seen.call.disconnected, undefined);
    await happens(() => first.tell("error", new VoiceError("slow")));
    await happens(() => first.change("disconnected"));
    assert.equal(seen.call.state, "connected");
    assert.equal(seen.call.warning, undefined);
  });
});

describe("useTranscript", () => {
  test("is empty without a conversation", () => assert.deepEqual(seen.lines, []));

  test("orders the lines as they grow", async () => {
    const session = await started();
    await happens(() => session.tell("transcript", said("b", "It opens", 3, { role: "assistant", final: false })));
    await happens(() => session.tell("transcript", said("a", "When does it open?", 1)));
    await happens(() => session.tell("transcript", said("b", "It opens at nine.", 3, { role: "assistant" })));
    assert.deepEqual(texts(), ["When does it open?", "It opens at nine."]);
    assert.deepEqual(seen.lines[1], { id: "0-b", role: "assistant", text: "It opens at nine.", final: true, turn: 1, startedAt: Date.parse("2026-11-20T10:00:03Z") });
  });

  test("counts each line once if effects run twice", async () => {
    const session = await started();
    await happens(() => session.tell("transcript", said("a", "Hello", 1)));
    await render();
    assert.deepEqual(texts(), ["Hello"]);
  });

  test("continues if another session of the conversation uses the same names", async () => {
    const session = await started();
    await happens(() => session.tell("transcript", said("text_1", "before", 1)));
    await happens(() => session.tell("reconnected", { resumed: true, lostMs: 1 }));
    await happens(() => session.tell("transcript", said("text_1", "before it", 1)));
    await happens(() => session.tell("reconnected", { resumed: false, lostMs: 1 }));
    await happens(() => session.tell("transcript", said("text_1", "after", 2)));
    assert.deepEqual(texts(), ["before it", "after"]);
  });

  test("keeps the newest 500 lines, with lines without a time last", async () => {
    const session = await started();
    await happens(() => {
      for (let i = 0; i < 600; i++) {
        session.tell("transcript", said(`${i}`, `line ${i}`, 1, { started_at: i === 599 ? "" : new Date(i * 1000).toISOString() }));
      }
    });
    assert.equal(seen.lines.length, 500);
    assert.equal(texts()[0], "line 100");
    assert.equal(texts().at(-1), "line 599");
  });

  test("starts anew with another conversation", async () => {
    const session = await started();
    await happens(() => session.tell("transcript", said("a", "Hello", 1)));
    await happens(() => seen.call.disconnect());
    assert.deepEqual(texts(), ["Hello"]);
    await started();
    assert.deepEqual(texts(), []);
  });
});

describe("useLevel", () => {
  test("is the level of its side, and null without audio", async () => {
    const session = await started();
    assert.deepEqual([seen.user, seen.model], [0, 0]);
    await happens(() => session.tell("level", { side: "user", level: 0.5 }));
    await happens(() => session.tell("level", { side: "model", level: 0.25 }));
    assert.deepEqual([seen.user, seen.model], [0.5, 0.25]);
    await happens(() => session.tell("microphone", { state: "muted", deviceId: undefined, label: "" }));
    assert.deepEqual([seen.user, seen.model], [0, 0.25]);
    await happens(() => session.tell("level", { side: "user", level: 0.5 }));
    await happens(() => session.tell("microphone", { state: "live", deviceId: undefined, label: "" }));
    assert.deepEqual([seen.user, seen.model], [0.5, 0.25]);
    await happens(() => seen.call.disconnect());
    assert.deepEqual([seen.user, seen.model], [0, 0]);
  });

  test("does not render for the same level", async () => {
    const session = await started();
    await happens(() => session.tell("level", { side: "user", level: 0 }));
    const before = renderings;
    await happens(() => session.tell("level", { side: "user", level: 0 }));
    assert.equal(renderings, before);
  });
});

describe("useConfirmations", () => {
  test("contains all fields of a question and is answered once", async () => {
    const session = await started();
    await happens(() => session.tell("confirmation.request", asked("cf_1")));
    const [question] = seen.questions;
    assert.equal(question?.tool, "send_message");
    assert.equal(question.preview, "Send it?");
    assert.equal(question.args, '{\n  "to": "ada"\n}');
    assert.equal(question.expiresAt, Date.parse("2026-11-20T10:05:00Z"));
    assert.equal(question.answer, null);
    await happens(() => question.approve());
    assert.equal(seen.questions[0]?.answer, true);
    await happens(() => question.decline());
    await happens(() => seen.questions[0]?.decline());
    assert.deepEqual([session.approve.mock.calls, session.decline.mock.calls], [[["cf_1"]], []]);
    await happens(() => session.tell("confirmation.ended", { type: "confirmation.ended", seq: 2, token: "cf_1", tool: "send_message", outcome: "approved" }));
    assert.deepEqual(seen.questions, []);
    await happens(() => question.approve());
    assert.equal(session.approve.mock.calls.length, 1, "an ended question accepts no answer");
  });

  test("several are open at once, each with its own answer", async () => {
    const session = await started();
    await happens(() => session.tell("confirmation.request", asked("cf_1")));
    await happens(() => session.tell("confirmation.request", asked("cf_2")));
    await happens(() => session.tell("confirmation.request", asked("cf_2")));
    await happens(() => seen.questions[1]?.decline());
    assert.deepEqual(seen.questions.map((q) => [q.token, q.answer]), [["cf_1", null], ["cf_2", false]]);
    assert.deepEqual([session.approve.mock.calls, session.decline.mock.calls], [[], [["cf_2"]]]);
  });

  test("an answer that could not be stored is open again; other errors change nothing", async () => {
    const session = await started();
    await happens(() => session.tell("confirmation.request", asked("cf_1")));
    await happens(() => seen.questions[0]?.approve());
    await happens(() => session.tell("error", gatewayError({ type: "error", seq: 3, code: "no_answer", message: "…", retryable: true })));
    assert.equal(seen.questions[0]?.answer, true);
    await happens(() => session.tell("error", gatewayError({ type: "error", seq: 4, code: "store_unavailable", message: "…", retryable: true })));
    assert.equal(seen.questions[0]?.answer, null);
    await happens(() => seen.questions[0]?.approve());
    assert.equal(session.approve.mock.calls.length, 2);
  });

  test("invisible characters are escaped: the model wrote the text", async () => {
    const session = await started();
    await happens(() => session.tell("confirmation.request", asked("cf_1", { preview: "Pay \u202e001\u200b €", args_source: '"\ufeff"' })));
    assert.equal(seen.questions[0]?.preview, "Pay \\u202e001\\u200b €");
    assert.equal(seen.questions[0]?.args, '"\\ufeff"');
  });
});
