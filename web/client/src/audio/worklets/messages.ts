// What the page and its two worklets say to each other. Audio crosses as transferred
// ArrayBuffers: shared memory would need cross-origin isolation, which an operator's proxy
// may not keep.
import type { PlayEvent } from "../playqueue.js";

export const CAPTURE = "voicegw-capture";
export const PLAYBACK = "voicegw-playback";

/** Options of the capture worklet. */
export interface CaptureOptions {
  /** Uplink rate in Hz. */
  rate: number;
  /** The session's number: its playback worklet has the same. */
  pair: number;
}

/**
 * Page to capture. on: frames are made, of silence where there is no device. off: a second
 * of silence more, then none. close: the worklet is not needed any more.
 */
export type CaptureCommand = "on" | "off" | "close";

/** One uplink frame of PCM16. */
export interface UplinkFrame {
  pcm: ArrayBuffer;
  /** When it was made, as Date.now(), the only clock that both have: a page that was held up gets it late. */
  at: number;
  /** When it was made, on the audio clock, in ms: see the event `uplink`. */
  clockMs: number;
}

/** Capture to page, once per 20 ms. */
export interface CapturedFrame extends UplinkFrame {
  /** RMS. */
  level: number;
  /** RMS of what the loudspeaker has played, where that goes along: 25 times a second while there is sound. */
  played?: number;
}

/** Options of the playback worklet. */
export interface PlaybackOptions {
  /** Downlink rate in Hz. */
  rate: number;
  /** See CaptureOptions. */
  pair: number;
}

/** Page to playback. */
export type PlayCommand =
  | { type: "start"; item: string; rate: number }
  /** at: any clock's time; that of the first frame comes back with `sounding`. */
  | { type: "audio"; item: string; pcm: ArrayBuffer; at: number }
  | { type: "end"; item: string }
  /** item null: whatever is queued. at: AudioContext.currentTime. */
  | { type: "flush"; item: string | null; at: number }
  /** What is rendered now is heard so much later. */
  | { type: "latency"; seconds: number }
  /** The worklet is not needed any more. */
  | { type: "close" };

/** Playback to page. */
export type PlayNotice = PlayEvent | { type: "level"; level: number };
