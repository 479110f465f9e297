// The whole loop with the real gateway and the simulator, on both wires: speech up, speech down, and an interruption.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import type { ServerMessage } from "@voicegw/client";
import { openChromium } from "../harness/chromium.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { STORY, utterances } from "../harness/scenarios.ts";
import { voiced } from "../harness/signals.ts";
import { TalkPage } from "../harness/talkpage.ts";

/** Times of the utterances, in seconds of the recording: whole syllables. The second interrupts the story. */
const FIRST = [1.65, 4.1] as const;
const SECOND = [9.2, 10.65] as const;

let browser: Browser;
let gateway: Gateway;
beforeAll(async () => {
  browser = await openChromium(recording(utterances([...FIRST], [...SECOND]), 25));
  gateway = await Gateway.open({ scenario: STORY });
});
afterAll(async () => {
  await browser.close();
  await gateway.close();
});

/** The next wanted message of a type. */
async function message<T extends ServerMessage["type"]>(page: TalkPage, type: T, wanted: (m: Extract<ServerMessage, { type: T }>) => boolean = () => true) {
  const found = await page.next("message", (m) => m.type === type && wanted(m as Extract<ServerMessage, { type: T }>));
  return found as Extract<ServerMessage, { type: T }>;
}

describe.concurrent.each(["gemini", "openai"])("a conversation over the wire of %s", (provider) => {
  test("has speech in both directions and is interrupted by a second utterance", async () => {
    const page = await TalkPage.open(browser, gateway);
    expect(await page.connect({ provider })).toBeNull();
    await page.next("played", ({ done }) => !done);
    // A page can analyse the story while it sounds.
    await page.page.waitForFunction(() => Math.max(...window.talk.session!.speaker.frequencyData()) > 0);
    expect(await page.page.evaluate(() => window.talk.session?.agentState)).toBe("speaking");
    expect(await page.page.evaluate(() => window.talk.session?.speaker.stream?.getAudioTracks().length)).toBe(1);
    expect(await page.page.evaluate(() => window.talk.session?.microphone.frequencyData().length)).toBe(1024);
    const { item_id: story } = await message(page, "audio.flush");
    const { played_ms: heard } = (await page.next("sent", (m) => m.type === "playback" && m["item_id"] === story && m["done"] === true)) as unknown as { played_ms: number };
    expect(heard).toBeGreaterThan(1000);
    const { item: answer } = await page.next("sounding", ({ item }) => item !== story);
    await page.next("played", ({ item, done }) => item === answer && done);
    await message(page, "turn.ended", ({ status }) => status === "completed");

    const messages = page.all("message") as ServerMessage[];
    const all = <T extends ServerMessage["type"]>(type: T) => messages.filter((m): m is Extract<ServerMessage, { type: T }> => m.type === type);
    const answers = all("transcript").filter((m) => m.role === "assistant").map(({ text }) => text);
    const heardFor = Number(/spoke for ([\d.]+) seconds/.exec(answers.at(-1) ?? "")?.[1]);
    console.log(`${provider}: the story was heard for ${heard} ms, the second utterance for ${heardFor} s`);
    // The model hears speech of the right length; it reports tenths of a second.
    const between = (FIRST[1] + SECOND[0]) / 2 - FIRST[0];
    expect(Math.abs(heardFor - voiced(await page.visitor.microphone(), between, SECOND[1] - FIRST[0] + 1))).toBeLessThan(0.15);
    expect(all("turn.ended").map(({ status }) => status)).toEqual(["interrupted", "completed"]);
    expect(all("transcript").filter((m) => m.role === "user" && m.final).map(({ text }) => text)).toEqual(["Tell me a story.", "Stop, please."]);
    expect(page.all("agentState")).toEqual(["thinking", "speaking", "listening", "thinking", "speaking", "listening"]);
    // After the flush only the second answer sounds.
    const flushed = await page.visitor.arrived("audio.flush", story);
    const started = await page.visitor.arrived("audio.start", answer);
    await page.visitor.staysSilent(flushed, started);
    await page.page.evaluate(() => void window.talk.session?.disconnect());
    expect(await page.next("disconnected")).toMatchObject({ reason: "client_ended", code: 1000 });
    await page.visitor.released();
    await page.leave();
  });
});
