// When each side's audio was heard, on this page's clock (performance.now(), in ms): the user's from the sent
// samples, the model's from the loudspeaker's reports.
import type { Happening, Watcher } from "./feed.js";
import { UplinkClock, type UplinkPlace } from "./uplinkclock.js";

/** The largest expected deviation, in ms, of the loudspeaker from its estimated position. */
const DRIFT_MS = 60;

const MAX_ITEMS = 400;
const MAX_SPEECHES = 400;
const MAX_MARKS = 400;

/** One spoken answer of the model. */
export interface Item {
  readonly id: string;
  /** The number of the voice session on this page, from 1. */
  readonly session: number;
  turn: number | undefined;
  receivedMs: number;
  /** Audio from position `from` plays from the time `at`; in order. Empty before playback. */
  readonly pieces: { at: number; from: number }[];
  /** The position where it ended; undefined before. */
  heardMs: number | undefined;
  doneAt: number | undefined;
  /** Audio received before the newest frame, where playback may have run dry. */
  dryMs: number;
  /** The loudspeaker's last report, and its delay. */
  report: { playedMs: number; late: number } | undefined;
}

/** A part of an item on the page's clock. */
export interface Span {
  readonly item: Item;
  readonly at: number;
  /** Positions in the item, in ms. */
  readonly from: number;
  to: number;
  /** waiting: received and queued. lost: received but never played. */
  readonly kind: "heard" | "waiting" | "lost";
}

/** Speech that the gateway detected. */
export interface Speech {
  readonly session: number;
  turn: number | undefined;
  readonly from: number;
  /** Undefined while it continues. */
  to: number | undefined;
}

export interface Mark {
  readonly kind: "turn" | "typed" | "flush";
  readonly at: number;
  readonly turn: number | undefined;
}

/** The timeline of both sides. It keeps a few minutes. */
export class Sound implements Watcher {
  session = 0;
  /** When the session began. */
  openedAt = 0;
  /** When the last session ended; undefined during one and before the first. */
  stoppedAt: number | undefined;
  readonly items: Item[] = [];
  readonly speeches: Speech[] = [];
  readonly marks: Mark[] = [];
  private uplink = new UplinkClock();
  private newest: UplinkPlace | undefined;

  take(happening: Happening): void {
    switch (happening.kind) {
      case "opened":
        this.stop(happening.at);
        this.session++;
        this.openedAt = happening.at;
        this.stoppedAt = undefined;
        this.uplink = new UplinkClock();
        break;
      case "uplink":
        this.newest = this.uplink.push((happening.pcm.length * 1000) / happening.rate, happening.at, happening.clockMs);
        break;
      case "downlink": {
        const item = this.item(happening.item) ?? this.begin(happening.item, undefined);
        item.dryMs = item.receivedMs;
        item.receivedMs += (happening.pcm.length * 1000) / happening.rate;
        break;
      }
      case "sent":
        if (happening.side === "voice" && happening.message.type === "input.text") {
          this.mark("typed", happening.at, undefined);
        }
        break;
      case "received":
        if (happening.side === "voice") {
          this.received(happening.message as Fields, happening.at);
        }
        break;
      case "noticed":
        if (happening.name === "sounding") {
          this.sounding(happening.event.item, happening.event.at);
        } else if (happening.name === "played") {
          this.played(happening.event);
        } else if (happening.name === "disconnected") {
          this.stop(happening.at);
          this.stoppedAt = happening.at;
        }
        break;
      default:
    }
  }

  /** The start of the user's newest frame; undefined before the first. */
  get newestFrame(): UplinkPlace | undefined {
    return this.newest;
  }

  /** Whether a session is running. */
  get running(): boolean {
    return this.session > 0 && this.stoppedAt === undefined;
  }

  /** An item of the running session. */
  item(id: string): Item | undefined {
    return this.items.findLast((item) => item.session === this.session && item.id === id);
  }

  /** The parts of a session's items that play, have played or would have played, in order. */
  spans(session: number, now: number): Span[] {
    const all: Span[] = [];
    // Queued audio plays in sequence.
    let free = now;
    for (const item of this.items) {
      if (item.session !== session) {
        continue;
      }
      const heard = heardUntil(item, now);
      item.pieces.forEach(({ at, from }, i) => {
        append(all, { item, at, from, to: Math.min(item.pieces[i + 1]?.from ?? heard, heard), kind: "heard" });
      });
      if (item.doneAt !== undefined) {
        append(all, { item, at: endOf(item, heard), from: heard, to: item.receivedMs, kind: "lost" });
      } else {
        append(all, { item, at: free, from: heard, to: item.receivedMs, kind: "waiting" });
        free += Math.max(0, item.receivedMs - heard);
      }
    }
    return all;
  }

