import type { TurnLatency } from "./latency.js";

/** What a conversation has been like since it began; durations in ms. */
export interface Stats {
  /** The newest round trip, and the fastest; null before the first. */
  readonly rttMs: number | null;
  readonly bestRttMs: number | null;
  /** Frames of either kind, and their bytes without the framing of WebSockets. */
  readonly messagesSent: number;
  readonly messagesReceived: number;
  readonly audioFramesSent: number;
  readonly audioFramesReceived: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Microphone frames (20 ms) that were not sent: the line or the page was too slow for them, or there was no line. */
  readonly droppedSlow: number;
  readonly droppedOffline: number;
  /** Microphone frames that were kept while there was no line, and sent afterwards. */
  readonly audioFramesKept: number;
  /** Messages of types that this version does not know, that did not come, and that came again. */
  readonly unknownMessages: number;
  readonly gaps: number;
  readonly repeats: number;
  /** How often the speaker ran dry, and the cushion: what the newest item waited for, or what it has grown to. */
  readonly underruns: number;
  readonly cushionMs: number;
  /** Connections that broke and were restored, of those the sessions that were taken up again, and how long all that took. */
  readonly reconnects: number;
  readonly resumes: number;
  readonly lostMs: number;
  /** Of the sessions that were taken up again, those of which nobody could notice anything. No event told of them. */
  readonly unnoticed: number;
  /** The newest 100 turns that answered in speech, oldest first. */
  readonly turns: readonly TurnLatency[];
}

/** The same, for those who count. */
export type Tally = { -readonly [S in keyof Stats]: Stats[S] };

const MAX_TURNS = 100;

/** Nothing yet. */
export function newTally(): Tally {
  return {
    rttMs: null,
    bestRttMs: null,
    messagesSent: 0,
    messagesReceived: 0,
    audioFramesSent: 0,
    audioFramesReceived: 0,
    bytesSent: 0,
    bytesReceived: 0,
    droppedSlow: 0,
    droppedOffline: 0,
    audioFramesKept: 0,
    unknownMessages: 0,
    gaps: 0,
    repeats: 0,
    underruns: 0,
    cushionMs: 0,
    reconnects: 0,
    resumes: 0,
    lostMs: 0,
    unnoticed: 0,
    turns: [],
  };
}

/** Notes a turn. What was read before stays as it was. */
export function addTurn(tally: Tally, turn: TurnLatency): void {
  tally.turns = [...tally.turns, turn].slice(-MAX_TURNS);
}
