import assert from "node:assert/strict";
import { test } from "vitest";
import { chosen, readOffer } from "../src/model/providers.js";
import { addressed, asQuery, DEFAULTS, readSettings } from "../src/model/settings.js";

test("settings are read field by field, with defaults for invalid ones", () => {
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

test("a volume is limited to its range", () => {
  for (const [volume, read] of [[0, 0], [0.35, 0.35], [1, 1], [-0.1, 1], [7, 1], [NaN, 1], ["0.5", 1]]) {
    assert.equal(readSettings(JSON.stringify({ volume })).volume, read, String(volume));
  }
});

test("an address sets valid settings, except devices and a request to the model", () => {
  const search = "?provider=openai&agent=guide&voice=marin&turns=pushToTalk&inputRate=8000&outputRate=11025&echoCancellation=false&noiseSuppression=maybe&theme=dark&readOut=all&shortcuts=true&microphone=abc&pendingRequest=Delete+all&volume=0&more=1";
  assert.deepEqual(addressed(search), { provider: "openai", agent: "guide", voice: "marin", turns: "pushToTalk", inputRate: 8000, echoCancellation: false, theme: "dark", readOut: "all", shortcuts: true });
  assert.deepEqual(addressed(""), {});
  assert.deepEqual(addressed(`?provider=${"x".repeat(201)}`), {});
});

test("a link contains the changed settings, and reading it gives the same again", () => {
  assert.equal(asQuery(DEFAULTS), "");
  const settings = { ...DEFAULTS, agent: "a & b", turns: "pushToTalk", inputRate: 8000, shortcuts: false, microphone: "m1", volume: 0.5, pendingRequest: "the lab" } as const;
  assert.equal(asQuery(settings), "?agent=a+%26+b&turns=pushToTalk&inputRate=8000&shortcuts=false");
  assert.deepEqual(addressed(asQuery(settings)), { agent: "a & b", turns: "pushToTalk", inputRate: 8000, shortcuts: false });
});

test("an older gateway offers only names", () => {
  const offer = readOffer({ default: "gemini", providers: [{ name: "gemini" }, { name: "openai" }] });
  assert.ok(offer !== null);
  assert.equal(chosen(offer, "")?.name, "gemini");
  assert.equal(chosen(offer, "openai")?.name, "openai");
  assert.equal(chosen(offer, "gone")?.name, "gemini", "a removed provider");
  assert.deepEqual(offer.agents, []);
  assert.ok(offer.textAgent && !offer.simulator);
});

test("voices, agents and the simulator are offered if the gateway lists them", () => {
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
