import assert from "node:assert/strict";
import { test } from "vitest";
import { Hearing, rms } from "../src/model/hearing.js";

function judged(...levels: [level: number, ms: number][]): string {
  const hearing = new Hearing();
  return levels.map(([level, ms]) => hearing.take(level, ms)).at(-1)!;
}

test("interrupted speech counts as heard, a click does not", () => {
  assert.equal(judged([0.05, 40]), "none");
  assert.equal(judged([0.05, 160], [0, 200], [0.05, 160]), "heard");
  assert.equal(judged([0.05, 400], [0, 9000]), "heard", "and stays so");
  assert.equal(judged([0.5, 40], [0.001, 4000]), "faint");
});

test("quiet speech differs from a microphone that is off", () => {
  assert.equal(judged([0.002, 3900]), "none", "a speaker needs time to begin");
  assert.equal(judged([0.002, 4000]), "faint");
  assert.equal(judged([0, 4000]), "silent");
});

test("the level of samples is their root mean square", () => {
  assert.equal(rms(new Float32Array([0.5, -0.5, 0.5, -0.5])), 0.5);
  assert.equal(rms(new Float32Array()), 0);
});
