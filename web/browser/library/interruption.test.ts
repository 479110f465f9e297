// Flushed or stopped audio is silent at once and stays silent. The audio context and the answers have 48 kHz, so each
// sample's value identifies its item and its position.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { FakeGateway, type Visit } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { babble, median } from "../harness/signals.ts";
import { TalkPage } from "../harness/talkpage.ts";

const RATE = 48_000;
/** The limit of the time from a flush's arrival to silence. */
const SILENT = 0.05 * RATE;
/** The longest ramp against clicks at the start of an item. */
const RAMP = 0.01 * RATE;
/** The number of values of an item; they repeat. */
const VALUES = 3000;

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(babble, 30));
});
afterAll(() => browser.close());

const item = (number: number) => `item-${number}`;

/**
 * Seconds of item n (1 to 7), from a sample on. All in one frame, because on a busy machine a second one may be late,
 * and this test is not about gaps.
 */
function numbered(n: number, seconds: number, from = 0): Int16Array {
  return Int16Array.from({ length: seconds * RATE }, (_, i) => valueAt(n, from + i));
}

function valueAt(n: number, position: number): number {
  return n * 4000 + (position % VALUES);
}

/** Every sample that sounded, by its frame on the audio clock. */
async function recorded(page: TalkPage): Promise<Map<number, number>> {
  const { rate, blocks } = await page.visitor.sound();
  expect(rate).toBe(RATE);
  return new Map(blocks.flatMap(({ frame, samples }) => samples.map((x, i): [number, number] => [frame + i, x * 32768]).filter(([, x]) => x !== 0)));
}

/** The first frame from `from` on where item n sounds for 10 ms. */
function beginning(sound: Map<number, number>, n: number, from: number): number {
  const runs = (frame: number, position: number) => Array.from({ length: RAMP }, (_, i) => sound.get(frame + i) === valueAt(n, position + i)).every(Boolean);
  for (const [frame, x] of sound) {
    const position = x - n * 4000;
    if (frame >= from && position >= 0 && position < VALUES && runs(frame, position)) {
      expect(position, `the sample that ${item(n)} begins with`).toBeLessThan(RAMP);
      return frame - position;
    }
  }
  expect.fail(`${item(n)} does not sound`);
}

/** From its start to a frame, item n must sound without gaps, repetitions or anything else. */
function expectWhole(sound: Map<number, number>, n: number, start: number, until: number): void {
  for (let frame = start + RAMP; frame < until; frame++) {
    if (sound.get(frame) !== valueAt(n, frame - start)) {
      expect.fail(`sample ${frame - start} of ${item(n)} sounds as ${sound.get(frame)}, want ${valueAt(n, frame - start)}`);
    }
  }
}

async function talking(gateway: FakeGateway): Promise<{ page: TalkPage; visit: Visit }> {
  const page = await TalkPage.open(browser, gateway);
  const connected = page.connect({ outputRate: RATE }, RATE);
  const visit = await gateway.welcome();
  expect(await connected).toBeNull();
  return { page, visit };
}

describe("an answer that is cut off", () => {
  test("is silent within 50 ms of the flush and stays silent", async () => {
    const gateway = await FakeGateway.open();
    const { page, visit } = await talking(gateway);
    const rounds = [1, 2, 3, 4, 5, 6];
    for (const n of rounds) {
      visit.send({ type: "audio.start", turn: n, item_id: item(n) });
      visit.sendFrame(numbered(n, 4));
      await visit.report(item(n), false);
      visit.send({ type: "audio.flush", turn: n, item_id: item(n), reason: "user_speech" });
      // In flight when the flush was sent: it must not sound.
      visit.sendAudio(numbered(n, 0.4, 4 * RATE), 1920);
      const { played_ms: heard } = await visit.report(item(n), true);
      expect(heard).toBeGreaterThanOrEqual(200);
      expect(heard).toBeLessThan(4000);
    }
    // The last item plays to its end.
    visit.send({ type: "audio.start", turn: 7, item_id: item(7) });
    visit.sendFrame(numbered(7, 0.5));
    visit.send({ type: "audio.end", turn: 7, item_id: item(7), audio_ms: 500 });
    expect((await visit.report(item(7), true)).played_ms).toBe(500);

    const sound = await recorded(page);
    const silentAfter: number[] = [];
    let start = beginning(sound, 1, 0);
    for (const n of rounds) {
      const flushed = await page.visitor.arrived("audio.flush", item(n));
      const next = beginning(sound, n + 1, flushed);
      expectWhole(sound, n, start, flushed);
      const last = [...sound.keys()].findLast((frame) => frame < Math.max(next, flushed + 1))!;
      expect(last - flushed, `frames of ${item(n)} after its flush`).toBeLessThanOrEqual(SILENT);
      silentAfter.push(((last + 1 - flushed) * 1000) / RATE);
      start = next;
    }
    const end = start + 0.5 * RATE;
    expectWhole(sound, 7, start, end - RAMP);
    expect([...sound.keys()].at(-1)).toBeLessThan(end + RAMP);
    console.log(`silent after ${silentAfter.map((ms) => ms.toFixed(1)).join(", ")} ms; median ${median(silentAfter).toFixed(1)} ms`);
    await page.leave();
    await gateway.close();
  });

  test("is silent at once when the user stops it, before the gateway responds", async () => {
    const gateway = await FakeGateway.open();
    const { page, visit } = await talking(gateway);
    visit.send({ type: "audio.start", turn: 1, item_id: item(1) });
    visit.sendFrame(numbered(1, 4));
    await visit.report(item(1), false);
    const stopped = await page.page.evaluate(() => {
      const context = window.spy.contexts.at(-1)!;
      const frame = Math.round(context.currentTime * context.sampleRate);
      window.talk.session?.interrupt();
      return frame;
    });
    await visit.next("interrupt");
    // Audio that the gateway sent in between, and its own flush.
    visit.sendAudio(numbered(1, 0.4, 4 * RATE), 1920);
    visit.send({ type: "audio.flush", turn: 1, item_id: item(1), reason: "user_stop" });
    visit.send({ type: "audio.start", turn: 2, item_id: item(2) });
    visit.sendFrame(numbered(2, 0.5));
    visit.send({ type: "audio.end", turn: 2, item_id: item(2), audio_ms: 500 });
    expect((await visit.report(item(2), true)).played_ms).toBe(500);
    const sound = await recorded(page);
    const next = beginning(sound, 2, stopped);
    expectWhole(sound, 1, beginning(sound, 1, 0), stopped);
    const last = [...sound.keys()].findLast((frame) => frame < next)!;
    expect(last - stopped, "frames after the stop").toBeLessThanOrEqual(SILENT);
    await page.leave();
    await gateway.close();
  });
});
