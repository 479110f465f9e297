// Chromium with a file as its microphone. Unexpected page errors fail the test.
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

/** Starts Chromium. `microphone` is a WAV file, played once or in a loop from when a page opens the microphone. */
export async function openChromium(microphone: string, { flags = [], loop = false, devices = true }: { flags?: string[]; loop?: boolean; devices?: boolean } = {}): Promise<Browser> {
  if (!existsSync(PROGRAM)) {
    throw new Error(`${PROGRAM} is missing; install Debian's package chromium, or set CHROMIUM to one that is`);
  }
  const fake = devices ? ["--use-fake-device-for-media-stream", `--use-file-for-fake-audio-capture=${microphone}${loop ? "" : "%noloop"}`] : [];
  return chromium.launch({ executablePath: PROGRAM, args: [...FLAGS, ...fake, ...flags] });
}

export interface VisitorOptions {
  /** Whether the page may use the microphone. Default true. */
  microphone?: boolean;
  /** Disables the browser's audio processing, so that samples can be compared. Default true. */
  plain?: boolean;
  /** Records the loudspeaker in the page's memory. Default true. */
  spied?: boolean;
  /** Errors that the test expects; see Visitor.expect. */
  complaints?: RegExp[];
  /** Lets the test stop the page's timers; see Visitor.stopTime. Default false. */
  stoppable?: boolean;
}

/** The time that audio may take from a busy page to its audio thread, in seconds. */
const IN_TRANSIT = 0.15;

/** Samples per rendering quantum. */
const BLOCK = 128;

/** A block and its first frame on the audio clock. */
export interface Block {
  frame: number;
  samples: number[];
}

/** A user with one page in a browser context of its own. */
export class Visitor {
  /** The page's errors: exceptions, console output, policy violations, requests to other origins. */
  private readonly trouble = new Mailbox<string>((text) => text);
  private readonly expected: RegExp[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    private readonly origin: string,
  ) {}

  /** Creates a visitor for an address without loading the page. */
  static async come(browser: Browser, url: string, options: VisitorOptions = {}): Promise<Visitor> {
    const context = await browser.newContext({
      permissions: options.microphone === false ? [] : ["microphone"],
      viewport: { width: 1440, height: 900 },
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(PATIENCE);
    return Visitor.at(context, url, options);
  }

  /** Opens another tab for the same user, with its own errors. Leaving one leaves both. */
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

  /** Expects an error that the test provokes. */
  expect(trouble: RegExp): void {
    this.expected.push(trouble);
  }

  /** Waits for an error of the page. */
  async complained(about: RegExp): Promise<void> {
    await this.trouble.next(`a complaint about ${about}`, (text) => about.test(text));
  }

  /** Revokes or grants the microphone permission, as in the address bar. */
  async allow(microphone: boolean): Promise<void> {
    await (microphone ? this.context.grantPermissions(["microphone"]) : this.context.clearPermissions());
  }

  /**
   * Stops the page's clock, so that the test decides how long things take even on a busy machine. Sound and the
   * network continue. Needs the option `stoppable`.
   */
  async stopTime(): Promise<void> {
    // The pause must be in the future; a busy machine may already be past it.
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

  /** Advances the stopped clock by ms. */
  async pass(ms: number): Promise<void> {
    await this.page.clock.runFor(ms);
  }

  /** Restarts the clock. */
  async resumeTime(): Promise<void> {
    await this.page.clock.resume();
  }

  /** Waits for `count` messages of a type from the gateway. `closed` counts closed connections. */
  async received(type: string, count: number): Promise<void> {
    await eventually(`${count} messages ${type}`, () => this.page.evaluate((type) => window.spy.arrivals.filter((a) => a.type === type).length, type), (n) => n >= count);
  }

  /** Waits until all taps record; earlier sound is not recorded. */
  async listens(): Promise<void> {
    await this.page.waitForFunction(() => window.spy.taps.every(({ context, listens }) => listens || context.state !== "running"), undefined, { timeout: PATIENCE });
  }

  /** Returns the loudspeaker's blocks in order, without silence, and the clock's rate. */
  async sound(): Promise<{ rate: number; blocks: Block[] }> {
    return this.blocks("sound");
  }

  /**
   * Fails if a flushed item sounds again before frame `until`. Time to silence depends on the machine;
   * library/interruption.test.ts measures it.
   */
  async staysSilent(flushed: number, until: number): Promise<void> {
    const { blocks } = await this.sound();
    const late = blocks.filter(({ frame }) => frame >= flushed && frame < until);
    const silent = late.findIndex(({ frame }, i) => i > 0 && frame - late[i - 1]!.frame > BLOCK);
    expect(silent < 0 ? [] : late.slice(silent).map(({ frame }) => frame), "blocks that sound after the silence").toEqual([]);
    expect((late.at(-1)?.frame ?? 0) + BLOCK, "the end of the sound after the flush").toBeLessThan(until);
  }

  /**
   * Returns the microphone as the browser delivered it, from its first sound. On a busy machine the browser drops
   * blocks before any page gets them, so tests compare with this rather than with the file.
   */
  async microphone(): Promise<Sound> {
    const { rate, blocks } = await this.blocks("microphone");
    const first = blocks[0]?.frame ?? 0;
    const samples = new Float32Array((blocks.at(-1)?.frame ?? 0) - first + BLOCK);
    blocks.forEach((block) => samples.set(block.samples, block.frame - first));
    return recorded(samples, rate);
  }

  /** Reads a tap as text, because a page that blocks for long loses its connection. */
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

  /** Returns the uplink: PCM16 of the microphone, from its first sound. */
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

  /** Waits for a message about an item and returns the audio frame of its arrival. */
  async arrived(type: string, item: string): Promise<number> {
    const found = await this.page.waitForFunction(([type, item]) => window.spy.arrivals.find((a) => a.type === type && a.item === item), [type, item] as const, { timeout: PATIENCE });
    const { frame } = (await found.jsonValue())!;
    return frame;
  }

  /**
   * Lists audio that arrived too late to play without a gap. The first sample played at frame `begins`; each sample
   * is due when those before it have played. Empty if all arrived in time.
   */
  async late(begins: number): Promise<string> {
    const { rate, received } = await this.page.evaluate(() => ({
      rate: window.spy.contexts.at(-1)!.sampleRate,
      received: window.spy.arrivals.filter(({ type }) => type === "audio").map(({ frame, samples }) => ({ frame, samples: samples! })),
    }));
    const seconds = (frame: number) => ((frame - begins) / rate).toFixed(2);
    let due = begins;
    for (const { frame, samples } of received) {
      const inTransit = Math.min(IN_TRANSIT * rate, (due - begins) / 4); // the page buffers little at the start of an answer
      if (due > begins && frame + inTransit > due) {
        return `the audio that is due after ${seconds(due)} s of the answer arrived after ${seconds(frame)} s`;
      }
      due += samples;
    }
    return "";
  }

  /** Waits until the page has released everything; closing an audio context takes a moment. */
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
