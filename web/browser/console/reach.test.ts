// The console by keyboard alone, in narrow and magnified windows, and in the system's colours.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium, type VisitorOptions } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { eventually } from "../harness/eventually.ts";
import { FakeGateway, type Sent } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { babble } from "../harness/signals.ts";

let browser: Browser;
let real: Gateway;
beforeAll(async () => {
  browser = await openChromium(recording(babble, 120));
  real = await Gateway.open();
});
afterAll(async () => {
  await browser.close();
  await real.close();
});

async function opened(options: VisitorOptions = {}) {
  const gateway = await FakeGateway.open(real);
  const console = await ConsolePage.open(browser, gateway, options);
  const close = async () => {
    await console.leave();
    await gateway.close();
  };
  return { gateway, console, close };
}

function asks(token: string): Sent {
  const args = { title: "Design review", start_time: "2026-11-24T10:00:00Z", end_time: "2026-11-24T11:00:00Z", attendees: ["ada@example.org", "grace@example.org"], description: "What we know by then" };
  const preview = 'Create the event "Design review" from 2026-11-24T10:00:00Z to 2026-11-24T11:00:00Z. Invited: ada@example.org, grace@example.org. Description: What we know by then.';
  return { type: "confirmation.request", turn: 1, token, tool: "calendar_create_event", args, args_source: JSON.stringify(args), preview, expires_at: new Date(Date.now() + 290_000).toISOString() };
}

/** The pixels of a canvas as RGBA, from a screenshot, because a worker draws it. */
async function drawnOn(console: ConsolePage, selector: string): Promise<Buffer> {
  const base64 = await console.page.locator(selector).evaluate((canvas: HTMLCanvasElement) => {
    const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    const context = copy.getContext("2d")!;
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    let bytes = "";
    for (const byte of data) {
      bytes += String.fromCharCode(byte);
    }
    return btoa(bytes);
  });
  return Buffer.from(base64, "base64");
}

/** The colour of the first opaque pixel, in CSS syntax. */
function opaque(pixels: Buffer): string | undefined {
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] === 255) {
      return `rgb(${pixels[i]}, ${pixels[i + 1]}, ${pixels[i + 2]})`;
    }
  }
  return undefined;
}

describe("by keyboard", () => {
  test("with push-to-talk the space bar talks, also right after Start talking", async () => {
    const { gateway, console, close } = await opened();
    await console.press("Settings");
    await console.page.getByRole("radio", { name: "Push-to-talk" }).check();
    await console.page.keyboard.press("Escape");
    await console.page.getByRole("button", { name: "Start talking" }).focus();
    await console.page.keyboard.press("Enter");
    const visit = await gateway.welcome();
    await console.focusOn("Mute");
    await console.page.keyboard.down(" ");
    expect(await visit.next("input.activity")).toMatchObject({ active: true });
    await console.page.keyboard.up(" ");
    expect(await visit.next("input.activity")).toMatchObject({ active: false });
    expect(console.hasSaid("Muted")).toBe(false);
    // Single keys work on a button, too.
    await console.page.keyboard.press("m");
    await console.page.getByRole("button", { name: "Unmute" }).waitFor();
    await close();
  });

  test("Shift+Tab from the composer reaches no answer button", async () => {
    const { gateway, console, close } = await opened();
    await console.press("Start talking");
    const visit = await gateway.welcome();
    visit.send(asks("t1"));
    await console.question(/Design review/);
    await console.page.getByRole("textbox", { name: "Write to the text agent" }).focus();
    await console.page.keyboard.press("Shift+Tab");
    await console.page.keyboard.press("Enter");
    await console.page.keyboard.press(" ");
    // The card itself, then Decline and Approve.
    await console.questions.getByRole("group", { name: /Design review/ }).focus();
    // The arguments may be folded.
    for (let i = 0; i < 4 && (await console.focused()) !== "Decline"; i++) {
      await console.page.keyboard.press("Tab");
    }
    await console.focusOn("Decline");
    await console.page.keyboard.press("Tab");
    await console.focusOn("Approve");
    expect(visit.texts.all.filter(({ type }) => type === "confirmation.resolve")).toEqual([]);
    await console.page.keyboard.press("Enter");
    expect(await visit.next("confirmation.resolve")).toMatchObject({ token: "t1", approved: true });
    await close();
  });

  test("an example keeps the focus", async () => {
    const { console, close } = await opened();
    await console.page.getByRole("button", { name: "Tell me about the font library" }).focus();
    await console.page.keyboard.press("Enter");
    await console.focusOn("Conversation");
    await close();
  });
});

