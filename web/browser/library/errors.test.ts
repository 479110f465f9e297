// The library's errors: each cause has its own code, message and advice (docs/clients.md, "Error codes").
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import type { VoiceErrorCode } from "@voicegw/client";
import { WORDS } from "../../client/src/words.ts";
import { openChromium } from "../harness/chromium.ts";
import { FakeGateway } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { babble } from "../harness/signals.ts";
import { TalkPage, type PlainOptions } from "../harness/talkpage.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(babble, 10), { flags: ["--host-resolver-rules=MAP *.test 127.0.0.1"] });
});
afterAll(() => browser.close());

/** Chromium's errors for failures on purpose and for requests to a second host. */
const COMPLAINTS = [/WebSocket connection to .* failed/, /Connecting to .* violates/, /violates the following Content Security Policy/, /Failed to load resource/, /CORS policy/, /net::ERR_/, /to another host/, /[Pp]ermissions policy/, /Mixed Content/];

function described(code: VoiceErrorCode) {
  return { name: "VoiceError", code, ...WORDS[code] };
}

/** Opens a gateway's page with these headers and returns the error of connect, or null. */
async function fails(options: PlainOptions, headers?: Record<string, string>, host?: string): Promise<unknown> {
  const gateway = await FakeGateway.open(undefined, headers);
  const page = await TalkPage.open(browser, gateway, { complaints: COMPLAINTS, ...(host === undefined ? {} : { host }) });
  const error = await page.connect({ microphone: false, ...options });
  await page.leave();
  await gateway.close();
  return error;
}

describe.concurrent("a call that does not open says why:", () => {
  test("the page's content security policy blocks the socket", async () => {
    const headers = { "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'none'" };
    expect(await fails({}, headers)).toMatchObject(described("socket_blocked"));
  });

  test("the policy allows the gateway's https: address and not its wss: address", async () => {
    const gateway = await FakeGateway.open();
    const headers = { "Content-Security-Policy": `default-src 'none'; script-src 'self'; connect-src ${gateway.url.slice(0, -1)}` };
    const page = await FakeGateway.open(undefined, headers);
    const talk = await TalkPage.open(browser, page, { complaints: COMPLAINTS });
    expect(await talk.connect({ microphone: false, url: `${gateway.url}v1/voice` })).toMatchObject(described("socket_blocked"));
    expect(gateway.visits.all).toEqual([]);
    await talk.leave();
    await page.close();
    await gateway.close();
  });

  test.each(["v1/voce", "voice", "readyz"])("the path %s is not the gateway's", async (url) => {
    expect(await fails({ url })).toMatchObject(described("wrong_path"));
  });

  test("the path is wrong at a gateway of another origin", async () => {
    const other = await FakeGateway.open(undefined, {});
    expect(await fails({ url: `${other.url}v1/voce` }, {})).toMatchObject(described("wrong_path"));
    await other.close();
  });

  test("the real gateway does not allow the page's origin, and its wrong path is one for an allowed page", async () => {
    const real = await Gateway.open();
    const url = (path: string) => `http://${real.front.target}/${path}`;
    expect(await fails({ url: url("v1/voice") }, {})).toMatchObject(described("origin"));
    const page = await TalkPage.open(browser, real, { complaints: COMPLAINTS });
    expect(await page.connect({ microphone: false, url: "v1/voices" })).toMatchObject(described("wrong_path"));
    await page.leave();
    await real.close();
  });

  test("nothing answers there", async () => {
    const gone = await FakeGateway.open();
    await gone.close();
    expect(await fails({ url: `${gone.url}v1/voice` }, {})).toMatchObject(described("unreachable"));
  });

  test("the server has no certificate", async () => {
    const plain = await FakeGateway.open();
    expect(await fails({ url: `${plain.url.replace("http:", "wss:")}v1/voice` }, {})).toMatchObject({ ...described("unreachable"), advice: expect.stringContaining("certificate") });
    await plain.close();
  });

  test("the browser is offline", async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway, { complaints: COMPLAINTS });
    await page.visitor.context.setOffline(true);
    expect(await page.connect({ microphone: false })).toMatchObject(described("offline"));
    await page.leave();
    await gateway.close();
  });

  test("a page over https has the ws: address of a gateway", async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway, { complaints: COMPLAINTS });
    const at = "https://app.test/";
    await page.page.route(`${at}**`, async (route) => {
      const answer = await route.fetch({ url: route.request().url().replace(at, gateway.url) });
      await route.fulfill({ body: await answer.body(), contentType: answer.headers()["content-type"]! });
    });
    await page.page.goto(`${at}readyz`);
    await page.page.addScriptTag({ url: "/page/talk.js", type: "module" });
    await page.page.waitForFunction(() => "talk" in window);
    expect(await page.connect({ microphone: false, url: `ws://gateway.test:${new URL(gateway.url).port}/v1/voice` })).toMatchObject(described("mixed_content"));
    await page.leave();
    await gateway.close();
  });

  test("the address is invalid", async () => {
    expect(await fails({ url: "http://:0:0/" })).toMatchObject(described("invalid_url"));
  });

  test("the page's ticket endpoint is unreachable", async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway, { complaints: COMPLAINTS });
    const error = await page.page.evaluate(() => {
      const ticket = async (): Promise<string> => {
        const answer = await fetch("/ticket", { method: "POST" });
        if (!answer.ok) {
          throw new Error(`${answer.status}`);
        }
        return answer.text();
      };
      return window.talk.open({ microphone: false, ticket });
    });
    expect(error).toMatchObject({ ...described("ticket_failed"), cause: "Error: 404" });
    await page.leave();
    await gateway.close();
  });

  test.each([["ticket_wrong", 4501], ["ticket_origin", 4501], ["ticket_used", 4502], ["ticket_expired", 4502]] as const)("the gateway refuses the ticket with %s", async (code, closeCode) => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway);
    const opening = page.connect({ microphone: false, ticket: "t-1" });
    const visit = await gateway.visit();
    await visit.started();
    visit.send({ type: "error", code, message: "For programmers.", retryable: false });
    visit.close(closeCode);
    expect(await opening).toMatchObject({ code: "gateway", gatewayCode: code, message: expect.stringContaining("ticket"), retryable: false });
    await page.leave();
    await gateway.close();
  });
});

