// Draws both sides on a canvas. Time runs to the right; one device pixel is always the same
// stretch of time, so that nothing shimmers while it scrolls.
import type { Instruments } from "../instruments.js";
import { COLUMN_MS, type Columns } from "../model/wave.js";
import type { Span } from "../model/sound.js";
import type { Palette } from "./theme.js";
import { WAVE } from "./words-instruments.js";

/** What is seen: the time at the left edge and how much time the width holds, in ms. */
export interface Window {
  from: number;
  ms: number;
  /** What is called now: performance.now(), or the moment at which it was stopped. */
  now: number;
}

/** A canvas and how it is to be drawn on. Sizes are in device pixels. */
export interface Surface {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  /** Device pixels per CSS pixel. */
  ratio: number;
  font: string;
  palette: Palette;
}

/** Room for turns above the tracks and for the time below them, in CSS pixels. */
const HEAD = 18;
const FOOT = 18;
const GAP = 6;
/** Seconds between the marks below. */
const TICK_MS = 5000;

interface Track {
  middle: number;
  half: number;
}

export function draw(surface: Surface, instruments: Instruments, view: Window): void {
  const { context, width, height, ratio, palette } = surface;
  context.clearRect(0, 0, width, height);
  const room = height - (HEAD + FOOT + GAP) * ratio;
  const half = Math.floor(room / 4);
  const user: Track = { middle: HEAD * ratio + half, half };
  const model: Track = { middle: height - FOOT * ratio - half, half };
  const x = (at: number): number => Math.round(((at - view.from) / view.ms) * width);

  const now = Math.min(width, Math.max(0, x(view.now)));

  // What is to come has another ground.
  context.fillStyle = palette.sunken;
  context.fillRect(now, HEAD * ratio, width - now, height - (HEAD + FOOT) * ratio);
  rest(surface, user, now);
  rest(surface, model, now);
  speeches(surface, instruments, user, view, x);
  columns(surface, instruments.wave.user, user, { from: 0, to: now, first: view.from, perPixel: view.ms / width }, palette.user);
  spans(surface, instruments, model, view, x);
  marks(surface, instruments, view, x);
  times(surface, view, x);
}

/** The line of silence, as far as time has come. */
function rest({ context, ratio, palette }: Surface, { middle }: Track, until: number): void {
  context.fillStyle = palette.edge;
  context.globalAlpha = 0.5;
  context.fillRect(0, middle, until, Math.max(1, Math.round(ratio / 2)));
  context.globalAlpha = 1;
}

/** Where the gateway heard the user speak: a bar below the track, and a veil behind it. */
function speeches({ context, ratio, palette }: Surface, { sound }: Instruments, { middle, half }: Track, view: Window, x: (at: number) => number): void {
  context.fillStyle = palette.user;
  for (const speech of sound.speeches) {
    if (speech.session === sound.session) {
      const from = x(speech.from);
      const to = x(Math.min(view.now, speech.to ?? view.now));
      context.globalAlpha = 0.12;
      context.fillRect(from, middle - half, to - from, 2 * half);
      context.globalAlpha = 1;
      context.fillRect(from, middle + half - 2 * ratio, to - from, 2 * ratio);
    }
  }
}

interface Stretch {
  /** Pixels, from the left edge. */
  from: number;
  to: number;
  /** The time of the first pixel, by the columns' own clock, and how much of it a pixel holds; in ms. */
  first: number;
  perPixel: number;
}

/** How high a sample is drawn: soft sounds would hardly be seen otherwise. */
function size(sample: number, half: number): number {
  return Math.sign(sample) * Math.round(Math.pow(Math.min(1, Math.abs(sample) / 32768), 0.6) * half);
}

/** Calls back with the lowest and highest sample of each pixel. */
function eachPixel(all: Columns, { from, to, first, perPixel }: Stretch, pixel: (x: number, low: number, high: number) => void): void {
  for (let p = from; p < to; p++) {
    const begin = Math.floor((first + (p - from) * perPixel) / COLUMN_MS);
    const end = Math.max(begin + 1, Math.floor((first + (p + 1 - from) * perPixel) / COLUMN_MS));
    let low = 0;
    let high = 0;
    for (let column = begin; column < end; column++) {
      low = Math.min(low, all.low(column));
      high = Math.max(high, all.high(column));
    }
    pixel(p, low, high);
  }
}

function columns({ context }: Surface, all: Columns, { middle, half }: Track, stretch: Stretch, colour: string): void {
  context.fillStyle = colour;
  eachPixel(all, stretch, (x, low, high) => {
    if (low !== high) {
      const top = size(high, half);
      // On whole pixels a rectangle is copied; hundreds in one path would be smoothed at their edges, which costs twice as much.
      context.fillRect(x, middle - top, 1, Math.max(1, top - size(low, half)));
    }
  });
}

