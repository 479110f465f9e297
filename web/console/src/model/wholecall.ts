// Records a whole call in stereo: the user on the left, as sent, the model on the right, as heard.
import type { Happening, Watcher } from "./feed.js";
import type { Recording, Track } from "./recording.js";
import { resampled } from "./resampled.js";
import type { UplinkStretch } from "./uplinkclock.js";
import { interleaved, wavHeader } from "./wav.js";

/**
 * The duration recorded, from the call's beginning: about 150 MB, which browsers store outside of the page's
 * memory.
 */
export const WHOLE_CALL_MS = 1_800_000;
/** The file's rate in Hz for all calls; a higher one would only enlarge it. */
export const WHOLE_CALL_RATE = 24_000;

/** The length of a piece. */
const CHUNK_MS = 4000;
/** Playback times are known this long after playback, because the loudspeaker reports five times a second. */
const SETTLED_MS = 2000;

/** Neighbouring audio resampled with each piece, in ms, so that pieces join without a click. */
const SEAM_MS = 20;

/** The size of a blob in bytes. Creating one takes the page milliseconds regardless of size. */
const BLOB_BYTES = 1 << 20;

/** One side of a piece: its samples, until they are moved to a blob. */
class Put {
  private blob: Blob | null = null;
  private begin = 0;

  constructor(
    private readonly rate: number,
    private pcm: Int16Array<ArrayBuffer> | null,
    readonly bytes = pcm!.byteLength,
  ) {}

  async taken(): Promise<Track> {
    return { rate: this.rate, pcm: this.pcm ?? new Int16Array(await this.blob!.slice(this.begin, this.begin + this.bytes).arrayBuffer()) };
  }

  /** Moves all of them into one blob. */
  static away(all: readonly Put[]): void {
    const blob = new Blob(all.map(({ pcm }) => pcm!));
    let begin = 0;
    for (const put of all) {
      Object.assign(put, { blob, begin, pcm: null });
      begin += put.bytes;
    }
  }
}

/** Both sides of a piece, and its length in ms. */
interface Chunk {
  readonly ms: number;
  /** null for silence. */
  readonly user: Put | null;
  readonly model: Put | null;
}

/** This page's newest call, across its sessions. */
interface Kept {
  /** When it began (performance.now()), and the length recorded so far in ms. */
  readonly from: number;
  ms: number;
  readonly chunks: Chunk[];
  /** Parts not in a blob yet. */
  waiting: Put[];
  /** The position of each stretch of the user's audio in the recorded pieces. */
  readonly placed: Map<UplinkStretch, number>;
  readonly sessions: Set<string>;
  readonly conversations: Set<string>;
  over: boolean;
  /** It began before this page. */
  readonly continued: boolean;
}

/** The recording of a call. */
export interface WholeCallFacts {
  /** The call was longer. */
  readonly full: boolean;
  readonly continued: boolean;
}

/**
 * Records every call, because users want the audio only afterwards. Pieces move to blobs, so that a long call
 * uses no more of the page's memory than a short one. The sides are converted to one rate only when the file
 * is made, because that is expensive and rare.
 */
export class WholeCall implements Watcher {
  private kept: Kept | null = null;
  private started: { session: string; conversation: string; resumed: boolean } | undefined;

  /** `recording` must receive each event first. */
  constructor(
    private readonly recording: Recording,
    private readonly limitMs = WHOLE_CALL_MS,
  ) {}

  take(happening: Happening): void {
    if (happening.kind === "received" && happening.side === "voice" && happening.message.type === "session.started") {
      const { session_id: session, conversation_id: conversation, resumed } = happening.message as { session_id?: string; conversation_id?: string; resumed?: boolean };
      this.started = { session: session ?? "", conversation: conversation ?? "", resumed: resumed === true };
    } else if (happening.kind === "opened") {
      this.open(happening.at);
    } else if (happening.kind === "anew") {
      this.kept = null;
    }
    const { kept } = this;
    if (kept === null || kept.over) {
      return;
    }
    const ended = happening.kind === "noticed" && happening.name === "disconnected";
    const known = happening.at - kept.from - (ended ? 0 : SETTLED_MS);
    for (let next = this.next(kept); next > 0 && kept.ms + next <= known; next = this.next(kept)) {
      this.put(kept, next);
    }
    if (ended) {
      kept.over = true;
      this.put(kept, Math.max(0, Math.min(known, this.limitMs) - kept.ms));
    }
  }

