import assert from "node:assert/strict";
import { test } from "vitest";
import { TurnCount } from "../src/model/turncount.js";

test("turns are counted through all sessions of a call", () => {
  const turns = new TurnCount();
  const first = { type: "turn.started", turn: 2 };
  assert.equal(turns.count(first), first, "a call of one session keeps its numbers");
  turns.renew();
  assert.deepEqual(turns.count({ type: "turn.started", turn: 1 }), { type: "turn.started", turn: 3 });
  assert.deepEqual(turns.count({ type: "pong" }), { type: "pong" });
  turns.renew();
  turns.renew();
  assert.equal(turns.count({ turn: 1 }).turn, 4, "a session without a turn has no number");
  // A reloaded page continues the count.
  assert.equal(new TurnCount(turns.before).count({ turn: 1 }).turn, 4);
});
