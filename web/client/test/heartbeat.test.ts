// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { Heartbeat } from "../src/connection/heartbeat.js";
import { installNetwork, network, pass, removeNetwork, show } from "./fakes.js";

let pings: number[];
let lost: number;
let answering: boolean;
let heartbeat: Heartbeat;
let began: number;

beforeEach(() => {
  installNetwork();
  pings = [];
  lost = 0;
  answering = true;
  heartbeat = new Heartbeat({
    ping: () => {
      pings.push(performance.now() - began);
      if (answering) {
        heartbeat.heard();
      }
    },
    lost: () => lost++,
  });
  began = performance.now();
  heartbeat.start();
});

afterEach(() => {
  heartbeat.stop();
  removeNetwork();
});

test("a gateway that only answers pings is asked every 2 s and counts as alive", async () => {
  await pass(6500);
  assert.deepEqual(pings, [2000, 4000, 5000]);
  await pass(15_000);
  assert.equal(lost, 0);
});

test("a gateway that sends other frames is asked every 5 s", async () => {
  for (let i = 0; i < 110; i++) {
    await pass(100);
    heartbeat.heard();
  }
  assert.deepEqual(pings, [5000, 10_000]);
});

test("after 5 s without any frame the loss of the connection is reported once", async () => {
  answering = false;
  await pass(4999);
  assert.equal(lost, 0);
  await pass(1);
  assert.equal(lost, 1);
  assert.equal(heartbeat.lastHeard, began);
  await pass(60_000);
  assert.equal(lost, 1);
  assert.deepEqual(pings, [2000, 3000, 4000], "the pings have ended");
});

test("every frame counts as a sign of life", async () => {
  answering = false;
  for (let i = 0; i < 10; i++) {
    await pass(4000);
    heartbeat.heard();
  }
  assert.equal(lost, 0);
});

test("a hidden page does not ask or give up; when visible again, it asks at once and counts anew", async () => {
  answering = false;
  await pass(1000);
  show(false);
  await pass(120_000);
  assert.deepEqual(pings, []);
  assert.equal(lost, 0);
  show(true);
  assert.equal(pings.length, 1);
  await pass(4000);
  assert.equal(lost, 0);
  await pass(2000);
  assert.equal(lost, 1);
});

test("a ping is sent as soon as the network returns", async () => {
  await pass(1500);
  network(true);
  assert.deepEqual(pings, [1500]);
});

test("sleep of the machine does not count as silence", async () => {
  answering = false;
  await pass(2000);
  // Timers stop; the clock runs.
  const now = performance.now();
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now + 3600_000);
  await pass(2000);
  assert.equal(lost, 0);
  await pass(1000);
  assert.equal(lost, 1);
  clock.mockRestore();
});

test("after stop it does nothing; stop works twice", async () => {
  heartbeat.stop();
  heartbeat.stop();
  network(true);
  show(true);
  await pass(60_000);
  assert.deepEqual([pings.length, lost], [0, 0]);
});