  /** The recording of the call with this session id or conversation id; null for none. */
  of(id: string): WholeCallFacts | null {
    const { kept } = this;
    return kept !== null && (kept.sessions.has(id) || kept.conversations.has(id)) ? this.newest : null;
  }

  /** The newest call's recording. */
  get newest(): WholeCallFacts | null {
    return this.kept === null ? null : { full: this.kept.ms >= this.limitMs, continued: this.kept.continued };
  }

  /** The newest call so far as a WAV file; null before the first. `now` is performance.now(). */
  async wav(now: number): Promise<Blob | null> {
    const { kept } = this;
    if (kept === null) {
      return null;
    }
    const rest = kept.over ? 0 : Math.max(0, Math.min(now - kept.from, this.limitMs) - kept.ms);
    const chunks = [...kept.chunks, this.chunk(kept.from + kept.ms, rest, new Map(kept.placed))];
    const parts: Blob[] = [];
    let [before, here] = [SILENCE, await taken(chunks[0])];
    for (let i = 0; i < chunks.length; i++) {
      // Reading the next piece lets the page do other work.
      const after = await taken(chunks[i + 1]);
      const frames = Math.round((chunks[i]!.ms * WHOLE_CALL_RATE) / 1000);
      const side = (of: keyof Sides): Int16Array => atRate([before[of], here[of], after[of]], frames);
      parts.push(new Blob([interleaved([side("user"), side("model")])]));
      [before, here] = [here, after];
    }
    const bytes = parts.reduce((sum, { size }) => sum + size, 0);
    return new Blob([wavHeader(2, bytes / 4, WHOLE_CALL_RATE), ...parts], { type: "audio/wav" });
  }

  /** A new call, or another session of the same call after silence. */
  private open(at: number): void {
    const { session, conversation, resumed } = this.started ?? { session: "", conversation: "", resumed: false };
    if (this.kept === null || this.kept.over) {
      this.kept = { from: at, ms: 0, chunks: [], waiting: [], placed: new Map(), sessions: new Set(), conversations: new Set(), over: false, continued: resumed };
    }
    this.kept.sessions.add(session);
    this.kept.conversations.add(conversation);
  }

  /** The length of the next piece, in ms. */
  private next({ ms }: Kept): number {
    return Math.min(CHUNK_MS, this.limitMs - ms);
  }

  private put(kept: Kept, ms: number): void {
    const chunk = this.chunk(kept.from + kept.ms, ms, kept.placed);
    kept.chunks.push(chunk);
    kept.ms += ms;
    kept.waiting.push(...[chunk.user, chunk.model].filter((put) => put !== null));
    if (kept.waiting.reduce((sum, { bytes }) => sum + bytes, 0) >= BLOB_BYTES || kept.over) {
      Put.away(kept.waiting);
      kept.waiting = [];
    }
  }

  private chunk(from: number, ms: number, placed: Map<UplinkStretch, number>): Chunk {
    const { user, model } = this.recording.between(from, from + ms, placed);
    return { ms, user: sideOf(user), model: sideOf(model) };
  }
}

function sideOf(track: Track | null): Put | null {
  return track === null ? null : new Put(track.rate, track.pcm);
}

/** Both sides of a piece, read again. */
interface Sides {
  readonly user: Track | null;
  readonly model: Track | null;
}

const SILENCE: Sides = { user: null, model: null };

async function taken(chunk: Chunk | undefined): Promise<Sides> {
  return { user: (await chunk?.user?.taken()) ?? null, model: (await chunk?.model?.taken()) ?? null };
}

/** Converts a side of a piece, between its neighbours, to `frames` frames at the file's rate. */
function atRate([before, here, after]: readonly [Track | null, Track | null, Track | null], frames: number): Int16Array {
  const out = new Int16Array(frames);
  if (here !== null) {
    const seam = (here.rate * SEAM_MS) / 1000;
    const pcm = new Int16Array(here.pcm.length + 2 * seam);
    pcm.set(here.pcm, seam);
    if (before?.rate === here.rate) {
      const last = before.pcm.subarray(-seam);
      pcm.set(last, seam - last.length);
    }
    if (after?.rate === here.rate) {
      pcm.set(after.pcm.subarray(0, seam), seam + here.pcm.length);
    }
    const begin = (WHOLE_CALL_RATE * SEAM_MS) / 1000;
    out.set(resampled(pcm, here.rate, WHOLE_CALL_RATE).subarray(begin, begin + frames));
  }
  return out;
}
