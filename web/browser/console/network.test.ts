// What happens to a call in the console when the network, the gateway or the page goes away.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(() => 0, 1));
});
afterAll(() => browser.close());

describe.concurrent("a call", () => {
  test("goes on when the connection is cut", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    await console.press("Start talking");
    await console.says("Listening");
    await console.type("My favourite animal is the otter.");
    await console.says("Speaking");
    await console.says("Listening");
    gateway.front.cut();
    await console.says("Reconnecting");
    await console.says("Listening");
    await console.line("The conversation goes on in a new session.");
    await console.type("My favourite colour is green.");
    await console.line(/You said:.*green.*all I can say/s);
    await console.press("Hang up");
    await console.says("Ended");
    // It is one conversation.
    await console.write("What did we talk about?");
    await console.line(/We talked about this.*otter.*green/s);
    await console.visitor.released();
    await console.leave();
    await gateway.close();
  });

  test("goes on when the gateway was restarted", async () => {
    const gateway = await Gateway.open({ settings: { drain_timeout: "0s" } });
    const console = await ConsolePage.open(browser, gateway);
    console.visitor.expect(/WebSocket connection to .* failed|Failed to load resource/);
    await console.press("Start talking");
    await console.says("Listening");
    await gateway.stop();
    await console.says("Reconnecting");
    await gateway.start();
    await console.says("Listening");
    await console.type("Are you there?");
    await console.says("Speaking");
    await console.leave();
    await gateway.close();
  });

  test("is over when the page is loaded again, and the conversation is still there", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    await console.write("My favourite animal is the otter.");
    await console.line(/Text agent:.*otter/s);
    await console.press("Start talking");
    await console.says("Listening");
    await console.type("My favourite colour is green.");
    await console.line(/You said:.*green.*all I can say/s);
    await console.now("Listening");
    const before = (await console.lines()).filter((line) => /otter|green/.test(line));
    expect(before.length).toBe(4);
    await console.reload();
    for (const line of before) {
      await console.line(line);
    }
    // The session of before was ended, or a new call of the conversation would be refused.
    await console.press("Start talking");
    await console.says("Listening");
    await console.press("Hang up");
    await console.says("Ended");
    await console.write("What did we talk about?");
    await console.line(/We talked about this.*otter.*green/s);
    await console.leave();
    await gateway.close();
  });

  test("does not begin where the gateway is gone, and says so", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    console.visitor.expect(/WebSocket connection to .* failed|Failed to load resource/);
    await gateway.stop();
    await console.press("Start talking");
    await console.says("Not connected");
    await console.call.getByText("The gateway cannot be reached.").waitFor();
    await console.visitor.released();
    await gateway.start();
    await console.press("Start again");
    await console.says("Listening");
    await console.leave();
    await gateway.close();
  });
});
