// Measures the time to the first sound, the time to silence, and gaps on a bad network.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { FakeGateway, type Visit } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { babble, pcm16, tone } from "../harness/signals.ts";
import { TalkPage } from "../harness/talkpage.ts";
import { print, spread } from "./table.ts";

const ROUNDS = 40;
/** Seconds of speech for each jitter. */
const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 60);
const RATE = 24_000;
const FRAME_MS = 40;

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(babble, 20), { loop: true });
});
afterAll(() => browser.close());

async function opened(gateway: FakeGateway): Promise<{ page: TalkPage; visit: Visit }> {
  const page = await TalkPage.open(browser, gateway);
  const connected = page.connect();
  const visit = await gateway.welcome();
  expect(await connected).toBeNull();
  return { page, visit };
}

/** Sends speech in real time. Each frame is late by up to jitterMs; none overtakes another. */
async function speak(visit: Visit, seconds: number, jitterMs: number): Promise<void> {
  const pcm = pcm16(babble, RATE, seconds);
  const frame = (RATE * FRAME_MS) / 1000;
  const begun = performance.now();
  let late = 1;
  for (let i = 0; i * frame < pcm.length; i++) {
    // Pseudo-random, the same in each run (Park and Miller, 1988).
    late = (late * 48_271) % 2_147_483_647;
    const due = begun + i * FRAME_MS + (jitterMs * late) / 2_147_483_647;
    await new Promise((elapsed) => setTimeout(elapsed, due - performance.now()));
    visit.sendFrame(pcm.subarray(i * frame, (i + 1) * frame));
  }
}

test("flush to silence, first byte to first sample", async () => {
  const gateway = await FakeGateway.open();
  const { page, visit } = await opened(gateway);
  for (let n = 0; n < ROUNDS; n++) {
    visit.send({ type: "audio.start", turn: n, item_id: `item-${n}` });
    visit.sendAudio(pcm16(tone(440), RATE, 1));
    await visit.report(`item-${n}`, false);
    visit.send({ type: "audio.flush", turn: n, item_id: `item-${n}`, reason: "user_speech" });
    await page.next("silenced", ({ item }) => item === `item-${n}`);
  }
  const { rate, blocks } = await page.visitor.sound();
  const arrivals = await page.page.evaluate(() => window.spy.arrivals);
  const ms = (frames: number) => (1000 * frames) / rate;
  const toSound: number[] = [];
  const toSilence: number[] = [];
  for (let n = 0; n < ROUNDS; n++) {
    const started = arrivals.findIndex((a) => a.type === "audio.start" && a.item === `item-${n}`);
    const firstByte = arrivals.slice(started).find((a) => a.type === "audio")!.frame;
    const flushed = arrivals.find((a) => a.type === "audio.flush" && a.item === `item-${n}`)!.frame;
    toSound.push(ms(blocks.find(({ frame }) => frame >= firstByte)!.frame - firstByte));
    const next = arrivals.find((a) => a.type === "audio.start" && a.item === `item-${n + 1}`)?.frame ?? Infinity;
    const last = blocks.findLast(({ frame }) => frame < next)!;
    toSilence.push(ms(last.frame + last.samples.findLastIndex((x) => x !== 0) + 1 - flushed));
  }
  print([
    ["on the audio clock", "p50", "p95", "max", "n"],
    spread("flush to silence", toSilence, "ms"),
    spread("first byte to first sample", toSound, "ms"),
  ]);
  await page.leave();
  await gateway.close();
});

test("underruns with jitter", async () => {
  const rows = await Promise.all([0, 30, 100].map(async (jitterMs) => {
    const gateway = await FakeGateway.open();
    const { page, visit } = await opened(gateway);
    visit.send({ type: "audio.start", turn: 1, item_id: "speech" });
    await speak(visit, SECONDS, jitterMs);
    visit.send({ type: "audio.end", turn: 1, item_id: "speech", audio_ms: SECONDS * 1000 });
    expect((await visit.report("speech", true)).played_ms).toBe(SECONDS * 1000);
    const underruns = page.all("underrun");
    const { cushionMs } = underruns.at(-1) ?? page.all("sounding").at(-1)!;
    await page.leave();
    await gateway.close();
    return [`0 to ${jitterMs} ms`, ((underruns.length * 60) / SECONDS).toFixed(1), `${cushionMs} ms`];
  }));
  print([["jitter of each frame", "underruns per minute", "cushion at the end"], ...rows]);
});

test("main thread while talking", async () => {
  const gateway = await FakeGateway.open();
  const { page, visit } = await opened(gateway);
  visit.send({ type: "audio.start", turn: 1, item_id: "speech" });
  const session = await page.visitor.context.newCDPSession(page.page);
  await session.send("Performance.enable");
  const busy = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const value = (name: string) => 1000 * metrics.find((m) => m.name === name)!.value;
    return { task: value("TaskDuration"), script: value("ScriptDuration"), at: value("Timestamp") };
  };
  await speak(visit, 2, 0);
  const before = await busy();
  await speak(visit, 20, 0);
  const after = await busy();
  const perSecond = (of: "task" | "script") => `${((1000 * (after[of] - before[of])) / (after.at - before.at)).toFixed(1)} ms`;
  print([
    ["main thread per second of talking", "tasks", "of them scripts"],
    ["a page with the library alone", perSecond("task"), perSecond("script")],
  ]);
  await page.leave();
  await gateway.close();
});
