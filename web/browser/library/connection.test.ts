// How a conversation opens, survives a broken connection, and ends.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { FakeGateway, NO_USAGE } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { babble, pcm16 } from "../harness/signals.ts";
import { TalkPage, type PlainOptions } from "../harness/talkpage.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(babble, 30));
});
afterAll(() => browser.close());

/** Chromium's errors for handshakes that fail on purpose. */
const REFUSED = /WebSocket connection to .* failed|Failed to load resource/;

async function opened(options: PlainOptions = {}) {
  const gateway = await FakeGateway.open();
  const page = await TalkPage.open(browser, gateway);
  const connected = page.connect({ reconnect: { firstMs: 20, longestMs: 100 }, ...options });
  const visit = await gateway.welcome();
  expect(await connected).toBeNull();
  return { gateway, page, visit };
}

describe.concurrent("a conversation", () => {
  test("opens with its options and releases everything at its end", async () => {
    const { gateway, page, visit } = await opened({ provider: "openai", voice: "marin", conversationId: "c-7", pendingRequest: "What is new?", inspect: true });
    expect(visit.request.headers["sec-websocket-protocol"]).toBe("voicegw.v1");
    expect(visit.request.url).toBe("/v1/voice");
    expect(await visit.started()).toMatchObject({
      provider: "openai", voice: "marin", conversation_id: "c-7", pending_request: "What is new?", inspect: true, input_rate: 16000, output_rate: 24000,
    });
    await visit.hears(16000);
    visit.send({ type: "shiny.new", field: 1 });
    expect(await page.next("message", (m) => m.type === "shiny.new")).toMatchObject({ field: 1 });
    const ended = page.next("disconnected");
    await page.page.evaluate(() => void window.talk.session?.disconnect());
    await visit.next("session.end");
    visit.send({ type: "session.ended", reason: "client_ended", handback: { conversation_id: "c-7", summary: "Nothing was said." } });
    visit.close(1000);
    expect(await ended).toMatchObject({ reason: "client_ended", code: 1000, handback: { conversation_id: "c-7" } });
    await page.visitor.released();
    await page.leave();
    await gateway.close();
  });

  test("resumes in the same session when the connection is cut", async () => {
    const { gateway, page, visit } = await opened();
    visit.send({ type: "audio.start", turn: 1, item_id: "before" });
    visit.sendAudio(pcm16(babble, 24000, 3));
    await page.next("sounding", ({ item }) => item === "before");
    await page.visitor.received("audio", 75); // all of it, not only the beginning
    visit.cut();

    const again = await gateway.visit();
    // How much microphone audio it has depends on when that began.
    const { input, ...resume } = (await again.started()).resume!;
    expect(resume).toEqual({ session_id: "voice-1", token: "token-1", last_seq: 2, audio: { item_id: "before", received_ms: 3000 } });
    expect(input?.from_ms ?? 0).toBe(0);
    await again.welcome({ resumed: true });
    await again.hears(8000);
    again.send({ type: "audio.end", turn: 1, item_id: "before", audio_ms: 3000 });
    again.send({ type: "audio.start", turn: 2, item_id: "after" });
    again.sendAudio(pcm16(babble, 24000, 1));
    again.send({ type: "audio.end", turn: 2, item_id: "after", audio_ms: 1000 });
    await page.next("sounding", ({ item }) => item === "after");
    expect((await again.report("after", true)).played_ms).toBe(1000);
    // The loss was not noticeable.
    expect([...page.all("reconnecting"), ...page.all("reconnected")]).toEqual([]);
    expect(await page.page.evaluate(() => window.talk.session?.stats().unnoticed)).toBe(1);
    await page.leave();
    await gateway.close();
  });

  test("continues in a new session if the old one cannot be resumed", async () => {
    const { gateway, page, visit } = await opened({ pendingRequest: "What is new?" });
    visit.send({ type: "turn.ended", turn: 1, status: "completed", usage: NO_USAGE });
    await page.next("message", (m) => m.type === "turn.ended");
    visit.cut();
    const refused = await gateway.visit();
    expect((await refused.started()).resume).toBeDefined();
    // Text typed before the page notices the cut would be lost with the connection and reported as possibly lost.
    await page.page.evaluate(() => window.talk.session?.sendText("Are you there?"));
    refused.send({ type: "error", code: "resume_refused", message: "this session has ended", retryable: false });
    refused.close(4501);
    await page.next("reconnecting");
    const anew = await gateway.visit();
    const start = await anew.started();
    expect([start.resume, start.conversation_id]).toEqual([undefined, (await visit.started()).conversation_id]);
    // It was answered before the cut.
    expect(start.pending_request).toBeUndefined();
    await anew.welcome({ session_id: "voice-2" });
    expect(await page.next("reconnected")).toMatchObject({ resumed: false });
    // Text typed during the outage is not lost.
    expect((await anew.next("input.text")).text).toBe("Are you there?");
    await anew.hears(8000);
    await page.leave();
    await gateway.close();
  });

  test("waits for a gateway that is unreachable for a while", async () => {
    const { gateway, page, visit } = await opened({ reconnect: { tries: 100, firstMs: 20, longestMs: 500 } });
    page.visitor.expect(REFUSED);
    gateway.refusing = 503;
    visit.cut();
    // Reported when the user's words begin to be lost.
    expect((await page.next("reconnecting")).lostMs).toBeGreaterThanOrEqual(2000);
    gateway.refusing = undefined;
    await (await gateway.visit()).welcome({ resumed: true });
    expect((await page.next("reconnected")).lostMs).toBeGreaterThan(2000);
    await page.leave();
    await gateway.close();
  });

  test.each([
    { code: 4503, said: { code: "blocked", until: "2099-01-01T00:00:00.000Z" }, expected: { code: "gateway", message: /^You are blocked until .*2099/ } },
    { code: 4501, said: { code: "ticket_missing" }, expected: { code: "gateway", message: /^This gateway needs a ticket\.$/ } },
    { code: 4888, said: undefined, expected: { code: "closed", message: /^The session was closed\.$/ } },
  ])("ends permanently with $code", async ({ code, said, expected }) => {
    const { gateway, page, visit } = await opened();
    if (said !== undefined) {
      visit.send({ type: "error", message: "for programmers", retryable: false, ...said });
    }
    visit.close(code);
    const ended = await page.next("disconnected");
    expect(ended.code).toBe(code);
    expect(ended.error).toMatchObject({ code: expected.code, retryable: false, message: expect.stringMatching(expected.message) });
    await page.visitor.released();
    expect(gateway.visits.all.length).toBe(1);
    await page.leave();
    await gateway.close();
  });

  test.each([
    [403, "origin", "The gateway does not allow this site."],
    [429, "refused", "This gateway says limit."],
    [503, "full", "The gateway isn't accepting new calls."],
    [500, "wrong_path", "No voice gateway answers at this address."],
  ])("does not open if the response to the handshake is %i", async (status, code, message) => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway);
    page.visitor.expect(REFUSED);
    gateway.refusing = status;
    expect(await page.connect()).toMatchObject({ name: "VoiceError", code, message });
    await page.visitor.released();
    await page.leave();
    await gateway.close();
  });

  test("does not open without a gateway", async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway);
    page.visitor.expect(/ERR_CONNECTION_REFUSED/);
    await gateway.close();
    expect(await page.connect()).toMatchObject({ name: "VoiceError", code: "unreachable", message: "The gateway cannot be reached." });
    await page.visitor.released();
    await page.leave();
  });
});
