// The console's buttons, keys, devices and approvals, with a fake gateway.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium, type VisitorOptions } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { FakeGateway, NO_USAGE, type Sent, type Visit } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { Looks } from "../harness/looks.ts";
import { babble, pcm16, tone } from "../harness/signals.ts";

let browser: Browser;
let real: Gateway;
beforeAll(async () => {
  browser = await openChromium(recording(babble, 120), { flags: ["--host-resolver-rules=MAP gateway.test 127.0.0.1"] });
  real = await Gateway.open();
});
afterAll(async () => {
  await browser.close();
  await real.close();
});

async function opened(options: VisitorOptions & { host?: string } = {}) {
  const gateway = await FakeGateway.open(real);
  const console = await ConsolePage.open(browser, gateway, options);
  const close = async () => {
    await console.leave();
    await gateway.close();
  };
  return { gateway, console, close };
}

async function calling(options: VisitorOptions = {}) {
  const all = await opened(options);
  await all.console.press("Start talking");
  const visit = await all.gateway.welcome();
  await all.console.says("Listening");
  return { ...all, visit };
}

function answer(visit: Visit, item: string, seconds: number): void {
  visit.send({ type: "audio.start", turn: 1, item_id: item });
  visit.sendAudio(pcm16(tone(440), 24000, seconds));
}

function asks(token: string, preview: string, lifeMs = 300_000): Sent {
  return { type: "confirmation.request", turn: 1, token, tool: "calendar_create_event", args: { title: "Lunch" }, args_source: "", preview, expires_at: new Date(Date.now() + lifeMs).toISOString() };
}

function ended(token: string, outcome: string): Sent {
  return { type: "confirmation.ended", turn: 1, token, tool: "calendar_create_event", outcome };
}

describe.concurrent("in a call", () => {
  test("the focus is never lost, and Escape stops the sound", async () => {
    const { gateway, console, close } = await opened();
    await console.page.getByRole("button", { name: "Start talking" }).focus();
    await console.page.keyboard.press("Enter");
    const visit = await gateway.welcome();
    await console.says("Listening");
    // The pressed button has disappeared. A second press must do no harm.
    await console.focusOn("Mute");
    answer(visit, "item_1", 20);
    await console.says("Speaking");
    await console.page.keyboard.press("Escape");
    await visit.next("interrupt");
    await console.says("Listening");
    expect((await visit.report("item_1", true)).played_ms).toBeLessThan(20_000);
    await console.press("Hang up");
    await visit.next("session.end");
    visit.close(1000);
    await console.says("Ended");
    await console.focusOn("Start again");
    await console.visitor.released();
    await close();
  });

  test("Stop silences at once, even with audio in flight", async () => {
    const { console, visit, close } = await calling();
    answer(visit, "item_1", 20);
    await console.says("Speaking");
    await visit.report("item_1", false);
    await console.press("Stop");
    await visit.next("interrupt");
    visit.sendAudio(pcm16(tone(440), 24000, 0.5));
    visit.send({ type: "audio.flush", turn: 1, item_id: "item_1", reason: "user_stop" });
    await visit.report("item_1", true);
    // The page is silent, and says so, before the gateway's answer arrives.
    const flushed = await console.visitor.arrived("audio.flush", "item_1");
    const { rate, blocks } = await console.visitor.sound();
    expect(blocks.filter(({ frame }) => frame > flushed)).toEqual([]);
    expect(blocks.length * 128).toBeGreaterThan(0.2 * rate);
    await close();
  });

  test("Mute sends silence", async () => {
    const { console, visit, close } = await calling();
    await console.press("Mute");
    await console.says("Muted");
    await visit.frames.until("half a second of silence", () => visit.heard().subarray(-8000).every((x) => x === 0));
    expect(await console.page.title()).toBe("Muted · voicegw");
    await console.press("Unmute");
    await console.says("Listening");
    expect(await console.page.title()).toBe("Listening · voicegw");
    await visit.frames.until("a voice", () => visit.heard().subarray(-1600).some((x) => Math.abs(x) > 1000));
    await close();
  });

  test("a disconnected microphone is reported, and used again when it returns", async () => {
    const { console, visit, close } = await calling();
    await visit.hears(3200);
    await console.page.evaluate(() => window.spy.plug?.(false));
    await console.call.getByText("The microphone was disconnected.").waitFor();
    await console.says("Ready");
    await console.page.evaluate(() => window.spy.plug?.(true));
    await console.says("Listening");
    const before = visit.heard().length;
    await visit.frames.until("a voice", () => visit.heard().subarray(before).some((x) => Math.abs(x) > 1000));
    await close();
  });

  test("another microphone is used at once", async () => {
    const { console, visit, close } = await calling();
    await console.press("Settings");
    const picker = console.page.getByRole("combobox", { name: "Microphone" });
    await picker.selectOption({ label: "Fake Audio Input 2" });
    await console.page.getByText("In use: Fake Audio Input 2").waitFor();
    const before = visit.heard().length;
    await visit.frames.until("a voice", () => visit.heard().subarray(before).some((x) => Math.abs(x) > 1000));
    await close();
  });
});

