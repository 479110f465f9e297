// The settings test the microphone and the speaker before a call and give advice on failures.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium, type VisitorOptions } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { FakeGateway } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { babble } from "../harness/signals.ts";

let browser: Browser;
let real: Gateway;
beforeAll(async () => {
  browser = await openChromium(recording(babble, 60), { loop: true });
  real = await Gateway.open();
});
afterAll(async () => {
  await browser.close();
  await real.close();
});

/** The device test in the settings, without a call. */
async function settings(options: VisitorOptions = {}) {
  const gateway = await FakeGateway.open(real);
  const console = await ConsolePage.open(browser, gateway, options);
  await console.press("Settings");
  const test = console.page.getByRole("dialog", { name: "Settings" }).getByRole("group", { name: "Test your devices" });
  const close = async () => {
    await console.leave();
    await gateway.close();
  };
  return { console, gateway, test, close };
}

describe.concurrent("the test of the devices", () => {
  test("hears the user and releases the microphone", async () => {
    const { console, test, close } = await settings();
    await console.press("Test the microphone", test);
    await console.shows(test, "The microphone works.");
    await console.press("Stop the test", test);
    await test.getByRole("button", { name: "Test the microphone", exact: true }).waitFor();
    expect(await test.getByText("The microphone works.").count()).toBe(0);
    await console.visitor.released();
    // Closed settings do not listen.
    await console.press("Test the microphone", test);
    await console.shows(test, "The microphone works.");
    await console.page.keyboard.press("Escape");
    await console.visitor.released();
    await close();
  });

  test("plays a tone and gives advice if it was not heard", async () => {
    const { console, test, close } = await settings();
    await console.press("Play a test tone", test);
    await console.shows(test, /^The tone has ended\. If you did not hear it, choose another speaker or turn up the volume\.$/);
    await test.getByRole("button", { name: "Play a test tone", disabled: false }).waitFor();
    const { blocks } = await console.visitor.sound();
    expect(Math.max(...blocks.flatMap(({ samples }) => samples.map(Math.abs))), "the loudest sample").toBeGreaterThan(0.1);
    await console.visitor.released();
    await close();
  });

  test("gives advice if the microphone is blocked, and hears once it is allowed", async () => {
    const { console, test, close } = await settings({ microphone: false });
    await console.press("Test the microphone", test);
    await console.shows(test, "The microphone is blocked. Allow it in the address bar, then turn it on again.");
    await console.visitor.allow(true);
    await console.press("Test the microphone", test);
    await console.shows(test, "The microphone works.");
    await close();
  });

  test("is disabled during a call", async () => {
    const { console, gateway, test, close } = await settings();
    await console.press("Test the microphone", test);
    await console.shows(test, "The microphone works.");
    await console.page.keyboard.press("Escape");
    await console.press("Start talking");
    await gateway.welcome();
    await console.says("Listening");
    await console.press("Settings");
    await console.shows(test, "The call uses your devices. Test them before the next call.");
    expect(await test.getByRole("button", { disabled: true }).allInnerTexts()).toEqual(["Test the microphone", "Play a test tone"]);
    await close();
  });
});
