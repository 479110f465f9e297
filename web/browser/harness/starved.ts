// Retries tests with time limits on a machine that is too busy to keep them.

/** The limits did not apply; the message is the measurement. */
class Starved extends Error {}

const TRIES = 5;

/** Ends the test for a retry, unless `reason` is empty. The test must have released everything. */
export function starvedBy(reason: string): void {
  if (reason !== "") {
    throw new Starved(`the machine was too slow in each of ${TRIES} tries; the last time: ${reason}`);
  }
}

/** Runs a test, and repeats it if starvedBy ended it. */
export async function unlessStarved(test: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await test();
    } catch (error) {
      if (!(error instanceof Starved) || tries === TRIES) {
        throw error;
      }
      console.log(`retrying: ${error.message}`);
    }
  }
}
