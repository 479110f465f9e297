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
  assert.deepEqual([order.complete, tally.gaps, tally.repeats], [3, 0, 0]);
});

test("a repeat is recognised, and missing messages are counted until they arrive", () => {
  const order = newOrder();
  assert.deepEqual(seen(order, 1, 2, 6, 2, 1), [true, true, true, false, false]);
  assert.deepEqual([order.complete, tally.gaps, tally.repeats], [2, 3, 2]);
  assert.deepEqual(seen(order, 4, 5, 3), [true, true, true]);
  assert.deepEqual([order.complete, tally.gaps], [6, 0]);
});

test("a session may begin at any seq, and earlier messages still count as new", () => {
  const order = newOrder();
  seen(order, 42, 41, 43);
  assert.deepEqual([order.complete, tally.gaps], [43, 0]);
});

test("another session counts anew; the gaps of the last one stay counted", () => {
  const order = newOrder();
  seen(order, 1, 4);
  const next = new Order(tally);
  assert.deepEqual(seen(next, 1, 2), [true, true]);
  assert.deepEqual([next.complete, tally.gaps, tally.repeats], [2, 2, 0]);
});

test("memory is limited: very old messages count as repeats", () => {
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

test("a message without a number is not a repeat", () => {
  const order = newOrder();
  assert.ok(order.fresh(undefined) && order.fresh(undefined) && order.fresh("7"));
  assert.deepEqual([order.complete, tally.gaps, tally.repeats], [0, 0, 0]);
});

test("it is complete up to the first missing message, in any order of arrival", () => {
  const order = newOrder();
  const complete = [1, 2, 6, 3, 7, 5, 4, 8].map((seq) => {
    order.fresh(seq);
    return order.complete;
  });
  assert.deepEqual(complete, [1, 2, 2, 3, 3, 3, 7, 8]);
});

test("messages that will never arrive are skipped, future ones are not", () => {
  const order = newOrder();
  seen(order, 1, 2, 6, 9);
  order.skip(5);
  assert.equal(order.complete, 6);
  order.skip(4);
  assert.equal(order.complete, 6);
  order.skip(1000);
  assert.equal(order.complete, 9);
  for (const nonsense of [NaN, undefined, "7", 1.5]) {
    order.skip(nonsense as number);
  }
  assert.equal(order.complete, 9);
});

test("a page without messages of a session requests all of it", () => {
  tally = newTally();
  const order = new Order(tally, 0);
  assert.equal(order.complete, 0);
  seen(order, 9, 1, 2);
  assert.equal(order.complete, 2);
  order.skip(9);
  assert.equal(order.complete, 9);
});

test("a message is not awaited for too long: it would count as a repeat", () => {
  const order = newOrder();
  seen(order, 1);
  for (let seq = 3; seq <= 1026; seq++) {
    order.fresh(seq);
  }
  assert.equal(order.complete, 1026);
  assert.equal(order.fresh(2), false);
});
