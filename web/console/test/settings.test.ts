import assert from "node:assert/strict";
import { test } from "vitest";
import { chosen, readOffer } from "../src/model/providers.js";
import { DEFAULTS, readSettings } from "../src/model/settings.js";

test("settings are read field by field, and what is impossible is the default", () => {
  assert.deepEqual(readSettings(null), DEFAULTS);
  for (const kept of ["", "{", "null", "7", "[]"]) {
    assert.deepEqual(readSettings(kept), DEFAULTS, kept);
  }
  const odd = { inputRate: 11025, outputRate: "24000", provider: 7, turns: "never", theme: "dark", echoCancellation: false, more: 1 };
  assert.deepEqual(readSettings(JSON.stringify(odd)), { ...DEFAULTS, theme: "dark", echoCancellation: false });
});

test("settings survive a reload", () => {
  const settings = { ...DEFAULTS, inputRate: 8000, turns: "pushToTalk", microphone: "abc", pendingRequest: "the lab" } as const;
  assert.deepEqual(readSettings(JSON.stringify(settings)), settings);
});

test("an older gateway offers names alone", () => {
  const offer = readOffer({ default: "gemini", providers: [{ name: "gemini" }, { name: "openai" }] });
  assert.ok(offer !== null);
  assert.equal(chosen(offer, "")?.name, "gemini");
  assert.equal(chosen(offer, "openai")?.name, "openai");
  assert.equal(chosen(offer, "gone")?.name, "gemini", "one that is no longer there");
  assert.deepEqual(offer.agents, []);
  assert.ok(offer.textAgent && !offer.simulator);
});

test("voices, agents and the simulator are offered where the gateway tells of them", () => {
  const provider = { name: "gemini", model: "live", voices: ["Puck", 7, ""], voice: "Puck", simulated: true };
  const offer = readOffer({ default: "gemini", agents: ["default", "guide"], providers: [provider, null, {}], text_agent: false, simulator: true });
  assert.deepEqual(offer, {
    default: "gemini",
    agents: ["default", "guide"],
    providers: [{ name: "gemini", model: "live", voices: ["Puck"], voice: "Puck", simulated: true }],
    textAgent: false,
    simulator: true,
  });
});

test("an answer of another shape offers nothing", () => {
  for (const value of [null, 7, {}, { providers: [] }, { providers: [{ name: "" }] }]) {
    assert.equal(readOffer(value), null);
  }
});
