// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, test } from "vitest";
import { Instruments } from "../src/instruments.js";
import { View } from "../src/panels/view.js";
import { InstrumentsPanel } from "../src/panels/instruments.js";
import type { Happening } from "../src/model/feed.js";
import { opened, received } from "./feed.js";
import { recorded } from "./recorded.js";

let host: HTMLElement;
let instruments: Instruments;
let show: (() => void)[] = [];

beforeEach(() => {
  host = document.createElement("div");
  document.body.append(host);
  instruments = new Instruments((due) => show.push(due));
});

afterEach(() => {
  render(null, host);
  host.remove();
  show = [];
});

async function take(...happenings: Happening[]): Promise<void> {
  await act(() => {
    happenings.forEach((happening) => instruments.take(happening));
    show.splice(0).forEach((due) => due());
  });
}

async function draw(simulator = false): Promise<void> {
  await act(() => render(<InstrumentsPanel instruments={instruments} view={new View()} stats={() => null} simulator={simulator} />, host));
}

function all(selector: string): HTMLElement[] {
  return [...host.querySelectorAll<HTMLElement>(selector)];
}

function named(selector: string, name: RegExp): HTMLElement {
  const found = all(selector).find((element) => name.test(`${element.getAttribute("aria-label") ?? ""} ${element.textContent}`));
  assert.ok(found !== undefined, `${selector} ${name}`);
  return found;
}

async function press(target: HTMLElement, key: string): Promise<void> {
  await act(() => void target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })));
}

async function click(target: HTMLElement): Promise<void> {
  await act(() => target.click());
}

test("arrow keys select tabs, and one tab is in the tab order", async () => {
  await draw();
  const selected = (): string[] => all("[role=tab][aria-selected=true]").map(({ textContent }) => textContent);
  assert.deepEqual(all("[role=tab]").map(({ textContent, tabIndex }) => [textContent, tabIndex]), [["Tools", 0], ["Latency", -1], ["Events", -1], ["State", -1]]);
  await press(named("[role=tab]", /Tools/), "ArrowLeft");
  assert.deepEqual([selected(), document.activeElement?.textContent], [["State"], "State"]);
  await press(named("[role=tab]", /State/), "ArrowRight");
  await press(named("[role=tab]", /Tools/), "End");
  await press(named("[role=tab]", /State/), "Home");
  assert.deepEqual([selected(), all("[role=tab][tabindex='0']").length], [["Tools"], 1]);
  const panel = all("[role=tabpanel]")[0]!;
  assert.equal(document.getElementById(panel.getAttribute("aria-labelledby")!)?.textContent, "Tools");
});

test("before the first event each tab describes its content", async () => {
  await draw();
  for (const [tab, text] of [["Tools", "No tool calls yet"], ["Latency", "No response times yet"], ["Events", "No events yet"], ["State", "No voice session"]]) {
    await click(named("[role=tab]", new RegExp(tab!)));
    assert.ok(host.textContent.includes(text!), text);
  }
});

test("a call can be opened and shows its arguments and result without secrets", async () => {
  await draw();
  await take(...recorded());
  const rows = all(".i-call-row").map(({ textContent }) => textContent.replace(/\s+/g, " ").trim());
  assert.equal(rows.length, 9);
  assert.equal(rows.at(-3), "kb_search retrievaltop_k 10 → 3done< 1 ms");
  const asked = named(".i-call-row", /you approved/);
  assert.equal(asked.getAttribute("aria-expanded"), "false");
  await click(asked);
  assert.equal(named(".i-call-row", /you approved/).getAttribute("aria-expanded"), "true");
  const details = document.getElementById(asked.getAttribute("aria-controls")!)!;
  assert.ok(["Arguments", "Answer to the model", "Audit record", "CONFIRMATION_REQUIRED", "doc:opening_hours"].every((text) => details.textContent.includes(text)));
  assert.ok(details.textContent.includes("(hidden 1)") && !/cf_[A-Z2-7]{16}/.test(details.textContent));
  // It stays open while another tab is selected.
  await click(named("[role=tab]", /State/));
  await click(named("[role=tab]", /Tools/));
  assert.equal(all(".i-call-row[aria-expanded=true]").length, 1);
});

