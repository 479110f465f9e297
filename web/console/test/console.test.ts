// @vitest-environment happy-dom
// The controller, with a fake voice session and a fake gateway.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { Emitter, VoiceError, type ConnectOptions, type VoiceEvents } from "@voicegw/client";
import { Console } from "../src/control/console.js";
import type { Happening } from "../src/model/feed.js";
import { DEFAULTS } from "../src/model/settings.js";
import { activity } from "../src/model/voice.js";
import { message, NOW } from "./happenings.js";

const { sessions } = vi.hoisted(() => ({ sessions: [] as unknown[] }));

/** Records the page's actions; the test acts as the gateway. */
class FakeSession extends Emitter<VoiceEvents> {
  readonly actions: string[] = [];
  info: { input_rate: number; output_rate: number } | null = null;
  readonly microphone = {
    state: "live",
    mute: (muted: boolean) => this.did(`mute ${String(muted)}`),
    press: (active: boolean) => this.did(`press ${String(active)}`),
    start: () => Promise.resolve(this.did("microphone")),
    use: (id?: string) => Promise.resolve(this.did(`microphone ${id ?? "default"}`)),
  };
  readonly speaker = { volume: 1, use: (id?: string) => Promise.resolve(this.did(`speaker ${id ?? "default"}`)) };

  constructor(readonly options: ConnectOptions) {
    super();
    sessions.push(this);
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  sendText(text: string): string {
    this.did(`say ${text}`);
    return "typed-1";
  }

  interrupt(): void {
    this.did("interrupt");
  }

  approve(token: string): void {
    this.did(`approve ${token}`);
  }

  decline(token: string): void {
    this.did(`decline ${token}`);
  }

  disconnect(): void {
    this.emit("state", "disconnected");
    this.emit("disconnected", { reason: "client_ended", code: 1000, error: undefined, handback: undefined });
  }

  stats(): object {
    return {};
  }

  /** Emits a message of the gateway. */
  receive(fields: Parameters<typeof message>[0]): void {
    const said = message(fields);
    this.emit("message", said);
    this.emit(said.type, said as never);
  }

  opened(): void {
    this.receive({ type: "session.started", session_id: "voice-a", provider: "p", model: "m", input_rate: 16000, output_rate: 24000, expires_at: null, resumed: false });
    this.emit("state", "connected");
    this.emit("microphone", { state: "live", deviceId: "m", label: "Desk" });
  }

  noticed<N extends keyof VoiceEvents>(name: N, event: VoiceEvents[N]): void {
    this.emit(name, event);
  }

  private did(action: string): void {
    this.actions.push(action);
  }
}

vi.mock("@voicegw/client", async (original) => ({
  ...(await original<typeof import("@voicegw/client")>()),
  VoiceSession: class {
    constructor(options: ConnectOptions) {
      return new FakeSession(options);
    }
  },
  listMicrophones: () => Promise.resolve([
    { id: "default", label: "Default" },
    { id: "m1", label: "Desk" },
    { id: "m2", label: "" },
  ]),
  listSpeakers: () => Promise.resolve([]),
}));

let happened: Happening[];
let answers: Record<string, () => Response>;
let posted: { confirmation?: { token: string } }[];

function stream(...messages: object[]): Response {
  const text = messages.map((fields) => `data: ${JSON.stringify({ seq: 1, ...fields })}\n\n`).join("");
  return new Response(text, { headers: { "content-type": "text/event-stream" } });
}

const DONE = { type: "done", conversation_id: "c", status: "completed" };

beforeEach(() => {
  sessions.length = 0;
  happened = [];
  posted = [];
  localStorage.clear();
  sessionStorage.clear();
  vi.stubGlobal("CONSOLE_VERSION", "0");
  answers = {
    "v1/providers": () => Response.json({ default: "p", providers: [{ name: "p" }], simulator: true }),
    readyz: () => Response.json({}),
    "v1/chat": () => stream(DONE),
  };
  vi.stubGlobal("fetch", (url: string | URL, init?: RequestInit) => {
    const path = String(url).replace(/^.*\/(?=v1\/|readyz)/, "");
    if (init?.method === "POST") {
      posted.push(JSON.parse(init.body as string) as (typeof posted)[number]);
    }
    const answer = answers[path];
    return answer === undefined ? Promise.reject(new TypeError("no network")) : Promise.resolve(answer());
  });
});

afterEach(() => void vi.unstubAllGlobals());

function newConsole(): Console {
  return new Console({ take: (happening) => void happened.push(happening) });
}

function session(n = 0): FakeSession {
  const found = sessions[n] as FakeSession | undefined;
  assert.ok(found !== undefined, `there is no session ${n}`);
  return found;
}

function asked(token: string): Parameters<typeof message>[0] {
  const expires_at = new Date(Date.now() + 60_000).toISOString();
  return { type: "confirmation.request", token, tool: "book", args: {}, args_source: "{}", preview: `Book ${token}?`, expires_at };
}

test("both agents share one conversation with a name that survives a reload", async () => {
  const console = newConsole();
  console.talk();
  const { conversationId } = session().options;
  assert.ok(conversationId !== undefined && conversationId.length > 20);
  session().disconnect();
  console.write("Hello");
  await vi.waitFor(() => assert.equal(console.text.value.phase, "ready"));
  assert.deepEqual(posted, [
    { conversation_id: conversationId, inspect: true, message: "Hello", time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone },
  ]);

  answers[`v1/conversations/${conversationId}`] = () => Response.json({ entries: [{ at: new Date(NOW).toISOString(), side: "text", role: "user", text: "Hello" }] });
  const again = newConsole();
  await again.open();
  assert.deepEqual(
    again.lines.value.map((line) => line.kind),
    ["utterance", "remark"],
  );
  again.talk();
  assert.equal(session(1).options.conversationId, conversationId);
  session(1).disconnect();
  again.startAnew();
  again.talk();
  assert.notEqual(session(2).options.conversationId, conversationId);
  assert.ok(happened.some((happening) => happening.kind === "anew"));
});

test("a new conversation starts empty", async () => {
  let signal: AbortSignal | undefined;
  const console = newConsole();
  const fetched = fetch;
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    signal = init.signal ?? undefined;
    return fetched(url, init);
  });
  answers["v1/chat"] = () => new Response(new ReadableStream(), { headers: { "content-type": "text/event-stream" } });
  console.write("Hello");
  console.startAnew();
  assert.ok(signal?.aborted, "the old answer is still requested");
  assert.deepEqual(console.lines.value, []);
  assert.equal(sessionStorage.length, 0, "a reload would restore it");
});

