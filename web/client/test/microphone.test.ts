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
  const told = {
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
      told.frames.push(new Int16Array(pcm)[0]!);
      told.sent.push(`frame ${new Int16Array(pcm)[0]}`);
    },
    level: (level) => told.levels.push(level),
    played: (level) => told.played.push(level),
    changed: (event: LocalEvents["microphone"]) => {
      told.states.push(event.state);
      told.devices.push(event.deviceId);
    },
    failed: (error: VoiceError) => told.failures.push(error.code),
    activity: (active) => told.sent.push(active ? "begin" : "end"),
  });
  const prepare = vi.fn(async () => undefined);
  microphone.ready({ context: context as unknown as AudioContext, rate: 16000, pair: 1, prepare, pushToTalk });
  return { microphone, context, told, prepare };
}

function frame(node: FakeWorkletNode, sample: number, level = 0.5): void {
  node.tell({ pcm: Int16Array.of(sample).buffer, level, at: Date.now(), clockMs: 0 });
}

const track = (i: number) => browser.streams.at(i)!.track;
const said = (states: string[]): string => states.join(" ");

test("it tells whether it is muted, and what is said by frequency while it is on", async () => {
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

test("it is turned on, and given back", async () => {
  const { microphone, context, told } = ready();
  await microphone.start();
  assert.equal(said(told.states), "asking live");
  assert.equal(told.devices.at(-1), "built-in");
  assert.equal(browser.session.type, "play-and-record");
  assert.deepEqual([...context.worklets[0]!.to], [context.destination], "a node that leads nowhere may not run");
  microphone.stop();
  assert.equal(said(told.states), "asking live off");
  assert.equal(track(0).readyState, "ended");
  assert.deepEqual(context.worklets[0]!.posted, ["on", "off"]);
  assert.equal(context.sources[0]!.to.size, 0);
  assert.equal(browser.session.type, "auto");
});

test("a second start asks for nothing", async () => {
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
  test(`one that is ${name} says so and stays off`, async () => {
    const { microphone, told } = ready();
    arrange();
    await assert.rejects(microphone.start(), { name: "VoiceError", code });
    assert.equal(microphone.state, "off");
    assert.deepEqual(told.failures, []);
  });
}

const notAllowed = (message: string): DOMException => new DOMException(message, "NotAllowedError");
for (const [name, refusal, excluded, framed, code] of [
  ["by the user or the site settings", notAllowed("Permission denied"), false, false, "microphone_denied"],
  ["by the user, of a page in a frame", notAllowed("Permission denied"), false, true, "microphone_denied"],
  ["by nobody: the question was closed", notAllowed("Permission dismissed"), false, false, "microphone_dismissed"],
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

test("one whose permission is withdrawn during the call is revoked, not disconnected", async () => {
  const { microphone, told } = ready();
  browser.permission.state = "granted";
  await microphone.start();
  await settle();
  browser.permission.state = "denied";
  browser.denied = true;
  track(0).end();
  await settle();
  assert.deepEqual([microphone.state, told.failures], ["lost", ["microphone_revoked"]]);
});

test("where the browser never said that it was allowed, one that ends was disconnected", async () => {
  const { microphone, told } = ready();
  browser.permission.state = "prompt";
  await microphone.start();
  await settle();
  browser.inputs = [];
  track(0).end();
  await settle();
  assert.deepEqual(told.failures, ["microphone_lost"]);
});

test("what comes after it was turned off again is given back", async () => {
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

test("an older refusal does not turn off what was asked for since", async () => {
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

test("another device takes over without an end between, and the old one is given back", async () => {
  const { microphone, context, told } = ready();
  await microphone.start();
  await microphone.use("headset");
  assert.equal(said(told.states), "asking live live");
  assert.deepEqual(browser.asked, [undefined, "headset"]);
  assert.equal(track(0).readyState, "ended");
  assert.deepEqual(context.worklets[0]!.posted, ["on", "on"], "one worklet, never off");
  assert.equal(context.sources[0]!.to.size, 0);
  assert.deepEqual([...context.sources[1]!.to], context.worklets);
  microphone.stop();
  assert.equal(browser.session.type, "auto");
});

test("a device that does not come leaves the old one on", async () => {
  const { microphone, told } = ready();
  await microphone.start();
  await assert.rejects(microphone.use("nothing"), { code: "microphone_missing" });
  assert.equal(microphone.state, "live");
  assert.equal(track(0).readyState, "live");
  microphone.stop();
  await microphone.start();
  assert.equal(browser.asked.at(-1), undefined, "it is not asked for again");
  assert.deepEqual(told.failures, []);
});

test("where only one can be open, the old one is given back first", async () => {
  const { microphone, context, told } = ready();
  browser.exclusive = true;
  await microphone.start();
  await microphone.use("headset");
  assert.deepEqual(browser.asked, [undefined, "headset", "headset"]);
  assert.equal(said(told.states), "asking live live");
  assert.ok(!context.worklets[0]!.posted.includes("off"), "silence goes on meanwhile");
});

test("where only one can be open and the new one fails, the old one comes back", async () => {
  const { microphone, told } = ready();
  browser.exclusive = true;
  browser.busy = "headset";
  await microphone.start();
  await assert.rejects(microphone.use("headset"), { code: "microphone_busy" });
  assert.deepEqual(browser.asked, [undefined, "headset", "headset", undefined]);
  assert.equal(microphone.state, "live");
  assert.equal(track(-1).readyState, "live");
  assert.deepEqual(told.failures, []);
});

test("where neither the new one nor the old one comes, it is lost", async () => {
  const { microphone, told } = ready();
  browser.exclusive = true;
  await microphone.start();
  browser.busy = "headset";
  browser.inputs = ["headset"];
  await assert.rejects(microphone.use("headset"), { code: "microphone_busy" });
  assert.equal(microphone.state, "lost");
  assert.deepEqual(told.failures, ["microphone_lost"]);
});

test("a browser that ends the old one when the new one opens has lost nothing", async () => {
  const { microphone, told } = ready();
  browser.replacing = true;
  await microphone.start();
  await microphone.use("headset");
  assert.equal(said(told.states), "asking live live");
  assert.deepEqual(browser.asked, [undefined, "headset"]);
});

test("one that is pulled out while another does not come is lost", async () => {
  const { microphone, told } = ready();
  await microphone.start();
  browser.hold();
  const changing = microphone.use("headset");
  browser.plug([]);
  browser.release?.();
  await assert.rejects(changing, { code: "microphone_missing" });
  assert.equal(said(told.states), "asking live lost");
  assert.deepEqual(told.failures, ["microphone_lost"]);
});

test("a choice made while it is off counts at the next start", async () => {
  const { microphone } = ready();
  await microphone.use("headset");
  assert.deepEqual(browser.asked, []);
  await microphone.start();
  assert.deepEqual(browser.asked, ["headset"]);
});

test("a choice that does not come while it is turned on leaves it off", async () => {
  const { microphone, told } = ready();
  browser.hold();
  const starting = microphone.start();
  const choosing = microphone.use("nothing");
  browser.release?.();
  await starting;
  await assert.rejects(choosing, { code: "microphone_missing" });
  assert.equal(said(told.states), "asking off");
});

test("a choice that does not come does not turn off the next one", async () => {
  const { microphone, told } = ready();
  browser.hold();
  const starting = microphone.start();
  const choosing = microphone.use("nothing");
  const better = microphone.use("headset");
  browser.release?.();
  await assert.rejects(choosing, { code: "microphone_missing" });
  await Promise.all([starting, better]);
  assert.equal(said(told.states), "asking live");
  assert.equal(told.devices.at(-1), "headset");
});

test("a choice that does not come while a lost one is looked for does not end the search", async () => {
  const { microphone, told } = ready();
  await microphone.start();
  browser.hold();
  browser.plug(["headset"]);
  const choosing = microphone.use("nothing");
  browser.release?.();
  await assert.rejects(choosing, { code: "microphone_missing" });
  await settle();
  assert.equal(said(told.states), "asking live lost live");

  browser.hold();
  track(-1).end();
  const again = microphone.use("nothing");
  browser.release?.();
  await assert.rejects(again, { code: "microphone_missing" });
  await settle();
  assert.equal(microphone.state, "live");
});

test("the search for a lost one does not come before the user's choice", async () => {
  const { microphone, told } = ready({ deviceId: "headset" });
  await microphone.start();
  browser.hold();
  browser.plug(["built-in", "another"]);
  const choosing = microphone.use("another");
  browser.release?.();
  await choosing;
  await settle();
  assert.equal(told.devices.at(-1), "another");
  assert.deepEqual(browser.asked, ["headset", "headset", "another"]);
});

test("the last of two quick choices wins", async () => {
  const { microphone, told } = ready();
  await microphone.start();
  await Promise.all([microphone.use("headset"), microphone.use("built-in")]);
  assert.equal(told.devices.at(-1), "built-in");
  assert.equal(browser.streams.filter((stream) => stream.track.readyState === "live").length, 1);
});

test("one that is pulled out is replaced by the default one", async () => {
  const { microphone, context, told } = ready({ deviceId: "headset" });
  await microphone.start();
  browser.plug(["built-in"]);
  await settle();
  assert.equal(said(told.states), "asking live lost live");
  assert.equal(told.devices.at(-1), "built-in");
  assert.deepEqual(told.failures, ["microphone_lost"]);
  assert.deepEqual(context.worklets[0]!.posted, ["on", "on"], "silence goes on meanwhile");
});

test("with no other it is lost, and taken up again when it is back", async () => {
  const { microphone, told } = ready();
  await microphone.start();
  browser.plug([]);
  await settle();
  assert.equal(microphone.state, "lost");
  assert.equal(browser.asked.length, 3, "at the start, when it was lost, and when devices changed");
  browser.plug(["headset"]);
  await settle();
  assert.equal(said(told.states), "asking live lost live");
  assert.equal(told.devices.at(-1), "headset");
});

test("devices that change while a lost one is asked for are asked again", async () => {
  const { microphone } = ready();
  await microphone.start();
  browser.hold();
  browser.plug([]);
  browser.plug(["headset"]);
  browser.release?.();
  await settle();
  assert.equal(microphone.state, "live");
});

test("one that was turned off is not taken up when devices change", async () => {
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

test("one that was taken away is taken up when it is allowed again", async () => {
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

test("muted stays muted on another device, and after a loss", async () => {
  const { microphone, told } = ready();
  await microphone.start();
  microphone.mute(true);
  assert.equal(track(0).enabled, false);
  await microphone.use("headset");
  assert.equal(track(1).enabled, false);
  browser.plug(["built-in"]);
  await settle();
  assert.equal(track(2).enabled, false);
  assert.equal(said(told.states), "asking live muted muted lost muted");
  microphone.mute(false);
  assert.equal(track(2).enabled, true);
  assert.equal(microphone.state, "live");
});

test("a device that gives silence by itself is said to, one that the user has muted is not", async () => {
  const { microphone, told } = ready();
  await microphone.start();
  track(0).muted = true;
  track(0).onmute?.();
  track(0).muted = false;
  vi.advanceTimersByTime(1000);
  assert.deepEqual(told.failures, [], "it was for a moment");
  track(0).muted = true;
  track(0).onmute?.();
  vi.advanceTimersByTime(1000);
  assert.deepEqual(told.failures, ["microphone_silenced"]);
  track(0).onmute?.();
  await microphone.use("headset");
  vi.advanceTimersByTime(1000);
  assert.equal(told.failures.length, 1, "another one is used by now");
  microphone.mute(true);
  track(1).muted = true;
  track(1).onmute?.();
  vi.advanceTimersByTime(1000);
  assert.equal(told.failures.length, 1);
});

test("while it gives silence by itself its state says so", async () => {
  const { microphone, told } = ready();
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
  assert.equal(said(told.states), "asking live silenced muted silenced live");
});

test("one that gives silence from the first moment on is said to", async () => {
  const { microphone, told } = ready();
  browser.silent = true;
  await microphone.start();
  vi.advanceTimersByTime(1000);
  assert.deepEqual(told.failures, ["microphone_silenced"]);
});

test("a context of another rate than the device's gets one of its own beside it", async () => {
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

test("a device of another rate gets one too when it comes later", async () => {
  const { microphone, context } = ready();
  await microphone.start();
  context.strict = true;
  await microphone.use("headset");
  assert.equal(context.sources[0]!.to.size, 0);
  assert.deepEqual(context.worklets[0]!.posted, ["on", "close"]);
  assert.deepEqual([...browser.contexts[0]!.sources[0]!.to], browser.contexts[0]!.worklets);
  assert.equal(microphone.state, "live");
});

test("with a context of its own it goes on to other devices, and off while that is made", async () => {
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

test("a context of its own that cannot be prepared is closed", async () => {
  const { microphone, context, prepare } = ready();
  context.strict = true;
  prepare.mockRejectedValue(new Error("404"));
  await assert.rejects(microphone.start(), { code: "microphone_failed" });
  assert.equal(browser.contexts[0]!.state, "closed");
  assert.equal(track(0).readyState, "ended");
});

test("the loudspeaker's level that came along with a frame is told, whatever the microphone's is", async () => {
  const { microphone, context, told } = ready();
  await microphone.start();
  context.worklets[0]!.tell({ pcm: Int16Array.of(1).buffer, level: 0, at: Date.now(), clockMs: 0, played: 0.25 });
  frame(context.worklets[0]!, 1);
  assert.deepEqual([told.played, told.frames.length], [[0.25], 2]);
});

test("levels come for every second frame: the louder of the two", async () => {
  const { microphone, context, told } = ready();
  await microphone.start();
  for (const level of [0.1, 0.4, 0.3, 0.2]) {
    frame(context.worklets[0]!, 1, level);
  }
  assert.deepEqual(told.levels, [0.4, 0.3]);
  assert.equal(told.frames.length, 4);
});

test("push-to-talk sends silence until it is pressed, and 200 ms after it was let go", async () => {
  const { microphone, context, told } = ready({}, true);
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
  assert.deepEqual(told.sent, ["frame 0", "begin", "frame 2", ...tail, "end", "frame 0", "frame 0"]);
  assert.deepEqual([told.levels[0], told.levels.at(-1)], [0.5, 0], "what is not sent has no level");
});

test("pressed again within the tail it goes on", async () => {
  const { microphone, context, told } = ready({}, true);
  await microphone.start();
  microphone.press(true);
  microphone.press(false);
  frame(context.worklets[0]!, 1);
  microphone.press(true);
  for (let i = 0; i < 20; i++) {
    frame(context.worklets[0]!, 2);
  }
  vi.advanceTimersByTime(1000);
  assert.ok(!told.sent.includes("end"));
});

test("where no frames come, the end of push-to-talk is told all the same", async () => {
  const { microphone, told } = ready({}, true);
  await microphone.start();
  microphone.press(true);
  microphone.press(false);
  vi.advanceTimersByTime(400);
  assert.deepEqual(told.sent, ["begin", "end"]);
  microphone.press(true);
  microphone.stop();
  assert.deepEqual(told.sent, ["begin", "end", "begin", "end"]);
  microphone.press(true);
  assert.equal(told.sent.length, 4, "off, there is nothing to press for");
});

test("press without push-to-talk is a mistake that is told", async () => {
  const { microphone } = ready();
  await microphone.start();
  assert.throws(() => microphone.press(true), /turnDetection "client"/);
});

test("closed before the browser has told of the permission, it watches nothing", async () => {
  const { microphone, told } = ready();
  microphone.close();
  await settle();
  assert.equal(browser.listeners, 0);
  assert.deepEqual(told.states, [], "it was off before");
});

test("after close nothing is open and nothing is watched", async () => {
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
