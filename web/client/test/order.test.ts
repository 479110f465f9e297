import assert from "node:assert/strict";
import { test } from "vitest";
import { Order } from "../src/connection/order.js";
import { newTally } from "../src/stats.js";

let tally = newTally();

function newOrder(): Order {
  tally = newTally();
  return new Order(tally);
}

function seen(order: Order, ...seqs: number[]): boolean[] {
  return seqs.map((seq) => order.fresh(seq));
}

test("messages in order have no gaps", () => {
  const order = newOrder();
  assert.deepEqual(seen(order, 1, 2, 3), [true, true, true]);
  assert.deepEqual([order.highest, tally.gaps, tally.repeats], [3, 0, 0]);
});

test("a repeat is known, and what is missing is counted until it comes", () => {
  const order = newOrder();
  assert.deepEqual(seen(order, 1, 2, 6, 2, 1), [true, true, true, false, false]);
  assert.deepEqual([order.highest, tally.gaps, tally.repeats], [6, 3, 2]);
  assert.deepEqual(seen(order, 4, 5, 3), [true, true, true]);
  assert.equal(tally.gaps, 0);
});

test("a session may be joined at any seq, and what was before its first message is told too", () => {
  const order = newOrder();
  seen(order, 42, 41, 43);
  assert.deepEqual([order.highest, tally.gaps], [43, 0]);
});

test("another session counts anew, and the gaps of the last one stay counted", () => {
  const order = newOrder();
  seen(order, 1, 4);
  const next = new Order(tally);
  assert.deepEqual(seen(next, 1, 2), [true, true]);
  assert.deepEqual([next.highest, tally.gaps, tally.repeats], [2, 2, 0]);
});

test("so much is remembered and no more: what is too far back counts as a repeat", () => {
  const order = newOrder();
  for (let seq = 1; seq <= 5000; seq++) {
    assert.equal(order.fresh(seq), true);
  }
  assert.deepEqual(seen(order, 5000, 3977, 3976, 1), [false, false, false, false]);
  assert.equal(tally.gaps, 0);
});

test("jumps forward are gaps", () => {
  const order = newOrder();
  for (let seq = 1; seq < 20_000_000; seq += 1000) {
    order.fresh(seq);
  }
  assert.equal(tally.gaps, 19_999_001 - 20_000);
});

test("a message without a number is no repeat", () => {
  const order = newOrder();
  assert.ok(order.fresh(undefined) && order.fresh(undefined) && order.fresh("7"));
  assert.deepEqual([order.highest, tally.gaps, tally.repeats], [0, 0, 0]);
});