test("a conversation that only operators may read continues without its history", async () => {
  sessionStorage.setItem("voicegw.conversation", "c-7");
  answers["v1/conversations/c-7"] = () => Response.json({ error: {} }, { status: 403 });
  const console = newConsole();
  await console.open();
  assert.deepEqual(
    console.lines.value.map((line) => line.kind),
    ["remark"],
  );
  answers["v1/conversations/c-7"] = () => Response.json({ error: {} }, { status: 404 });
  const other = newConsole();
  await other.open();
  assert.deepEqual(other.lines.value, []);
});

test("a call that begins before the page is open requests no history", async () => {
  const console = newConsole();
  console.talk();
  const { conversationId } = session().options;
  let asked = false;
  answers[`v1/conversations/${conversationId}`] = () => {
    asked = true;
    return Response.json({ error: {} }, { status: 404 });
  };
  await console.open();
  assert.equal(asked, false);
});

test("an invitation connects with its ticket, once", async () => {
  const expires_at = new Date(Date.now() + 60_000).toISOString();
  answers["v1/chat"] = () => stream({ type: "voice_session_start", sessionId: "voice-a", pendingRequest: "the lab", ticket: "secret", url: "ws://elsewhere/v1/voice", expires_at }, DONE);
  const console = newConsole();
  console.choose({ pendingRequest: "something else" });
  console.write("Tell me by voice");
  await vi.waitFor(() => assert.equal(console.text.value.phase, "ready"));
  console.accept("voice-b");
  assert.equal(sessions.length, 0, "no such invitation");
  console.accept("voice-a");
  assert.equal(session().options.ticket, "secret");
  assert.equal(session().options.pendingRequest, undefined);
  assert.equal(session().options.url, undefined, "the page uses its own gateway");
  session().disconnect();
  console.accept("voice-a");
  assert.equal(sessions.length, 1, "the ticket was used twice");
});

test("an invalid stored name is deleted", () => {
  sessionStorage.setItem("voicegw.conversation", "../providers?x");
  newConsole().talk();
  assert.match(session().options.conversationId ?? "", /^console-[0-9a-f]{32}$/);
});

