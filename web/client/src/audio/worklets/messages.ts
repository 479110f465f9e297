// Messages between the page and its two worklets. Audio travels as transferred ArrayBuffers: shared memory
// would need cross-origin isolation, which an operator's proxy may not provide.
import type { PlayEvent } from "../playqueue.js";

export const CAPTURE = "voicegw-capture";
export const PLAYBACK = "voicegw-playback";

/** Options of the capture worklet. */
export interface CaptureOptions {
  /** The uplink's rate in Hz. */
  rate: number;
  /** The session's number, the same for its playback worklet. */
  pair: number;
}

/**
 * Page to capture. on: make frames, silent without a device. off: one more second of silence, then none.
 * close: the worklet is no longer needed.
 */
export type CaptureCommand = "on" | "off" | "close";

/** One uplink frame of PCM16. */
export interface UplinkFrame {
  pcm: ArrayBuffer;
  /** When it was made, as Date.now(), the only clock that both threads share. A busy page receives it late. */
  at: number;
  /** When it was made, in ms on the audio clock; see the event `uplink`. */
  clockMs: number;
}

/** Capture to page, every 20 ms. */
export interface CapturedFrame extends UplinkFrame {
  /** RMS. */
  level: number;
  /** RMS of the loudspeaker's signal, 25 per second while it plays. */
  played?: number;
}

/** Options of the playback worklet. */
export interface PlaybackOptions {
  /** The downlink's rate in Hz. */
  rate: number;
  /** See CaptureOptions. */
  pair: number;
}

/** Page to playback. */
export type PlayCommand =
  | { type: "start"; item: string; rate: number }
  /** at: a time of any clock; `sounding` returns that of the first frame. */
  | { type: "audio"; item: string; pcm: ArrayBuffer; at: number }
  | { type: "end"; item: string }
  /** item null: all items. at: AudioContext.currentTime. */
  | { type: "flush"; item: string | null; at: number }
  /** The time from rendering to hearing. */
  | { type: "latency"; seconds: number }
  /** The worklet is no longer needed. */
  | { type: "close" };

/** Playback to page. */
export type PlayNotice = PlayEvent | { type: "level"; level: number };
