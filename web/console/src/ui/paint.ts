// Paints pictures on canvases. It does not use the page, so that it can run in a worker.
import type { Palette } from "./theme.js";

export type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** The properties of a canvas. Sizes are in device pixels. */
export interface Surface {
  width: number;
  height: number;
  /** Device pixels per CSS pixel. */
  ratio: number;
  font: string;
  palette: Palette;
}

/** Pixels of a track: the lowest and the highest sample of each, alternating. */
export interface Run {
  from: number;
  to: number;
  samples: Int16Array<ArrayBuffer>;
}

/** Both sides over time; x in device pixels from the left edge. */
export interface WavePicture {
  kind: "wave";
  now: number;
  user: Run;
  /** lostAt: the unheard rest will never play, and the heard part ends there. */
  model: { heard: Run; unheard: Run; lostAt: number | null }[];
  /** Where the gateway detected the user's speech. */
  speeches: { from: number; to: number }[];
  /** cut: an answer was cut off. */
  marks: { x: number; cut: boolean; label: string }[];
  /** The first one is now. */
  times: { x: number; label: string }[];
}

/** A bar over a share of the width; the user's is on the right. */
export interface LevelPicture {
  kind: "level";
  side: "user" | "model";
  share: number;
  /** The bar moves there within this time; 0: at once. */
  glideMs: number;
}

export type Picture = WavePicture | LevelPicture;

export function paint(context: Context, surface: Surface, picture: Picture): void {
  context.clearRect(0, 0, surface.width, surface.height);
  if (picture.kind === "wave") {
    paintWave({ context, ...surface }, picture);
  } else {
    paintLevel(context, surface, picture);
  }
}

function paintLevel(context: Context, { width, height, palette }: Surface, { side, share }: LevelPicture): void {
  const long = Math.round(share * width);
  if (long > 0) {
    context.fillStyle = palette[side];
    context.beginPath();
    context.roundRect(side === "user" ? width - long : 0, 0, long, height, Math.min(long, height) / 2);
    context.fill();
  }
}

/** Room in CSS pixels for turns above the tracks and the time below them. */
const HEAD = 18;
const FOOT = 18;
const GAP = 6;

interface Track {
  middle: number;
  half: number;
}

interface Paper extends Surface {
  context: Context;
}

function paintWave(paper: Paper, picture: WavePicture): void {
  const { context, width, height, ratio, palette } = paper;
  const room = height - (HEAD + FOOT + GAP) * ratio;
  const half = Math.floor(room / 4);
  const user: Track = { middle: HEAD * ratio + half, half };
  const model: Track = { middle: height - FOOT * ratio - half, half };

  // The future has another background.
  context.fillStyle = palette.sunken;
  context.fillRect(picture.now, HEAD * ratio, width - picture.now, height - (HEAD + FOOT) * ratio);
  rest(paper, user, picture.now);
  rest(paper, model, picture.now);
  speeches(paper, user, picture);
  columns(paper, user, picture.user, palette.user);
  for (const { heard, unheard, lostAt } of picture.model) {
    columns(paper, model, heard, palette.model);
    outline(paper, model, unheard, lostAt === null ? palette.model : palette.bad);
    if (lostAt !== null) {
      lost(paper, model, unheard, lostAt);
    }
  }
  marks(paper, picture);
  times(paper, picture);
}

/** The line of silence, up to the present. */
function rest({ context, ratio, palette }: Paper, { middle }: Track, until: number): void {
  context.fillStyle = palette.edge;
  context.globalAlpha = 0.5;
  context.fillRect(0, middle, until, Math.max(1, Math.round(ratio / 2)));
  context.globalAlpha = 1;
}

/** A bar below the track, and a shade behind it. */
function speeches({ context, ratio, palette }: Paper, { middle, half }: Track, picture: WavePicture): void {
  context.fillStyle = palette.user;
  for (const { from, to } of picture.speeches) {
    context.globalAlpha = 0.12;
    context.fillRect(from, middle - half, to - from, 2 * half);
    context.globalAlpha = 1;
    context.fillRect(from, middle + half - 2 * ratio, to - from, 2 * ratio);
  }
}

/** Scales a sample's height so that soft sounds are visible. */
function size(sample: number, half: number): number {
  return Math.sign(sample) * Math.round(Math.pow(Math.min(1, Math.abs(sample) / 32768), 0.6) * half);
}

function columns({ context }: Paper, { middle, half }: Track, { from, samples }: Run, colour: string): void {
  context.fillStyle = colour;
  for (let i = 0; i < samples.length; i += 2) {
    const low = samples[i]!;
    const high = samples[i + 1]!;
    if (low !== high) {
      const top = size(high, half);
      // On whole pixels a rectangle is copied. One path with hundreds of them would be anti-aliased, which
      // takes twice as long.
      context.fillRect(from + i / 2, middle - top, 1, Math.max(1, top - size(low, half)));
    }
  }
}

/** The outline of audio that is not heard. */
function outline({ context, ratio }: Paper, { middle, half }: Track, { from, samples }: Run, colour: string): void {
  if (samples.length === 0) {
    return;
  }
  context.beginPath();
  for (let i = 0; i < samples.length; i += 2) {
    context.lineTo(from + i / 2 + 0.5, middle - size(samples[i + 1]!, half));
  }
  for (let i = samples.length - 2; i >= 0; i -= 2) {
    context.lineTo(from + i / 2 + 0.5, middle - size(samples[i]!, half));
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

/** A line through lost audio, and a mark across the track where the heard part ended. */
function lost({ context, ratio, palette }: Paper, { middle, half }: Track, { from, to }: Run, at: number): void {
  context.fillStyle = palette.bad;
  context.fillRect(from, middle - Math.round(ratio), to - from, Math.max(1, Math.round(1.5 * ratio)));
  context.fillRect(at - Math.round(ratio), middle - half, 2 * Math.round(ratio), 2 * half);
}

function marks({ context, height, ratio, font, palette }: Paper, picture: WavePicture): void {
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.font = font;
  let free = 0;
  for (const { x, cut, label } of picture.marks) {
    context.fillStyle = cut ? palette.bad : palette.edge;
    context.fillRect(x, 0.2 * HEAD * ratio, Math.max(1, Math.round(ratio)), height - (0.2 * HEAD + FOOT) * ratio);
    if (x >= free) {
      context.fillStyle = cut ? palette.bad : palette.faint;
      context.fillText(label, x + 5 * ratio, (HEAD / 2) * ratio);
      free = x + context.measureText(label).width + 10 * ratio;
    }
  }
}

/** The time axis: seconds ago, and ahead. */
function times({ context, width, height, ratio, font, palette }: Paper, picture: WavePicture): void {
  context.font = font;
  context.textBaseline = "middle";
  context.textAlign = "center";
  const y = height - (FOOT / 2) * ratio;
  picture.times.forEach(({ x, label }, i) => {
    const half = context.measureText(label).width / 2;
    if (x > half && x < width - half) {
      context.fillStyle = i === 0 ? palette.ink : palette.faint;
      context.fillText(label, x, y);
    }
  });
  context.fillStyle = palette.ink;
  context.fillRect(picture.times[0]!.x, HEAD * ratio, Math.max(1, Math.round(ratio)), height - (HEAD + FOOT) * ratio);
}
