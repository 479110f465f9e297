import type { TurnLatency } from "./latency.js";

/** Statistics of a conversation since its beginning; durations in ms. */
export interface Stats {
  /** The newest round trip, and the fastest; null before the first. */
  readonly rttMs: number | null;
  readonly bestRttMs: number | null;
  /** Frames of both kinds, and their bytes without the WebSocket framing. */
  readonly messagesSent: number;
  readonly messagesReceived: number;
  readonly audioFramesSent: number;
  readonly audioFramesReceived: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Microphone frames (20 ms) not sent: the connection or the page was too slow, or the page was offline. */
  readonly droppedSlow: number;
  readonly droppedOffline: number;
  /** Microphone frames stored while offline and sent later. */
  readonly audioFramesKept: number;
  /** Messages of unknown types, missing messages, and repeated ones. */
  readonly unknownMessages: number;
  readonly gaps: number;
  readonly repeats: number;
  /** How often the speaker ran dry, and the buffer: the newest item's wait, or its size after an underrun. */
  readonly underruns: number;
  readonly cushionMs: number;
  /** Connections restored, how many of them resumed the session, and the total time offline. */
  readonly reconnects: number;
  readonly resumes: number;
  readonly lostMs: number;
  /** Resumed connections whose loss the user could not notice. They emit no events. */
  readonly unnoticed: number;
  /** The newest 100 turns with a spoken answer, oldest first. */
  readonly turns: readonly TurnLatency[];
}

/** Stats that can be written. */
export type Tally = { -readonly [S in keyof Stats]: Stats[S] };

const MAX_TURNS = 100;

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

/** Adds a turn to a new array, so that earlier reads do not change. */
export function addTurn(tally: Tally, turn: TurnLatency): void {
  tally.turns = [...tally.turns, turn].slice(-MAX_TURNS);
}
