// The test's side of the page that uses the library (page/talk.js).
import type { Browser } from "playwright-core";
import type { ConnectOptions, LocalEvents } from "@voicegw/client";
import { Visitor, type VisitorOptions } from "./chromium.ts";
import { Mailbox } from "./mailbox.ts";

/** An event that the library reported. */
export interface Reported {
  type: string;
  event: unknown;
}

/** Options of the library that JSON can carry. */
export type PlainOptions = Omit<ConnectOptions, "ticket" | "key" | "url" | "worklets" | "audioContext" | "signal"> & { ticket?: string; url?: string; worklets?: { capture: string; playback: string } };

/** Pings and their answers are noise in errors. */
function isPulse(event: unknown): boolean {
  return ["ping", "pong"].includes((event as { type?: string } | null)?.type ?? "");
}

export class TalkPage {
  /** Every event of the library except `level`, in order. */
  readonly events = new Mailbox<Reported>(({ type, event }) => (isPulse(event) ? "" : `${type} ${JSON.stringify(event)}`));

  private constructor(
    readonly visitor: Visitor,
    private readonly url: string,
  ) {}

  /** Opens another tab with a copy of this one's session storage, as browsers do. */
  async copy(): Promise<TalkPage> {
    const kept = await this.page.evaluate(() => JSON.stringify(sessionStorage));
    const visitor = await this.visitor.another();
    const page = new TalkPage(visitor, this.url);
    await visitor.page.exposeFunction("tell", (type: string, event: unknown) => page.events.put({ type, event }));
    await page.load();
    await page.page.evaluate((kept) => Object.entries(JSON.parse(kept) as Record<string, string>).forEach(([name, value]) => sessionStorage.setItem(name, value)), kept);
    return page;
  }

  /** Opens the page of a gateway, real or fake. `host` replaces the host name. */
  static async open(browser: Browser, gateway: { url: string }, { host, ...options }: VisitorOptions & { host?: string } = {}): Promise<TalkPage> {
    const url = gateway.url.replace("127.0.0.1", host ?? "127.0.0.1");
    const visitor = await Visitor.come(browser, url, options);
    const page = new TalkPage(visitor, url);
    await visitor.page.exposeFunction("tell", (type: string, event: unknown) => page.events.put({ type, event }));
    await page.load();
    return page;
  }

  get page() {
    return this.visitor.page;
  }

  /** Loads or reloads the page. */
  async load(): Promise<void> {
    // A document without scripts, under the gateway's policy.
    await this.page.goto(`${this.url}readyz`);
    await this.page.addScriptTag({ url: "/page/talk.js", type: "module" });
    await this.page.waitForFunction(() => "talk" in window);
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.page.addScriptTag({ url: "/page/talk.js", type: "module" });
    await this.page.waitForFunction(() => "talk" in window);
    this.events.skip();
  }

  /** Opens a session; resolves with the error if it fails. `context`: rate of the page's own AudioContext. */
  async connect(options: PlainOptions = {}, context?: number): Promise<unknown> {
    const error = await this.page.evaluate(([options, context]) => window.talk.open(options, context), [options, context] as const);
    await this.visitor.listens();
    return error;
  }

  /** The next wanted event of a type. */
  async next<T extends keyof LocalEvents>(type: T, wanted: (event: LocalEvents[T]) => boolean = () => true): Promise<LocalEvents[T]> {
    const reported = await this.events.next(`the event ${type} that is wanted by ${String(wanted)}`, (t) => t.type === type && wanted(t.event as LocalEvents[T]));
    return reported.event as LocalEvents[T];
  }

  /** All events of a type so far. */
  all<T extends keyof LocalEvents>(type: T): LocalEvents[T][] {
    return this.events.all.filter((reported) => reported.type === type).map((reported) => reported.event as LocalEvents[T]);
  }

  /** Records the model's voice from now on. */
  async keepDownlink(): Promise<void> {
    await this.page.evaluate(() => {
      window.talk.downlink = [];
      window.talk.session?.on("downlink", ({ pcm }) => window.talk.downlink.push(pcm.slice() as Int16Array<ArrayBuffer>));
    });
  }

  /** Returns the recorded voice. As numbers, the samples would block the page and its microphone for seconds. */
  async downlink(): Promise<Int16Array> {
    const text = await this.page.evaluate(() => window.talk.downlinkText());
    const bytes = Uint8Array.from(Buffer.from(text, "base64"));
    return new Int16Array(bytes.buffer);
  }

  async leave(): Promise<void> {
    await this.visitor.leave();
  }
}