describe.concurrent("without a voice", () => {
  test("a call without a microphone asks for one only when the user turns it on", async () => {
    const { gateway, console, close } = await opened({ plain: false });
    // After the first words, the call is next to the text.
    await console.write("Hello there");
    await console.line("What can I do for you?");
    await console.press("Start without a microphone");
    const visit = await gateway.welcome();
    await console.says("Ready");
    expect(await console.page.evaluate(() => window.spy.wishes)).toEqual([]);
    await console.type("First");
    expect((await visit.next("input.text")).text).toBe("First");
    visit.send({ type: "turn.started", turn: 1 });
    visit.send({ type: "turn.ended", turn: 1, status: "completed", usage: NO_USAGE });
    await console.now("Ready");
    await console.press("Use mic");
    await console.says("Listening");
    await visit.hears(3200);
    expect(await console.page.evaluate(() => window.spy.wishes[0]?.audio)).toMatchObject({ echoCancellation: true, noiseSuppression: true, autoGainControl: true });
    await console.page.evaluate(() => void window.dispatchEvent(new PageTransitionEvent("pagehide")));
    // The page may resume, so the session does not end; the microphone is released.
    await console.visitor.released();
    await close();
  });

  test("an address that is not secure leaves reading and typing", async () => {
    const { gateway, console, close } = await opened({ host: "gateway.test" });
    await console.write("Hello there");
    await console.line("What can I do for you?");
    await console.press("Start talking");
    const visit = await gateway.welcome();
    await console.call.getByText("This page's address is not secure").waitFor();
    await console.type("Hello");
    await visit.next("input.text");
    visit.send({ type: "transcript", turn: 1, id: "a1", role: "assistant", text: "Good day.", final: true, started_at: new Date().toISOString() });
    await console.line("Good day.");
    await close();
  });
});

describe.concurrent("a question of the voice agent", () => {
  test("is answered by a click, while the agent keeps speaking", async () => {
    const { console, visit, close } = await calling();
    answer(visit, "item_1", 60);
    await console.says("Speaking");
    // A press in a request's first moments was meant for something else.
    await console.page.evaluate(() => {
      new MutationObserver(() => {
        for (const button of document.querySelectorAll("[role=alertdialog] button")) {
          button.dispatchEvent(new MouseEvent("click", { detail: 1, bubbles: true }));
        }
      }).observe(document.body, { subtree: true, childList: true });
    });
    await console.page.getByRole("textbox", { name: "Type to the voice agent" }).focus();
    visit.send(asks("t1", "Book lunch with Ada on Friday at noon?"));
    const question = await console.question("Book lunch");
    await console.focusOn("Type to the voice agent");
    await console.page.getByRole("alert").filter({ hasText: "Book lunch with Ada" }).waitFor();
    await question.getByText(/^4:\d\d left$/).waitFor();
    expect(await question.getByRole("button").allInnerTexts()).toEqual(["Decline", "Approve"]);
    await console.press("Approve", question);
    expect(await visit.next("confirmation.resolve")).toMatchObject({ token: "t1", approved: true });
    await question.getByText("approving").waitFor();
    expect(await question.getByRole("button", { disabled: true }).count()).toBe(2);
    await console.now("Speaking");

    // The gateway could not record the answer: the same buttons ask again.
    visit.send({ type: "error", code: "store_unavailable", message: "no", retryable: true, ref: "t1" });
    await console.press("Approve", question);
    await visit.next("confirmation.resolve");
    visit.send(ended("t1", "approved"));
    await console.line(/Book lunch with Ada.*approved$/);
    expect(visit.texts.all.filter(({ type }) => type === "confirmation.resolve").length).toBe(2);
    await close();
  });

  test("passes the focus to the next question, not to its buttons", async () => {
    const { console, visit, close } = await calling();
    visit.send(asks("t1", "Book lunch?"));
    visit.send(asks("t2", "Cancel dinner?"));
    await console.questions.getByText("2 actions need your approval").waitFor();
    const first = await console.question("Book lunch?");
    await first.getByRole("button", { name: "Decline" }).focus();
    await console.page.keyboard.press("Enter");
    expect(await visit.next("confirmation.resolve")).toMatchObject({ token: "t1", approved: false });
    visit.send(ended("t1", "denied"));
    await console.line(/Book lunch\?.*declined$/);
    await console.focusOn("Cancel dinner?");
    await console.press("Hang up");
    visit.close(1000);
    await console.line(/Cancel dinner\?.*not answered$/);
    await close();
  });

  test("cannot be answered after it expires, and ends when the gateway says so", async () => {
    const { console, visit, close } = await calling();
    visit.send(asks("t1", "Book lunch?", 1500));
    const question = console.questions.getByRole("group", { name: "Book lunch?" });
    await question.getByText("expired").waitFor();
    expect(await question.getByRole("button", { disabled: true }).count()).toBe(2);
    visit.send(ended("t1", "expired"));
    await console.line(/Book lunch\?.*not answered in time$/);
    expect(visit.texts.all.filter(({ type }) => type === "confirmation.resolve")).toEqual([]);
    await close();
  });
});

