// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, test, vi } from "vitest";
import type { Console } from "../src/control/console.js";
import type { Question } from "../src/model/questions.js";
import { Questions } from "../src/panels/questions.js";
import { NOW } from "./happenings.js";

const questions = signal<readonly Question[]>([]);
let answers: string[];

function question(token: string, more: Partial<Question> = {}): Question {
  return { token, side: "voice", tool: "book", preview: `Book ${token}?`, args: '{\n  "n": 1\n}', expires: NOW + 60_000, approved: null, ...more };
}

/** Shows these, and waits until presses count. */
function show(...list: Question[]): void {
  act(() => void (questions.value = list));
}

function button(card: number, label: string): HTMLButtonElement {
  const found = [...(document.querySelectorAll(".question")[card]?.querySelectorAll("button") ?? [])].find((b) => b.textContent === label);
  assert.ok(found !== undefined, `card ${card} has no ${label}`);
  return found;
}

function click(target: HTMLElement, detail = 1): void {
  target.dispatchEvent(new MouseEvent("click", { bubbles: true, detail }));
}

beforeEach(() => {
  vi.useFakeTimers({ now: NOW, toFake: ["Date", "setInterval", "clearInterval", "setTimeout", "clearTimeout", "performance"] });
  answers = [];
  questions.value = [];
  document.body.innerHTML = `<div id="log" tabindex="0"></div><input id="field"><div id="root"></div>`;
  const console = { questions, resolve: (token: string, approved: boolean) => answers.push(`${token} ${String(approved)}`) } as unknown as Console;
  act(() => render(<Questions console={console} />, document.getElementById("root")!));
});

afterEach(() => {
  render(null, document.getElementById("root")!);
  vi.useRealTimers();
});

test("a question is an alert without the focus and shows the action with its arguments", () => {
  document.getElementById("field")!.focus();
  show(question("a"));
  assert.equal(document.activeElement!.id, "field");
  const panel = document.getElementById("questions")!;
  assert.equal(panel.getAttribute("role"), "alertdialog");
  assert.equal(panel.getAttribute("aria-modal"), "false");
  assert.ok(panel.querySelector("details")!.open);
  assert.equal(panel.querySelector("pre")!.textContent, '{\n  "n": 1\n}');
  assert.match(panel.textContent!, /Book a\?.*1:00 left/s);
});

test("presses shortly after a change of cards do not count", () => {
  show(question("a"));
  click(button(0, "Approve"));
  assert.deepEqual(answers, []);
  act(() => void vi.advanceTimersByTime(499));
  click(button(0, "Approve"));
  assert.deepEqual(answers, []);
  act(() => void vi.advanceTimersByTime(1));
  click(button(0, "Approve"));
  assert.deepEqual(answers, ["a true"]);
  show(question("b"));
  click(button(0, "Decline"));
  assert.deepEqual(answers, ["a true"]);
});

test("a hasty key reaches Decline", () => {
  show(question("a"));
  const labels = [...document.querySelectorAll(".question button")].map((b) => b.textContent);
  assert.deepEqual(labels, ["Decline", "Approve"]);
});

test("the tab key reaches the answers only once the focus is in the card", () => {
  show(question("a"), question("b"));
  const reachable = (): string[] => [...document.querySelectorAll<HTMLButtonElement>(".question button")].filter((b) => b.tabIndex === 0).map((b) => b.textContent);
  assert.deepEqual(reachable(), []);
  const cards = document.querySelectorAll<HTMLElement>(".question");
  act(() => cards[1]!.focus());
  assert.deepEqual(reachable(), ["Decline", "Approve"]);
  assert.equal(button(1, "Approve").tabIndex, 0);
  act(() => document.getElementById("field")!.focus());
  assert.deepEqual(reachable(), []);
});

test("a key held down answers nothing", () => {
  show(question("a"));
  const held = new KeyboardEvent("keydown", { key: "Enter", repeat: true, bubbles: true, cancelable: true });
  button(0, "Approve").dispatchEvent(held);
  assert.ok(held.defaultPrevented);
});

test("a key press counts at once, for the focused button", () => {
  show(question("a"));
  click(button(0, "Decline"), 0);
  assert.deepEqual(answers, ["a false"]);
});

test("focus leaves a removed card without reaching another answer", () => {
  show(question("a"), question("b"));
  button(0, "Decline").focus();
  show(question("b"));
  assert.equal(document.activeElement!.className, "question");
  show();
  assert.equal(document.activeElement!.id, "log");
});

test("an answered question keeps its place, with its buttons disabled", () => {
  show(question("a"));
  button(0, "Approve").focus();
  show(question("a", { approved: true }));
  assert.ok(button(0, "Approve").disabled && button(0, "Decline").disabled);
  assert.equal(document.activeElement!.className, "question");
  assert.match(document.querySelector(".left")!.textContent!, /approving/);
});

test("an expired question cannot be answered, wherever the focus is", () => {
  show(question("a", { expires: NOW + 1000 }));
  act(() => void vi.advanceTimersByTime(1250));
  assert.match(document.querySelector(".left")!.textContent!, /expired/);
  assert.ok(button(0, "Approve").disabled);
});

test("long arguments and those of further questions are collapsed", () => {
  show(question("a", { args: "x".repeat(400) }), question("b"));
  const open = [...document.querySelectorAll("details")].map((details) => details.open);
  assert.deepEqual(open, [false, false]);
});

test("markup in a preview is shown as text", () => {
  show(question("a", { preview: "<b>Book</b>", args: "<img src=x>" }));
  assert.equal(document.querySelector(".preview")!.innerHTML, "&lt;b&gt;Book&lt;/b&gt;");
  assert.equal(document.querySelector("img"), null);
});
