// Computes the waveform in a time window, in pixels. Time runs to the right, and a device pixel always covers
// the same time span, so that scrolling does not flicker.
import type { Instruments } from "../instruments.js";
import { COLUMN_MS, type Columns } from "../model/wave.js";
import type { Run, WavePicture } from "../ui/paint.js";
import { WAVE } from "./words-instruments.js";

/** The time at the left edge and the width in ms. */
export interface Window {
  from: number;
  ms: number;
  /** The present: performance.now(), or the time of the pause. */
  now: number;
}

/** Interval between the marks on the time axis. */
const TICK_MS = 5000;

/** `width` in device pixels. */
export function pictureOf({ sound, wave }: Instruments, view: Window, width: number): WavePicture {
  const x = (at: number): number => Math.round(((at - view.from) / view.ms) * width);
  const perPixel = view.ms / width;
  const now = Math.min(width, Math.max(0, x(view.now)));
  const user = { from: 0, to: now, samples: samplesOf(wave.user, view.from, perPixel, now) };
  return { kind: "wave", now, user, model: model(), speeches: speeches(), marks: marks(), times: times() };

  function model(): WavePicture["model"] {
    const seen: WavePicture["model"] = [];
    for (const span of sound.spans(sound.session, view.now)) {
      const all = wave.item(span.item.id);
      const from = Math.max(0, x(span.at));
      const to = Math.min(width, x(span.at + (span.to - span.from)));
      if (all === undefined || to <= from) {
        continue;
      }
      const run = (begin: number, end: number): Run => ({ from: begin, to: end, samples: samplesOf(all, span.from + (view.from + begin * perPixel - span.at), perPixel, end - begin) });
      // In a paused picture, more may have been heard since.
      const heard = span.kind === "heard" ? Math.min(to, Math.max(from, now)) : from;
      seen.push({ heard: run(from, heard), unheard: run(heard, to), lostAt: span.kind === "lost" ? x(span.at) : null });
    }
    return seen;
  }

  function speeches(): WavePicture["speeches"] {
    return sound.speeches
      .filter(({ session }) => session === sound.session)
      .map(({ from, to }) => ({ from: x(from), to: x(Math.min(view.now, to ?? view.now)) }))
      .filter(({ from, to }) => to > 0 && from < width);
  }

  function marks(): WavePicture["marks"] {
    return sound.marks
      .filter(({ at }) => at >= view.from - view.ms && at <= view.from + view.ms && at >= sound.openedAt)
      .map(({ kind, at, turn }) => ({ x: x(at), cut: kind === "flush", label: kind === "flush" ? WAVE.interrupted : kind === "turn" ? WAVE.turn(turn) : WAVE.typed }));
  }

  /** The labels of the time axis. */
  function times(): WavePicture["times"] {
    const all: WavePicture["times"] = [{ x: x(view.now), label: WAVE.now }];
    for (let at = view.now - TICK_MS; at > view.from; at -= TICK_MS) {
      all.push({ x: x(at), label: `−${Math.round((view.now - at) / 1000)} s` });
    }
    return all;
  }
}

/** Buffers for columns, as large as ever needed. */
let lows = new Int16Array(0);
let highs = new Int16Array(0);

/**
 * The lowest and the highest sample of each of `count` pixels. `first` is the start in ms on the columns'
 * clock.
 */
function samplesOf(all: Columns, first: number, perPixel: number, count: number): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(2 * count);
  const columnOf = (pixel: number): number => Math.floor((first + pixel * perPixel) / COLUMN_MS);
  const start = columnOf(0);
  const needed = columnOf(count) + 1 - start;
  if (lows.length < needed) {
    lows = new Int16Array(needed);
    highs = new Int16Array(needed);
  }
  all.copy(start, lows.subarray(0, needed), highs.subarray(0, needed));
  for (let p = 0, next = start; p < count; p++) {
    const begin = next;
    next = columnOf(p + 1);
    const end = Math.max(begin + 1, next) - start;
    let low = 0;
    let high = 0;
    for (let column = begin - start; column < end; column++) {
      low = Math.min(low, lows[column]!);
      high = Math.max(high, highs[column]!);
    }
    samples[2 * p] = low;
    samples[2 * p + 1] = high;
  }
  return samples;
}
