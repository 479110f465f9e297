// How much of an item waits before it sounds, so that what comes late is still in time.

/** Bounds of the cushion in ms. It begins at the lower one. */
export const MIN_CUSHION_MS = 60;
export const MAX_CUSHION_MS = 400;

/** What is added to the measured need: the audio device takes sound in bursts of about that. */
const MARGIN_MS = 10;
/** The need is measured over so many pieces of a second of audio each. */
const PIECES = 16;
const PIECE_MS = 1000;
/** After an underrun, which tells that the measure was not enough. */
const GROW = 1.5;
/** After so much sound without an underrun the cushion comes nearer to the need again. */
const CALM_MS = 10_000;
const SHRINK = 0.8;

/**
 * Decides the cushion from how audio arrives. A cushion is enough when, however late audio
 * comes, the queue has until then lived off what was there: arrived() measures for every
 * frame how long that would have been had the item begun at the best moment before it. Audio
 * that came faster than it is played needs next to nothing by that measure.
 *
 * One long need alone is bad luck, two are the line: the second longest of the last sixteen
 * seconds counts. All times are ms on the clock of the playback.
 */
export class Cushion {
  #current = MIN_CUSHION_MS;
  /** The best moment so far: the earliest end of a frame, as if it were its item's first. */
  #best = Infinity;
  readonly #pieces = new Float64Array(PIECES);
  #piece = 0;
  #pieceMs = 0;
  #calmMs = 0;

  /** So much audio is to wait before it sounds. */
  get ms(): number {
    return this.#current;
  }

  /** An item begins. */
  begin(): void {
    this.#best = Infinity;
  }

  /**
   * A frame of so many ms came at a time, when its item had sent so much before it, and so
   * much of all that was still waiting. dry: the queue had run dry within the item.
   */
  arrived(at: number, before: number, ms: number, waiting: number, dry: boolean): void {
    // With plenty waiting the frame was not late for anything.
    if (this.#best !== Infinity && waiting < MAX_CUSHION_MS) {
      this.#note(at - before - this.#best, ms);
    }
    if (dry) {
      this.#calmMs = 0;
      this.#current = Math.min(MAX_CUSHION_MS, Math.max(Math.round(this.#current * GROW), this.#need()));
      // Sound goes on from here, later than it was: what was best before is gone.
      this.#best = Infinity;
    }
    this.#best = Math.min(this.#best, at - before - ms);
  }

  /** So much has sounded. */
  sounded(ms: number): void {
    this.#calmMs += ms;
    if (this.#calmMs < CALM_MS) {
      return;
    }
    this.#calmMs = 0;
    this.#nextPiece();
    this.#current = Math.max(Math.round(this.#current * SHRINK), this.#need());
  }

  #note(need: number, ms: number): void {
    this.#pieces[this.#piece] = Math.max(this.#pieces[this.#piece]!, need);
    this.#current = Math.max(this.#current, this.#need());
    this.#pieceMs += ms;
    if (this.#pieceMs >= PIECE_MS) {
      this.#nextPiece();
    }
  }

  #nextPiece(): void {
    this.#pieceMs = 0;
    this.#piece = (this.#piece + 1) % PIECES;
    this.#pieces[this.#piece] = 0;
  }

  #need(): number {
    let longest = 0;
    let second = 0;
    for (let i = 0; i < PIECES; i++) {
      const need = this.#pieces[i]!;
      if (need > longest) {
        second = longest;
        longest = need;
      } else if (need > second) {
        second = need;
      }
    }
    return Math.min(MAX_CUSHION_MS, Math.max(MIN_CUSHION_MS, Math.ceil(second) + MARGIN_MS));
  }
}
