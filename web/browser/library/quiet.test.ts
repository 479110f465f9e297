// The harness notices a page's errors.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { FakeGateway } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { TalkPage } from "../harness/talkpage.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(() => 0, 1));
});
afterAll(() => browser.close());

describe.concurrent("a page is not quiet", () => {
  test.each([
    ["that logs an error", () => console.error("broken"), /console\.error: broken/],
    ["that throws", () => void setTimeout(() => { throw new Error("broken"); }), /exception: Error: broken/],
    ["that rejects without a handler", () => void Promise.reject(new Error("broken")), /exception: Error: broken/],
    ["that violates the policy", () => void document.body.append(Object.assign(new Image(), { src: "data:image/gif;base64,R0lGODlhAQABAAAAACw=" })), /Content Security Policy/],
    ["that sends a request to another host", () => void fetch("http://elsewhere.test/").catch(() => undefined), /elsewhere\.test/],
  ])("%s", async (_name, act, complaint) => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway);
    await page.page.evaluate(act);
    await page.visitor.complained(complaint);
    await expect(page.leave()).rejects.toThrow(complaint);
    await gateway.close();
  });
});
