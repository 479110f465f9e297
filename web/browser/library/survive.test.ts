// A session survives a cut connection, a reload and a second tab: the audio on both sides is compared.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { FakeGateway } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { babble, likeness, pcm16, within } from "../harness/signals.ts";
import { starvedBy, unlessStarved } from "../harness/starved.ts";
import { TalkPage, type PlainOptions } from "../harness/talkpage.ts";

/** Chromium's error for handshakes that fail on purpose. */
const REFUSED = /WebSocket connection to .* failed/;
const REPEATS = { reconnect: { tries: 100, firstMs: 100, longestMs: 200 } };
const RATE = 48_000;
/** Samples of an uplink frame. */
const FRAME = 320;
/** The longest ramp against clicks at the start of an item. */
const RAMP = 0.01 * RATE;
/** Start and length of the user's speech, in seconds of the recording. */
const LEAD = 1.5;
const SECONDS = 9;

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(within((t) => babble(t - LEAD), LEAD, LEAD + SECONDS), LEAD + SECONDS + 5));
});
afterAll(() => browser.close());

const pause = (ms: number): Promise<void> => new Promise((over) => setTimeout(over, ms));

/** Each sample's value identifies its position in the item; none is silence. */
function numbered(seconds: number, from = 0): Int16Array {
  return Int16Array.from({ length: Math.round(seconds * RATE) }, (_, i) => 1 + ((from + i) % 30_000));
}

/** The loudspeaker's audio: the value of each frame of the audio clock. */
async function sounded(page: TalkPage): Promise<Map<number, number>> {
  const { rate, blocks } = await page.visitor.sound();
  expect(rate).toBe(RATE);
  return new Map(blocks.flatMap(({ frame, samples }) => samples.map((x, i): [number, number] => [frame + i, x * 32768])));
}

describe.concurrent("a connection that is cut for three seconds", () => {
  test("while the model speaks is inaudible if enough was queued", () => unlessStarved(async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway);
    page.visitor.expect(REFUSED);
    const connected = page.connect({ outputRate: RATE, ...REPEATS }, RATE);
    const visit = await gateway.welcome();
    expect(await connected).toBeNull();
    visit.send({ type: "audio.start", turn: 1, item_id: "item_1" });
    // Not a whole number of milliseconds, so that the continuation starts within one.
    const first = 5 * RATE + 17;
    visit.sendFrame(numbered(first / RATE));
    await visit.report("item_1", false);
    gateway.refusing = 503;
    visit.cut();
    await pause(3000);
    gateway.refusing = undefined;
    const again = await gateway.visit();
    expect((await again.started()).resume?.audio).toEqual({ item_id: "item_1", received_ms: 5000 });
    await again.welcome({ resumed: true });
    again.send({ type: "audio.start", turn: 1, item_id: "item_1", from_ms: 5000 });
    again.sendFrame(numbered(2, 5 * RATE));
    again.send({ type: "audio.end", turn: 1, item_id: "item_1", audio_ms: 7000 });
    expect((await again.report("item_1", true)).played_ms).toBe(7000);

    const sound = await sounded(page);
    const [start] = [...sound].find(([, x]) => x !== 0)!;
    const late = await page.visitor.late(start);
    const underruns = page.all("underrun");
    // The user's words of the third second were lost, which is reported.
    expect(await page.next("reconnected")).toMatchObject({ resumed: true });
    await page.leave();
    await gateway.close();
    starvedBy(late);
    for (let i = RAMP; i < 7 * RATE - RAMP; i++) {
      if (sound.get(start + i) !== 1 + (i % 30_000)) {
        expect.fail(`sample ${i} sounds as ${sound.get(start + i)}, want ${1 + (i % 30_000)}: there is a gap or a repeat`);
      }
    }
    expect(underruns).toEqual([]);
  }));

  /** Cuts the connection in the middle of a word, for cutMs. */
  async function cutWhileSpeaking(cutMs: number, options: PlainOptions = {}) {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway);
    page.visitor.expect(REFUSED);
    const connected = page.connect(options);
    const visit = await gateway.welcome();
    expect(await connected).toBeNull();
    await visit.hears(16000 * (LEAD + 2));
    gateway.refusing = 503;
    visit.cut();
    await pause(cutMs);
    gateway.refusing = undefined;
    const again = await gateway.visit();
    await again.welcome({ resumed: true });
    const stats = () => page.page.evaluate(() => window.talk.session!.stats());
    const dropped = (await stats()).droppedOffline * FRAME;
    await again.hears(Math.max(0, 16000 * (LEAD + SECONDS + 0.5) - visit.heard().length - dropped));
    const said = pcm16(await page.visitor.microphone(), 16000, SECONDS - 0.5);
    return { gateway, page, said, before: visit.heard(), after: again.heard(), stats: await stats() };
  }

  test("while the user speaks loses no word and is reported", async () => {
    const { gateway, page, said, before, after, stats } = await cutWhileSpeaking(3000);
    const { lostMs } = await page.next("reconnected");
    const alike = likeness(Int16Array.from([...before, ...after]), said, 16000);
    console.log(`gone for ${lostMs} ms: correlation ${alike.correlation.toFixed(4)}, lost ${alike.lostMs.toFixed(0)} ms, kept ${stats.audioFramesKept * 20} ms`);
    expect(alike.correlation).toBeGreaterThan(0.98);
    expect(alike.lostMs).toBeLessThan(100);
    expect(stats.droppedOffline).toBe(0);
    expect(stats.audioFramesKept).toBeGreaterThan(100);
    await page.leave();
    await gateway.close();
  });

  test("for only one second loses no word and is not reported", async () => {
    let cut = await cutWhileSpeaking(1000, REPEATS);
    for (let more = 2; more > 0 && cut.stats.lostMs >= 2000; more--) {
      // The machine was so busy that the cut took more than a second.
      await cut.page.leave();
      await cut.gateway.close();
      cut = await cutWhileSpeaking(1000, REPEATS);
    }
    const { gateway, page, said, before, after, stats } = cut;
    const alike = likeness(Int16Array.from([...before, ...after]), said, 16000);
    console.log(`gone for ${stats.lostMs} ms: correlation ${alike.correlation.toFixed(4)}, lost ${alike.lostMs.toFixed(0)} ms, kept ${stats.audioFramesKept * 20} ms`);
    expect(alike.correlation).toBeGreaterThan(0.98);
    expect(alike.lostMs).toBeLessThan(100);
    expect([stats.droppedOffline, stats.unnoticed, page.all("reconnected").length]).toEqual([0, 1, 0]);
    await page.leave();
    await gateway.close();
  });
});