test("there is one call at a time, and it starts only on request", async () => {
  const console = newConsole();
  await console.open();
  assert.equal(sessions.length, 0);
  console.talk();
  console.talk();
  assert.equal(sessions.length, 1);
  assert.equal(activity(console.voice.value), "connecting");
  assert.equal(console.session.value, session());
  session().opened();
  console.talk();
  assert.equal(activity(console.voice.value), "listening", "the running call is not started again");
  console.startAnew();
  assert.equal(console.lines.value.length, 1, "the call's lines stay");
  console.hangUp();
  assert.equal(activity(console.voice.value), "ended");
  assert.equal(console.session.value, null);
  console.startAnew();
  assert.equal(activity(console.voice.value), "none");
});

test("text to the voice agent starts a call without the microphone", () => {
  const console = newConsole();
  console.type("Hello");
  assert.equal(session().options.microphone, false);
  assert.deepEqual(session().actions, ["say Hello"]);
  assert.equal(console.lines.value.at(-1)?.kind, "utterance");
});

test("a call starts with the user's settings and always requests inspect", () => {
  const console = newConsole();
  console.choose({ provider: "openai", voice: "marin", agent: "guide", turns: "pushToTalk", inputRate: 8000, outputRate: 8000, microphone: "m1", noiseSuppression: false, pendingRequest: "the lab", speaker: "s1" });
  console.talk();
  const { client, conversationId, key, ...options } = session().options;
  assert.equal((key as () => unknown)(), undefined); // the page's link was not opened
  assert.deepEqual(options, {
    microphone: { deviceId: "m1", echoCancellation: true, noiseSuppression: false },
    inputRate: 8000,
    outputRate: 8000,
    turnDetection: "client",
    inspect: true,
    provider: "openai",
    agent: "guide",
    voice: "marin",
    pendingRequest: "the lab",
    speakerId: "s1",
  });
  assert.equal(client?.name, "voicegw-console");
  session().opened();
  assert.equal(console.settings.value.pendingRequest, "", "it would be repeated in every call");
  assert.equal(newConsole().settings.value.voice, "marin", "settings are kept");
});

test("default settings send no options", () => {
  const console = newConsole();
  assert.deepEqual(console.settings.value, DEFAULTS);
  console.talk();
  const { provider, agent, voice, pendingRequest, speakerId, ticket } = session().options;
  assert.deepEqual([provider, agent, voice, pendingRequest, speakerId, ticket], [undefined, undefined, undefined, undefined, undefined, undefined]);
});

test("devices change in the running call", async () => {
  const console = newConsole();
  console.talk();
  console.choose({ microphone: "m1" });
  console.choose({ echoCancellation: false });
  console.choose({ speaker: "s1" });
  console.choose({ microphone: "" });
  console.choose({ provider: "openai" });
  await vi.waitFor(() => assert.deepEqual(session().actions, ["microphone m1", "microphone m1", "speaker s1", "microphone default"]));
  assert.equal((session().options.microphone as { echoCancellation: boolean }).echoCancellation, false);
});

test("a call starts with the configured volume, which can change during it", () => {
  const console = newConsole();
  console.choose({ volume: 0.4 });
  console.talk();
  assert.equal(session().speaker.volume, 0.4);
  console.choose({ volume: 0.9 });
  assert.equal(session().speaker.volume, 0.9);
  console.choose({ volume: 1 });
});

test("an unusable device is reported", async () => {
  const console = newConsole();
  console.talk();
  session().microphone.use = () => Promise.reject(new VoiceError("microphone_busy"));
  console.choose({ microphone: "m1" });
  await vi.waitFor(() => assert.match(console.voice.value.notice?.title ?? "", /is in use/));
});

test("the device list has names and no pseudo-devices", async () => {
  const console = newConsole();
  await console.open();
  assert.deepEqual(console.devices.value.microphones, [{ id: "m1", label: "Desk" }]);
});

test("an answer goes to the agent that asked", async () => {
  const console = newConsole();
  console.talk();
  session().opened();
  session().receive(asked("cf_voice"));
  console.resolve("cf_voice", true);
  console.resolve("cf_voice", false);
  assert.deepEqual(session().actions, ["approve cf_voice"]);

  answers["v1/chat"] = () => stream(asked("cf_text"), DONE);
  console.write("Book it");
  await vi.waitFor(() => assert.equal(console.questions.value.length, 2));
  await vi.waitFor(() => assert.equal(console.text.value.phase, "ready"));
  answers["v1/chat"] = () => stream({ type: "confirmation.ended", token: "cf_text", tool: "book", outcome: "denied" }, DONE);
  console.resolve("cf_text", false);
  await vi.waitFor(() => assert.equal(console.questions.value.length, 1));
  assert.deepEqual(posted.at(-1)?.confirmation, { token: "cf_text", approved: false });
});

