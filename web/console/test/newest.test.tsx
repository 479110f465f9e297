// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { render } from "preact";
import { act } from "preact/test-utils";
import { test } from "vitest";
import { begins, useNewest } from "../src/ui/newest.js";

const keyed = (count: number, from = 0): { key: string }[] => Array.from({ length: count }, (_, i) => ({ key: `k${from + i}` }));

test("a list starts with its newest items or keeps its start", () => {
  const all = keyed(10);
  assert.equal(begins(keyed(3), 5, undefined, false), 0);
  assert.equal(begins(all, 5, undefined, false), 5);
  assert.equal(begins(all, 5, "k2", false), 5, "it follows new items");
  assert.equal(begins(all, 5, "k2", true), 2, "it keeps its start");
  assert.equal(begins(all, 5, "k8", true), 5, "it never shows fewer");
  assert.equal(begins(keyed(10, 20), 5, "k2", true), 5, "another list");
});

test("visible items stay, and a long list becomes short again at its end", async () => {
  const host = document.createElement("div");
  let found = useless();
  function List({ count, elsewhere }: { count: number; elsewhere: boolean }) {
    found = useNewest(keyed(count), 5, elsewhere);
    return <p>{found.shown.map(({ key }) => key).join(" ")}</p>;
  }
  const shows = async (count: number, elsewhere: boolean): Promise<[string | null, number]> => {
    await act(() => render(<List {...{ count, elsewhere }} />, host));
    return [host.textContent, found.hidden];
  };
  assert.deepEqual(await shows(5, false), ["k0 k1 k2 k3 k4", 0]);
  assert.deepEqual(await shows(7, false), ["k2 k3 k4 k5 k6", 2]);
  assert.deepEqual(await shows(9, true), ["k2 k3 k4 k5 k6 k7 k8", 2], "the user reads");
  await act(() => found.earlier());
  assert.deepEqual(await shows(9, true), ["k0 k1 k2 k3 k4 k5 k6 k7 k8", 0]);
  assert.deepEqual(await shows(10, true), ["k0 k1 k2 k3 k4 k5 k6 k7 k8 k9", 0]);
  assert.deepEqual(await shows(11, false), ["k6 k7 k8 k9 k10", 6], "the user is back at the end");
  await act(() => found.earlier());
  assert.deepEqual(await shows(12, false), ["k1 k2 k3 k4 k5 k6 k7 k8 k9 k10 k11", 1], "requested at the end");
  render(null, host);
});

function useless(): { shown: readonly { key: string }[]; hidden: number; earlier: () => void } {
  return { shown: [], hidden: 0, earlier: () => undefined };
}
