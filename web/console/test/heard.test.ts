import assert from "node:assert/strict";
import { test } from "vitest";
import { HeardCount } from "../src/model/heard.js";

test("the heard part of a flushed answer is a share of its received audio", () => {
  const count = new HeardCount();
  count.came("i", 1000);
  count.came("i", 1000);
  assert.equal(count.played("i", 500), null, "it is not flushed");
  count.flushed("i", 80);
  assert.deepEqual(count.played("i", 1000), { share: 0.5, length: 80 });
  assert.deepEqual(count.played("i", 900), { share: 0.5, length: 80 }, "an older report");
  assert.deepEqual(count.played("i", 9000), { share: 1, length: 80 });
});

test("the gateway's length of an answer counts, despite later audio", () => {
  const count = new HeardCount();
  count.came("i", 900);
  count.all("i", 1000);
  count.came("i", 5000);
  count.flushed("i", 10);
  assert.deepEqual(count.played("i", 500), { share: 0.5, length: 10 });
});

test("an answer was heard completely when all of it arrived and all but a frame was played", () => {
  const count = new HeardCount();
  count.came("i", 1000);
  count.played("i", 1000);
  assert.deepEqual(count.whole(), [], "more may arrive");
  count.all("i", 1200);
  count.played("i", 1170);
  assert.deepEqual(count.whole(), []);
  count.played("i", 1180);
  assert.deepEqual(count.whole(), ["i"]);
});

test("an answer without audio has no heard part", () => {
  const count = new HeardCount();
  assert.equal(count.played("i", 10), null);
  count.flushed("i", 10);
  assert.equal(count.played("i", 10), null);
});

test("only the newest answers are stored", () => {
  const count = new HeardCount();
  for (let i = 0; i < 17; i++) {
    count.came(`i${i}`, 1000);
    count.flushed(`i${i}`, 10);
  }
  assert.equal(count.played("i0", 500), null);
  assert.deepEqual(count.played("i1", 500), { share: 0.5, length: 10 });
});
