// Two gateways with one store behind a balancer. The gateway with the call is killed, drained or stopped during an
// answer, or the network changes. The call continues on the other one without an audible gap.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import type { ServerMessage } from "@voicegw/client";
import { openChromium } from "../harness/chromium.ts";
import { recording } from "../harness/folder.ts";
import type { Gateway } from "../harness/gateway.ts";
import { utterances } from "../harness/scenarios.ts";
import { Site } from "../harness/site.ts";
import { starvedBy, unlessStarved } from "../harness/starved.ts";
import { TalkPage } from "../harness/talkpage.ts";

/** The time of the utterance, in seconds of the recording: whole syllables. */
const SAID = [1.65, 4.1] as const;
const RATE = 24_000;
/** The longest ramp against clicks at the start of an item; the resampler holds as much of its end. */
const RAMP = 0.01 * RATE;

/**
 * Twenty seconds, sent at eight times the speed of sound, so that the page's queue lasts through a change of
 * gateways. A connection with the replayed conversation and the user's text gets the end of the story.
 */
const SPEED = 8;
const STORY = `
name: story
rules:
  - when: {utterance: 1}
    heard: Tell me a story.
    do:
      - say: >-
          Once there was a lighthouse at the end of the world, and in the lighthouse lived a keeper who had never seen a ship.
          Every evening he climbed the hundred and seven steps, lit the lamp, and wrote into his book that nobody had come.
          Then one night, when the wind had blown the stars away, he heard somebody knock at the door of the lighthouse.
  - when: {text: 'green'}
    do: [{say: "Green it is, like the door of the lighthouse."}]
  - when: {text: any}
    do: [{say: "And so the keeper took the small star in, and hung it up beside the lamp."}]
otherwise: auto
`;

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(utterances([...SAID]), 40));
});
afterAll(() => browser.close());

function messages<T extends ServerMessage["type"]>(page: TalkPage, type: T): Extract<ServerMessage, { type: T }>[] {
  return (page.all("message") as ServerMessage[]).filter((m): m is Extract<ServerMessage, { type: T }> => m.type === type);
}

/** The user's audio since the first sound: the value of each frame, and the first frame. */
async function heardBy(page: TalkPage): Promise<{ begins: number; heard: Map<number, number> }> {
  const { rate, blocks } = await page.visitor.sound();
  expect(rate).toBe(RATE);
  const heard = new Map(blocks.flatMap(({ frame, samples }) => samples.map((x, i): [number, number] => [frame + i, Math.round(x * 32768)])));
  return { begins: [...heard].find(([, x]) => x !== 0)![0], heard };
}

/**
 * Lets a page hear the start of a story, runs `happens` on its session's gateway, and returns the page with its new
 * gateway.
 */
async function survives(provider: string, happens: (runs: Gateway, site: Site) => Promise<void>, { taken }: { taken: boolean }): Promise<void> {
  const site = await Site.open({ scenario: STORY, speed: SPEED });
  const page = await TalkPage.open(browser, site);
  page.visitor.expect(/WebSocket connection to .* failed/);
  expect(await page.connect({ provider, reconnect: { tries: 100, firstMs: 100, longestMs: 200 } }, RATE)).toBeNull();
  await page.keepDownlink();
  const { item } = await page.next("played", ({ playedMs }) => playedMs >= 1000);
  const [{ session_id: session }] = messages(page, "session.started") as [Extract<ServerMessage, { type: "session.started" }>];
  const [runs, other] = site.running(session);
  const before = page.events.all.length;
  await happens(runs, site);
  await page.events.until("the session on a new connection", () => messages(page, "session.started").length > 1);
  const again = messages(page, "session.started")[1]!;
  expect([again.session_id, again.resumed, again.snapshot ?? false]).toEqual([session, true, taken]);
  expect(other.logged("a session was taken over").length, "sessions that the other gateway has taken").toBe(taken ? 1 : 0);
  // Everything received of the first item plays, and the story continues to its end.
  await page.next("played", (played) => played.item === item && played.done);
  await page.events.until("the end of the turn, and of its audio", () => {
    const items = messages(page, "audio.start").map(({ item_id }) => item_id);
    const done = new Set(page.all("played").filter((played) => played.done).map((played) => played.item));
    // A snapshot without a turn means that the last one has ended.
    const over = messages(page, "turn.ended").length > 0 || (taken && messages(page, "provider.reconnected").length > 0 && messages(page, "turn.started").length === 1);
    return over && items.every((id) => done.has(id));
  });
  const all = page.all("message") as ServerMessage[];
  // Reading the samples blocks the page, so it follows the last report.
  const stats = await page.page.evaluate(() => window.talk.session!.stats());
  const notices = [...page.all("reconnecting"), ...page.all("reconnected"), ...page.all("error").map(({ gatewayCode, message }) => `${gatewayCode}: ${message}`)];
  const { begins, heard } = await heardBy(page);
  const voice = await page.downlink();
  const first = voice.findIndex((x) => x !== 0);
  const late = await page.visitor.late(begins - first);
  await page.page.evaluate(() => void window.talk.session?.sendText("My favourite colour is green."));
  await page.next("message", (m) => m.type === "transcript" && m.role === "assistant" && (m as Extract<ServerMessage, { type: "transcript" }>).text.includes("Green it is"));
  await page.leave();
  await site.close();

  const starts = messages(page, "audio.start").map(({ item_id }) => item_id);
  console.log(`${provider}: disconnected for ${stats.lostMs} ms; heard ${(voice.length / RATE).toFixed(1)} s in ${new Set(starts).size} items; ${page.events.all.length - before} events since`);
  expect(new Set(all.map(({ seq }) => seq)).size, "messages that were reported once").toBe(all.length);
  expect(all.filter((m) => m.type === "turn.ended" && m.status !== "completed")).toEqual([]);
  const ends = messages(page, "transcript").filter(({ role, final }) => role === "assistant" && final).map(({ text }) => text);
  expect(ends.join(" ")).toMatch(taken ? /hung it up beside the lamp|knock at the door/ : /knock at the door/);
  starvedBy(late);
  starvedBy(stats.lostMs < 2000 ? "" : `the page was without a connection for ${stats.lostMs} ms, and it stores only 2000 ms of speech`);
  const wrong = voice.findIndex((x, i) => i >= first + RAMP && i < voice.length - RAMP && Math.abs((heard.get(begins - first + i) ?? 0) - x) > 1);
  expect(wrong, "the first sample at a wrong position").toBe(-1);
  expect(page.all("underrun")).toEqual([]);
  // The loss was not noticeable, so it was not reported.
  expect([stats.resumes, stats.unnoticed, ...notices]).toEqual([1, 1]);
}

describe.concurrent("a call with two gateways continues on the other one when its gateway", () => {
  test.each(["gemini", "openai"])("is killed in the middle of an answer, on the wire of %s", (provider) =>
    unlessStarved(() => survives(provider, (runs) => runs.kill(), { taken: true })));

  test("is drained", () => unlessStarved(() => survives("gemini", (runs) => runs.drain(), { taken: true })));

  test("is stopped", () => unlessStarved(() => survives("openai", (runs) => runs.stop(), { taken: true })));

  test("is alive but the user reconnects to the other one", () => unlessStarved(() => survives("openai", async (_runs, site) => site.front.cut(), { taken: false })));
});
