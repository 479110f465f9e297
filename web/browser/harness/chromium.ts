// Debian's Chromium with a file as its microphone, and pages that must be quiet.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { expect } from "vitest";
import { eventually } from "./eventually.ts";
import { Mailbox, PATIENCE } from "./mailbox.ts";
import { recorded, type Sound } from "./signals.ts";

const PROGRAM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--disable-component-update",
  "--autoplay-policy=no-user-gesture-required",
];

/**
 * Starts it. `microphone` is a WAV file, played from when a page opens the microphone: once,
 * or in a loop.
 */
export async function openChromium(microphone: string, { flags = [], loop = false, devices = true }: { flags?: string[]; loop?: boolean; devices?: boolean } = {}): Promise<Browser> {
  if (!existsSync(PROGRAM)) {
    throw new Error(`${PROGRAM} is not there; install Debian's package chromium, or set CHROMIUM to one that is`);
  }
  const fake = devices ? ["--use-fake-device-for-media-stream", `--use-file-for-fake-audio-capture=${microphone}${loop ? "" : "%noloop"}`] : [];
  return chromium.launch({ executablePath: PROGRAM, args: [...FLAGS, ...fake, ...flags] });
}

export interface VisitorOptions {
  /** Whether the microphone is allowed. Default true. */
  microphone?: boolean;
  /** Default true: the browser's own processing is off, so that samples can be compared. */
  plain?: boolean;
  /** Default true: what goes to the loudspeaker is kept, in the page's memory. */
  spied?: boolean;
  /** What the browser will complain about, and rightly; see Visitor.expect. */
  complaints?: RegExp[];
  /** Default false: the page's timers can be stopped; see Visitor.stopTime. */
  stoppable?: boolean;
}

/** So long audio that has come to a busy page may be on its way to the audio thread, in seconds. */
const ON_ITS_WAY = 0.15;

/** Samples that an audio thread renders at a time. */
const BLOCK = 128;

/** One of them, and where it begins on the audio clock. */
export interface Block {
  frame: number;
  samples: number[];
}

/** One person with one page: a context of its own, with nothing of another one's in it. */
export class Visitor {
  /** What the page complained about: exceptions, console, policy violations, other origins. */
  private readonly trouble = new Mailbox<string>((text) => text);
  private readonly expected: RegExp[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    private readonly origin: string,
  ) {}

