// What the page and its two worklets say to each other. Audio crosses as
// transferred ArrayBuffers: shared memory would need cross-origin isolation,
// which an operator's proxy may not keep.
import type { PlayEvent } from "../playqueue.js";

export const CAPTURE = "voicegw-capture";
export const PLAYBACK = "voicegw-playback";

/** Options of the capture worklet. */
export interface CaptureOptions {
  /** Uplink rate in Hz. */
  rate: number;
}

/** Capture to page, once per 20 ms. */
export interface CapturedFrame {
  pcm: ArrayBuffer;
  level: number;
}

/** Page to playback. */
export type PlayCommand =
  | { type: "start"; item: string; rate: number }
  | { type: "audio"; item: string; pcm: ArrayBuffer }
  | { type: "end"; item: string }
  /** null: whatever is queued. */
  | { type: "flush"; item: string | null }
  /** The worklet is not needed any more. */
  | { type: "close" };

/** Playback to page. */
export type PlayNotice = PlayEvent | { type: "level"; level: number };
