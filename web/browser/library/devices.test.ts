// Refused, muted, changed and lost microphones, and loudspeakers that play a whole answer.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { FakeGateway } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { babble, likeness, pcm16 } from "../harness/signals.ts";
import { TalkPage } from "../harness/talkpage.ts";
import type { VisitorOptions } from "../harness/chromium.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(babble, 40), { flags: ["--host-resolver-rules=MAP gateway.test 127.0.0.1"] });
});
afterAll(() => browser.close());

async function opened(options: VisitorOptions = {}, microphone = true) {
  const gateway = await FakeGateway.open();
  const page = await TalkPage.open(browser, gateway, options);
  const connected = page.connect({ microphone });
  const visit = await gateway.welcome();
  expect(await connected).toBeNull();
  return { gateway, page, visit };
}

describe.concurrent("a microphone", () => {
  test("that is refused leaves typing", async () => {
    const { gateway, page, visit } = await opened({ microphone: false });
    expect(await page.next("error")).toMatchObject({ code: "microphone_denied", message: "The microphone is blocked." });
    await page.page.evaluate(() => window.talk.session?.sendText("Hello there"));
    expect(await visit.next("input.text")).toMatchObject({ text: "Hello there", id: "typed-1" });
    expect(visit.frames.all).toEqual([]);
    await page.leave();
    await gateway.close();
  });

  test("is requested only when it is used, and with the browser's processing", async () => {
    const { gateway, page, visit } = await opened({ plain: false }, false);
    expect(await page.page.evaluate(() => window.spy.wishes)).toEqual([]);
    await page.page.evaluate(() => window.talk.session?.microphone.start());
    await visit.hears(3200);
    expect(await page.page.evaluate(() => window.spy.wishes[0])).toMatchObject({
      audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    });
    await page.leave();
    await gateway.close();
  });

  test("that is muted sends only silence", async () => {
    const { gateway, page, visit } = await opened();
    await visit.hears(8000);
    await page.page.evaluate(() => window.talk.session?.microphone.mute(true));
    await visit.frames.until("half a second of silence", () => visit.heard().subarray(-8000).every((x) => x === 0));
    await page.page.evaluate(() => window.talk.session?.microphone.mute(false));
    await visit.frames.until("a voice", () => visit.heard().subarray(-1600).some((x) => Math.abs(x) > 1000));
    expect(page.all("microphone").map(({ state }) => state).slice(-2)).toEqual(["muted", "live"]);
    await page.leave();
    await gateway.close();
  });

  test("can be changed", async () => {
    const { gateway, page, visit } = await opened();
    await visit.hears(3200);
    const { id, label } = await page.page.evaluate(async () => (await window.talk.listMicrophones()).at(-1)!);
    await page.page.evaluate((id) => window.talk.session?.microphone.use(id), id);
    expect(await page.next("microphone", ({ state, deviceId }) => state === "live" && deviceId === id)).toMatchObject({ label });
    await visit.hears(visit.heard().length + 3200);
    await page.leave();
    await gateway.close();
  });

  test("that is unplugged is lost, and used again when it returns", async () => {
    const { gateway, page, visit } = await opened();
    await visit.hears(3200);
    await page.page.evaluate(() => window.spy.plug?.(false));
    await page.next("microphone", ({ state }) => state === "lost");
    expect(await page.next("error")).toMatchObject({ code: "microphone_lost" });
    await page.page.evaluate(() => window.spy.plug?.(true));
    await page.next("microphone", ({ state }) => state === "live");
    const before = visit.heard().length;
    await visit.frames.until("a voice", () => visit.heard().subarray(before).some((x) => Math.abs(x) > 1000));
    await page.leave();
    await gateway.close();
  });

  test("that loses its permission is lost, and works again once it is allowed and turned on", async () => {
    const { gateway, page, visit } = await opened();
    await visit.hears(3200);
    await page.visitor.allow(false);
    await page.next("microphone", ({ state }) => state === "lost");
    await page.visitor.allow(true);
    await page.page.evaluate(() => window.talk.session?.microphone.start());
    await page.next("microphone", ({ state }) => state === "live");
    const before = visit.heard().length;
    await visit.frames.until("a voice", () => visit.heard().subarray(before).some((x) => Math.abs(x) > 1000));
    await page.leave();
    await gateway.close();
  });
});

describe.concurrent("a loudspeaker", () => {
  test("plays all received audio at the device's rate", async () => {
    const { gateway, page, visit } = await opened();
    const said = pcm16(babble, 24000, 3);
    visit.send({ type: "audio.start", turn: 1, item_id: "answer" });
    visit.sendAudio(said, 24_001);
    visit.send({ type: "audio.end", turn: 1, item_id: "answer", audio_ms: 3000 });
    expect((await visit.report("answer", true)).played_ms).toBe(3000);
    const { rate, blocks } = await page.visitor.sound();
    const from = blocks[0]!.frame;
    const heard = new Int16Array(blocks.at(-1)!.frame + 128 - from);
    for (const { frame, samples } of blocks) {
      samples.forEach((x, i) => (heard[frame - from + i] = Math.round(x * 32767)));
    }
    const { correlation, lostMs } = likeness(heard, pcm16(babble, rate, 3), rate);
    console.log(`downlink at ${rate} Hz: correlation ${correlation.toFixed(5)}`);
    expect(correlation).toBeGreaterThan(0.999);
    expect(lostMs).toBe(0);
    await page.leave();
    await gateway.close();
  });

  test("that an insecure page cannot use leaves reading and typing", async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway, { host: "gateway.test" });
    const connected = page.connect();
    const visit = await gateway.welcome();
    expect(await connected).toBeNull();
    expect(await page.next("error")).toMatchObject({ code: "insecure_page" });
    await page.page.evaluate(() => window.talk.session?.sendText("Hello"));
    await visit.next("input.text");
    visit.send({ type: "audio.start", turn: 1, item_id: "unheard" });
    visit.sendAudio(pcm16(babble, 24000, 0.2));
    visit.send({ type: "audio.end", turn: 1, item_id: "unheard", audio_ms: 200 });
    // Audio that could not be heard is not reported as heard.
    expect((await visit.report("unheard", true)).played_ms).toBe(0);
    await page.leave();
    await gateway.close();
  });
});
