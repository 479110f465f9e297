// Survival with the real gateway and the simulator, on both wires: the gateway's replay.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import type { ServerMessage } from "@voicegw/client";
import { openChromium } from "../harness/chromium.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { utterances } from "../harness/scenarios.ts";
import { likeness, pcm16, voiced } from "../harness/signals.ts";
import { starvedBy, unlessStarved } from "../harness/starved.ts";
import { TalkPage } from "../harness/talkpage.ts";

/** The time of the utterance, in seconds of the recording: whole syllables. */
const SAID = [1.65, 4.1] as const;
/** The longest time from the report of speech to a kill in its middle; the report is late itself. */
const KILL_MS = 800;
const RATE = 24_000;
const REPEATS = { reconnect: { tries: 100, firstMs: 100, longestMs: 200 } };
const RAMP = 0.01 * RATE;

/** The model reports the length of the user's speech, then speaks at length; it repeats typed text. */
const SCENARIO = `
name: how long
rules:
  - when: {utterance: 1}
    heard: How long do I speak?
    do:
      - say: >-
          You spoke for \${seconds} seconds. Now hear a story. Once there was a lighthouse at the end of the world, and in the lighthouse
          lived a keeper who had never seen a ship. Every evening he climbed the steps.
otherwise: auto
`;

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(utterances([...SAID]), 40));
});
afterAll(() => browser.close());

async function message<T extends ServerMessage["type"]>(page: TalkPage, type: T, wanted: (m: Extract<ServerMessage, { type: T }>) => boolean = () => true) {
  const found = await page.next("message", (m) => m.type === type && wanted(m as Extract<ServerMessage, { type: T }>));
  return found as Extract<ServerMessage, { type: T }>;
}

function reported<T extends ServerMessage["type"]>(page: TalkPage, type: T): Extract<ServerMessage, { type: T }>[] {
  return (page.all("message") as ServerMessage[]).filter((m): m is Extract<ServerMessage, { type: T }> => m.type === type);
}

/** A page with a session, recording the model's voice, and its gateway. */
async function talking(provider: string): Promise<{ gateway: Gateway; page: TalkPage }> {
  const gateway = await Gateway.open({ scenario: SCENARIO, settings: { "sim.speed": 4 } });
  const page = await TalkPage.open(browser, gateway);
  page.visitor.expect(/WebSocket connection to .* failed/);
  expect(await page.connect({ provider, ...REPEATS }, RATE)).toBeNull();
  await page.keepDownlink();
  return { gateway, page };
}

/** The page got each message once, whatever was repeated on the wire. */
function expectOnce(page: TalkPage): void {
  const seqs = (page.all("message") as ServerMessage[]).map(({ seq }) => seq);
  expect(new Set(seqs).size).toBe(seqs.length);
}

/** Cuts a page's connection for a second while the user speaks, and waits for the model's report of the length. */
async function cutWhileSpeaking(provider: string) {
  const { gateway, page } = await talking(provider);
  await message(page, "speech.started");
  await gateway.front.cutFor(1000);
  const { text } = await message(page, "transcript", ({ role, text }) => role === "assistant" && text.includes("seconds"));
  const end = async (): Promise<void> => {
    await page.leave();
    await gateway.close();
  };
  const stats = await page.page.evaluate(() => window.talk.session!.stats());
  return { page, stats, seconds: Number(/spoke for ([\d.]+) seconds/.exec(text)?.[1]), end };
}

