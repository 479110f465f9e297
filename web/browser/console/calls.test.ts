// The calls page: an operator finds, follows, saves and ends someone else's call, which then is a past call.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { recording } from "../harness/folder.ts";
import { eventually } from "../harness/eventually.ts";
import { Gateway } from "../harness/gateway.ts";
import { Looks } from "../harness/looks.ts";
import { readWav } from "../harness/wav.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(() => 0, 1));
});
afterAll(() => browser.close());

test("an operator follows someone else's call, saves its transcript and hangs up", async () => {
  const gateway = await Gateway.open();
  const caller = await ConsolePage.open(browser, gateway);
  const operator = await ConsolePage.open(browser, gateway);
  operator.visitor.expect(/Failed to load resource/); // a call without a conversation yet
  const { page } = operator;
  const sheet = page.getByRole("dialog", { name: "Calls" });
  const looks = new Looks(page);

  // By keyboard alone, before any call.
  await page.getByRole("button", { name: "Calls", exact: true }).focus();
  await page.keyboard.press("Enter");
  await sheet.getByText("No call is running.").waitFor();

  await caller.press("Start talking");
  await caller.says("Listening");
  await caller.type("My favourite colour is green.");
  await caller.says("Speaking");
  const call = sheet.getByRole("button", { name: /live/ });
  await call.waitFor();
  await sheet.getByText(/default · .* · 1 turn · \$0\.\d{4}/).waitFor();
  await looks.take("calls-list");

  // The transcript is live.
  await call.focus();
  await page.keyboard.press("Enter");
  const log = sheet.getByRole("group", { name: "Transcript", exact: true });
  await log.getByText("My favourite colour is green.").first().waitFor();
  await caller.says("Listening");
  await caller.type("What is two and two?");
  await log.getByText("What is two and two?").first().waitFor();
  expect(await log.getByText("Back to text").count(), "it continues").toBe(0);
  await looks.take("calls-one");
  const saved = async (format: string): Promise<string> => readFileSync(await operator.save(format, sheet), "utf8");
  expect(await saved("Text")).toMatch(/^\[00:00:00\] User: My favourite colour is green\.\n/);
  expect(await saved("WebVTT")).toMatch(/^WEBVTT\n\n00:00:00\.000 --> 00:00:\d\d\.\d{3}\n<v User>My favourite colour is green\.\n/);
  expect(JSON.parse(await saved("JSON"))).toHaveProperty("entries");

  await sheet.getByText("Prompt in force").click();
  await sheet.getByRole("group", { name: "Prompt in force" }).getByText(/\[voicegw:…\]/).waitFor();
  await looks.take("calls-prompt");
  await operator.press("Hang up", sheet);
  await operator.press("Yes, hang up", sheet);
  await sheet.getByText("This call has ended.").waitFor();
  await caller.says("Ended");
  await log.getByText("Back to text").waitFor();
  expect(await sheet.locator(".i-fact", { hasText: "Turns" }).innerText(), "the newest that was known").toMatch(/2$/);
  await looks.take("calls-ended");
  await operator.press("All calls", sheet);
  await sheet.getByText("No call is running.").waitFor();

  // Now it is a past call, listed by its first words.
  const past = sheet.getByRole("region", { name: "Past" });
  const kept = past.getByRole("button", { name: /My favourite colour is green\..* · voice · default · 2 turns · \$0\.\d{4}/ });
  await kept.waitFor();
  await looks.take("calls-past-list");
  await kept.focus();
  await page.keyboard.press("Enter");
  await log.getByText("What is two and two?").first().waitFor();
  await sheet.getByRole("row", { name: /^1 \d+ ms|^1 \d+\.\d\d s/ }).waitFor();
  await looks.take("calls-past-one");
  expect(await sheet.getByRole("group", { name: "Sound of the whole call" }).count()).toBe(0);
  expect(await saved("Text")).toMatch(/^\[00:00:00\] User: My favourite colour is green\.\n/);
  expect(await saved("WebVTT")).toMatch(/^WEBVTT\n\n/);
  expect(JSON.parse(await saved("JSON"))).toHaveProperty("entries");
  await operator.press("All calls", sheet);
  await past.waitFor();

  // Only the page that made the call has its sound.
  await caller.press("Calls");
  const own = caller.page.getByRole("dialog", { name: "Calls" });
  await own.getByRole("button", { name: /My favourite colour is green\..* · voice · default · 2 turns/ }).click();
  const { rate, channels } = readWav(await caller.save("Whole call (WAV)", own.getByRole("group", { name: "Sound of the whole call" })));
  expect([rate, channels.length, channels[1]!.some((x) => Math.abs(x) > 1000)]).toEqual([24000, 2, true]);
  await new Looks(caller.page).take("calls-past-own");

  // The console works with a gateway that has no such list.
  await page.route(/\/v1\/conversations\?/, (route) => route.fulfill({ status: 404, json: { error: { code: "not_found", message: "There is no endpoint." } } }));
  await eventually("a page without past calls", () => past.count(), (count) => count === 0);
  await sheet.getByText("No call is running.").waitFor();
  await operator.leave();
  await caller.leave();
  await gateway.close();
});