  /** Comes to an address; its page is not loaded yet. */
  static async come(browser: Browser, url: string, options: VisitorOptions = {}): Promise<Visitor> {
    const context = await browser.newContext({
      permissions: options.microphone === false ? [] : ["microphone"],
      viewport: { width: 1440, height: 900 },
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(PATIENCE);
    return Visitor.at(context, url, options);
  }

  /** The same person in another tab. Leaving one leaves both; each has its own complaints. */
  async another(options: VisitorOptions = {}): Promise<Visitor> {
    return Visitor.at(this.context, this.origin, options);
  }

  private static async at(context: BrowserContext, url: string, options: VisitorOptions): Promise<Visitor> {
    const page = await context.newPage();
    const visitor = new Visitor(context, page, new URL(url).origin);
    visitor.expected.push(...(options.complaints ?? []));
    visitor.listen();
    if (options.stoppable ?? false) {
      await page.clock.install();
    }
    if (options.spied ?? true) {
      await page.addInitScript({ path: join(import.meta.dirname, "../page/spy.js") });
      await page.addInitScript((plain) => void (window.spy.plain = plain), options.plain ?? true);
    }
    return visitor;
  }

  /** What the test does on purpose, and the browser complains about. */
  expect(trouble: RegExp): void {
    this.expected.push(trouble);
  }

  /** Waits until the page has complained about something. */
  async complained(about: RegExp): Promise<void> {
    await this.trouble.next(`a complaint about ${about}`, (text) => about.test(text));
  }

  /** Takes the microphone away, as a person does in the address bar, or allows it again. */
  async allow(microphone: boolean): Promise<void> {
    await (microphone ? this.context.grantPermissions(["microphone"]) : this.context.clearPermissions());
  }

  /**
   * Stops the page's clock: how long something takes is then for the test to say, however busy
   * the machine is. Sound and the network go on. The page must have been opened `stoppable`.
   */
  async stopTime(): Promise<void> {
    // It can only be stopped at a time that is not past, and a busy machine passes it meanwhile.
    for (let aheadMs = 500; ; aheadMs *= 2) {
      const at = (await this.page.evaluate(() => Date.now())) + aheadMs;
      try {
        return await this.page.clock.pauseAt(at);
      } catch (cause) {
        if (aheadMs > 5000) {
          throw cause;
        }
      }
    }
  }

  /** While the clock stands: so many ms pass at once. */
  async pass(ms: number): Promise<void> {
    await this.page.clock.runFor(ms);
  }

  /** The clock goes on. */
  async goOn(): Promise<void> {
    await this.page.clock.resume();
  }

  /** Waits until so many messages of a type have come from the gateway; `closed` is a connection that has ended. */
  async came(type: string, count: number): Promise<void> {
    await eventually(`${count} messages ${type}`, () => this.page.evaluate((type) => window.spy.arrivals.filter((a) => a.type === type).length, type), (n) => n >= count);
  }

  /** Waits until the taps of what runs listen: what sounds before that is not kept. */
  async listens(): Promise<void> {
    await this.page.waitForFunction(() => window.spy.taps.every(({ context, listens }) => listens || context.state !== "running"), undefined, { timeout: PATIENCE });
  }

  /** What went to the loudspeaker: blocks in order, without silence; and the clock's rate. */
  async sound(): Promise<{ rate: number; blocks: Block[] }> {
    return this.blocks("sound");
  }

  /**
   * Fails where an item that was flushed sounds on: when it is silent after the flush, it stays so until a frame. How soon it
   * is silent depends on how busy the machine is; library/interruption.test.ts measures it.
   */
  async staysSilent(flushed: number, until: number): Promise<void> {
    const { blocks } = await this.sound();
    const late = blocks.filter(({ frame }) => frame >= flushed && frame < until);
    const silent = late.findIndex(({ frame }, i) => i > 0 && frame - late[i - 1]!.frame > BLOCK);
    expect(silent < 0 ? [] : late.slice(silent).map(({ frame }) => frame), "blocks that sound after the silence").toEqual([]);
    expect((late.at(-1)?.frame ?? 0) + BLOCK, "the end of what sounds after the flush").toBeLessThan(until);
  }

  /**
   * What the browser gave of the microphone, from its first sound on. A browser that shares its
   * cores loses blocks of its device before any page has them: what became of the microphone is
   * compared with this.
   */
  async microphone(): Promise<Sound> {
    const { rate, blocks } = await this.blocks("microphone");
    const first = blocks[0]?.frame ?? 0;
    const samples = new Float32Array((blocks.at(-1)?.frame ?? 0) - first + BLOCK);
    blocks.forEach((block) => samples.set(block.samples, block.frame - first));
    return recorded(samples, rate);
  }

  /** What a tap has kept. As text that costs the page little: one that is held up for long loses its connection. */
  private async blocks(of: "sound" | "microphone"): Promise<{ rate: number; blocks: Block[] }> {
    const { rate, frames, text } = await this.page.evaluate(async (of) => {
      const blocks = window.spy[of];
      const bytes = await new Blob(blocks.map(({ samples }) => samples as Float32Array<ArrayBuffer>)).arrayBuffer();
      const reader = new FileReader();
      const url = await new Promise<string>((read) => {
        reader.onload = () => read(reader.result as string);
        reader.readAsDataURL(new Blob([bytes]));
      });
      return { rate: window.spy.contexts.at(-1)!.sampleRate, frames: blocks.map(({ frame }) => frame), text: url.slice(url.indexOf(",") + 1) };
    }, of);
    const bytes = Uint8Array.from(Buffer.from(text, "base64"));
    const all = new Float32Array(bytes.buffer);
    return { rate, blocks: frames.map((frame, i) => ({ frame, samples: [...all.subarray(i * BLOCK, (i + 1) * BLOCK)] })) };
  }

  /** What was sent to the gateway of the microphone: PCM16, from its first sound on. */
  async uplink(): Promise<Int16Array> {
    const text = await this.page.evaluate(async () => {
      const reader = new FileReader();
      const url = await new Promise<string>((read) => {
        reader.onload = () => read(reader.result as string);
        reader.readAsDataURL(new Blob(window.spy.uplink as Int16Array<ArrayBuffer>[]));
      });
      return url.slice(url.indexOf(",") + 1);
    });
    const all = new Int16Array(Uint8Array.from(Buffer.from(text, "base64")).buffer);
    return all.slice(Math.max(0, all.findIndex((x) => x !== 0)));
  }

  /** Waits for a message about an item, and returns the audio clock's frame at which it came to the page. */
  async arrived(type: string, item: string): Promise<number> {
    const found = await this.page.waitForFunction(([type, item]) => window.spy.arrivals.find((a) => a.type === type && a.item === item), [type, item] as const, { timeout: PATIENCE });
    const { frame } = (await found.jsonValue())!;
    return frame;
  }

  /**
   * Which audio came too late to sound without a gap, whatever is made of it: the first sample that came has sounded at the
   * frame `begins`, and each one is due when those before it have sounded. Empty where all came in time.
   */
  async late(begins: number): Promise<string> {
    const { rate, came } = await this.page.evaluate(() => ({
      rate: window.spy.contexts.at(-1)!.sampleRate,
      came: window.spy.arrivals.filter(({ type }) => type === "audio").map(({ frame, samples }) => ({ frame, samples: samples! })),
    }));
    const seconds = (frame: number) => ((frame - begins) / rate).toFixed(2);
    let due = begins;
    for (const { frame, samples } of came) {
      const onItsWay = Math.min(ON_ITS_WAY * rate, (due - begins) / 4); // little waits when an answer begins
      if (due > begins && frame + onItsWay > due) {
        return `the audio that is due after ${seconds(due)} s of the answer came after ${seconds(frame)} s`;
      }
      due += samples;
    }
    return "";
  }

  /** Waits until everything is given back: closing a context takes the browser a moment. */
  async released(): Promise<void> {
    await this.page.waitForFunction(() => window.spy.contexts.every((c) => c.state === "closed") && window.spy.streams.every((s) => s.getTracks().every((t) => t.readyState === "ended")));
  }

  async leave(): Promise<void> {
    await this.context.close();
    if (this.trouble.all.length > 0) {
      throw new Error(`the page is not quiet:\n${this.trouble.all.join("\n")}`);
    }
  }

  private listen(): void {
    const note = (text: string) => {
      if (!this.expected.some((pattern) => pattern.test(text))) {
        this.trouble.put(text);
      }
    };
    const watch = (address: string, what: string) => {
      const { protocol, host } = new URL(address);
      if (protocol !== "data:" && protocol !== "blob:" && host !== new URL(this.origin).host) {
        note(`${what} to another host: ${address}`);
      }
    };
    this.page.on("pageerror", (error) => note(`exception: ${error.stack ?? error.message}`));
    this.page.on("console", (message) => note(`console.${message.type()}: ${message.text()} (${message.location().url})`));
    this.page.on("crash", () => note("the page crashed"));
    this.page.on("request", (request) => watch(request.url(), "request"));
    this.page.on("websocket", (socket) => watch(socket.url(), "connection"));
  }
}