test("a long call shows its newest lines and follows them; earlier ones come on demand, and stay", async () => {
  const { console, visit, close } = await calling();
  const began = Date.now();
  const say = async (n: number) => {
    visit.send({ type: "transcript", turn: n, id: `u${n}`, role: "user", text: `Line ${n} of many.`, final: true, started_at: new Date(began + n).toISOString() });
    await console.line(`Line ${n} of many.`);
  };
  const shown = async () => (await console.lines()).filter((line) => line.includes("of many"));
  // All lines have the same height, so the list keeps its size when one replaces another.
  for (let n = 1; n <= 60; n++) {
    await say(n);
  }
  const fromEnd = () => console.log.evaluate((log) => Math.round(log.scrollHeight - log.scrollTop - log.clientHeight));
  expect(await fromEnd(), "pixels between the end and the visible part").toBeLessThan(2);
  expect(await shown()).toHaveLength(30);
  // Including the line for the start of the call.
  await console.press("Show earlier (31)");
  await console.line("Line 1 of many.");
  await console.focusOn("Conversation");
  await console.log.evaluate((log) => log.scrollTo({ top: 0 }));
  await console.page.getByRole("button", { name: "Latest" }).waitFor();
  await say(61);
  expect(await shown(), "the user reads").toHaveLength(61);
  await console.press("Latest");
  await say(62);
  expect(await shown(), "back at the end").toHaveLength(30);
  expect(await fromEnd()).toBeLessThan(2);
  await console.press("Hang up");
  visit.close(1000);
  await close();
});

test("settings come from the address and become a link", async () => {
  const { console, gateway, close } = await opened();
  const { page } = console;
  await page.goto(`${gateway.url}?theme=dark&turns=pushToTalk&inputRate=8000&voice=marin&pendingRequest=Delete+all`);
  await console.press("Settings");
  const sheet = page.getByRole("dialog", { name: "Settings" });
  expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
  expect(await sheet.getByLabel("Push-to-talk").isChecked()).toBe(true);
  expect(await sheet.getByLabel("First question").inputValue(), "a link sets no first question").toBe("");
  await sheet.getByLabel("Light").check();
  const link = sheet.getByRole("textbox", { name: "Link with these settings" });
  expect(await link.inputValue()).toBe(`${gateway.url}?voice=marin&turns=pushToTalk&inputRate=8000&theme=light`);
  await sheet.getByLabel("Volume").focus();
  await page.keyboard.press("ArrowLeft");
  expect(await sheet.getByLabel("Volume").getAttribute("aria-valuetext")).toBe("95 %");
  const code = sheet.getByRole("group", { name: "Code for this configuration" });
  await code.getByText(/voice: "marin",\s+turnDetection: "client",\s+inputRate: 8000/).waitFor();
  await sheet.getByLabel("React").check();
  await code.getByText(/useVoiceSession\(\{/).waitFor();
  await new Looks(page).take("settings");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Start talking" }).click();
  const visit = await gateway.visit();
  expect(await visit.started()).toMatchObject({ voice: "marin", turn_detection: "client", input_rate: 8000 });
  await close();
});
