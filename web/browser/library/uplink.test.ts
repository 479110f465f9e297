// What is said into the microphone is what the gateway gets.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import type { InputRate } from "@voicegw/client";
import { openChromium } from "../harness/chromium.ts";
import { FakeGateway } from "../harness/fakegateway.ts";
import { ownFolder } from "../harness/folder.ts";
import { babble, likeness, pcm16, within, type Sound } from "../harness/signals.ts";
import { TalkPage } from "../harness/talkpage.ts";
import { readWav, writeWav } from "../harness/wav.ts";

const SECONDS = 4;
/** Before and after what is said: opening a session takes a moment, and behind its end a file gives nothing. */
const LEAD = 1.5;
const TAIL = 2;
const recorded = join(import.meta.dirname, "../../../../shared/audio/jfk.wav");

const left = (t: number) => 0.5 * babble(t);
const right = (t: number) => 0.5 * babble(t + 40);
const file = (sound: Sound, rate: number) => pcm16(within((t) => sound(t - LEAD), LEAD, LEAD + SECONDS), rate, LEAD + SECONDS + TAIL);

const devices = [
  { name: "16 kHz mono", rate: 16000, channels: [babble], said: babble, heard: [16000] as const },
  // Two voices: whoever takes one channel for both hears half of what is said.
  { name: "44.1 kHz stereo", rate: 44100, channels: [left, right], said: (t: number) => (left(t) + right(t)) / 2, heard: [16000, 24000, 48000] as const },
];

/** Opens a session at an uplink's rate, listens until all has been said, and compares. */
async function listen(browser: Browser, inputRate: InputRate, said: Int16Array): Promise<void> {
  const gateway = await FakeGateway.open();
  const page = await TalkPage.open(browser, gateway);
  const connected = page.connect({ inputRate });
  const visit = await gateway.welcome();
  expect(await connected).toBeNull();
  await visit.hears(inputRate * (SECONDS + LEAD));
  expect(new Set(visit.frames.all.map((frame) => frame.pcm.length))).toEqual(new Set([inputRate / 50]));
  // Some of what the browser has given is still on its way.
  const given = pcm16(await page.visitor.microphone(), inputRate, SECONDS - 1);
  const alike = likeness(visit.heard(), given, inputRate);
  const file = likeness(visit.heard(), said, inputRate);
  console.log(`uplink at ${inputRate} Hz: ${visit.frames.all.length} frames, correlation ${alike.correlation.toFixed(4)}, lost ${alike.lostMs.toFixed(0)} ms; with the file ${file.correlation.toFixed(4)}, the browser lost ${file.lostMs.toFixed(0)} ms`);
  expect(alike.correlation).toBeGreaterThan(0.98);
  expect(alike.lostMs).toBeLessThan(5);
  await page.leave();
  await gateway.close();
}

describe.each(devices)("a microphone of $name", ({ rate, channels, said, heard }) => {
  let browser: Browser;
  beforeAll(async () => {
    const microphone = join(ownFolder(), "microphone.wav");
    writeWav(microphone, rate, channels.map((sound) => file(sound, rate)));
    browser = await openChromium(microphone);
  });
  afterAll(() => browser.close());

  test.concurrent.each(heard)("is heard at %i Hz", async (inputRate) => {
    await listen(browser, inputRate, pcm16(said, inputRate, SECONDS));
  });
});

test.skipIf(!existsSync(recorded))("a recorded voice is heard (skipped where ../shared/audio is not there)", async () => {
  const { rate, channels: [pcm] } = readWav(recorded);
  const microphone = join(ownFolder(), "microphone.wav");
  const said = pcm!.subarray(0, rate * SECONDS);
  const lead = new Int16Array(rate * LEAD);
  writeWav(microphone, rate, [Int16Array.from([...lead, ...said, ...lead])]);
  const browser = await openChromium(microphone);
  expect(rate).toBe(16000);
  await listen(browser, 16000, said);
  await browser.close();
});
