// Speech in the console, with the real gateway and the simulator, on both wires.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { likeness, pcm16, recorded } from "../harness/signals.ts";
import { readWav } from "../harness/wav.ts";
import { STORY, utterances } from "../harness/scenarios.ts";

/** Times of the utterances, in seconds of the recording. */
const FIRST = [2.2, 4.1] as const;
const SECOND = [10, 11.4] as const;

let browser: Browser;
const gateways: Gateway[] = [];
beforeAll(async () => {
  // One sentence, and another one during the story.
  browser = await openChromium(recording(utterances([...FIRST], [...SECOND]), 30));
});
afterAll(async () => {
  await browser.close();
  await Promise.all(gateways.map((gateway) => gateway.close()));
});

describe.concurrent.each(["gemini", "openai"])("over the wire of %s", (provider) => {
  test("a visitor speaks, hears the answer, and interrupts it by speaking", async () => {
    const gateway = await Gateway.open({ scenario: STORY, settings: { provider } });
    gateways.push(gateway);
    const console = await ConsolePage.open(browser, gateway);
    await console.press("Start talking");
    await console.says("Listening");
    await console.says("You are speaking");
    // A page that is blocked while the user speaks gets all frames at once.
    await console.page.evaluate(() => {
      for (const until = performance.now() + 300; performance.now() < until; );
    });
    for (const title of ["Thinking", "Speaking", "You are speaking", "Thinking", "Speaking", "Listening"]) {
      await console.says(title);
    }
    await console.line("Tell me a story.");
    expect(await (await console.line("Once there was a lighthouse")).innerText()).toContain("Cut off.");
    await console.line("Stop, please.");
    await console.line("I have stopped.");

    await console.press("Hang up");
    await console.says("Ended");
    await console.line("Back to text");
    await console.visitor.released();

    // Nothing of the story sounds after its flush.
    const { blocks } = await console.visitor.sound();
    const arrivals = await console.page.evaluate(() => window.spy.arrivals);
    const flush = arrivals.findIndex(({ type }) => type === "audio.flush");
    const flushed = arrivals[flush]!.frame;
    const next = arrivals.slice(flush).find(({ type }) => type === "audio.start")!.frame;
    await console.visitor.staysSilent(flushed, next);
    expect(blocks.some(({ frame }) => frame < flushed)).toBe(true);
    expect(blocks.some(({ frame }) => frame > next)).toBe(true);

    // The first turn's audio has the user's words and the part of the story that was heard.
    const latency = await console.tab("Latency");
    await latency.getByRole("button", { name: /^Turn 1\b/ }).click();
    const { rate: kept, channels } = readWav(await console.save("Both", latency.getByRole("group", { name: "Audio of turn 1" })));
    expect(channels.length).toBe(2);
    const sent = recorded(await console.visitor.uplink(), 16000);
    const { correlation } = likeness(channels[0]!, pcm16((t) => sent(t) / 32768, kept, 0.7), kept);
    globalThis.console.log(`${provider}: the recording correlates ${correlation.toFixed(4)} with the sent audio`);
    expect(correlation).toBeGreaterThan(0.98);
    expect(channels[1]!.some((x) => Math.abs(x) > 1000)).toBe(true);

    // The whole call has the uplink on the left and the sound on the right, each at its time.
    const whole = readWav(await console.save("Whole call (WAV)", latency.getByRole("group", { name: "Sound of the whole call" })));
    expect([whole.rate, whole.channels.length]).toEqual([24000, 2]);
    const [left, right] = whole.channels as [Int16Array, Int16Array];
    const user = likeness(left, pcm16((t) => sent(t) / 32768, 24000, SECOND[1] - FIRST[0]), 24000);
    const sounded = await console.visitor.sound();
    const first = sounded.blocks[0]!.frame;
    const samples = new Float32Array(sounded.blocks.at(-1)!.frame - first + 128);
    sounded.blocks.forEach((block) => samples.set(block.samples, block.frame - first));
    const model = likeness(right, pcm16(recorded(samples, sounded.rate), 24000, samples.length / sounded.rate), 24000);
    globalThis.console.log(`${provider}: the whole call correlates ${user.correlation.toFixed(4)} with the sent audio, ${model.correlation.toFixed(4)} with the played audio (${user.lostMs.toFixed(1)} and ${model.lostMs.toFixed(1)} ms lost)`);
    expect(user.correlation).toBeGreaterThan(0.98);
    expect(model.correlation).toBeGreaterThan(0.98);
    const begins = arrivals.find(({ type }) => type === "session.started")!.at;
    const silent = ((first - flushed) / sounded.rate) * 1000 + (arrivals[flush]!.at - begins);
    expect(Math.abs((model.begins / 24000) * 1000 - silent), "ms between where the model is heard in it and where it sounded").toBeLessThan(150);
    await console.leave();
  });
});
