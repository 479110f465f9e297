import assert from "node:assert/strict";
import { test } from "vitest";
import { Hearing, rms } from "../src/model/hearing.js";

function judged(...levels: [level: number, ms: number][]): string {
  const hearing = new Hearing();
  return levels.map(([level, ms]) => hearing.take(level, ms)).at(-1)!;
}

test("speech is heard, however it is broken up; a click is not speech", () => {
  assert.equal(judged([0.05, 40]), "none");
  assert.equal(judged([0.05, 160], [0, 200], [0.05, 160]), "heard");
  assert.equal(judged([0.05, 400], [0, 9000]), "heard", "and stays so");
  assert.equal(judged([0.5, 40], [0.001, 4000]), "faint");
});

test("whoever is too quiet, and a microphone that is off, are told apart", () => {
  assert.equal(judged([0.002, 3900]), "none", "somebody needs time to begin");
  assert.equal(judged([0.002, 4000]), "faint");
  assert.equal(judged([0, 4000]), "silent");
});

test("the level of samples is their root mean square", () => {
  assert.equal(rms(new Float32Array([0.5, -0.5, 0.5, -0.5])), 0.5);
  assert.equal(rms(new Float32Array()), 0);
});