/** Opens a call that continues in text, and returns its first error. */
async function warns(page: TalkPage, gateway: FakeGateway, options: PlainOptions = {}): Promise<unknown> {
  const connected = page.connect(options);
  await gateway.welcome();
  expect(await connected).toBeNull();
  return page.next("error");
}

describe.concurrent("a call without sound or a microphone says why:", () => {
  test("the content security policy blocks the worklets", async () => {
    const gateway = await FakeGateway.open(undefined, { "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'" });
    const page = await TalkPage.open(browser, gateway, { complaints: COMPLAINTS });
    // The policy does not allow another origin's worklets, as from a CDN.
    const cdn = await FakeGateway.open(undefined, {});
    const error = warns(page, gateway, { worklets: { capture: `${cdn.url}client/worklets/capture.js`, playback: `${cdn.url}client/worklets/playback.js` } });
    expect(await error).toMatchObject(described("worklets_blocked"));
    await page.page.evaluate(() => window.talk.session?.microphone.start().catch((error: { code: string }) => window.tell("again", { code: error.code })));
    expect((await page.events.next("the microphone's own answer", ({ type }) => type === "again")).event).toEqual({ code: "worklets_blocked" });
    await page.leave();
    await cdn.close();
    await gateway.close();
  });

  test("the worklets are missing", async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway, { complaints: COMPLAINTS });
    expect(await warns(page, gateway, { worklets: { capture: "/gone/capture.js", playback: "/gone/playback.js" } })).toMatchObject(described("worklets_missing"));
    await page.leave();
    await gateway.close();
  });

  test("the page came over http from another machine", async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway, { host: "gateway.test", complaints: COMPLAINTS });
    expect(await warns(page, gateway)).toMatchObject(described("insecure_page"));
    await page.leave();
    await gateway.close();
  });

  test("its own Permissions-Policy excludes the microphone", async () => {
    const gateway = await FakeGateway.open(undefined, { "Permissions-Policy": "microphone=()" });
    const page = await TalkPage.open(browser, gateway, { complaints: COMPLAINTS });
    expect(await warns(page, gateway)).toMatchObject(described("microphone_policy"));
    await page.leave();
    await gateway.close();
  });

  test("the user or the site settings refuse it", async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway, { microphone: false });
    expect(await warns(page, gateway)).toMatchObject(described("microphone_denied"));
    await page.leave();
    await gateway.close();
  });

  test.each([
    ["without allow", "", "microphone_frame"],
    ["with a sandbox that has no origin", 'sandbox="allow-scripts" allow="microphone"', "microphone_frame"],
    ["with allow", 'allow="microphone; autoplay"', null],
  ] as const)("the page is in a frame %s", async (_, attributes, code) => {
    const gateway = await FakeGateway.open(undefined, {});
    const outer = await TalkPage.open(browser, gateway, { complaints: COMPLAINTS });
    const inner = gateway.url.replace("127.0.0.1", "localhost");
    await outer.page.setContent(`<iframe src="${inner}readyz" ${attributes}></iframe>`);
    const frame = await (await outer.page.waitForSelector("iframe")).contentFrame();
    await frame!.waitForURL(`${inner}readyz`);
    await frame!.evaluate(() => document.open().close());
    await frame!.addScriptTag({ url: `${inner}page/talk.js`, type: "module" });
    await frame!.waitForFunction(() => "talk" in window);
    const opening = frame!.evaluate((url) => window.talk.open({ url, keep: false }), `${inner}v1/voice`);
    const visit = await gateway.welcome();
    expect(await opening).toBeNull();
    if (code === null) {
      await visit.hears(1600);
    } else {
      expect(await outer.next("error")).toMatchObject(described(code));
    }
    await outer.leave();
    await gateway.close();
  });

  test("there is no microphone", async () => {
    const bare = await openChromium("", { devices: false });
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(bare, gateway, { complaints: COMPLAINTS });
    expect(await warns(page, gateway)).toMatchObject(described("microphone_missing"));
    await page.leave();
    await bare.close();
    await gateway.close();
  });

  test("the permission is withdrawn during the call", async () => {
    const gateway = await FakeGateway.open();
    const page = await TalkPage.open(browser, gateway);
    const connected = page.connect();
    const visit = await gateway.welcome();
    expect(await connected).toBeNull();
    await visit.hears(3200);
    await page.visitor.allow(false);
    expect(await page.next("error")).toMatchObject(described("microphone_revoked"));
    await page.leave();
    await gateway.close();
  });
});
