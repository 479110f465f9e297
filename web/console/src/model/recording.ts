// Records the audio of both sides, so that turns can be played again.
import type { Happening, Watcher } from "./feed.js";
import { resampled } from "./resampled.js";
import type { Item, Sound, Span } from "./sound.js";
import { BLOCK_MS, Stretch } from "./stretch.js";
import { turnKey } from "./turns.js";
import { spokenAt, type UplinkPlace, type UplinkStretch } from "./uplinkclock.js";
import { wavFile } from "./wav.js";

/** The duration kept per side, newest first: about 20 MB of the user and 30 MB of the model. */
export const RECORDED_MS = 600_000;
/** Audio included before and after the detected speech of the user. */
const MARGIN_MS = 300;

/** user and model: one side, complete. both: stereo, as heard. */
export type Which = "user" | "model" | "both";

/** The recorded audio of a turn, in ms. */
export interface Recorded {
  userMs: number;
  modelMs: number;
}

/** Continuous audio of the user. */
interface Spoken {
  /** Its start. */
  readonly from: UplinkPlace;
  readonly samples: Stretch;
}

/** The newest ten minutes of each side. */
export class Recording implements Watcher {
  private user: Spoken[] = [];
  private readonly model = new Map<Item, Stretch>();

  /** `sound` must receive each event first. */
  constructor(
    private readonly sound: Sound,
    private readonly limitMs = RECORDED_MS,
  ) {}

  take(happening: Happening): void {
    if (happening.kind === "uplink") {
      this.spoken(happening.pcm, happening.rate, this.sound.newestFrame!);
    } else if (happening.kind === "downlink") {
      this.answered(happening.item, happening.pcm, happening.rate);
    } else if (happening.kind === "anew") {
      this.user = [];
      this.model.clear();
    }
  }

  /** The recorded audio of a turn; null for none. */
  of(session: number, turn: number): Recorded | null {
    const [from, to] = this.userRange(session, turn);
    const userMs = this.user.reduce((sum, spoken) => {
      const [began, ended] = times(spoken);
      return sum + Math.max(0, Math.min(to, ended) - Math.max(from, began));
    }, 0);
    const modelMs = this.answers(session, turn).reduce((sum, [, stretch]) => sum + stretch.ms, 0);
    return userMs > 0 || modelMs > 0 ? { userMs, modelMs } : null;
  }

  /** A turn as a WAV file; null without audio. `now` is performance.now(). */
  wav(session: number, turn: number, which: Which, now: number): ArrayBuffer | null {
    switch (which) {
      case "user": {
        const [from, to] = this.userRange(session, turn);
        const rate = this.user.at(-1)?.samples.rate ?? 0;
        return to > from && rate > 0 ? wavFile([this.userBetween(from, to, rate)], rate) : null;
      }
      case "model": {
        const answers = this.answers(session, turn).map(([, stretch]) => stretch);
        const rate = answers[0]?.rate;
        return rate === undefined ? null : wavFile([joined(answers)], rate);
      }
      case "both":
        return this.stereo(session, turn, now);
    }
  }

  /**
   * The user's audio and the heard audio of the model between two times (performance.now()); null for
   * silence. For pieces that will be joined, `placed` contains the position of each stretch in the earlier
   * pieces, and is updated. A stretch can turn out to have begun earlier while frames arrive; a piece at the
   * new position would omit audio, so the new position applies only after silence.
   */
  between(from: number, to: number, placed = new Map<UplinkStretch, number>()): { user: Track | null; model: Track | null } {
    const user = new Piece(from, to, this.user.at(-1)?.samples.rate);
    for (const { from: place, samples } of this.user) {
      const { stretch, ms } = place;
      const before = placed.get(stretch) ?? stretch.at;
      const sample = (at: number): number => Math.round(((from - at - (ms - stretch.ms)) * samples.rate) / 1000);
      const at = quiet(samples, sample(before), sample(stretch.at)) ? stretch.at : before;
      if (user.lay(samples, at + (ms - stretch.ms), samples.begin, samples.end)) {
        placed.set(stretch, at);
      }
    }
    const model = new Piece(from, to, [...this.model.values()].at(-1)?.rate);
    for (const session of new Set([...this.model.keys()].map((item) => item.session))) {
      for (const { item, kind, at, from: first, to: last } of this.sound.spans(session, to)) {
        const stretch = this.model.get(item);
        if (kind === "heard" && stretch !== undefined) {
          const sample = (ms: number): number => Math.round((ms * stretch.rate) / 1000);
          model.lay(stretch, at - first, sample(first), sample(last));
        }
      }
    }
    return { user: user.track, model: model.track };
  }

  private stereo(session: number, turn: number, now: number): ArrayBuffer | null {
    const answers = new Map(this.answers(session, turn));
    const spans = this.sound.spans(session, now).filter(({ item, kind }) => kind === "heard" && answers.has(item));
    let [from, to] = this.userRange(session, turn);
    for (const span of spans) {
      from = Math.min(from, span.at);
      to = Math.max(to, span.at + (span.to - span.from));
    }
    const userRate = this.user.at(-1)?.samples.rate;
    const rate = Math.max(userRate ?? 0, ...[...answers.values()].map((stretch) => stretch.rate));
    if (to <= from || rate <= 0) {
      return null;
    }
    const frames = Math.round(((to - from) * rate) / 1000);
    const left = userRate === undefined ? new Int16Array(frames) : fitted(resampled(this.userBetween(from, to, userRate), userRate, rate), frames);
    const right = new Int16Array(frames);
    for (const span of spans) {
      put(span, answers.get(span.item)!, from, rate, right);
    }
    return wavFile([left, right], rate);
  }

