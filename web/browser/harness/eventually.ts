// Waiting for what a page tells only when it is asked. `expect.poll` does not know to which test it belongs
// while several run at once.
import { PATIENCE } from "./mailbox.ts";

/** Between two questions, in ms. */
const PAUSE = 50;

/** Asks again and again until the answer is wanted, and returns it. The error of somebody who waited in vain has the last one. */
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