/** The shape of a sound and little within: it is not heard. */
function outline({ context, ratio }: Surface, all: Columns, { middle, half }: Track, stretch: Stretch, colour: string): void {
  const upper: [number, number][] = [];
  const lower: [number, number][] = [];
  eachPixel(all, stretch, (x, low, high) => {
    upper.push([x + 0.5, middle - size(high, half)]);
    lower.push([x + 0.5, middle - size(low, half)]);
  });
  if (upper.length === 0) {
    return;
  }
  context.beginPath();
  for (const [x, y] of [...upper, ...lower.reverse()]) {
    context.lineTo(x, y);
  }
  context.closePath();
  context.fillStyle = context.strokeStyle = colour;
  context.lineWidth = ratio;
  context.lineJoin = "round";
  context.globalAlpha = 0.14;
  context.fill();
  context.globalAlpha = 0.7;
  context.stroke();
  context.globalAlpha = 1;
}

function spans(surface: Surface, { sound, wave }: Instruments, track: Track, view: Window, x: (at: number) => number): void {
  const { context, width, ratio, palette } = surface;
  const perPixel = view.ms / width;
  for (const span of sound.spans(sound.session, view.now)) {
    const all = wave.item(span.item.id);
    const from = Math.max(0, x(span.at));
    const to = Math.min(width, x(span.at + (span.to - span.from)));
    if (all === undefined || to <= from) {
      continue;
    }
    const part = (begin: number, end: number): Stretch => ({ from: begin, to: end, first: span.from + (view.from + begin * perPixel - span.at), perPixel });
    // Of a picture that stands still, more may have been heard since.
    const heard = span.kind === "heard" ? Math.min(to, Math.max(from, x(view.now))) : from;
    columns(surface, all, track, part(from, heard), palette.model);
    outline(surface, all, track, part(heard, to), span.kind === "lost" ? palette.bad : palette.model);
    if (span.kind === "lost") {
      context.fillStyle = palette.bad;
      context.fillRect(from, track.middle - Math.round(ratio), to - from, Math.max(1, Math.round(1.5 * ratio)));
      heardUntil(surface, span, track, x);
    }
  }
}

/** The end of what was heard: a stop across the track. */
function heardUntil({ context, ratio, palette }: Surface, span: Span, { middle, half }: Track, x: (at: number) => number): void {
  context.fillStyle = palette.bad;
  context.fillRect(x(span.at) - Math.round(ratio), middle - half, 2 * Math.round(ratio), 2 * half);
}

function marks(surface: Surface, { sound }: Instruments, view: Window, x: (at: number) => number): void {
  const { context, height, ratio, palette } = surface;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.font = surface.font;
  let free = -Infinity;
  for (const { kind, at, turn } of sound.marks) {
    if (at < view.from - view.ms || at > view.from + view.ms || at < sound.openedAt) {
      continue;
    }
    const left = x(at);
    context.fillStyle = kind === "flush" ? palette.bad : palette.edge;
    context.fillRect(left, 0.2 * HEAD * ratio, Math.max(1, Math.round(ratio)), height - (0.2 * HEAD + FOOT) * ratio);
    const label = kind === "flush" ? WAVE.interrupted : kind === "turn" ? WAVE.turn(turn) : WAVE.typed;
    if (left >= Math.max(0, free)) {
      context.fillStyle = kind === "flush" ? palette.bad : palette.faint;
      context.fillText(label, left + 5 * ratio, (HEAD / 2) * ratio);
      free = left + context.measureText(label).width + 10 * ratio;
    }
  }
}

/** The time below: how long ago, and what is to come. */
function times({ context, width, height, ratio, font, palette }: Surface, view: Window, x: (at: number) => number): void {
  context.font = font;
  context.textBaseline = "middle";
  context.textAlign = "center";
  const y = height - (FOOT / 2) * ratio;
  for (let at = view.now; at > view.from; at -= TICK_MS) {
    const label = at === view.now ? WAVE.now : `−${Math.round((view.now - at) / 1000)} s`;
    const half = context.measureText(label).width / 2;
    if (x(at) > half && x(at) < width - half) {
      context.fillStyle = at === view.now ? palette.ink : palette.faint;
      context.fillText(label, x(at), y);
    }
  }
  context.fillStyle = palette.ink;
  context.fillRect(x(view.now), HEAD * ratio, Math.max(1, Math.round(ratio)), height - (HEAD + FOOT) * ratio);
}