  private spoken(pcm: Int16Array, rate: number, from: UplinkPlace): void {
    let last = this.user.at(-1);
    if (last === undefined || last.from.stretch !== from.stretch) {
      last = { from, samples: new Stretch(rate) };
      this.user.push(last);
    }
    last.samples.push(pcm);
    while (this.user.reduce((sum, { samples }) => sum + samples.ms, 0) > this.limitMs) {
      if (!this.user[0]!.samples.drop()) {
        this.user.shift();
      }
    }
  }

  private answered(id: string, pcm: Int16Array, rate: number): void {
    const item = this.sound.item(id);
    if (item === undefined) {
      return;
    }
    let stretch = this.model.get(item);
    if (stretch === undefined) {
      stretch = new Stretch(rate);
      this.model.set(item, stretch);
    }
    stretch.push(pcm);
    let kept = 0;
    for (const { ms } of this.model.values()) {
      kept += ms;
    }
    for (const [oldest, { ms }] of this.model) {
      if (kept <= this.limitMs || oldest === item) {
        break;
      }
      kept -= ms;
      this.model.delete(oldest);
    }
    while (kept > this.limitMs && stretch.drop()) {
      kept -= BLOCK_MS;
    }
  }

  private answers(session: number, turn: number): [Item, Stretch][] {
    return [...this.model].filter(([item]) => item.session === session && item.turn === turn);
  }

  /** The range of a turn's speech on the page's clock, with margins; empty for a typed turn. */
  private userRange(session: number, turn: number): [number, number] {
    let from = Infinity;
    let to = -Infinity;
    for (const speech of this.sound.speeches) {
      if (speech.session === session && speech.turn === turn && speech.to !== undefined) {
        from = Math.min(from, speech.from - MARGIN_MS);
        to = Math.max(to, speech.to + MARGIN_MS);
      }
    }
    return [from, to];
  }

  private userBetween(from: number, to: number, rate: number): Int16Array {
    const out = new Int16Array(Math.round(((to - from) * rate) / 1000));
    for (const spoken of this.user.filter(({ samples }) => samples.rate === rate)) {
      const begin = Math.round(((from - spokenAt(spoken.from)) * rate) / 1000);
      spoken.samples.read(begin, begin + out.length, out, 0);
    }
    return out;
  }
}

/** The file name for a turn. */
export function fileName(session: number, turn: number, which: Which): string {
  return `voicegw-${turnKey(session, turn).replace(".", "-turn-")}-${which}.wav`;
}

/** When the first and the last stored sample were spoken (performance.now()). */
function times({ from, samples }: Spoken): [number, number] {
  const at = spokenAt(from);
  return [at + (samples.begin * 1000) / samples.rate, at + (samples.end * 1000) / samples.rate];
}

/** Copies the heard part of an item to its time. */
function put(span: Span, stretch: Stretch, from: number, rate: number, out: Int16Array): void {
  const first = Math.round((span.from * stretch.rate) / 1000);
  const pcm = new Int16Array(Math.round((span.to * stretch.rate) / 1000) - first);
  stretch.read(first, first + pcm.length, pcm, 0);
  const at = Math.round(((span.at - from) * rate) / 1000);
  out.set(resampled(pcm, stretch.rate, rate).subarray(0, Math.max(0, out.length - at)), at);
}

/** Samples and their rate in Hz. */
export interface Track {
  readonly rate: number;
  readonly pcm: Int16Array<ArrayBuffer>;
}

/** One side between two times (performance.now()), silent by default. */
class Piece {
  track: Track | null = null;

  constructor(
    private readonly from: number,
    private readonly to: number,
    private readonly rate: number | undefined,
  ) {}

  /**
   * Copies samples [first, last) of a stretch, whose sample 0 is at `zero` (performance.now()). Returns
   * whether there were any.
   */
  lay(stretch: Stretch, zero: number, first: number, last: number): boolean {
    const { from, to, rate = stretch.rate } = this;
    const begin = Math.round(((from - zero) * stretch.rate) / 1000);
    const end = begin + Math.round(((to - from) * stretch.rate) / 1000);
    const [a, b] = [Math.max(first, begin), Math.min(last, end)];
    if (a >= b) {
      return false;
    }
    const { pcm: out } = (this.track ??= { rate, pcm: new Int16Array(Math.round(((to - from) * rate) / 1000)) });
    if (stretch.rate === rate) {
      stretch.read(a, b, out, a - begin);
      return true;
    }
    // Sessions may have different rates.
    const pcm = new Int16Array(b - a);
    stretch.read(a, b, pcm, 0);
    const at = Math.round(((a - begin) * rate) / stretch.rate);
    out.set(resampled(pcm, stretch.rate, rate).subarray(0, Math.max(0, out.length - at)), at);
    return true;
  }
}

/** Louder samples must not be omitted. */
const QUIET = 300;

/** Whether samples [first, last) of a stretch are quiet enough to omit. */
function quiet(stretch: Stretch, first: number, last: number): boolean {
  const pcm = new Int16Array(Math.max(0, last - first));
  stretch.read(first, last, pcm, 0);
  return pcm.every((x) => Math.abs(x) < QUIET);
}

function joined(stretches: readonly Stretch[]): Int16Array {
  const out = new Int16Array(stretches.reduce((sum, { begin, end }) => sum + end - begin, 0));
  let at = 0;
  for (const stretch of stretches) {
    stretch.read(stretch.begin, stretch.end, out, at);
    at += stretch.end - stretch.begin;
  }
  return out;
}

function fitted(pcm: Int16Array, frames: number): Int16Array {
  if (pcm.length >= frames) {
    return pcm.subarray(0, frames);
  }
  const out = new Int16Array(frames);
  out.set(pcm);
  return out;
}
