import assert from "node:assert/strict";
import { test } from "vitest";
import { Fifo } from "../src/audio/fifo.js";
import { random } from "./signal.js";

test("items leave in order, at any fill level", () => {
  const fifo = new Fifo<number>();
  const want: number[] = [];
  const next = random(1);
  for (let i = 0; i < 5000; i++) {
    if (next() < (i < 2500 ? 0.6 : 0.35)) {
      fifo.push(i);
      want.push(i);
    } else {
      fifo.drop();
      want.shift();
    }
    assert.equal(fifo.peek(), want[0]);
  }
});
