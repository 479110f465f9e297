// The console's looks in text and during handoffs, without speech; see looks-call.test.ts.
import { afterAll, beforeAll, describe, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { Looks } from "../harness/looks.ts";
import { ownScenarioAnd } from "../harness/scenarios.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(() => 0, 1));
});
afterAll(() => browser.close());

/** Long enough to look at while it is being written. */
const LONG = `
  - when: {text: wait a moment}
    do:
      - say: One moment. This is the beginning of an answer that takes a while, and it is long enough for a second line.
      - wait: 5m
`;

describe.concurrent("the console", () => {
  test("while the text agent writes, asks, draws and hands over", async () => {
    const gateway = await Gateway.open({ scenario: ownScenarioAnd(LONG) });
    const console = await ConsolePage.open(browser, gateway);
    const looks = new Looks(console.page);
    await console.write("Wait a moment, and another one");
    await console.line(/One moment/);
    await looks.take("text-writing");
    await console.press("Stop the answer");
    await console.page.getByRole("button", { name: "Send to the text agent" }).waitFor();
    await console.write("Book a design review tomorrow at 10");
    await console.question(/design review/);
    await looks.take("text-question");
    await console.press("Decline");
    await console.line(/declined$/);
    await console.write("Draw a lighthouse at dusk");
    await console.log.getByRole("img", { name: /lighthouse/ }).evaluate(async (image: HTMLImageElement) => image.decode());
    await looks.take("picture");
    await console.write("Switch to voice and tell me about the robotics lab");
    const invitation = await console.line("Continue by voice");
    await looks.take("invitation");
    await console.press("Talk", invitation);
    await console.line("Handed to voice");
    await console.says("Speaking");
    await looks.take("handed-to-voice");
    await console.press("Hang up");
    await console.says("Ended");
    await console.line("Back to text");
    await looks.take("handed-back");
    await console.leave();
    await gateway.close();
  });

  test("without a gateway", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    console.visitor.expect(/WebSocket connection to .* failed|Failed to load resource/);
    const looks = new Looks(console.page);
    await gateway.stop();
    await console.write("Is anybody there?");
    await console.line("cannot be reached");
    await looks.take("text-unreachable");
    await console.page.getByRole("button", { name: "Start talking" }).or(console.page.getByRole("button", { name: "Start again" })).click();
    await console.says("Not connected");
    await looks.take("voice-unreachable");
    await console.leave();
    await gateway.front.close();
  });
});
