// A promise about time does not hold on a machine that has none. What was measured says so, and the
// story is told again.

/** What is promised did not apply; the message is what was measured. */
class Starved extends Error {}

/** So often a story is told on a machine that starves it. */
const TRIES = 5;

/** Ends the story, to be told again, where a measurement has found a reason; it must have left nothing behind. */
export function starvedBy(reason: string): void {
  if (reason !== "") {
    throw new Starved(`the machine was too slow in each of ${TRIES} tries, at last: ${reason}`);
  }
}

/** Tells a story, and again where starvedBy has ended it. */
export async function unlessStarved(story: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await story();
    } catch (error) {
      if (!(error instanceof Starved) || tries === TRIES) {
        throw error;
      }
      console.log(`told again: ${error.message}`);
    }
  }
}