describe.concurrent("a page reloaded in the middle of an answer", () => {
  test("resumes the session and reports how much of the answer was heard", async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway);
    const connected = page.connect();
    const visit = await gateway.welcome();
    expect(await connected).toBeNull();
    visit.send({ type: "audio.start", turn: 1, item_id: "item_1" });
    visit.sendAudio(pcm16(babble, 24000, 8));
    const { played_ms: heard } = await visit.report("item_1", false);
    await page.reload();
    // Chromium may send 1005 or 1006 for a closed page; 1000 would hang up.
    expect(await visit.gone).not.toBe(1000);
    expect(visit.texts.all.filter(({ type }) => type === "session.end")).toEqual([]);

    const reconnected = page.connect();
    const again = await gateway.visit();
    expect((await again.started()).resume).toEqual({ session_id: "voice-1", token: "token-1", last_seq: 0 });
    await again.welcome({ resumed: true, snapshot: true, resume_token: "token-2" });
    expect(await reconnected).toBeNull();
    again.send({ type: "audio.flush", turn: 1, item_id: "item_1", reason: "connection_lost" });
    expect((await again.report("item_1", true)).played_ms).toBeGreaterThanOrEqual(heard);
    await again.hears(16000);
    expect(await page.page.evaluate(() => [window.talk.session?.info?.resumed, JSON.stringify(localStorage)])).toEqual([true, "{}"]);

    // After hanging up, no other page can resume.
    await page.page.evaluate(() => void window.talk.session?.disconnect());
    await again.next("session.end");
    again.close(1000);
    await page.next("disconnected");
    expect(await page.page.evaluate(() => sessionStorage.length)).toBe(0);
    await page.leave();
    await gateway.close();
  });
});

describe.concurrent("two tabs with one token", () => {
  test("the newest has the session, and the other one does not reconnect", async () => {
    const gateway = await FakeGateway.open();
    const first = await TalkPage.open(browser, gateway);
    const connected = first.connect(REPEATS);
    const visit = await gateway.welcome();
    expect(await connected).toBeNull();
    const second = await first.copy();
    const taking = second.connect(REPEATS);
    const taken = await gateway.visit();
    expect((await taken.started()).resume?.token).toBe("token-1");
    visit.close(4506);
    await taken.welcome({ resumed: true, resume_token: "token-2" });
    expect(await taking).toBeNull();
    expect(await first.next("disconnected")).toMatchObject({ reason: "moved", code: 4506, error: { code: "moved", message: "The conversation moved to another tab." } });
    await first.visitor.released();
    await taken.hears(32000);
    // A tab that wanted to reconnect has had two seconds, ten times its delay.
    expect(gateway.visits.all.length).toBe(2);
    expect(await second.page.evaluate(() => window.talk.session?.state)).toBe("connected");
    await first.leave();
    await gateway.close();
  });
});
