import { expect, test } from "vitest";
import { likeness, pcm16 } from "../harness/signals.ts";

const RATE = 24_000;
/** Two utterances with a second of silence between them; the second is delayed by `later` samples. */
const spoken = (later: number) =>
  pcm16((t) => {
    const u = t < 1.5 ? t : t - later / RATE;
    const loud = (t > 0.1 && t < 1.3) || (t > 2.3 && t < 3.6) ? 0.1 + 0.1 * Math.sin(2 * Math.PI * 3 * u) ** 2 : 0;
    return loud * [310, 730, 1370, 2900, 5100].reduce((sum, hz) => sum + Math.sin(2 * Math.PI * hz * (u + 0.01 * Math.sin(7 * u))), 0);
  }, RATE, 4);

test("a fraction of a sample's delay does not reduce the likeness, and other sound is not alike", () => {
  const original = spoken(0);
  for (const later of [0, 0.5, 1, 1.5]) {
    const { correlation, lostMs } = likeness(spoken(later), original, RATE);
    expect(correlation, `${later} samples later`).toBeGreaterThan(0.998);
    expect(lostMs).toBeLessThan(1);
  }
  const worse = spoken(0).map((x, i) => x + (((i * 7919) % 13) - 6) * 500);
  expect(likeness(worse, original, RATE).correlation, "with a noise over it").toBeLessThan(0.98);
  const cut = spoken(0).fill(0, 2.6 * RATE, 2.75 * RATE);
  expect(likeness(cut, original, RATE).correlation, "with 150 ms missing").toBeLessThan(0.985);
});