describe.concurrent.each(["gemini", "openai"])("a session over the wire of %s", (provider) => {
  test("whose connection is cut for three seconds while the model speaks is audible without a gap", () => unlessStarved(async () => {
    const { gateway, page } = await talking(provider);
    const { item, playedMs } = await page.next("played", ({ playedMs }) => playedMs >= 3000);
    const queuedMs = ((await page.downlink()).length * 1000) / RATE - playedMs;
    await gateway.front.cutFor(3000);
    await page.next("played", (played) => played.item === item && played.done);
    await message(page, "turn.ended", ({ status }) => status === "completed");
    const sound = await page.visitor.sound();
    const voice = await page.downlink();
    const heard = new Map(sound.blocks.flatMap(({ frame, samples }) => samples.map((x, i): [number, number] => [frame + i, Math.round(x * 32768)])));
    const first = voice.findIndex((x) => x !== 0);
    const begin = [...heard].find(([, x]) => x !== 0)![0] - first;
    const late = await page.visitor.late(begin);
    const { lostMs } = await page.page.evaluate(() => window.talk.session!.stats());
    await page.leave();
    await gateway.close();
    expect(reported(page, "audio.flush")).toEqual([]);
    expect(reported(page, "audio.end").map(({ audio_ms }) => audio_ms)).toEqual([Math.floor((voice.length * 1000) / RATE)]);
    expectOnce(page);
    starvedBy(late);
    starvedBy(queuedMs >= lostMs + 500 ? "" : `the page was without a connection for ${lostMs} ms, and had ${queuedMs} ms to play`);
    const wrong = voice.findIndex((x, i) => i >= first + RAMP && i < voice.length - RAMP && (heard.get(begin + i) ?? 0) !== x);
    expect(wrong, "the first sample at a wrong position").toBe(-1);
    expect(page.all("underrun")).toEqual([]);
  }));

  test("whose answer plays to its end without a connection is heard completely", async () => {
    const { gateway, page } = await talking(provider);
    const { item_id } = await message(page, "audio.end");
    gateway.front.away = true;
    gateway.front.cut();
    await page.next("played", ({ item, done }) => item === item_id && done);
    await page.next("reconnecting"); // the next attempt's report comes after that
    gateway.front.away = false;
    await message(page, "turn.ended", ({ status }) => status === "completed");
    expect(reported(page, "audio.flush")).toEqual([]);
    expectOnce(page);
    await page.leave();
    await gateway.close();
  });

  test("whose connection is cut for a second while the user speaks hears every word", async () => {
    let cut = await cutWhileSpeaking(provider);
    // On a busy machine the cut may take longer than the 2 s of stored speech, which is not this test.
    for (let tries = 1; cut.stats.lostMs > 2000 && tries < 5; tries++) {
      await cut.end();
      cut = await cutWhileSpeaking(provider);
    }
    const { page, seconds, stats } = cut;
    const microphone = await page.visitor.microphone();
    const said = voiced(microphone, 0, SAID[1] - SAID[0] + 1);
    const alike = likeness(await page.visitor.uplink(), pcm16(microphone, 16000, SAID[1] - SAID[0]), 16000);
    console.log(`${provider}: the model heard ${seconds} s of ${said.toFixed(2)} s, through ${stats.lostMs} ms without a network; the uplink correlates ${alike.correlation.toFixed(4)}, lost ${alike.lostMs.toFixed(0)} ms`);
    expect(Math.abs(seconds - said)).toBeLessThan(0.15);
    expect(alike.correlation).toBeGreaterThan(0.98);
    expect(alike.lostMs).toBeLessThan(100);
    expect(new Set(reported(page, "transcript").filter(({ role }) => role === "user").map(({ id }) => id)).size).toBe(1);
    expect([stats.resumes, stats.unnoticed, stats.droppedOffline]).toEqual([1, 1, 0]);
    expect([...page.all("reconnecting"), ...page.all("reconnected")]).toEqual([]);
    expectOnce(page);
    await cut.end();
  });

  test("resumes when its page is reloaded in the middle of an answer", async () => {
    const { gateway, page } = await talking(provider);
    const { item } = await page.next("played", ({ playedMs }) => playedMs >= 1000);
    const before = reported(page, "session.started")[0]!.session_id;
    await page.reload();
    expect(await page.connect({ provider, resume: "only" })).toBeNull();
    const started = await message(page, "session.started");
    expect([started.session_id, started.resumed]).toEqual([before, true]);
    // The user's words are repeated, and the answer that cannot continue ends.
    await message(page, "audio.flush", ({ item_id, reason }) => item_id === item && reason === "connection_lost");
    await message(page, "speech.stopped"); // of its new microphone, which would interrupt the next answer
    await page.page.evaluate(() => void window.talk.session?.sendText("My favourite colour is green."));
    await message(page, "transcript", ({ role, text }) => role === "assistant" && text.includes("green"));
    const texts = reported(page, "transcript").map(({ text }) => text);
    expect(texts.some((text) => text.includes("How long do I speak?"))).toBe(true);
    await page.page.evaluate(() => void window.talk.session?.disconnect());
    expect(await page.next("disconnected")).toMatchObject({ reason: "client_ended", code: 1000 });
    await page.leave();
    await gateway.close();
  });

  test("whose gateway is killed while the model speaks continues on the next one", async () => {
    const { gateway, page } = await talking(provider);
    page.visitor.expect(/Failed to load resource/);
    const { item } = await page.next("played", ({ playedMs }) => playedMs >= 1000);
    const before = reported(page, "session.started")[0]!.session_id;
    await gateway.kill();
    await gateway.start();
    const started = await message(page, "session.started");
    expect([started.session_id, started.resumed, started.snapshot]).toEqual([before, true, true]);
    // The received part of the answer plays to its end, and nothing waits for more.
    await page.next("played", (played) => played.item === item && played.done);
    await page.page.evaluate(() => void window.talk.session?.sendText("My favourite colour is green."));
    await message(page, "transcript", ({ role, text }) => role === "assistant" && text.includes("green"));
    expectOnce(page);
    await page.leave();
    await gateway.close();
  });

  test("whose gateway is killed while the user speaks is answered, and the model hears everything", () => unlessStarved(async () => {
    const { gateway, page } = await talking(provider);
    page.visitor.expect(/Failed to load resource/);
    await message(page, "speech.started");
    const began = performance.now();
    await gateway.kill();
    // The end of the speech may not have reached the page.
    const late = reported(page, "speech.stopped").length > 0 || performance.now() - began > KILL_MS;
    await gateway.start();
    if (late) {
      await page.leave();
      await gateway.close();
      starvedBy("the user had finished when the gateway was killed");
    }
    const started = await message(page, "session.started", ({ resumed }) => resumed);
    expect([started.snapshot, started.input_again]).toEqual([true, true]);
    const { text } = await message(page, "transcript", ({ role, text: said }) => role === "assistant" && said.includes("seconds"));
    const seconds = Number(/spoke for ([\d.]+) seconds/.exec(text)?.[1]);
    console.log(`${provider}: the model heard ${seconds} s through the death of a gateway`);
    expect(Math.abs(seconds - voiced(await page.visitor.microphone(), 0, SAID[1] - SAID[0] + 1))).toBeLessThan(0.15);
    expect(reported(page, "transcript").filter(({ role, text: said }) => role === "assistant" && said.includes("You spoke")).length).toBeGreaterThan(0);
    expectOnce(page);
    await page.leave();
    await gateway.close();
  }));

  test("moves to a second tab with its token, and the first one reports it", async () => {
    const { gateway, page: first } = await talking(provider);
    await message(first, "session.started");
    const second = await first.copy();
    expect(await second.connect({ provider, resume: "only" })).toBeNull();
    expect(await first.next("disconnected")).toMatchObject({ reason: "moved", code: 4506, error: { code: "moved" } });
    // The answer to its own microphone, whose speech would interrupt an earlier one.
    await message(second, "transcript", ({ role, text }) => role === "assistant" && text.includes("seconds"));
    await second.page.evaluate(() => void window.talk.session?.sendText("My favourite colour is green."));
    await message(second, "transcript", ({ role, text }) => role === "assistant" && text.includes("green"));
    expect(await second.page.evaluate(() => window.talk.session?.state)).toBe("connected");
    expect(await first.page.evaluate(() => window.talk.session?.state)).toBe("disconnected");
    await first.leave();
    await gateway.close();
  });
});
