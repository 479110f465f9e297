import type { Microphone } from "./capture.js";
import type { Downlink } from "./downlink.js";
import type { Player } from "./playback.js";
import type { Socket } from "./socket.js";
import type { Notice } from "./words.js";

/**
 * What one conversation owns and must give back. Opening takes several steps
 * that each wait for the browser; whoever comes back from one and finds `over`
 * set calls release again, for what was opened in the meantime.
 */
export class Run {
  context: AudioContext | null = null;
  player: Player | null = null;
  downlink: Downlink | null = null;
  mic: Microphone | null = null;
  socket: Socket | null = null;
  /** The microphone is being asked for. */
  asking = false;
  /** What was typed before the session was open. */
  readonly unsent: { id: string; text: string }[] = [];
  /** The downlink's rate in Hz. */
  rate = 0;
  /** The session.ended reason, and the newest error message. */
  reason: string | undefined;
  error: Notice | null = null;
  over = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Calls back unless the session starts in time. */
  expect(ms: number, late: () => void): void {
    this.timer = setTimeout(late, ms);
  }

  /** The session is open; rate of the downlink in Hz. */
  started(rate: number): void {
    clearTimeout(this.timer);
    this.rate = rate;
  }

  /** Gives everything back. May be called more than once. */
  release(): void {
    this.over = true;
    clearTimeout(this.timer);
    this.mic?.close();
    this.socket?.close();
    this.player?.close();
    if (this.context !== null && this.context.state !== "closed") {
      void this.context.close();
    }
  }
}
