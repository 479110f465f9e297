// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, test, vi } from "vitest";
import type { Console } from "../src/control/console.js";
import { Levels } from "../src/control/levels.js";
import { DEFAULTS } from "../src/model/settings.js";
import { SILENT, type VoiceState } from "../src/model/voice.js";
import { CallBar } from "../src/panels/call.js";

const voice = signal<VoiceState>(SILENT);
const OPEN: VoiceState = { ...SILENT, phase: "open", microphone: "live" };
let actions: string[];

beforeEach(() => {
  actions = [];
  voice.value = SILENT;
  document.body.innerHTML = `<div id="root"></div>`;
  const console = {
    voice,
    settings: signal(DEFAULTS),
    offer: signal(null),
    levels: new Levels(),
    talk: () => actions.push("talk"),
    type: (text: string) => actions.push(`type ${text}`),
    press: (active: boolean) => actions.push(active ? "press" : "release"),
  } as unknown as Console;
  act(() => render(<CallBar console={console} onSetup={() => undefined} />, document.getElementById("root")!));
});

afterEach(() => render(null, document.getElementById("root")!));

function show(state: VoiceState): void {
  act(() => void (voice.value = state));
}

function find<E extends HTMLElement>(selector: string): E {
  const found = document.querySelector<E>(selector);
  assert.ok(found !== null, `there is no ${selector}`);
  return found;
}

function fire(on: string, type: string, more: object = {}): void {
  const event = Object.assign(new Event(type, { bubbles: true, cancelable: true }), more);
  act(() => void find(on).dispatchEvent(event));
}

test("when a button replaces another one, focus moves to a harmless button", () => {
  find("#again").focus();
  show({ ...SILENT, phase: "connecting", microphone: "asking" });
  assert.equal(document.activeElement?.id, "mute");
  show(OPEN);
  assert.equal(document.activeElement?.id, "mute");
  show({ ...SILENT, phase: "ended" });
  assert.equal(document.activeElement?.id, "again");
});

test("a call leaves the focus elsewhere", () => {
  document.body.append(Object.assign(document.createElement("input"), { id: "elsewhere" }));
  find("#elsewhere").focus();
  show(OPEN);
  show({ ...SILENT, phase: "ended" });
  assert.equal(document.activeElement?.id, "elsewhere");
});

test("Stop is enabled while there is something to stop", () => {
  show(OPEN);
  assert.ok(find<HTMLButtonElement>("#stop").disabled);
  show({ ...OPEN, sounding: "i" });
  assert.ok(!find<HTMLButtonElement>("#stop").disabled);
  show({ ...OPEN, owed: true });
  assert.ok(!find<HTMLButtonElement>("#stop").disabled);
});

test("pointer or key hold the button to talk; it is released when the focus leaves", () => {
  show({ ...OPEN, pushToTalk: true });
  find("#talk").setPointerCapture = () => undefined;
  fire("#talk", "pointerdown", { pointerId: 1 });
  fire("#talk", "pointerup", { pointerId: 1 });
  fire("#talk", "keydown", { key: " ", repeat: false });
  fire("#talk", "keydown", { key: " ", repeat: true });
  fire("#talk", "keyup", { key: " " });
  fire("#talk", "keydown", { key: "a" });
  fire("#talk", "pointerdown", { pointerId: 1 });
  fire("#talk", "pointercancel", { pointerId: 1 });
  fire("#talk", "blur");
  assert.deepEqual(actions, ["press", "release", "press", "release", "press", "release", "release"]);
});

test("during a reconnect there is a countdown and a button to retry at once", () => {
  vi.useFakeTimers({ toFake: ["Date"] }); // two lines may take a second on a busy machine
  const retry = { attempt: 3, at: Date.now() + 1900, lostAt: Date.now() };
  const hint = (): string => find(".status-hint").textContent!;
  show({ ...OPEN, phase: "reconnecting", retry: { ...retry, keptUntil: Date.now() + 60_000 } });
  assert.equal(hint(), "Reconnecting in 2 s (attempt 3). Your speech is saved.");
  show({ ...OPEN, phase: "reconnecting", retry: { ...retry, keptUntil: Date.now() - 5000 } });
  assert.equal(hint(), "Reconnecting in 2 s (attempt 3). Your speech is not saved any more.");
  show({ ...OPEN, phase: "reconnecting", microphone: "muted", retry: { ...retry, keptUntil: 0 } });
  assert.equal(hint(), "Reconnecting in 2 s (attempt 3).");
  assert.ok([...document.querySelectorAll("button")].some((button) => button.textContent === "Try now"));
  vi.useRealTimers();
});

test("an error replaces the advice and includes its fix", () => {
  show({ ...OPEN, notice: { title: "The microphone went away.", advice: "Connect it again." } });
  assert.equal(find(".status-hint").textContent, "The microphone went away. Connect it again.");
});

test("typed words go to the voice agent, empty ones are not sent", () => {
  show(OPEN);
  find<HTMLInputElement>("#say").value = "  ";
  fire(".say", "submit");
  find<HTMLInputElement>("#say").value = " Hello ";
  fire(".say", "submit");
  assert.deepEqual(actions, ["type Hello"]);
  assert.equal(find<HTMLInputElement>("#say").value, "");
});