test("without inspect a call shows the known fields", async () => {
  await draw();
  await take(opened(0), received(10, "tool.started", { turn: 1, call_id: "c", tool: "kb_search" }), received(20, "tool.ended", { turn: 1, call_id: "c", tool: "kb_search", ok: false, duration_ms: 9, error: { type: "TRANSIENT", message: "Away." } }));
  await click(all(".i-call-row")[0]!);
  assert.ok(["for operators", "It ran for 9 ms", "TRANSIENT"].every((text) => host.textContent.includes(text)));
});

test("the newest turns are shown, and earlier ones on demand", async () => {
  await draw();
  const turns = Array.from({ length: 15 }, (_, n) => [
    received(10 * n, "turn.started", { turn: n + 1 }),
    received(10 * n + 1, "tool.started", { turn: n + 1, call_id: `c${n}`, tool: "kb_search" }),
    received(10 * n + 5, "tool.ended", { turn: n + 1, call_id: `c${n}`, tool: "kb_search", ok: true, duration_ms: 4 }),
  ]);
  await take(opened(0), ...turns.flat());
  assert.equal(all(".i-turn").length, 10);
  await click(named("button", /Show earlier turns \(5\)/));
  assert.equal(all(".i-turn").length, 15);
  assert.ok(all("button").every((button) => !button.textContent.includes("Show earlier")));
});

test("the state is shown in words", async () => {
  await draw();
  await take(...recorded());
  await click(named("[role=tab]", /State/));
  const facts = new Map(all(".i-fact").map((fact) => [fact.querySelector("dt")!.textContent, fact.querySelector("dd")!.textContent]));
  assert.deepEqual(["Phase", "User", "Pending calls", "Provider", "Resumed"].map((name) => facts.get(name)), ["Ended", "no longer listened to", "0", "openai", "no"]);
  assert.ok(named(".i-intents li", /END_VOICE_SESSION/).textContent.includes("done"));
});

test("events can be searched, read and selected by keys; only visible ones are in the document", async () => {
  await draw();
  await take(...recorded());
  await click(named("[role=tab]", /Events/));
  const list = all("[role=listbox]")[0]!;
  assert.ok(all("[role=option].i-log-row").length < 60);
  await press(list, "End");
  await press(list, "ArrowUp");
  const chosen = all("[role=option][aria-selected=true]").map(({ textContent }) => textContent);
  assert.ok(chosen.length <= 1);
  assert.ok(all(".i-log-whole")[0]!.textContent.includes("Whole event"));
  const search = all("input[type=search]")[0] as HTMLInputElement;
  search.value = "top_k requested";
  await act(() => void search.dispatchEvent(new Event("input", { bubbles: true })));
  assert.match(all(".i-log-foot")[0]!.textContent, /^2 of \d+ events/);
  search.value = "nothing has this";
  await act(() => void search.dispatchEvent(new Event("input", { bubbles: true })));
  assert.ok(host.textContent.includes("No matching events."));
});

test("a paused list does not change, and continues afterwards", async () => {
  await draw();
  await take(opened(0), received(10, "turn.started", { turn: 1 }));
  await click(named("[role=tab]", /Events/));
  await click(named("button", /^ ?Pause/));
  await take(received(20, "turn.ended", { turn: 1, status: "completed" }));
  assert.match(all(".i-log-foot")[0]!.textContent, /^2 of 3 events/);
  await click(named("button", /^ ?Pause/));
  assert.match(all(".i-log-foot")[0]!.textContent, /^3 events/);
  await click(named("button", /Clear/));
  assert.ok(host.textContent.includes("No events yet"));
});

test("faults are offered with a simulator and require a call", async () => {
  instruments.faults.list.value = [{ do: "drop", label: "Drop the connection", for: false }, { do: "delay", label: "Hold everything back", for: true, for_ms: 700 }];
  instruments.faults.load = async () => {};
  const committed: unknown[] = [];
  instruments.faults.commit = async (fault, session, ms) => void committed.push([fault.do, session, ms]);
  await draw(true);
  await click(named("[role=tab]", /Faults/));
  assert.ok((named("button", /Drop the connection/) as HTMLButtonElement).disabled && host.textContent.includes("Start a call first"));
  await take(received(0, "session.started", { session_id: "voice-1" }), opened(0));
  await click(named("button", /Drop the connection/));
  await click(named("button", /Hold everything back/));
  assert.deepEqual(committed, [["drop", "voice-1", 2000], ["delay", "voice-1", 700]]);
  assert.ok(named("p", /opens another one in the same call/));
});
