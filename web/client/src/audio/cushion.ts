// How much of an item is buffered before it plays, so that late audio still arrives in time.

/** Limits of the buffer in ms. It starts at the lower one. */
export const MIN_CUSHION_MS = 60;
export const MAX_CUSHION_MS = 400;

/** Added to the measured need, because the audio device takes samples in bursts of about this length. */
const MARGIN_MS = 10;
/** The need is measured over this many pieces of one second of audio. */
const PIECES = 16;
const PIECE_MS = 1000;
/** The buffer grows by this factor after an underrun, because the measured need was too low. */
const GROW = 1.5;
/** After this much audio without an underrun the buffer shrinks towards the measured need. */
const CALM_MS = 10_000;
const SHRINK = 0.8;

/**
 * Chooses the buffer's length from the arrival times of audio. For each frame, arrived() measures how much
 * buffered audio would have bridged the gap if the item had begun at the best earlier moment. Audio that
 * arrives faster than it plays needs almost none.
 *
 * One long gap is chance, two are a pattern: the second longest of the last 16 seconds counts. Times are ms
 * on the playback clock.
 */
export class Cushion {
  #current = MIN_CUSHION_MS;
  /** The earliest end of a frame so far, counted as if it were its item's first. */
  #best = Infinity;
  readonly #pieces = new Float64Array(PIECES);
  #piece = 0;
  #pieceMs = 0;
  #calmMs = 0;

  /** The audio to buffer before an item plays, in ms. */
  get ms(): number {
    return this.#current;
  }

  /** An item begins. */
  begin(): void {
    this.#best = Infinity;
  }

  /**
   * A frame of `ms` arrived at `at`. Its item had `before` ms already, and `waiting` ms of all audio were
   * queued. dry: the queue had run dry within the item.
   */
  arrived(at: number, before: number, ms: number, waiting: number, dry: boolean): void {
    // With this much queued, the frame was not late.
    if (this.#best !== Infinity && waiting < MAX_CUSHION_MS) {
      this.#note(at - before - this.#best, ms);
    }
    if (dry) {
      this.#calmMs = 0;
      this.#current = Math.min(MAX_CUSHION_MS, Math.max(Math.round(this.#current * GROW), this.#need()));
      // Playback resumes later than before, so the old reference no longer applies.
      this.#best = Infinity;
    }
    this.#best = Math.min(this.#best, at - before - ms);
  }

  /** Records that `ms` of audio played. */
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
