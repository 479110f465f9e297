// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "vitest";
import { listenToKeys } from "../src/control/keys.js";
import type { Console } from "../src/control/console.js";
import { DEFAULTS } from "../src/model/settings.js";
import { SILENT } from "../src/model/voice.js";

let deeds: string[];
let end: () => void;
const voice = { value: { ...SILENT, phase: "open", pushToTalk: true } };
const settings = { value: { ...DEFAULTS } };

beforeEach(() => {
  deeds = [];
  settings.value = { ...DEFAULTS };
  voice.value.pushToTalk = true;
  document.body.innerHTML = `<div id="log" tabindex="0"></div><input id="field"><button id="button">B</button><dialog></dialog>`;
  const console = {
    voice,
    settings,
    stop: () => deeds.push("stop"),
    press: (active: boolean) => deeds.push(active ? "press" : "release"),
    toggleMicrophone: () => deeds.push("mute"),
  } as unknown as Console;
  end = listenToKeys(console, { help: () => deeds.push("help"), question: () => deeds.push("question") });
});

afterEach(() => end());

function key(key: string, on = "body", more: KeyboardEventInit = {}, type = "keydown"): KeyboardEvent {
  const event = new KeyboardEvent(type, { key, bubbles: true, cancelable: true, ...more });
  document.querySelector(on)!.dispatchEvent(event);
  return event;
}

test("Escape stops from everywhere, but in a dialog it closes that", () => {
  for (const place of ["body", "#log", "#field", "#button"]) {
    key("Escape", place);
  }
  document.querySelector("dialog")!.setAttribute("open", "");
  key("Escape");
  assert.deepEqual(deeds, ["stop", "stop", "stop", "stop"]);
});

test("Space talks while it is held, and scrolls nothing", () => {
  const down = key(" ", "#log");
  key(" ", "#log", { repeat: true });
  key(" ", "#log", {}, "keyup");
  assert.ok(down.defaultPrevented);
  assert.deepEqual(deeds, ["press", "release"]);
});

test("Space is a space in a field, presses a button, and does nothing where the model listens", () => {
  assert.ok(!key(" ", "#field").defaultPrevented);
  key(" ", "#button");
  voice.value.pushToTalk = false;
  assert.ok(!key(" ").defaultPrevented);
  assert.deepEqual(deeds, []);
});

test("whoever leaves the window has let go", () => {
  key(" ");
  window.dispatchEvent(new Event("blur"));
  assert.deepEqual(deeds, ["press", "release"]);
});

test("single keys do nothing in a field, with a modifier, or when they are turned off", () => {
  for (const name of ["?", "q", "Q", "m", "M", "a", "Enter"]) {
    key(name);
  }
  assert.deepEqual(deeds, ["help", "question", "question", "mute", "mute"]);
  deeds = [];
  key("m", "#field");
  key("m", "body", { ctrlKey: true });
  key("m", "body", { isComposing: true });
  settings.value.shortcuts = false;
  key("m");
  assert.deepEqual(deeds, []);
});
