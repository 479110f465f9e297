// The whole of a call as one stereo recording: the user on the left, as it was sent, the model on the right, as it sounded.
import type { Happening, Watcher } from "./feed.js";
import type { Recording } from "./recording.js";
import { interleaved, wavHeader } from "./wav.js";

/** So much of a call is kept, from its beginning: 173 MB, which browsers keep outside of the page's memory. */
export const WHOLE_CALL_MS = 1_800_000;
/** Of the file, in Hz, whatever the call's own rates are: more would only be larger. */
export const WHOLE_CALL_RATE = 24_000;

/** So much is put away at a time. */
const CHUNK_MS = 4000;
/** So long after it has sounded, it is known when: the loudspeaker reports five times a second. */
const SETTLED_MS = 2000;

/** The newest call of this page, through all its sessions. */
interface Kept {
  /** When it begins (performance.now()), and how much of it is put away, in ms. */
  readonly from: number;
  ms: number;
  readonly chunks: Blob[];
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
 * memory than a short one.
 */
export class WholeCall implements Watcher {
  private kept: Kept | null = null;
  private started: { session: string; conversation: string; resumed: boolean } | undefined;
  private silence: Blob | undefined;

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
  wav(now: number): Blob | null {
    const { kept } = this;
    if (kept === null) {
      return null;
    }
    const rest = kept.over ? 0 : Math.max(0, Math.min(now - kept.from, this.limitMs) - kept.ms);
    const parts = [...kept.chunks, this.piece(kept.from + kept.ms, rest)];
    const bytes = parts.reduce((sum, { size }) => sum + size, 0);
    return new Blob([wavHeader(2, bytes / 4, WHOLE_CALL_RATE), ...parts], { type: "audio/wav" });
  }

  /** Another call, or another session of the one that runs: there is silence in between. */
  private open(at: number): void {
    const { session, conversation, resumed } = this.started ?? { session: "", conversation: "", resumed: false };
    if (this.kept === null || this.kept.over) {
      this.kept = { from: at, ms: 0, chunks: [], sessions: new Set(), conversations: new Set(), over: false, goesOn: resumed };
    }
    this.kept.sessions.add(session);
    this.kept.conversations.add(conversation);
  }

  /** How much is put away next, in ms. */
  private next({ ms }: Kept): number {
    return Math.min(CHUNK_MS, this.limitMs - ms);
  }

  private put(kept: Kept, ms: number): void {
    kept.chunks.push(this.piece(kept.from + kept.ms, ms));
    kept.ms += ms;
  }

  private piece(from: number, ms: number): Blob {
    const both = this.recording.between(from, from + ms, WHOLE_CALL_RATE);
    if (both !== null) {
      return new Blob([interleaved(both)]);
    }
    // All of the same silence is one.
    return ms === CHUNK_MS ? (this.silence ??= quiet(ms)) : quiet(ms);
  }
}

function quiet(ms: number): Blob {
  return new Blob([new ArrayBuffer(4 * Math.round((ms * WHOLE_CALL_RATE) / 1000))]);
}