test("a refused answer to the text agent is final or open again, by the gateway's error", async () => {
  for (const [status, code, open, outcome] of [
    [410, "confirmation_expired", false, "expired"],
    [409, "confirmation_used", false, "answered"],
    [404, "confirmation_unknown", false, "unanswered"],
    [503, "store_unavailable", true, undefined],
    [409, "conversation_busy", true, undefined],
  ] as const) {
    const console = newConsole();
    answers["v1/chat"] = () => stream(asked("cf_1"), DONE);
    console.write("Book it");
    await vi.waitFor(() => assert.equal(console.text.value.phase, "ready"));
    answers["v1/chat"] = () => Response.json({ error: { code, message: "no" } }, { status });
    console.resolve("cf_1", true);
    await vi.waitFor(() => assert.equal(console.text.value.phase, "ready"));
    assert.deepEqual(
      console.questions.value.map(({ approved }) => approved),
      open ? [null] : [],
      code,
    );
    const line = console.lines.value.findLast((other) => other.kind === "outcome");
    assert.equal(line?.kind === "outcome" ? line.outcome : undefined, outcome, code);
  }
});

test("a question of the text agent expires, because no message ends it", async () => {
  vi.useFakeTimers({ now: NOW });
  try {
    const console = newConsole();
    answers["v1/chat"] = () => stream(asked("cf_1"), DONE);
    console.write("Book it");
    await vi.waitFor(() => assert.equal(console.questions.value.length, 1));
    await vi.advanceTimersByTimeAsync(60_000);
    assert.equal(console.questions.value.length, 1, "the gateway decides");
    await vi.advanceTimersByTimeAsync(6_000);
    assert.equal(console.questions.value.length, 0);
    assert.ok(happened.some((happening) => happening.kind === "lapsed"));
  } finally {
    vi.useRealTimers();
  }
});

test("Stop ends only the current activity", () => {
  const console = newConsole();
  console.talk();
  session().opened();
  console.stop();
  assert.deepEqual(session().actions, []);
  session().noticed("sounding", { item: "i", at: 0, firstByteAt: 0, cushionMs: 0 });
  console.stop();
  assert.deepEqual(session().actions, ["interrupt"]);
});

test("the button to talk works only with push-to-talk", () => {
  const console = newConsole();
  console.talk();
  session().opened();
  console.press(true);
  assert.deepEqual(session().actions, []);
  console.hangUp();
  console.choose({ turns: "pushToTalk" });
  console.talk();
  session(1).opened();
  console.press(true);
  session(1).noticed("sent", { type: "input.activity", active: true });
  console.press(true);
  console.press(false);
  assert.deepEqual(session(1).actions, ["press true", "press false"]);
});

test("Mute mutes, unmutes, and reopens a lost microphone", async () => {
  const console = newConsole();
  console.talk();
  for (const state of ["live", "muted", "off", "lost", "asking"]) {
    session().microphone.state = state;
    console.toggleMicrophone();
  }
  await vi.waitFor(() => assert.deepEqual(session().actions, ["mute true", "mute false", "microphone", "microphone"]));
});

test("the gateway is ready, draining, or unreachable", async () => {
  const console = newConsole();
  await console.open();
  assert.equal(console.gateway.value, "simulator");
  answers["readyz"] = () => new Response("", { status: 503 });
  document.dispatchEvent(new Event("visibilitychange"));
  await vi.waitFor(() => assert.equal(console.gateway.value, "leaving"));
  delete answers["readyz"];
  document.dispatchEvent(new Event("visibilitychange"));
  await vi.waitFor(() => assert.equal(console.gateway.value, "unreachable"));
});

test("a hidden page sends no requests", async () => {
  const console = newConsole();
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  await console.open();
  assert.equal(console.gateway.value, "unknown");
  vi.restoreAllMocks();
});

test("the instruments receive every event, and audio with its rate", () => {
  const console = newConsole();
  console.talk();
  session().info = { input_rate: 16000, output_rate: 24000 };
  session().opened();
  session().noticed("uplink", { pcm: new Int16Array(320), at: 0, clockMs: 20 });
  session().noticed("downlink", { item: "i", pcm: new Int16Array(480), at: 0 });
  const kinds = happened.map((happening) => (happening.kind === "received" ? happening.message.type : happening.kind === "noticed" ? happening.name : happening.kind));
  assert.deepEqual(kinds, ["session.started", "opened", "state", "microphone", "uplink", "downlink"]);
  assert.ok(happened.every(({ at, wall }) => at > 0 && wall > 0));
});

