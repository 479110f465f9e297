import type { TranscriptMessage, VoiceSession } from "@voicegw/client";
import { Store, perSession, useStore } from "./store.js";

/** One utterance of one side. */
export interface TranscriptLine {
  /** Unique in the conversation, for `key`. */
  id: string;
  role: "user" | "assistant";
  text: string;
  /** false: more may follow. */
  final: boolean;
  turn: number | undefined;
  /** When it began, in ms since the epoch. */
  startedAt: number;
}

/** The most lines kept, newest first; the gateway has the whole transcript. */
const MAX_LINES = 500;

/** Collects the utterances, ordered by when they began, because the user's often arrive after the answer. */
class TranscriptStore extends Store<readonly TranscriptLine[]> {
  /** The number of the session in the conversation; sessions may repeat ids. */
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

/** Returns the utterances since the hook was first used with the session, oldest first. */
export function useTranscript(session: VoiceSession | null): readonly TranscriptLine[] {
  return useStore(transcriptOf(session));
}
