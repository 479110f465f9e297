// What the console costs while somebody talks: main thread and memory.
import { afterAll, beforeAll, test } from "vitest";
import type { Browser, CDPSession } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { utterances } from "../harness/scenarios.ts";
import { print } from "./table.ts";

const MINUTES = Number(process.env["BENCH_MINUTES"] ?? 2);

/** Every utterance is answered at some length; the next one comes before the answer is over. */
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

interface Cost {
  /** In seconds. */
  wall: number;
  tasks: number;
  scripts: number;
  styles: number;
  heapMb: number;
  nodes: number;
  listeners: number;
}

async function cost(session: CDPSession): Promise<Cost> {
  const { metrics } = await session.send("Performance.getMetrics");
  const value = (name: string) => metrics.find((metric) => metric.name === name)!.value;
  return {
    wall: performance.now() / 1000, tasks: value("TaskDuration"), scripts: value("ScriptDuration"), styles: value("RecalcStyleDuration") + value("LayoutDuration"),
    heapMb: value("JSHeapUsedSize") / 2 ** 20, nodes: value("Nodes"), listeners: value("JSEventListeners"),
  };
}

test("main thread and memory while talking", async () => {
  const console = await ConsolePage.open(browser, gateway, { spied: false });
  const session = await console.visitor.context.newCDPSession(console.page);
  // Of the thread's own time: what others do on the machine is not the page's.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const rows = [["the console, talking", "tasks per s", "scripts", "styles and layout", "heap after gc", "DOM nodes", "listeners"]];
  const row = async (name: string, before: Cost) => {
    const busy = await cost(session);
    await session.send("HeapProfiler.collectGarbage");
    const after = await cost(session);
    const perSecond = (of: "tasks" | "scripts" | "styles") => `${((1000 * (busy[of] - before[of])) / (busy.wall - before.wall)).toFixed(0)} ms`;
    rows.push([name, perSecond("tasks"), perSecond("scripts"), perSecond("styles"), `${after.heapMb.toFixed(1)} MB`, String(after.nodes), String(after.listeners)]);
    return cost(session);
  };
  await console.press("Start talking");
  await console.says("Speaking");
  let before = await cost(session);
  // Fractions of a minute are for a first look.
  for (let minute = Math.min(1, MINUTES); minute <= MINUTES; minute++) {
    await console.page.waitForTimeout(Math.min(1, MINUTES) * 60_000);
    before = await row(`minute ${minute}`, before);
  }
  print(rows);
  await console.press("Hang up");
  await console.says("Ended");
  await console.leave();
});
