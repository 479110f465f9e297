import { expect, test } from "vitest";
import { grown, type Kept } from "./growth.ts";

function minutes(count: number, kept: (minute: number) => Partial<Kept>): Kept[] {
  return Array.from({ length: count }, (_, i) => ({ heapMb: 9, nodes: 1000, listeners: 200, ...kept(i + 1) }));
}

test("a value that stops growing at the tenth minute has settled", () => {
  expect(grown(minutes(15, (minute) => ({ heapMb: 5 + Math.min(minute, 10) / 2 + (minute % 2) / 3, nodes: 900 + 40 * (minute % 3) })))).toEqual([]);
});

test("a value that grows after it is named", () => {
  expect(grown(minutes(15, (minute) => ({ heapMb: 5 + minute / 3 })))).toEqual(["heapMb: 8.7 after minute 10, 9.7 after minute 15"]);
  expect(grown(minutes(15, (minute) => ({ nodes: 100 * minute, listeners: 10 * minute }))).map((text) => text.replace(/:.*/, ""))).toEqual(["nodes", "listeners"]);
});

test("a short run has no result", () => {
  expect(grown(minutes(12, (minute) => ({ heapMb: minute })))).toEqual([]);
});
