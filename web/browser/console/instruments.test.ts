// The console's instruments with the real gateway.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { Looks } from "../harness/looks.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(() => 0, 1));
});
afterAll(() => browser.close());

/** Takes a screenshot of the instruments, which replace the conversation in narrow windows. */
async function take(console: ConsolePage, looks: Looks, state: string): Promise<void> {
  const { width, height } = console.page.viewportSize()!;
  await console.page.setViewportSize({ width: 390, height: 844 });
  await console.page.getByRole("navigation").getByRole("button", { name: "Instruments" }).click();
  await console.page.setViewportSize({ width, height });
  await looks.take(state);
}

describe.concurrent("the instruments", () => {
  test("show the tools, the waits, the events and the state of a conversation", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    const looks = new Looks(console.page);
    await take(console, looks, "instruments-empty");
    await console.write("Book a design review tomorrow at 10");
    await console.press("Approve", await console.question(/design review/));
    await console.line(/calendar_create_event done in/);
    await console.press("Start talking");
    // A text sent before the end of the model's first answer would get that answer.
    await console.line(/Voice agent:.*You can go on/s);
    await console.type("Tell me about the font library");
    await console.line(/kb_search done in/);
    await console.line(/Voice agent:.*font/is);
    await console.says("Speaking");

    const tools = await console.tab("Tools");
    await tools.getByText("kb_search").first().waitFor();
    await tools.getByText("you approved").waitFor();
    // The text agent's calls open like the voice agent's.
    for (const tool of [/calendar_create_event/, /kb_search/]) {
      const call = tools.getByRole("listitem").filter({ has: console.page.getByRole("button", { name: tool }) }).first();
      await call.getByRole("button", { name: tool }).click();
      for (const title of ["Arguments", "Answer to the model", "Audit record"]) {
        await call.getByText(title, { exact: true }).waitFor();
      }
    }
    await take(console, looks, "instruments-tools");
    const latency = await console.tab("Latency");
    await console.shows(latency, /typed/);
    await take(console, looks, "instruments-latency");
    const state = await console.tab("State");
    await console.shows(state, "In conversation");
    await take(console, looks, "instruments-state");
    const events = await console.tab("Events");
    await events.getByRole("searchbox").fill("session.started");
    await events.getByRole("option", { name: /session\.started/ }).click();
    await events.getByText("voice-").first().waitFor();
    await take(console, looks, "instruments-events");
    await events.getByRole("searchbox").fill("");

    // The saved file has all of it and no secret.
    const saved = readFileSync(await console.save("Save", events), "utf8");
    const types = saved.trim().split("\n").map((line) => (JSON.parse(line) as { type?: string }).type);
    expect(types.length).toBeGreaterThan(20);
    expect(saved).toContain("confirmation.request");
    expect(saved).not.toMatch(/cf_[A-Z0-9]{10}/);
    await console.leave();
    await gateway.close();
  });

  test("make the provider fail and show the effects", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    const looks = new Looks(console.page);
    await console.press("Start talking");
    await console.says("Listening");
    const faults = await console.tab("Faults");
    await console.press("Drop the provider's connection", faults);
    await faults.getByRole("status").getByText("triggered").waitFor();
    // The gateway replaces the provider's connection and the call continues.
    await console.type("Are you there?");
    await console.says("Speaking");
    await take(console, looks, "instruments-faults");
    await console.leave();
    await gateway.close();
  });
});
