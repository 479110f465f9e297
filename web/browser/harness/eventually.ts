// Polls a page. `expect.poll` does not know its test when several run at once.
import { PATIENCE } from "./mailbox.ts";

/** The polling interval, in ms. */
const PAUSE = 50;

/** Asks until the answer is wanted, and returns it. The timeout error has the last answer. */
export async function eventually<T>(what: string, ask: () => T | Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  const late = Date.now() + PATIENCE;
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) {
      return answer;
    }
    if (Date.now() > late) {
      throw new Error(`waited ${PATIENCE / 1000} s for ${what}; the last answer was ${String(answer)}`);
    }
    await new Promise((again) => setTimeout(again, PAUSE));
  }
}