/** The page closes, and another one opens in the same tab. */
async function reload(leftAt: number | null = Date.now()): Promise<Console> {
  globalThis.dispatchEvent(new Event("pagehide"));
  // As the client library does.
  const kept = { sessionId: "voice-a", conversationId: sessionStorage.getItem("voicegw.conversation"), leftAt, url: "", token: "rt_1", wishes: [], pages: 1, pressed: false, heard: [] };
  sessionStorage.setItem("voicegw.session.session", JSON.stringify(kept));
  answers[`v1/conversations/${kept.conversationId}`] = () => Response.json({ error: {} }, { status: 404 });
  const console = newConsole();
  await console.open();
  return console;
}

/** A page with a call and one spoken line. */
async function talking(change: (console: Console) => void = () => undefined): Promise<Console> {
  const console = newConsole();
  await console.open();
  change(console);
  console.talk();
  session().opened();
  session().receive({ type: "transcript", turn: 1, id: "i1", role: "assistant", text: "Once there was", final: true, started_at: new Date(NOW).toISOString() });
  return console;
}

test("a reloaded page continues its call and keeps its lines", async () => {
  await talking((console) => console.choose({ turns: "pushToTalk", provider: "openai", microphone: "m1" }));
  const { conversationId } = session().options;
  const other = newConsole();
  other.choose({ turns: "automatic", outputRate: 8000 });
  happened.length = 0;
  const console = await reload();
  const { microphone, turnDetection, outputRate, resume, provider, ...options } = session(1).options;
  assert.deepEqual([options.conversationId, resume, turnDetection, outputRate, provider], [conversationId, "only", "client", 24000, undefined], "the options of the call");
  assert.deepEqual(session(1).actions, []);
  assert.notEqual(microphone, false);
  assert.equal(activity(console.voice.value), "connecting");
  assert.equal(console.lines.value.length, 1);
  session(1).receive({ type: "session.started", session_id: "voice-a", provider: "p", model: "m", input_rate: 16000, output_rate: 24000, expires_at: null, resumed: true });
  session(1).noticed("state", "connected");
  assert.deepEqual(console.lines.value.map((line) => line.kind), ["utterance", "remark"]);
  assert.ok(happened.some((happening) => happening.kind === "opened"), "the waveform begins");
  assert.equal(sessionStorage.getItem("voicegw.call"), null, "it is used once");
});

for (const [state, actions, on] of [["muted", ["mute true"], true], ["off", [], false], ["lost", [], true]] as const) {
  test(`the user's choice for a microphone that is ${state} survives a reload`, async () => {
    await talking();
    session().noticed("microphone", { state, deviceId: undefined, label: "" });
    await reload();
    assert.deepEqual(session(1).actions, actions);
    assert.equal(session(1).options.microphone !== false, on);
  });
}

test("a loaded page starts no call: neither without a previous one, nor if it may be open in another tab", async () => {
  await reload(null);
  assert.equal(sessions.length, 0);
  await talking();
  await reload(null);
  assert.equal(sessions.length, 1);
  sessionStorage.clear();
  sessionStorage.setItem("voicegw.call", '{"microphone":"on","source":"voice-1","lines":[]}');
  await newConsole().open();
  assert.equal(sessions.length, 1);
});

test("a call that ended before the reload is reported", async () => {
  await talking();
  const console = await reload();
  session(1).noticed("state", "disconnected");
  session(1).noticed("disconnected", { reason: "lost", code: 4501, error: new VoiceError("resume_refused"), handback: undefined });
  assert.equal(activity(console.voice.value), "failed");
  assert.equal(console.voice.value.notice?.title, "The previous call could not be resumed.");
  assert.deepEqual(console.lines.value.map((line) => line.kind), ["utterance"], "the line is still shown");
  console.talk();
  assert.equal(session(2).options.resume, undefined);
});

test("a page restored from the browser's cache continues", async () => {
  await talking();
  await reload();
  const first = sessions.length;
  session(1).disconnect();
  globalThis.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: false }));
  assert.equal(sessions.length, first);
  globalThis.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));
  assert.ok(sessions.length > first);
});
