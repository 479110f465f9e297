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

test("a gateway that answers and sends nothing else is asked every 2 s, and is there", async () => {
  await pass(6500);
  assert.deepEqual(pings, [2000, 4000, 5000]);
  await pass(15_000);
  assert.equal(lost, 0);
});

test("a gateway that speaks is asked every 5 s", async () => {
  for (let i = 0; i < 110; i++) {
    await pass(100);
    heartbeat.heard();
  }
  assert.deepEqual(pings, [5000, 10_000]);
});

test("after 5 s without any frame the connection is lost, which is told once", async () => {
  answering = false;
  await pass(4999);
  assert.equal(lost, 0);
  await pass(1);
  assert.equal(lost, 1);
  assert.equal(heartbeat.lastHeard, began);
  await pass(60_000);
  assert.equal(lost, 1);
  assert.deepEqual(pings, [2000, 3000, 4000], "nobody is asked any more");
});

test("any frame counts, not only the answer to a ping", async () => {
  answering = false;
  for (let i = 0; i < 10; i++) {
    await pass(4000);
    heartbeat.heard();
  }
  assert.equal(lost, 0);
});

test("a hidden page neither asks nor gives up; seen again, it asks at once and counts anew", async () => {
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

test("a network that is back is asked at once", async () => {
  await pass(1500);
  network(true);
  assert.deepEqual(pings, [1500]);
});

test("a machine that slept does not take its sleep for silence", async () => {
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

test("stopped, it does nothing, and stops twice", async () => {
  heartbeat.stop();
  heartbeat.stop();
  network(true);
  show(true);
  await pass(60_000);
  assert.deepEqual([pings.length, lost], [0, 0]);
});
