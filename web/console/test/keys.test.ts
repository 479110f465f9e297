// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "vitest";
import { listenToKeys } from "../src/control/keys.js";
import type { Console } from "../src/control/console.js";
import { DEFAULTS } from "../src/model/settings.js";
import { SILENT, type VoiceState } from "../src/model/voice.js";

let actions: string[];
let end: () => void;
const voice = { value: { ...SILENT, phase: "open" as VoiceState["phase"], pushToTalk: true } };
const settings = { value: { ...DEFAULTS } };

beforeEach(() => {
  actions = [];
  settings.value = { ...DEFAULTS };
  voice.value.pushToTalk = true;
  voice.value.phase = "open";
  document.body.innerHTML = `<div id="log" tabindex="0"></div><input id="field"><input id="box" type="checkbox"><textarea id="area"></textarea><select id="list"></select>
    <button id="button">B</button><div role="tablist"><button id="tab">T</button></div><dialog><button id="inside">I</button></dialog>`;
  const console = {
    voice,
    settings,
    stop: () => actions.push("stop"),
    press: (active: boolean) => actions.push(active ? "press" : "release"),
    toggleMicrophone: () => actions.push("mute"),
  } as unknown as Console;
  end = listenToKeys(console, { help: () => actions.push("help"), question: () => actions.push("question") });
});

afterEach(() => end());

function key(key: string, on = "body", more: KeyboardEventInit = {}, type = "keydown"): KeyboardEvent {
  const event = new KeyboardEvent(type, { key, bubbles: true, cancelable: true, ...more });
  document.querySelector(on)!.dispatchEvent(event);
  return event;
}

test("Escape stops the call everywhere, but in a dialog it closes the dialog", () => {
  for (const place of ["body", "#log", "#field", "#button"]) {
    key("Escape", place);
  }
  document.querySelector("dialog")!.setAttribute("open", "");
  key("Escape");
  assert.deepEqual(actions, ["stop", "stop", "stop", "stop"]);
});

test("Space talks while held and does not scroll", () => {
  const down = key(" ", "#log");
  key(" ", "#log", { repeat: true });
  key(" ", "#log", {}, "keyup");
  assert.ok(down.defaultPrevented);
  assert.deepEqual(actions, ["press", "release"]);
});

test("Space talks even if a button has the focus, and does not press it", () => {
  const down = key(" ", "#button");
  const up = key(" ", "#button", {}, "keyup");
  assert.ok(down.defaultPrevented && up.defaultPrevented);
  assert.deepEqual(actions, ["press", "release"]);
});

test("while a call begins, Space presses no button", () => {
  voice.value.phase = "connecting";
  assert.ok(key(" ", "#button").defaultPrevented);
});

test("Space types in a field, toggles a checkbox, and presses a button unless push-to-talk is on", () => {
  for (const place of ["#field", "#box", "#inside"]) {
    assert.ok(!key(" ", place).defaultPrevented, place);
  }
  voice.value.pushToTalk = false;
  assert.ok(!key(" ", "#button").defaultPrevented);
  voice.value.pushToTalk = true;
  voice.value.phase = "ended";
  assert.ok(!key(" ", "#button").defaultPrevented);
  assert.deepEqual(actions, []);
});

test("single keys work outside text fields", () => {
  for (const place of ["#button", "#box", "#tab"]) {
    key("m", place);
  }
  for (const place of ["#field", "#list", "#area"]) {
    key("m", place);
  }
  assert.deepEqual(actions, ["mute", "mute", "mute"]);
});

test("leaving the window releases the key", () => {
  key(" ");
  window.dispatchEvent(new Event("blur"));
  assert.deepEqual(actions, ["press", "release"]);
});

test("single keys have no effect in a field, with a modifier, or when disabled", () => {
  for (const name of ["?", "q", "Q", "m", "M", "a", "Enter"]) {
    key(name);
  }
  assert.deepEqual(actions, ["help", "question", "question", "mute", "mute"]);
  actions = [];
  key("m", "#field");
  key("m", "body", { ctrlKey: true });
  key("m", "body", { isComposing: true });
  settings.value.shortcuts = false;
  key("m");
  assert.deepEqual(actions, []);
});
