import type { TranscriptMessage, VoiceSession } from "@voicegw/client";
import { Store, perSession, useStore } from "./store.js";

/** What was said by one side at a time. */
export interface TranscriptLine {
  /** Unique in the conversation, for `key`. */
  id: string;
  role: "user" | "assistant";
  text: string;
  /** false: more of it may come. */
  final: boolean;
  turn: number | undefined;
  /** When it began, in ms since the epoch. */
  startedAt: number;
}

/** So many lines are kept, the newest; the whole transcript is the gateway's. */
const MAX_LINES = 500;

/** Puts what was said into one list, ordered by when it began: the user's words often come after the answer to them. */
class TranscriptStore extends Store<readonly TranscriptLine[]> {
  /** Which session of the conversation it is: another one may use the same ids. */
  #session = 0;

  constructor(session: VoiceSession | null) {
    super([]);
    session?.on("transcript", (message) => this.#upsert(message));
    session?.on("reconnected", ({ resumed }) => void (this.#session += resumed ? 0 : 1));
  }

  #upsert(message: TranscriptMessage): void {
    const { role, text, final, turn } = message;
    const id = `${this.#session}-${message.id}`;
    const startedAt = Date.parse(message.started_at);
    const others = this.get().filter((line) => line.id !== id);
    const before = others.findLastIndex((line) => !(line.startedAt > startedAt)) + 1;
    const lines = [...others.slice(0, before), { id, role, text, final, turn, startedAt }, ...others.slice(before)];
    this.set(lines.slice(-MAX_LINES));
  }
}

const transcriptOf = perSession((session) => new TranscriptStore(session), new TranscriptStore(null));

/** What has been said since the hook was first used with the session, oldest first. */
export function useTranscript(session: VoiceSession | null): readonly TranscriptLine[] {
  return useStore(transcriptOf(session));
}
