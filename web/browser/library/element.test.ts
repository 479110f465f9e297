// The element <voicegw-call> in a page: speech, mute, send, and an approval that is announced and answered by
// keyboard.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { Visitor } from "../harness/chromium.ts";
import { FakeGateway } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { babble } from "../harness/signals.ts";

const OUT = join(import.meta.dirname, "../out");

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(babble, 20));
});
afterAll(() => browser.close());

test("one tag talks, mutes, sends, and has an approval answered by keyboard", async () => {
  mkdirSync(OUT, { recursive: true });
  const gateway = await FakeGateway.open(undefined, {});
  const visitor = await Visitor.come(browser, gateway.url);
  const { page } = visitor;
  await page.goto(`${gateway.url}readyz`);
  await page.setContent(`<html lang="en"><title>One tag</title><style>
    voicegw-call::part(question) { border: 2px solid teal; padding: .5em }
    voicegw-call::part(muted) { background: firebrick; color: white }
    voicegw-call::part(name) { color: teal }
  </style><main><voicegw-call url="${gateway.url}v1/voice"></voicegw-call></main></html>`);
  await page.addScriptTag({ url: "/client/element.js", type: "module" });
  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
  await press("Talk");
  const visit = await gateway.welcome();
  await visit.hears(1600);
  const said = (id: string, role: "user" | "assistant", text: string) => visit.send({ type: "transcript", turn: 1, id, role, text, final: true, started_at: new Date().toISOString() });
  said("u1", "user", "Book a table for two.");
  said("a1", "assistant", "For when?");
  await page.getByText("Agent:").waitFor();
  expect(await page.getByRole("log", { name: "Conversation" }).locator("p").allInnerTexts()).toEqual(["You: Book a table for two.", "Agent: For when?"]);

  await press("Mute");
  await page.getByRole("status").getByText("listening, muted").waitFor();
  await visit.frames.until("half a second of silence", () => visit.heard().subarray(-8000).every((x) => x === 0));
  const ground = (name: string) => page.getByRole("button", { name, exact: true }).evaluate((button) => getComputedStyle(button).backgroundColor);
  expect(await ground("Unmute")).toBe("rgb(178, 34, 34)");

  const field = page.getByRole("textbox", { name: "Or type" });
  await field.fill("Tomorrow at seven.");
  await press("Send");
  expect(await visit.next("input.text")).toMatchObject({ text: "Tomorrow at seven." });
  await field.focus();
  visit.send({ type: "confirmation.request", turn: 2, token: "t1", tool: "book_table", args: { guests: 2 }, args_source: '{"guests":2}', preview: "Book a table for two, tomorrow at 19:00?", expires_at: new Date(Date.now() + 60_000).toISOString() });
  const question = page.getByRole("group", { name: "Book a table for two, tomorrow at 19:00?" });
  await question.waitFor();
  expect(await page.getByRole("alert").filter({ hasText: /^Needs your approval: Book a table/ }).count(), "it is announced").toBe(1);
  expect(await field.evaluate((field) => (field.getRootNode() as ShadowRoot).activeElement === field), "the keyboard stays where it was").toBe(true);
  await page.screenshot({ path: join(OUT, "element-question.png") });
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  expect(await visit.next("confirmation.resolve")).toMatchObject({ token: "t1", approved: false });
  visit.send({ type: "confirmation.ended", turn: 2, token: "t1", tool: "book_table", outcome: "denied" });
  await question.waitFor({ state: "detached" });
  await press("Hang up");
  await visit.next("session.end");
  await visitor.leave();
  await gateway.close();
});
