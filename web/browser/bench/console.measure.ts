// Measures the console's main thread and memory during a call.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, CDPSession, Page } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { utterances } from "../harness/scenarios.ts";
import { grown, type Kept } from "./growth.ts";
import { print } from "./table.ts";

const MINUTES = Number(process.env["BENCH_MINUTES"] ?? 2);

/** Limit of main-thread time during speech, in ms per second; needs an idle machine. BENCH_MAIN_MS overrides it. */
const MAIN_MS = Number(process.env["BENCH_MAIN_MS"] ?? 60);

/** The file for a ten-second trace from before the last minute, for the performance panel or ui.perfetto.dev. */
const PROFILE = process.env["BENCH_PROFILE"];

/** Every utterance gets a long answer; the next one interrupts it. */
const TALKATIVE = `
name: talkative
rules:
  - when: {utterance: any}
    heard: Tell me about the font library.
    do:
      - call: {tool: kb_search, args: {query: font library, top_k: 3}}
      - then:
          - say: "I have looked it up, and this is what I found. \${result.data.results.0.title}. \${result.data.results.0.snippet}"
otherwise: auto
`;

let browser: Browser;
let gateway: Gateway;
beforeAll(async () => {
  browser = await openChromium(recording(utterances([1.65, 4.1]), 12), { loop: true });
  gateway = await Gateway.open({ scenario: TALKATIVE });
});
afterAll(async () => {
  await browser.close();
  await gateway.close();
});

interface Cost extends Kept {
  /** In seconds. */
  wall: number;
  tasks: number;
  scripts: number;
  styles: number;
}

async function cost(session: CDPSession): Promise<Cost> {
  const { metrics } = await session.send("Performance.getMetrics");
  const value = (name: string) => metrics.find((metric) => metric.name === name)!.value;
  return {
    wall: performance.now() / 1000, tasks: value("TaskDuration"), scripts: value("ScriptDuration"), styles: value("RecalcStyleDuration") + value("LayoutDuration"),
    heapMb: value("JSHeapUsedSize") / 2 ** 20, nodes: value("Nodes"), listeners: value("JSEventListeners"),
  };
}

/** Reads the jitter buffer from the State tab, which stays closed during measurements. */
async function jitterBuffer(console: ConsolePage): Promise<string> {
  const state = await console.tab("State");
  const text = await state.locator(".i-fact", { hasText: "Jitter buffer" }).locator("dd").innerText();
  await console.tab("Tools");
  return text;
}

/** Traces the main thread during a task. */
async function traced(page: Page, path: string, task: () => Promise<void>): Promise<void> {
  await browser.startTracing(page, { path, categories: ["toplevel", "blink", "cc", "v8", "mojom", "ipc", "devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await task();
  await browser.stopTracing();
}

test("main thread and memory while talking", async () => {
  const console = await ConsolePage.open(browser, gateway, { spied: false });
  // Most users have the moving waveform.
  await console.page.emulateMedia({ reducedMotion: "no-preference" });
  const session = await console.visitor.context.newCDPSession(console.page);
  // Counts the thread's own time only.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const rows = [["the console, talking", "tasks per s", "scripts", "styles and layout", "heap after gc", "DOM nodes", "listeners", "jitter buffer"]];
  const kept: Kept[] = [];
  const main: number[] = [];
  const row = async (name: string, before: Cost) => {
    const busy = await cost(session);
    await session.send("HeapProfiler.collectGarbage");
    const after = await cost(session);
    const perSecond = (of: "tasks" | "scripts" | "styles") => (1000 * (busy[of] - before[of])) / (busy.wall - before.wall);
    const shown = (ms: number) => `${ms.toFixed(0)} ms`;
    const buffer = await jitterBuffer(console);
    rows.push([name, shown(perSecond("tasks")), shown(perSecond("scripts")), shown(perSecond("styles")), `${after.heapMb.toFixed(1)} MB`, String(after.nodes), String(after.listeners), buffer]);
    kept.push(after);
    main.push(perSecond("tasks"));
    return cost(session);
  };
  await console.press("Start talking");
  await console.says("Speaking");
  let before = await cost(session);
  // A fraction of a minute is for a quick look.
  for (let minute = Math.min(1, MINUTES); minute <= MINUTES; minute++) {
    if (PROFILE !== undefined && kept.length === Math.min(1, MINUTES - 1)) {
      await traced(console.page, PROFILE, () => console.page.waitForTimeout(10_000));
      before = await cost(session);
    }
    await console.page.waitForTimeout(Math.min(1, MINUTES) * 60_000);
    before = await row(`minute ${minute}`, before);
  }
  print(rows);
  expect(grown(kept), "values that grow after the tenth minute").toEqual([]);
  expect(Math.max(...main), "ms of the main thread in a second").toBeLessThanOrEqual(MAIN_MS);
  await console.press("Hang up");
  await console.says("Ended");
  await console.leave();
});
