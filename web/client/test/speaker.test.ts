import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { listMicrophones, listSpeakers } from "../src/audio/devices.js";
import { Speaker } from "../src/audio/speaker.js";
import type { PlayNotice } from "../src/audio/worklets/messages.js";
import { browser, FakeContext, freshBrowser, settle } from "./browser.js";

beforeEach(() => {
  vi.useFakeTimers();
  freshBrowser();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A speaker being opened, and its events. */
function speaker(wanted?: string) {
  const context = new FakeContext();
  const reported: { type: string; event: unknown }[] = [];
  const tell = (type: string) => (event: unknown) => void reported.push({ type, event });
  const speaker = new Speaker(
    {
      sounding: tell("sounding"),
      played: tell("played"),
      silenced: tell("silenced"),
      underrun: tell("underrun"),
      dry: tell("dry"),
      level: tell("level"),
      changed: tell("changed"),
      failed: (error) => reported.push({ type: "failed", event: error.code }),
    },
    wanted,
  );
  const open = (loaded = Promise.resolve()) => speaker.open(context as unknown as AudioContext, 24000, 1, loaded);
  const all = (type: string): unknown[] => reported.filter((t) => t.type === type).map((t) => t.event);
  return { speaker, context, open, reported, all };
}

const element = () => browser.elements[0]!;

test("it plays through an element, for echo cancellation", async () => {
  const { speaker: s, context, open, all } = speaker();
  await open();
  assert.equal(s.state, "playing");
  const [node] = context.worklets;
  assert.deepEqual([...node!.to], [context.gain]);
  assert.deepEqual([...context.gain.to], [context.sink]);
  assert.equal(element().srcObject, context.sink.stream);
  assert.deepEqual(all("failed"), []);
  s.close();
  s.close();
  assert.equal(s.state, "closed");
  assert.deepEqual(node!.posted, [{ type: "close" }]);
  assert.equal(element().srcObject, null);
});

test("a stream for analysis exists only on request", async () => {
  const { speaker: s, context, open } = speaker();
  assert.deepEqual([s.stream, s.frequencyData().length], [null, 0]);
  await open();
  assert.equal(context.gain.to.size, 1);
  const data = s.frequencyData();
  assert.deepEqual([data.length, data[0], s.frequencyData() === data, context.analysers.length], [1024, 7, true, 1]);
  const stream = s.stream;
  assert.ok(stream !== null && stream !== element().srcObject, "it differs from the element's, which may be refused");
  assert.equal(s.stream, stream);
  assert.deepEqual([...context.gain.to], [context.sink, context.analysers[0], context.streams[1]]);
  s.close();
  assert.deepEqual([s.stream, s.frequencyData().length, context.gain.to.size], [null, 0, 0]);
});

test("the element starts within the user's gesture, before the worklet loads", async () => {
  const { context, open } = speaker();
  let loaded = (): void => undefined;
  const opening = open(new Promise((resolve) => (loaded = () => resolve())));
  assert.equal(element().paused, false);
  assert.equal(context.resumed, 1);
  loaded();
  await opening;
});

test("a worklet that does not load leaves nothing open", async () => {
  const { speaker: s, open } = speaker();
  await assert.rejects(open(Promise.reject(new Error("404"))), /404/);
  assert.equal(s.state, "closed");
  assert.equal(element().srcObject, null);
});

test("close during loading is final", async () => {
  const { speaker: s, context, open, all } = speaker();
  const opening = open();
  s.close();
  await opening;
  vi.advanceTimersByTime(5000);
  assert.deepEqual(context.worklets, []);
  assert.equal(s.state, "closed");
  assert.deepEqual(all("failed"), []);
  assert.equal(browser.listeners + context.listeners, 0);
});

test("a refused element is replaced by the context, with a warning, until it is allowed", async () => {
  const { speaker: s, context, open, all } = speaker();
  browser.refuseElement = true;
  await open();
  await settle();
  assert.equal(s.state, "playing");
  assert.deepEqual([...context.gain.to], [context.destination]);
  assert.deepEqual(all("failed"), ["echo_possible"]);
  assert.equal(await s.use("headset"), true);
  assert.equal(context.sinkId, "headset");
  s.resume();
  await settle();
  assert.deepEqual(all("failed"), ["echo_possible"], "one warning");
  const stream = s.stream;
  browser.refuseElement = false;
  s.resume();
  await settle();
  assert.deepEqual([...context.gain.to], [context.streams[1], context.sink], "the page's stream stays connected");
  assert.equal(s.stream, stream);
  assert.equal(element().sinkId, "headset", "the device is kept");
});

test("an element that starts after close has no effect", async () => {
  const { speaker: s, context, open } = speaker();
  browser.refuseElement = true;
  await open();
  await settle();
  browser.refuseElement = false;
  s.resume();
  s.close();
  await settle();
  assert.equal(context.gain.to.size, 0);
  assert.equal(s.state, "closed");
});

test("a browser that requires a gesture is reported, and any gesture starts playback", async () => {
  const { speaker: s, context, open, all } = speaker();
  Object.assign(context, { state: "suspended", allowed: false });
  browser.refuseElement = true;
  await open();
  await settle();
  assert.equal(s.state, "closed");
  assert.deepEqual(all("failed"), [], "it may take a moment");
  vi.advanceTimersByTime(1000);
  assert.equal(s.state, "suspended");
  assert.deepEqual(all("failed"), ["audio_suspended"]);
  assert.deepEqual([...context.gain.to], [context.sink], "the page may not play at all, so the element stays");

  context.allowed = true;
  browser.refuseElement = false;
  browser.page.dispatchEvent(new Event("pointerup"));
  await settle();
  assert.equal(s.state, "playing");
  const { resumed } = context;
  browser.page.dispatchEvent(new Event("pointerup"));
  assert.equal(context.resumed, resumed, "later gestures have no effect");
});

test("a short halt is not reported", async () => {
  const { speaker: s, context, open, all } = speaker();
  await open();
  context.become("interrupted");
  await settle();
  element().pause();
  await settle();
  vi.advanceTimersByTime(5000);
  assert.equal(context.state, "running");
  assert.equal(element().paused, false);
  assert.equal(s.state, "playing");
  assert.equal(all("changed").length, 1);
  assert.deepEqual(all("failed"), []);
});

test("after an interruption it continues when the page is visible again", async () => {
  const { speaker: s, context, open, all } = speaker();
  await open();
  context.allowed = false;
  element().paused = true;
  context.become("interrupted");
  vi.advanceTimersByTime(1000);
  assert.equal(s.state, "suspended");
  context.allowed = true;
  browser.page.visibilityState = "hidden";
  browser.page.dispatchEvent(new Event("visibilitychange"));
  await settle();
  assert.equal(s.state, "suspended");
  browser.page.visibilityState = "visible";
  browser.page.dispatchEvent(new Event("visibilitychange"));
  await settle();
  assert.equal(s.state, "playing");
  assert.deepEqual(all("failed"), ["audio_suspended"]);
});

test("if the context continues, the element starts again", async () => {
  const { speaker: s, context, open } = speaker();
  await open();
  browser.refuseElement = true;
  context.allowed = false;
  element().paused = true;
  context.become("interrupted");
  await settle();
  vi.advanceTimersByTime(1000);
  browser.refuseElement = false;
  context.become("running");
  await settle();
  assert.equal(element().paused, false);
  assert.equal(s.state, "playing");
  context.become("interrupted");
  vi.advanceTimersByTime(1000);
  s.close();
  assert.equal(browser.listeners + context.listeners, 0);
});

test("volume changes gradually and is kept while the speaker is closed", async () => {
  const { speaker: s, context, open } = speaker();
  s.volume = 0.5;
  await open();
  assert.equal(context.gain.gain.value, 0.5);
  s.volume = 7;
  assert.equal(s.volume, 1);
  assert.deepEqual(context.gain.gain.targets, [1]);
});

test("a device can be chosen, changed and reset to the default", async () => {
  const { speaker: s, open, all } = speaker("headset");
  await open();
  await settle();
  assert.equal(element().sinkId, "headset");
  assert.equal(await s.use(undefined), true);
  assert.equal(element().sinkId, "");
  await assert.rejects(s.use("nothing"), { code: "speaker_failed" });
  browser.plug(["built-in"], ["speakers", "headset", "nothing"]);
  await settle();
  assert.equal(element().sinkId, "", "a failed choice does not count");
  assert.deepEqual(all("changed").map((e) => (e as { deviceId?: string }).deviceId), [undefined, "headset", undefined]);
});

test("a removed device is replaced by the default one until it returns", async () => {
  const { open, all } = speaker("headset");
  await open();
  await settle();
  browser.plug(["built-in"], ["speakers"]);
  await settle();
  assert.equal(element().sinkId, "");
  browser.plug(["built-in"], ["speakers", "headset"]);
  await settle();
  assert.equal(element().sinkId, "headset");
  browser.plug(["built-in"], ["speakers", "headset", "another"]);
  await settle();
  assert.deepEqual(element().sinks, ["headset", "", "headset"]);
  assert.deepEqual(all("failed"), []);
});

test("a choice during the listing of devices counts", async () => {
  const { speaker: s, open } = speaker("headset");
  await open();
  await settle();
  browser.plug(["built-in"], ["speakers"]);
  await s.use("speakers");
  await settle();
  assert.equal(element().sinkId, "speakers");
});

test("a browser without device selection reports it", async () => {
  const { speaker: s, open } = speaker();
  vi.stubGlobal("HTMLMediaElement", class {});
  assert.equal(await s.use("headset"), false);
  await open();
  delete element().setSinkId;
  assert.equal(await s.use("headset"), false);
  assert.deepEqual(await listSpeakers(), []);
  assert.deepEqual((await listMicrophones()).map((device) => device.id), ["built-in", "headset"]);
});

test("a page without devices lists none", async () => {
  vi.stubGlobal("navigator", {});
  assert.deepEqual(await listMicrophones(), []);
  assert.deepEqual(await listSpeakers(), []);
});

test("worklet messages are reported with the page's clock", async () => {
  const { context, open, reported } = speaker();
  await open();
  reported.length = 0;
  context.currentTime = 2;
  const now = performance.now();
  const notices: PlayNotice[] = [
    { type: "sounding", item: "a", frame: 2 * 48000, firstByteAt: 7, cushionMs: 40 },
    { type: "report", item: "a", playedMs: 200, done: false },
    { type: "dry", item: "a" },
    { type: "underrun", item: "a", cushionMs: 90 },
    { type: "silenced", item: "a", ms: 12 },
    { type: "level", level: 0.25 },
    { type: "overflow", item: "a" },
  ];
  notices.forEach((notice) => context.worklets[0]!.tell(notice));
  assert.deepEqual(reported, [
    // Rendered now, and audible after 30 ms.
    { type: "sounding", event: { item: "a", at: now + 30, firstByteAt: 7, cushionMs: 40 } },
    { type: "played", event: { item: "a", playedMs: 200, done: false, at: now } },
    { type: "dry", event: "a" },
    { type: "underrun", event: { item: "a", cushionMs: 90 } },
    { type: "silenced", event: { item: "a", ms: 12, latencyMs: 30 } },
    { type: "level", event: 0.25 },
    { type: "failed", event: "too_long" },
  ]);
});

test("commands reach the worklet with the latency it cannot know", async () => {
  const { speaker: s, context, open } = speaker();
  await open();
  context.currentTime = 3;
  const at = performance.now();
  const pcm = new ArrayBuffer(4);
  s.start("a", 24000);
  s.audio("a", pcm);
  s.end("a");
  s.flush("a");
  s.flush(null);
  assert.deepEqual(context.worklets[0]!.posted, [
    { type: "latency", seconds: 0.03 },
    { type: "start", item: "a", rate: 24000 },
    { type: "audio", item: "a", pcm, at },
    { type: "end", item: "a" },
    { type: "flush", item: "a", at: 3 },
    { type: "flush", item: null, at: 3 },
  ]);
});

test("without output nothing was heard, and every item ends", () => {
  const { speaker: s, all } = speaker();
  s.start("a", 24000);
  s.audio("a", new ArrayBuffer(4));
  s.end("a");
  s.flush("b");
  s.flush(null);
  assert.deepEqual(all("played").map((e) => { const { item, playedMs, done } = e as { item: string; playedMs: number; done: boolean }; return [item, playedMs, done]; }), [["a", 0, true], ["b", 0, true]]);
});
