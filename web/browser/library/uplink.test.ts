// The gateway receives the speech at the microphone.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import type { InputRate } from "@voicegw/client";
import { openChromium } from "../harness/chromium.ts";
import { FakeGateway } from "../harness/fakegateway.ts";
import { ownFolder } from "../harness/folder.ts";
import { babble, likeness, pcm16, within, type Sound } from "../harness/signals.ts";
import { TalkPage } from "../harness/talkpage.ts";
import { readWav, writeWav } from "../harness/wav.ts";

const SECONDS = 4;
/** Before and after the speech: opening a session takes a moment, and the file is silent after its end. */
const LEAD = 1.5;
const TAIL = 2;
const recorded = join(import.meta.dirname, "../../../../shared/audio/jfk.wav");

const left = (t: number) => 0.5 * babble(t);
const right = (t: number) => 0.5 * babble(t + 40);
const file = (sound: Sound, rate: number) => pcm16(within((t) => sound(t - LEAD), LEAD, LEAD + SECONDS), rate, LEAD + SECONDS + TAIL);

const devices = [
  { name: "16 kHz mono", rate: 16000, channels: [babble], said: babble, heard: [16000] as const },
  // Two voices: a uplink of one channel would have half of the speech.
  { name: "44.1 kHz stereo", rate: 44100, channels: [left, right], said: (t: number) => (left(t) + right(t)) / 2, heard: [16000, 24000, 48000] as const },
];

/** The uplink at a rate in Hz, and the microphone as the browser delivered it. */
interface Uplink {
  rate: InputRate;
  frames: readonly number[];
  heard: Int16Array;
  given: Sound;
}

/** Opens a session at an uplink's rate and listens to the end of the recording. */
async function listen(browser: Browser, rate: InputRate): Promise<Uplink> {
  const gateway = await FakeGateway.open();
  const page = await TalkPage.open(browser, gateway);
  const connected = page.connect({ inputRate: rate });
  const visit = await gateway.welcome();
  expect(await connected).toBeNull();
  await visit.hears(rate * (SECONDS + LEAD));
  const uplink = { rate, frames: visit.frames.all.map((frame) => frame.pcm.length), heard: visit.heard(), given: await page.visitor.microphone() };
  await page.leave();
  await gateway.close();
  return uplink;
}

/**
 * Compares the uplink with the microphone. On a busy machine this blocks the fake gateway, which is in this process,
 * for longer than a page waits: no page may be open.
 */
function expectAlike({ rate, frames, heard, given }: Uplink, said: Int16Array): void {
  expect(new Set(frames)).toEqual(new Set([rate / 50]));
  // The last of the microphone's audio is still in transit.
  const alike = likeness(heard, pcm16(given, rate, SECONDS - 1), rate);
  const file = likeness(heard, said, rate);
  console.log(`uplink at ${rate} Hz: ${frames.length} frames, correlation ${alike.correlation.toFixed(4)}, lost ${alike.lostMs.toFixed(0)} ms; with the file ${file.correlation.toFixed(4)}, the browser lost ${file.lostMs.toFixed(0)} ms`);
  expect(alike.correlation).toBeGreaterThan(0.98);
  expect(alike.lostMs).toBeLessThan(5);
}

describe.each(devices)("a microphone of $name", ({ rate, channels, said, heard }) => {
  let uplinks: Uplink[];
  beforeAll(async () => {
    const microphone = join(ownFolder(), "microphone.wav");
    writeWav(microphone, rate, channels.map((sound) => file(sound, rate)));
    const browser = await openChromium(microphone);
    uplinks = await Promise.all(heard.map((inputRate) => listen(browser, inputRate)));
    await browser.close();
  });

  test.each(heard)("is heard at %i Hz", (inputRate) => {
    expectAlike(uplinks.find((uplink) => uplink.rate === inputRate)!, pcm16(said, inputRate, SECONDS));
  });
});

test.skipIf(!existsSync(recorded))("a recorded voice is heard (skipped without ../shared/audio)", async () => {
  const { rate, channels: [pcm] } = readWav(recorded);
  const microphone = join(ownFolder(), "microphone.wav");
  const said = pcm!.subarray(0, rate * SECONDS);
  const lead = new Int16Array(rate * LEAD);
  writeWav(microphone, rate, [Int16Array.from([...lead, ...said, ...lead])]);
  const browser = await openChromium(microphone);
  expect(rate).toBe(16000);
  const uplink = await listen(browser, 16000);
  await browser.close();
  expectAlike(uplink, said);
});
