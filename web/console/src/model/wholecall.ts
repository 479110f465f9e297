// The whole of a call as one stereo recording: the user on the left, as it was sent, the model on the right, as it sounded.
import type { Happening, Watcher } from "./feed.js";
import type { Recording, Track } from "./recording.js";
import { resampled } from "./resampled.js";
import type { UplinkStretch } from "./uplinkclock.js";
import { interleaved, wavHeader } from "./wav.js";

/** So much of a call is kept, from its beginning: some 150 MB, which browsers keep outside of the page's memory. */
export const WHOLE_CALL_MS = 1_800_000;
/** Of the file, in Hz, whatever the call's own rates are: more would only be larger. */
export const WHOLE_CALL_RATE = 24_000;

/** So much is put away at a time. */
const CHUNK_MS = 4000;
/** So long after it has sounded, it is known when: the loudspeaker reports five times a second. */
const SETTLED_MS = 2000;

/** So much beside a piece is resampled with it, in ms, so that pieces join without a click. */
const SEAM_MS = 20;

/** So much waits to be put into one blob, in bytes: to make one takes the page some ms, however small it is. */
const BLOB_BYTES = 1 << 20;

/** A side of a piece: its samples, until they are in a blob with others. */
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

  /** Puts them into one blob. */
  static away(all: readonly Put[]): void {
    const blob = new Blob(all.map(({ pcm }) => pcm!));
    let begin = 0;
    for (const put of all) {
      Object.assign(put, { blob, begin, pcm: null });
      begin += put.bytes;
    }
  }
}

/** Both sides of a piece, and how long it is in ms. */
interface Chunk {
  readonly ms: number;
  /** null for silence. */
  readonly user: Put | null;
  readonly model: Put | null;
}

/** The newest call of this page, through all its sessions. */
interface Kept {
  /** When it begins (performance.now()), and how much of it is put away, in ms. */
  readonly from: number;
  ms: number;
  readonly chunks: Chunk[];
  /** What of them is not in a blob yet. */
  waiting: Put[];
  /** Where the stretches of what the user said are, in the pieces that are put away. */
  readonly placed: Map<UplinkStretch, number>;
  readonly sessions: Set<string>;
  readonly conversations: Set<string>;
  over: boolean;
  /** It began before this page did. */
  readonly goesOn: boolean;
}

/** What there is of a call. */
export interface WholeCallFacts {
  /** The call went on for longer. */
  readonly full: boolean;
  readonly goesOn: boolean;
}

/**
 * Records every call, because whoever needs the sound of one knows it only afterwards. It is
 * put away in blobs as it becomes known, so that a long call takes no more of the page's
 * memory than a short one. Both sides get one rate only when the file is made: that costs
 * much, and calls are seldom saved.
 */
export class WholeCall implements Watcher {
  private kept: Kept | null = null;
  private started: { session: string; conversation: string; resumed: boolean } | undefined;

  /** `recording` has to take each happening before this does. */
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

  /** What there is of the call that a session (by its id) or a conversation belongs to; null for nothing. */
  of(id: string): WholeCallFacts | null {
    const { kept } = this;
    return kept !== null && (kept.sessions.has(id) || kept.conversations.has(id)) ? this.newest : null;
  }

  /** The same of the newest call. */
  get newest(): WholeCallFacts | null {
    return this.kept === null ? null : { full: this.kept.ms >= this.limitMs, goesOn: this.kept.goesOn };
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
      // The page has time for other things while the next one is read.
      const after = await taken(chunks[i + 1]);
      const frames = Math.round((chunks[i]!.ms * WHOLE_CALL_RATE) / 1000);
      const side = (of: keyof Sides): Int16Array => atRate([before[of], here[of], after[of]], frames);
      parts.push(new Blob([interleaved([side("user"), side("model")])]));
      [before, here] = [here, after];
    }
    const bytes = parts.reduce((sum, { size }) => sum + size, 0);
    return new Blob([wavHeader(2, bytes / 4, WHOLE_CALL_RATE), ...parts], { type: "audio/wav" });
  }

  /** Another call, or another session of the one that runs: there is silence in between. */
  private open(at: number): void {
    const { session, conversation, resumed } = this.started ?? { session: "", conversation: "", resumed: false };
    if (this.kept === null || this.kept.over) {
      this.kept = { from: at, ms: 0, chunks: [], waiting: [], placed: new Map(), sessions: new Set(), conversations: new Set(), over: false, goesOn: resumed };
    }
    this.kept.sessions.add(session);
    this.kept.conversations.add(conversation);
  }

  /** How much is put away next, in ms. */
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

/** Both sides of a piece, taken out again. */
interface Sides {
  readonly user: Track | null;
  readonly model: Track | null;
}

const SILENCE: Sides = { user: null, model: null };

async function taken(chunk: Chunk | undefined): Promise<Sides> {
  return { user: (await chunk?.user?.taken()) ?? null, model: (await chunk?.model?.taken()) ?? null };
}

/** So many frames of a side at the file's rate, of a piece between those before and after it. */
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
