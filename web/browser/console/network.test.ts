// A call in the console when the network, the gateway or the page fails.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { recording } from "../harness/folder.ts";
import { eventually } from "../harness/eventually.ts";
import { Gateway } from "../harness/gateway.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(() => 0, 1));
});
afterAll(() => browser.close());

describe.concurrent("a call", () => {
  test("continues silently when the connection is cut for a moment", async () => {
    const gateway = await Gateway.open({ settings: { "sim.speed": 30 } });
    const console = await ConsolePage.open(browser, gateway, { stoppable: true });
    const { visitor } = console;
    await console.press("Start talking");
    await console.says("Listening");
    await console.type("My favourite animal is the otter.");
    await console.says("Speaking");
    // With no queued audio, the user would hear the outage, and the page would report it.
    await visitor.received("audio.end", 1);
    await visitor.stopTime();
    gateway.front.cut();
    await visitor.received("closed", 1);
    await visitor.pass(300);
    await visitor.received("session.started", 2);
    await visitor.resumeTime();
    await console.says("Listening");
    await console.type("My favourite colour is green.");
    await console.line(/You said:.*green.*all I can say/s);
    const here = await console.tab("State");
    await here.getByText("1, of them 1 resumed").waitFor();
    expect(console.hasSaid("Reconnecting")).toBe(false);
    expect((await console.lines()).filter((line) => /session|connection/.test(line))).toEqual([]);
    await console.leave();
    await gateway.close();
  });

  test("says that the user is not heard during a longer outage, and continues", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway, { stoppable: true });
    const { visitor } = console;
    visitor.expect(/WebSocket connection to .* failed|Failed to load resource/);
    const lamp = console.page.locator(".gateway");
    await console.press("Start talking");
    await console.says("Listening");
    await visitor.stopTime();
    gateway.front.away = true;
    gateway.front.cut();
    await visitor.received("closed", 1);
    await visitor.pass(1900);
    expect(console.hasSaid("Reconnecting")).toBe(false);
    await visitor.pass(200);
    await console.says("Reconnecting");
    await console.call.getByText("Your speech is saved.").waitFor();
    await visitor.pass(14_000);
    await console.call.getByText("Your speech is not saved any more.").waitFor();
    expect([await lamp.getAttribute("data-state"), await lamp.innerText()]).toEqual(["reconnecting", "Reconnecting"]);
    gateway.front.away = false;
    await visitor.resumeTime();
    await console.says("Listening");
    await console.type("My favourite colour is green.");
    await console.line(/You said:.*green.*all I can say/s);
    expect((await console.lines()).filter((line) => /new session/.test(line))).toEqual([]);
    await console.leave();
    await gateway.close();
  });

  test.each(["restarted", "killed, and started again"])("continues in the same session when the gateway was %s", async (how) => {
    const gateway = await Gateway.open({ settings: { "sim.speed": 30 } });
    const console = await ConsolePage.open(browser, gateway);
    const { visitor } = console;
    visitor.expect(/WebSocket connection to .* failed|Failed to load resource/);
    await console.press("Start talking");
    await console.says("Listening");
    await console.type("My favourite animal is the otter.");
    await console.line(/You said:.*otter/s);
    await console.says("Listening");
    const here = await console.tab("State");
    const session = await here.getByText(/^voice-[a-z0-9]+$/).innerText();
    await (how === "restarted" ? gateway.stop() : gateway.kill());
    await visitor.received("closed", 1);
    await gateway.start();
    await visitor.received("session.started", 2);
    await console.type("My favourite colour is green.");
    await console.line(/You said:.*green/s);
    expect(await here.getByText(/^voice-[a-z0-9]+$/).innerText()).toBe(session);
    expect((await console.lines()).filter((line) => /new session/.test(line))).toEqual([]);
    await console.press("Hang up");
    await console.says("Ended");
    // It is one conversation.
    await console.write("What did we talk about?");
    await console.line(/We talked about this.*otter.*green/s);
    await console.leave();
    await gateway.close();
  });

  test("continues after a reload with the whole conversation", async () => {
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
    await console.says("Listening");
    await console.line("The page was reloaded. The call continues.");
    for (const line of before) {
      await console.line(line);
    }
    expect((await console.lines()).filter((line) => /otter|green/.test(line)).length).toBe(4);
    await console.type("My favourite number is seven.");
    await console.line(/You said:.*seven.*all I can say/s);
    await console.press("Hang up");
    await console.says("Ended");
    // It is one conversation, and it does not resume after hanging up.
    await console.write("What did we talk about?");
    await console.line(/We talked about this.*otter.*green.*seven/s);
    await console.reload();
    await console.line(/We talked about this/);
    expect(await console.page.getByRole("button", { name: "Hang up" }).count()).toBe(0);
    await console.leave();
    await gateway.close();
  });

  test("shows its tools, response times and events after a reload", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    const { page } = console;
    const kept = (): Promise<string | null> => page.evaluate(() => sessionStorage.getItem("voicegw.instruments"));
    await console.press("Start talking");
    await console.says("Listening");
    await console.type("Tell me about the font library");
    await console.line(/kb_search done in/);
    await console.line(/Voice agent:.*font/is);
    await console.says("Speaking");
    await console.now("Listening");
    const latency = await console.tab("Latency");
    const wait = await latency.getByText(/^\d+ ms$|^\d+\.\d\d s$/).first().innerText();
    expect(await kept(), "nothing is stored while the page is open").toBe(null);

    await console.reload();
    await console.says("Listening");
    expect(await kept(), "nothing is stored afterwards").toBe(null);
    const tools = await console.tab("Tools");
    await tools.getByText("kb_search").first().waitFor();
    await console.tab("Latency");
    await latency.getByText(wait).first().waitFor();
    const events = await console.tab("Events");
    await events.getByRole("searchbox").fill("font library input.text");
    await events.getByRole("option", { name: /input\.text/ }).first().waitFor();
    await events.getByRole("searchbox").fill("");
    // The session continues with the same turns.
    await console.type("Tell me about the robotics lab");
    await console.line(/Voice agent:.*robot/is);
    await console.tab("Tools");
    await eventually("two turns with tools", () => tools.getByText("kb_search").count(), (count) => count >= 2);

    await console.press("Hang up");
    await console.says("Ended");
    await console.reload();
    await console.tab("Tools");
    expect(await tools.getByText("kb_search").count(), "an ended call is not stored").toBe(0);
    await console.leave();
    await gateway.close();
  });

  test("continues after a restart of the gateway during an outage: reports its losses and continues the count of turns", async () => {
    const gateway = await Gateway.open({ settings: { "limits.resume_grace": "0s" } });
    const console = await ConsolePage.open(browser, gateway);
    console.visitor.expect(/WebSocket connection to .* failed|Failed to load resource/);
    await console.press("Start talking");
    await console.says("Listening");
    await console.type("My favourite colour is green.");
    await console.line(/You said:.*green.*all I can say/s);
    await console.now("Listening");
    gateway.front.away = true;
    gateway.front.cut();
    await console.says("Reconnecting");
    await gateway.kill();
    await gateway.start();
    gateway.front.away = false;
    await console.press("Try now");
    await console.line(/Reconnected\. The conversation continues in a new session\. Lost: what you said in the last \d+ s/);
    await console.type("My favourite number is seven.");
    await console.line(/You said:.*seven.*all I can say/s);
    const latency = await console.tab("Latency");
    await latency.getByText("Turn 2", { exact: true }).first().waitFor();
    expect(await latency.getByText("Turn 1", { exact: true }).count()).toBe(1);
    await console.leave();
    await gateway.close();
  });

  test("does not begin if the gateway is gone, and says so", async () => {
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