  private received(message: Fields, at: number): void {
    switch (message.type) {
      case "audio.start":
        if (message.item_id !== undefined && this.item(message.item_id) === undefined) {
          this.begin(message.item_id, message.turn);
        }
        break;
      case "audio.flush":
        this.mark("flush", at, message.turn);
        break;
      case "speech.started":
        this.speechStarted(message.turn, this.uplink.when(message.audio_ms ?? 0) ?? at);
        break;
      case "speech.stopped":
        this.speechStopped(message.turn, this.uplink.when(message.audio_ms ?? 0) ?? at);
        break;
      case "turn.started":
        this.mark("turn", at, message.turn);
        // Not every model reports the end of a speech that was overtaken by another event.
        this.speechStopped(message.turn, at);
        this.claim(message.turn);
        break;
      default:
    }
  }

  private speechStarted(turn: number | undefined, at: number): void {
    const last = this.speaking;
    if (last !== undefined && (last.turn === turn || turn === undefined)) {
      // The gateway repeats it while it continues.
      return;
    }
    this.speechStopped(undefined, at);
    this.speeches.push({ session: this.session, turn, from: at, to: undefined });
    bound(this.speeches, MAX_SPEECHES);
  }

  private speechStopped(turn: number | undefined, at: number): void {
    const { speaking } = this;
    if (speaking !== undefined) {
      speaking.to = Math.max(speaking.from, at);
      speaking.turn ??= turn;
    }
  }

  private get speaking(): Speech | undefined {
    const last = this.speeches.at(-1);
    return last?.session === this.session && last.to === undefined ? last : undefined;
  }

  // Some models report the turn of a speech only when the turn begins.
  private claim(turn: number | undefined): void {
    for (const speech of this.speeches) {
      if (speech.session === this.session) {
        speech.turn ??= turn;
      }
    }
  }

  private begin(id: string, turn: number | undefined): Item {
    const item: Item = { id, session: this.session, turn, receivedMs: 0, pieces: [], heardMs: undefined, doneAt: undefined, dryMs: 0, report: undefined };
    this.items.push(item);
    bound(this.items, MAX_ITEMS);
    return item;
  }

  private sounding(id: string, at: number): void {
    const item = this.item(id);
    if (item !== undefined && item.pieces.length === 0) {
      item.pieces.push({ at, from: 0 });
    }
  }

  private played({ item: id, playedMs, done, at }: { item: string; playedMs: number; done: boolean; at: number }): void {
    const item = this.item(id);
    if (item === undefined || item.doneAt !== undefined) {
      return;
    }
    place(item, playedMs, at, done);
    if (done) {
      item.heardMs = playedMs;
      item.doneAt = at;
    }
  }

  /** The session is over; playback stops without a report. */
  private stop(at: number): void {
    for (const item of this.items) {
      if (item.doneAt === undefined) {
        item.heardMs = heardUntil(item, at);
        item.doneAt = at;
      }
    }
    this.speechStopped(undefined, at);
  }

  private mark(kind: Mark["kind"], at: number, turn: number | undefined): void {
    this.marks.push({ kind, at, turn });
    bound(this.marks, MAX_MARKS);
  }
}

/** The message fields read here. */
interface Fields {
  type: string;
  turn?: number;
  item_id?: string;
  audio_ms?: number;
}

function heardUntil(item: Item, now: number): number {
  const last = item.pieces.at(-1);
  if (item.heardMs !== undefined) {
    // The loudspeaker's count is a few samples off; complete items are counted as complete.
    return item.receivedMs - item.heardMs < DRIFT_MS ? item.receivedMs : item.heardMs;
  }
  return last === undefined ? 0 : Math.min(item.receivedMs, last.from + Math.max(0, now - last.at));
}

function endOf(item: Item, heard: number): number {
  const last = item.pieces.at(-1);
  return last === undefined ? (item.doneAt ?? 0) : last.at + (heard - last.from);
}

/** Records that the item was at playedMs at `at`. */
function place(item: Item, playedMs: number, at: number, done: boolean): void {
  const last = item.pieces.at(-1);
  if (last === undefined) {
    if (playedMs > 0) {
      item.pieces.push({ at: at - playedMs, from: 0 });
    }
    return;
  }
  const late = at - (last.at + (playedMs - last.from));
  const before = item.report;
  item.report = { playedMs, late };
  if (late < -DRIFT_MS) {
    last.at += late;
  } else if (!done && late > DRIFT_MS && before !== undefined && before.late > DRIFT_MS) {
    // A single late report can be due to a busy page. If the next one is as late, playback paused in between,
    // at the point where it may have run dry.
    const from = item.dryMs > last.from && item.dryMs < playedMs ? item.dryMs : before.playedMs;
    const gap = Math.min(late, before.late);
    item.pieces.push({ at: last.at + (from - last.from) + gap, from });
    item.report = { playedMs, late: late - gap };
  }
}

/** Adds a part unless it is empty. A lost part before it ends where it begins. */
function append(spans: Span[], span: Span): void {
  if (span.to <= span.from) {
    return;
  }
  const last = spans.at(-1);
  if (last?.kind === "lost") {
    last.to = Math.min(last.to, Math.max(last.from, last.from + (span.at - last.at)));
  }
  spans.push(span);
}

function bound(list: unknown[], max: number): void {
  if (list.length > max) {
    list.shift();
  }
}
