// The text agent in the console, and handoffs to voice and back, with the real gateway and the simulator's own
// scenario.
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

const BOOKING = "Book a design review tomorrow at 10 with ada@example.org";

/** How often the tool ran. */
async function ran(gateway: Gateway, tool: string): Promise<number> {
  return (await gateway.audit()).filter((record) => record.toolId === tool && record.ok).length;
}

describe.concurrent("the text agent", () => {
  test("asks before it acts, and acts once on Approve", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    await console.write(BOOKING);
    const question = await console.question(/design review/);
    expect(await question.innerText()).toContain("ada@example.org");
    expect(await console.questions.getByRole("heading").innerText()).toBe("One action needs your approval");
    expect(await ran(gateway, "calendar_create_event")).toBe(0);
    await console.press("Approve", question);
    await question.waitFor({ state: "detached" });
    await console.line(/approved$/);
    await console.line(/calendar_create_event done in/);
    await console.page.getByRole("button", { name: "Send to the text agent" }).waitFor();
    expect(await ran(gateway, "calendar_create_event")).toBe(1);
    await console.leave();
    await gateway.close();
  });

  test("does nothing when Decline is reached and pressed with the keyboard", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    await console.write(BOOKING);
    await console.question(/design review/);
    await console.page.getByRole("button", { name: "Send to the text agent" }).waitFor();
    // The focus stays in the text field; only a button answers.
    await console.focusOn("Write to the text agent");
    await console.page.keyboard.press("Escape");
    await console.log.focus();
    await console.page.keyboard.press("Enter");
    await console.page.keyboard.press("q");
    expect(await console.page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("group");
    await console.page.keyboard.press("Enter");
    for (let presses = 0; (await console.focused()) !== "Decline"; presses++) {
      expect(presses).toBeLessThan(4);
      expect(await console.focused()).not.toBe("Approve");
      await console.page.keyboard.press("Tab");
    }
    await console.page.keyboard.press("Enter");
    await console.questions.waitFor({ state: "hidden" });
    await console.line(/declined$/);
    await console.page.getByRole("button", { name: "Send to the text agent" }).waitFor();
    await console.focusOn("Conversation");
    expect(await ran(gateway, "calendar_create_event")).toBe(0);
    await console.leave();
    await gateway.close();
  });

  test("hands over to voice, which answers the text question first, and gets the conversation back", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    await console.write("Switch to voice and tell me about the robotics lab");
    const invitation = await console.line("Continue by voice");
    expect(await invitation.innerText()).toContain("robotics lab");
    await console.press("Talk", invitation);
    // Nothing was said into the microphone.
    await console.says("Speaking");
    await console.line("Handed to voice");
    await console.line(/Voice agent:.*robotics/is);
    await console.press("Hang up");
    await console.says("Ended");
    await console.line(/Back to text · 1 turn/);
    await console.write("What did we talk about?");
    await console.line(/We talked about this.*robotics lab/s);
    await console.visitor.released();
    await console.leave();
    await gateway.close();
  });

  test("handles all examples on the page", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    const shown: [example: string, line: RegExp][] = [
      ["font", /kb_search done in/],
      ["voice", /Continue by voice/],
      ["Book", /calendar_create_event needs your approval/],
      ["Draw", /image_generate done in/],
    ];
    for (const [example, line] of shown) {
      await console.page.getByRole("button", { name: example }).click();
      await console.line(line);
      await console.page.getByRole("button", { name: "Send to the text agent" }).waitFor();
      await console.press("New conversation");
    }
    expect(await console.page.getByRole("button", { name: /font|voice|Book|Draw/ }).count()).toBe(shown.length);
    await console.leave();
    await gateway.close();
  });

  test("shows a picture, and forgets everything in a new conversation", async () => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    await console.write("Draw a lighthouse at dusk");
    const picture = console.log.getByRole("img", { name: /lighthouse/ });
    await picture.waitFor();
    await picture.evaluate(async (image: HTMLImageElement) => image.decode());
    await console.page.getByRole("button", { name: "Send to the text agent" }).waitFor();
    await console.press("New conversation");
    await console.page.getByRole("button", { name: "Start talking" }).waitFor();
    await console.write("What did we talk about?");
    const answer = await console.line("Text agent:");
    await console.page.getByRole("button", { name: "Send to the text agent" }).waitFor();
    expect(await answer.innerText()).not.toMatch(/lighthouse/);
    await console.leave();
    await gateway.close();
  });
});
