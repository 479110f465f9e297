import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { Microphone } from "../src/audio/microphone.js";
import type { VoiceError } from "../src/errors.js";
import type { LocalEvents } from "../src/events.js";
import type { MicrophoneOptions } from "../src/options.js";
import { browser, FakeContext, freshBrowser, settle, type FakeWorkletNode } from "./browser.js";

beforeEach(() => {
  vi.useFakeTimers();
  freshBrowser();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A ready microphone and its events. */
function ready(options: MicrophoneOptions = {}, pushToTalk = false) {
  const context = new FakeContext();
  const reported = {
    states: [] as string[],
    devices: [] as (string | undefined)[],
    failures: [] as string[],
    frames: [] as number[],
    levels: [] as number[],
    played: [] as number[],
    sent: [] as string[],
  };
  const microphone = new Microphone(options, {
    frame: ({ pcm }) => {
      reported.frames.push(new Int16Array(pcm)[0]!);
      reported.sent.push(`frame ${new Int16Array(pcm)[0]}`);
    },
    level: (level) => reported.levels.push(level),
    played: (level) => reported.played.push(level),
    changed: (event: LocalEvents["microphone"]) => {
      reported.states.push(event.state);
      reported.devices.push(event.deviceId);
    },
    failed: (error: VoiceError) => reported.failures.push(error.code),
    activity: (active) => reported.sent.push(active ? "begin" : "end"),
  });
  const prepare = vi.fn(async () => undefined);
  microphone.ready({ context: context as unknown as AudioContext, rate: 16000, pair: 1, prepare, pushToTalk });
  return { microphone, context, reported, prepare };
}

function frame(node: FakeWorkletNode, sample: number, level = 0.5): void {
  node.tell({ pcm: Int16Array.of(sample).buffer, level, at: Date.now(), clockMs: 0 });
}

const track = (i: number) => browser.streams.at(i)!.track;
const said = (states: string[]): string => states.join(" ");

test("it reports its mute state and, while on, its spectrum", async () => {
  const { microphone } = ready();
  assert.deepEqual([microphone.muted, microphone.frequencyData().length], [false, 0]);
  microphone.mute(true);
  assert.equal(microphone.muted, true, "before it is on, too");
  await microphone.start();
  assert.equal(microphone.state, "muted");
  assert.deepEqual([microphone.frequencyData().length, microphone.frequencyData()[0]], [1024, 7]);
  microphone.stop();
  assert.equal(microphone.frequencyData().length, 0);
});

test("start opens it and close releases it", async () => {
  const { microphone, context, reported } = ready();
  await microphone.start();
  assert.equal(said(reported.states), "asking live");
  assert.equal(reported.devices.at(-1), "built-in");
  assert.equal(browser.session.type, "play-and-record");
  assert.deepEqual([...context.worklets[0]!.to], [context.destination], "an unconnected node may not run");
  microphone.stop();
  assert.equal(said(reported.states), "asking live off");
  assert.equal(track(0).readyState, "ended");
  assert.deepEqual(context.worklets[0]!.posted, ["on", "off"]);
  assert.equal(context.sources[0]!.to.size, 0);
  assert.equal(browser.session.type, "auto");
});

test("a second start has no effect", async () => {
  const { microphone } = ready();
  await microphone.start();
  await microphone.start();
  assert.equal(browser.asked.length, 1);
});

for (const [name, arrange, code] of [
  ["blocked", () => (browser.denied = true), "microphone_denied"],
  ["missing", () => (browser.inputs = []), "microphone_missing"],
  ["on an insecure page", () => vi.stubGlobal("isSecureContext", false), "insecure_page"],
] as const) {
  test(`a microphone that is ${name} reports it and stays off`, async () => {
    const { microphone, reported } = ready();
    arrange();
    await assert.rejects(microphone.start(), { name: "VoiceError", code });
    assert.equal(microphone.state, "off");
    assert.deepEqual(reported.failures, []);
  });
}

const notAllowed = (message: string): DOMException => new DOMException(message, "NotAllowedError");
for (const [name, refusal, excluded, framed, code] of [
  ["by the user or the site settings", notAllowed("Permission denied"), false, false, "microphone_denied"],
  ["by the user, of a page in a frame", notAllowed("Permission denied"), false, true, "microphone_denied"],
  ["because the question was closed", notAllowed("Permission dismissed"), false, false, "microphone_dismissed"],
  ["by the operating system", notAllowed("Permission denied by system"), false, false, "microphone_system"],
  ["by the page's own Permissions-Policy", notAllowed("Permission denied"), true, false, "microphone_policy"],
  ["by a frame without allow", notAllowed("Permission denied"), true, true, "microphone_frame"],
  ["by a sandbox without an origin", new DOMException("Invalid security origin", "SecurityError"), false, true, "microphone_frame"],
] as const) {
  test(`a microphone that is refused ${name} is ${code}`, async () => {
    const { microphone } = ready();
    browser.refusal = refusal;
    vi.stubGlobal("document", Object.assign(document, { featurePolicy: { allowsFeature: () => !excluded } }));
    vi.stubGlobal("window", Object.assign(window, { parent: framed ? {} : window }));
    await assert.rejects(microphone.start(), { code });
  });
}

test("one without permission during the call is revoked, not disconnected", async () => {
  const { microphone, reported } = ready();
  browser.permission.state = "granted";
  await microphone.start();
  await settle();
  browser.permission.state = "denied";
  browser.denied = true;
  track(0).end();
  await settle();
  assert.deepEqual([microphone.state, reported.failures], ["lost", ["microphone_revoked"]]);
});

test("if the browser never reported the permission, an ended one was disconnected", async () => {
  const { microphone, reported } = ready();
  browser.permission.state = "prompt";
  await microphone.start();
  await settle();
  browser.inputs = [];
  track(0).end();
  await settle();
  assert.deepEqual(reported.failures, ["microphone_lost"]);
});

test("one that opens after stop is released", async () => {
  const { microphone, context } = ready();
  browser.hold();
  const starting = microphone.start();
  microphone.stop();
  browser.release?.();
  await starting;
  assert.equal(microphone.state, "off");
  assert.equal(track(0).readyState, "ended");
  assert.deepEqual(context.worklets, []);
});

test("an older refusal does not stop a newer start", async () => {
  const { microphone } = ready();
  browser.hold();
  browser.refusals = 1;
  const first = microphone.start();
  microphone.stop();
  const second = microphone.start();
  browser.release?.();
  await assert.rejects(first, { code: "microphone_denied" });
  await second;
  assert.equal(microphone.state, "live");
});

test("another device replaces the old one without a gap", async () => {
  const { microphone, context, reported } = ready();
  await microphone.start();
  await microphone.use("headset");
  assert.equal(said(reported.states), "asking live live");
  assert.deepEqual(browser.asked, [undefined, "headset"]);
  assert.equal(track(0).readyState, "ended");
  assert.deepEqual(context.worklets[0]!.posted, ["on", "on"], "one worklet, never off");
  assert.equal(context.sources[0]!.to.size, 0);
  assert.deepEqual([...context.sources[1]!.to], context.worklets);
  microphone.stop();
  assert.equal(browser.session.type, "auto");
});

test("if another device does not open, the old one stays on", async () => {
  const { microphone, reported } = ready();
  await microphone.start();
  await assert.rejects(microphone.use("nothing"), { code: "microphone_missing" });
  assert.equal(microphone.state, "live");
  assert.equal(track(0).readyState, "live");
  microphone.stop();
  await microphone.start();
  assert.equal(browser.asked.at(-1), undefined, "it is not requested again");
  assert.deepEqual(reported.failures, []);
});

test("if only one can be open, the old one is closed first", async () => {
  const { microphone, context, reported } = ready();
  browser.exclusive = true;
  await microphone.start();
  await microphone.use("headset");
  assert.deepEqual(browser.asked, [undefined, "headset", "headset"]);
  assert.equal(said(reported.states), "asking live live");
  assert.ok(!context.worklets[0]!.posted.includes("off"), "silence continues");
});

test("if only one can be open and the new one fails, the old one is opened again", async () => {
  const { microphone, reported } = ready();
  browser.exclusive = true;
  browser.busy = "headset";
  await microphone.start();
  await assert.rejects(microphone.use("headset"), { code: "microphone_busy" });
  assert.deepEqual(browser.asked, [undefined, "headset", "headset", undefined]);
  assert.equal(microphone.state, "live");
  assert.equal(track(-1).readyState, "live");
  assert.deepEqual(reported.failures, []);
});

test("if neither the new one nor the old one opens, it is lost", async () => {
  const { microphone, reported } = ready();
  browser.exclusive = true;
  await microphone.start();
  browser.busy = "headset";
  browser.inputs = ["headset"];
  await assert.rejects(microphone.use("headset"), { code: "microphone_busy" });
  assert.equal(microphone.state, "lost");
  assert.deepEqual(reported.failures, ["microphone_lost"]);
});

test("a browser that ends the old one when the new one opens causes no loss", async () => {
  const { microphone, reported } = ready();
  browser.replacing = true;
  await microphone.start();
  await microphone.use("headset");
  assert.equal(said(reported.states), "asking live live");
  assert.deepEqual(browser.asked, [undefined, "headset"]);
});

test("one that is unplugged while another does not open is lost", async () => {
  const { microphone, reported } = ready();
  await microphone.start();
  browser.hold();
  const changing = microphone.use("headset");
  browser.plug([]);
  browser.release?.();
  await assert.rejects(changing, { code: "microphone_missing" });
  assert.equal(said(reported.states), "asking live lost");
  assert.deepEqual(reported.failures, ["microphone_lost"]);
});

test("a choice while it is off counts at the next start", async () => {
  const { microphone } = ready();
  await microphone.use("headset");
  assert.deepEqual(browser.asked, []);
  await microphone.start();
  assert.deepEqual(browser.asked, ["headset"]);
});

test("a choice that fails during the start leaves it off", async () => {
  const { microphone, reported } = ready();
  browser.hold();
  const starting = microphone.start();
  const choosing = microphone.use("nothing");
  browser.release?.();
  await starting;
  await assert.rejects(choosing, { code: "microphone_missing" });
  assert.equal(said(reported.states), "asking off");
});

test("a failed choice does not affect the next one", async () => {
  const { microphone, reported } = ready();
  browser.hold();
  const starting = microphone.start();
  const choosing = microphone.use("nothing");
  const better = microphone.use("headset");
  browser.release?.();
  await assert.rejects(choosing, { code: "microphone_missing" });
  await Promise.all([starting, better]);
  assert.equal(said(reported.states), "asking live");
  assert.equal(reported.devices.at(-1), "headset");
});

test("a failed choice does not end the search for a lost microphone", async () => {
  const { microphone, reported } = ready();
  await microphone.start();
  browser.hold();
  browser.plug(["headset"]);
  const choosing = microphone.use("nothing");
  browser.release?.();
  await assert.rejects(choosing, { code: "microphone_missing" });
  await settle();
  assert.equal(said(reported.states), "asking live lost live");

  browser.hold();
  track(-1).end();
  const again = microphone.use("nothing");
  browser.release?.();
  await assert.rejects(again, { code: "microphone_missing" });
  await settle();
  assert.equal(microphone.state, "live");
});

test("the user's choice overrides the search for a lost microphone", async () => {
  const { microphone, reported } = ready({ deviceId: "headset" });
  await microphone.start();
  browser.hold();
  browser.plug(["built-in", "another"]);
  const choosing = microphone.use("another");
  browser.release?.();
  await choosing;
  await settle();
  assert.equal(reported.devices.at(-1), "another");
  assert.deepEqual(browser.asked, ["headset", "headset", "another"]);
});

test("the last of two quick choices wins", async () => {
  const { microphone, reported } = ready();
  await microphone.start();
  await Promise.all([microphone.use("headset"), microphone.use("built-in")]);
  assert.equal(reported.devices.at(-1), "built-in");
  assert.equal(browser.streams.filter((stream) => stream.track.readyState === "live").length, 1);
});

test("an unplugged one is replaced by the default one", async () => {
  const { microphone, context, reported } = ready({ deviceId: "headset" });
  await microphone.start();
  browser.plug(["built-in"]);
  await settle();
  assert.equal(said(reported.states), "asking live lost live");
  assert.equal(reported.devices.at(-1), "built-in");
  assert.deepEqual(reported.failures, ["microphone_lost"]);
  assert.deepEqual(context.worklets[0]!.posted, ["on", "on"], "silence continues");
});

test("without another one it is lost until it returns", async () => {
  const { microphone, reported } = ready();
  await microphone.start();
  browser.plug([]);
  await settle();
  assert.equal(microphone.state, "lost");
  assert.equal(browser.asked.length, 3, "at the start, when it was lost, and when devices changed");
  browser.plug(["headset"]);
  await settle();
  assert.equal(said(reported.states), "asking live lost live");
  assert.equal(reported.devices.at(-1), "headset");
});

test("a change of devices during a request causes another request", async () => {
  const { microphone } = ready();
  await microphone.start();
  browser.hold();
  browser.plug([]);
  browser.plug(["headset"]);
  browser.release?.();
  await settle();
  assert.equal(microphone.state, "live");
});

test("after stop, a change of devices does not start it", async () => {
  const { microphone } = ready();
  await microphone.start();
  microphone.stop();
  browser.plug(["built-in", "another"]);
  await settle();
  assert.equal(microphone.state, "off");
  assert.equal(browser.asked.length, 1);

  await microphone.start();
  browser.plug([]);
  await settle();
  microphone.stop();
  browser.plug(["built-in"]);
  await settle();
  assert.equal(microphone.state, "off");
});

test("one without permission starts again when permission returns", async () => {
  const { microphone } = ready();
  await microphone.start();
  browser.denied = true;
  track(0).end();
  await settle();
  assert.equal(microphone.state, "lost");
  browser.permission.state = "denied";
  browser.permission.dispatchEvent(new Event("change"));
  browser.denied = false;
  await settle();
  assert.equal(microphone.state, "lost");
  browser.permission.state = "granted";
  browser.permission.dispatchEvent(new Event("change"));
  await settle();
  assert.equal(microphone.state, "live");
});

test("it stays muted on another device and after a loss", async () => {
  const { microphone, reported } = ready();
  await microphone.start();
  microphone.mute(true);
  assert.equal(track(0).enabled, false);
  await microphone.use("headset");
  assert.equal(track(1).enabled, false);
  browser.plug(["built-in"]);
  await settle();
  assert.equal(track(2).enabled, false);
  assert.equal(said(reported.states), "asking live muted muted lost muted");
  microphone.mute(false);
  assert.equal(track(2).enabled, true);
  assert.equal(microphone.state, "live");
});

test("a device that sends silence is reported, mute by the user is not", async () => {
  const { microphone, reported } = ready();
  await microphone.start();
  track(0).muted = true;
  track(0).onmute?.();
  track(0).muted = false;
  vi.advanceTimersByTime(1000);
  assert.deepEqual(reported.failures, [], "it was short");
  track(0).muted = true;
  track(0).onmute?.();
  vi.advanceTimersByTime(1000);
  assert.deepEqual(reported.failures, ["microphone_silenced"]);
  track(0).onmute?.();
  await microphone.use("headset");
  vi.advanceTimersByTime(1000);
  assert.equal(reported.failures.length, 1, "another one is in use");
  microphone.mute(true);
  track(1).muted = true;
  track(1).onmute?.();
  vi.advanceTimersByTime(1000);
  assert.equal(reported.failures.length, 1);
});

test("its state shows that it sends silence", async () => {
  const { microphone, reported } = ready();
  await microphone.start();
  track(0).muted = true;
  track(0).onmute?.();
  vi.advanceTimersByTime(1000);
  assert.equal(microphone.state, "silenced");
  microphone.mute(true);
  microphone.mute(false);
  assert.equal(microphone.state, "silenced", "unmuted by the user, it is still silent");
  track(0).muted = false;
  track(0).onunmute?.();
  assert.equal(microphone.state, "live");
  assert.equal(said(reported.states), "asking live silenced muted silenced live");
});

test("a device that is silent from the start is reported", async () => {
  const { microphone, reported } = ready();
  browser.silent = true;
  await microphone.start();
  vi.advanceTimersByTime(1000);
  assert.deepEqual(reported.failures, ["microphone_silenced"]);
});

test("a device of another rate gets a context of its own", async () => {
  const { microphone, context, prepare } = ready();
  context.strict = true;
  await microphone.start();
  const [own] = browser.contexts;
  assert.equal(own?.sampleRate, 16000);
  assert.deepEqual(prepare.mock.calls, [[own]]);
  assert.deepEqual([...own.sources[0]!.to], own.worklets);
  assert.deepEqual(context.worklets, []);
  microphone.close();
  assert.equal(own.state, "closed");
  assert.equal(context.state, "running", "the session's is not its own");
});

test("a later device of another rate gets a context of its own", async () => {
  const { microphone, context } = ready();
  await microphone.start();
  context.strict = true;
  await microphone.use("headset");
  assert.equal(context.sources[0]!.to.size, 0);
  assert.deepEqual(context.worklets[0]!.posted, ["on", "close"]);
  assert.deepEqual([...browser.contexts[0]!.sources[0]!.to], browser.contexts[0]!.worklets);
  assert.equal(microphone.state, "live");
});

test("with its own context it can change devices and stop", async () => {
  const { microphone, context, prepare } = ready();
  context.strict = true;
  await microphone.start();
  await microphone.use("headset");
  assert.equal(browser.contexts.length, 1, "the new device fits the old one's");
  microphone.stop();

  const other = ready();
  other.context.strict = true;
  let prepared = (): void => undefined;
  other.prepare.mockReturnValue(new Promise<undefined>((resolve) => (prepared = () => resolve(undefined))));
  const starting = other.microphone.start();
  await settle();
  other.microphone.stop();
  prepared();
  await starting;
  assert.equal(other.microphone.state, "off");
  assert.equal(track(-1).readyState, "ended");
  assert.equal(browser.contexts.at(-1)!.state, "closed");
  assert.equal(prepare.mock.calls.length, 1);
});

test("its own context is closed if its preparation fails", async () => {
  const { microphone, context, prepare } = ready();
  context.strict = true;
  prepare.mockRejectedValue(new Error("404"));
  await assert.rejects(microphone.start(), { code: "microphone_failed" });
  assert.equal(browser.contexts[0]!.state, "closed");
  assert.equal(track(0).readyState, "ended");
});

test("the loudspeaker's level in a frame is reported in each state of the microphone", async () => {
  const { microphone, context, reported } = ready();
  await microphone.start();
  context.worklets[0]!.tell({ pcm: Int16Array.of(1).buffer, level: 0, at: Date.now(), clockMs: 0, played: 0.25 });
  frame(context.worklets[0]!, 1);
  assert.deepEqual([reported.played, reported.frames.length], [[0.25], 2]);
});

test("every second frame reports the louder of two levels", async () => {
  const { microphone, context, reported } = ready();
  await microphone.start();
  for (const level of [0.1, 0.4, 0.3, 0.2]) {
    frame(context.worklets[0]!, 1, level);
  }
  assert.deepEqual(reported.levels, [0.4, 0.3]);
  assert.equal(reported.frames.length, 4);
});

test("push-to-talk sends silence until it is pressed and from 200 ms after its release", async () => {
  const { microphone, context, reported } = ready({}, true);
  await microphone.start();
  const [node] = context.worklets;
  frame(node!, 1);
  microphone.press(true);
  microphone.press(true);
  frame(node!, 2);
  microphone.press(false);
  frame(node!, 3);
  microphone.press(false);
  for (let i = 4; i < 15; i++) {
    frame(node!, i);
  }
  const tail = Array.from({ length: 10 }, (_, i) => `frame ${i + 3}`);
  assert.deepEqual(reported.sent, ["frame 0", "begin", "frame 2", ...tail, "end", "frame 0", "frame 0"]);
  assert.deepEqual([reported.levels[0], reported.levels.at(-1)], [0.5, 0], "unsent audio has no level");
});

test("a press within the tail continues", async () => {
  const { microphone, context, reported } = ready({}, true);
  await microphone.start();
  microphone.press(true);
  microphone.press(false);
  frame(context.worklets[0]!, 1);
  microphone.press(true);
  for (let i = 0; i < 20; i++) {
    frame(context.worklets[0]!, 2);
  }
  vi.advanceTimersByTime(1000);
  assert.ok(!reported.sent.includes("end"));
});

test("without frames, the end of push-to-talk is reported too", async () => {
  const { microphone, reported } = ready({}, true);
  await microphone.start();
  microphone.press(true);
  microphone.press(false);
  vi.advanceTimersByTime(400);
  assert.deepEqual(reported.sent, ["begin", "end"]);
  microphone.press(true);
  microphone.stop();
  assert.deepEqual(reported.sent, ["begin", "end", "begin", "end"]);
  microphone.press(true);
  assert.equal(reported.sent.length, 4, "it is off");
});

test("press without push-to-talk is an error", async () => {
  const { microphone } = ready();
  await microphone.start();
  assert.throws(() => microphone.press(true), /turnDetection "client"/);
});

test("closed before the browser reports the permission, it has no listeners", async () => {
  const { microphone, reported } = ready();
  microphone.close();
  await settle();
  assert.equal(browser.listeners, 0);
  assert.deepEqual(reported.states, [], "it was off before");
});

test("close leaves no device and no listener", async () => {
  const { microphone, context } = ready();
  await microphone.start();
  microphone.close();
  microphone.close();
  assert.equal(context.sources[0]!.to.size, 0);
  assert.equal(context.worklets[0]!.to.size, 0);
  browser.plug([]);
  browser.plug(["built-in"]);
  await settle();
  assert.equal(browser.asked.length, 1);
  assert.equal(track(0).readyState, "ended");
  assert.deepEqual(context.worklets[0]!.posted.at(-1), "close");
  assert.equal(context.state, "running", "the session's is not its own");
  assert.equal(browser.listeners, 0);
  await assert.rejects(microphone.start(), { code: "audio_unavailable" });
});