describe("in any window", () => {
  test("a question can be answered at 200 and 400 % zoom", async () => {
    const { gateway, console, close } = await opened();
    await console.press("Start talking");
    const visit = await gateway.welcome();
    visit.send(asks("t1"));
    const question = await console.question(/Design review/);
    for (const size of [{ width: 720, height: 450 }, { width: 360, height: 225 }, { width: 320, height: 256 }, { width: 320, height: 180 }, { width: 390, height: 844 }, { width: 1024, height: 768 }, { width: 1440, height: 900 }]) {
      await console.page.setViewportSize(size);
      await console.page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
      await console.page.screenshot({ path: new URL(`../out/question-${size.width}x${size.height}.png`, import.meta.url).pathname });
      for (const name of ["Decline", "Approve"]) {
        const seen = await question.getByRole("button", { name }).evaluate((button) => {
          const { left, right, top, bottom } = button.getBoundingClientRect();
          return button.contains(document.elementFromPoint((left + right) / 2, top + 2)) && button.contains(document.elementFromPoint((left + right) / 2, bottom - 2));
        });
        expect(seen, `${name} in a window of ${size.width} x ${size.height}`).toBe(true);
      }
      await question.locator("details").evaluate((details: HTMLDetailsElement) => (details.open = false));
      // The number of whole lines of the arguments that are visible at once, and whether anything is cut off at the
      // side.
      const { whole, total, wide } = await question.locator(".preview").evaluate((preview) => {
        preview.closest(".questions")!.scrollTop = 0;
        const text = document.createRange();
        text.selectNodeContents(preview);
        const top = preview.closest(".questions")!.getBoundingClientRect().top;
        const bottom = preview.closest(".question")!.querySelector(".answers")!.getBoundingClientRect().top;
        const rects = [...text.getClientRects()];
        const pane = preview.closest(".questions")!;
        return {
          whole: rects.filter((line) => line.top >= Math.max(0, top) && line.bottom <= bottom + 1).length,
          total: rects.length,
          wide: pane.scrollWidth > pane.clientWidth || document.documentElement.scrollWidth > innerWidth,
        };
      });
      expect(wide, `sideways scrolling in a window of ${size.width} x ${size.height}`).toBe(false);
      expect(whole, `visible lines of the arguments in a window of ${size.width} x ${size.height}`).toBeGreaterThanOrEqual(Math.min(total, size.height < 200 ? 4 : 6));
      await question.locator("details").evaluate((details: HTMLDetailsElement) => (details.open = true));
      const { lines, cut } = await question.locator("pre").evaluate((pre) => {
        const text = document.createRange();
        text.selectNodeContents(pre);
        const bottom = pre.getBoundingClientRect().top + pre.clientTop + pre.clientHeight;
        const rects = [...text.getClientRects()];
        return { lines: rects.length, cut: rects.filter((line) => line.top < bottom - 1 && line.bottom > bottom + 1).length };
      });
      expect(lines).toBeGreaterThan(8);
      expect(cut, `partly visible lines of the arguments in a window of ${size.width} x ${size.height}`).toBe(0);
    }
    await close();
  });

  test("the calls, the agents and the settings are one press away, at 400 % zoom too", async () => {
    const { console, close } = await opened();
    for (const size of [{ width: 1440, height: 900 }, { width: 1024, height: 768 }, { width: 320, height: 640 }, { width: 320, height: 256 }]) {
      await console.page.setViewportSize(size);
      for (const name of ["Calls", "Agents", "Settings"]) {
        const button = console.page.getByRole("banner").getByRole("button", { name, exact: true });
        const box = (await button.boundingBox())!;
        expect(box.x >= 0 && box.x + box.width <= size.width && box.width >= 24 && box.height >= 24, `${name} in a window of ${size.width}`).toBe(true);
        await button.focus();
        await console.page.keyboard.press("Enter");
        const dialog = console.page.getByRole("dialog", { name });
        await dialog.waitFor();
        expect(await dialog.locator(".sheet-inside").evaluate((inside) => inside.scrollWidth <= inside.clientWidth), `${name} fits in a window of ${size.width}`).toBe(true);
        await console.page.keyboard.press("Escape");
        await console.focusOn(name);
      }
    }
    await close();
  });

  test("an unused composer makes room for a call", async () => {
    const { gateway, console, close } = await opened();
    const field = console.page.getByRole("textbox", { name: "Write to the text agent" });
    const size = async () => (await field.boundingBox())!;
    await console.press("Start talking");
    await gateway.welcome();
    await console.says("Listening");
    const unused = await size();
    const call = (await console.call.boundingBox())!;
    expect(unused.height).toBeLessThan(50);
    expect(call.width).toBeGreaterThan(unused.width * 1.4);
    await field.focus();
    expect((await size()).height, "in use").toBeGreaterThan(2 * unused.height);
    await field.fill("Something to send later");
    await console.page.getByRole("textbox", { name: "Type to the voice agent" }).focus();
    expect((await size()).height, "with a text that was not sent").toBeGreaterThan(2 * unused.height);
    await close();
  });

  test.each(["worker", "page"])("the waveform moves in a narrow window, in a call that began with an invitation, drawn by the %s", async (drawer) => {
    const gateway = await Gateway.open();
    const console = await ConsolePage.open(browser, gateway);
    if (drawer === "page") {
      console.visitor.expect(/ERR_FAILED/);
      await console.page.route(/drawing\.worker/, (route) => route.abort());
      await console.reload();
      await console.page.getByText(/^Ready/).first().waitFor();
    }
    await console.page.setViewportSize({ width: 390, height: 844 });
    await console.write("Switch to voice and tell me about the robotics lab");
    await console.press("Talk", await console.line("Continue by voice"));
    await console.says("You are speaking");
    const picture = async () => (await drawnOn(console, ".i-wave canvas")).toString("base64");
    const before = await picture();
    await eventually("another picture", picture, (now) => now !== before);
    const then = await picture();
    await eventually("another picture", picture, (now) => now !== then);
    const given = await console.page.locator(".i-wave canvas").evaluate((canvas: HTMLCanvasElement) => {
      try {
        return canvas.getContext("2d") === null;
      } catch {
        return true; // A canvas given to a worker has no context here.
      }
    });
    expect(given).toBe(drawer === "worker");
    await console.leave();
    await gateway.close();
  });

  test("the system's own colours show the selection and the meters", async () => {
    const { gateway, console, close } = await opened();
    await console.page.emulateMedia({ forcedColors: "active" });
    await console.press("Start talking");
    const visit = await gateway.welcome();
    await visit.hears(1600);
    const ground = (selector: string) => console.page.locator(selector).first().evaluate((element) => getComputedStyle(element).backgroundColor);
    expect(await ground("[role=tab][aria-selected=true]")).not.toBe(await ground("[role=tab][aria-selected=false]"));
    const bar = async () => opaque(await drawnOn(console, ".meter-user canvas"));
    const colour = await eventually("a bar of the user's level", bar, (found) => found !== undefined);
    expect(colour).not.toBe(await ground(".meter-user"));
    await console.press("Mute");
    expect(await ground("#mute")).not.toBe(await ground("#hangup"));
    await console.page.screenshot({ path: new URL("../out/forced-colors.png", import.meta.url).pathname });
    await close();
  });
});
