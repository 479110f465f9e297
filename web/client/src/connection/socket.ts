import { parseObject, parseServerMessage } from "../protocol/codec.js";
import { SUBPROTOCOL, type ClientMessage, type ServerMessage } from "../protocol/messages.js";
import { onBlocked } from "../policy.js";
import { HELD_MS } from "./held.js";
import type { Tally } from "../stats.js";

export interface Closed {
  /** The WebSocket close code; 1006 without a closing handshake. */
  code: number;
  /** Whether the handshake succeeded. */
  opened: boolean;
  /** Whether the page's content security policy blocks the address. */
  blocked: boolean;
}

export interface SocketHandlers {
  opened(): void;
  message(message: ServerMessage): void;
  /** A message whose type this version does not know, or that is invalid. */
  unknown(message: { type: string }): void;
  audio(pcm: ArrayBuffer): void;
  /** Called once, last. */
  closed(how: Closed): void;
}

// How much audio may wait on a slow connection, and how long a busy page may delay a frame. A slow connection
// never catches up, and the model should hear the current speech. A connection that sends nothing for
// STALLED_MS is not slow: it loses packets and sends the rest when they pass again.
const MAX_UNSENT_MS = 2000;
const STALLED_MS = 500;

/** Ends the session at the gateway; after other codes it can resume. */
const DONE = 1000;
/** Closes the connection but not the session. */
export const ABANDONED = 4000;

/** Prefix of the subprotocol that carries an operator's key. */
const KEY = "voicegw.key.";
/** Subprotocol of a connection that resumes a session. */
const BACK = "voicegw.resume";

const utf8 = new TextEncoder();

/** One WebSocket connection to the gateway. */
export class Socket {
  readonly #tally: Tally;
  readonly #handlers: SocketHandlers;
  readonly #ws: WebSocket;
  readonly #unwatch: () => void;
  #opened = false;
  /** Bytes of stored audio, sent at once, that may wait in addition to live audio. */
  #burst = 0;
  /** Bytes waiting after the last frame, and when the connection last sent some of them (Date.now()). */
  #waited = 0;
  #tookAt = Date.now();

  /** `back`: the connection resumes a session, which a gateway accepts even when it admits no new sessions. */
  constructor(url: URL, key: string | undefined, back: boolean, tally: Tally, handlers: SocketHandlers) {
    this.#tally = tally;
    this.#handlers = handlers;
    const ws = new WebSocket(url, [SUBPROTOCOL, ...(key === undefined ? [] : [KEY + key]), ...(back ? [BACK] : [])]);
    ws.binaryType = "arraybuffer";
    ws.onopen = () => {
      this.#opened = true;
      this.#unwatch();
      handlers.opened();
    };
    ws.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      if (typeof event.data === "string") {
        this.#text(event.data);
      } else {
        tally.audioFramesReceived++;
        tally.bytesReceived += event.data.byteLength;
        handlers.audio(event.data);
      }
    };
    const closed = (code: number, blocked: boolean): void => {
      this.#detach();
      handlers.closed({ code, opened: this.#opened, blocked });
    };
    ws.onclose = (event) => closed(event.code, false);
    // Chromium 156 sends no close event for a socket that the policy blocks.
    this.#unwatch = onBlocked(url.href, () => closed(1006, true));
    this.#ws = ws;
  }

  /** Sends a message. Returns false if the connection is not open. */
  send(message: ClientMessage): boolean {
    if (this.#ws.readyState !== WebSocket.OPEN) {
      return false;
    }
    const frame = JSON.stringify(message);
    this.#ws.send(frame);
    this.#tally.messagesSent++;
    this.#tally.bytesSent += utf8.encode(frame).length;
    return true;
  }

  /** Sends one frame of PCM16 at rate Hz, recorded at `at` (Date.now()), or drops it. */
  sendAudio(pcm: ArrayBuffer, at: number, rate: number): "sent" | "slow" | "offline" {
    if (this.#ws.readyState !== WebSocket.OPEN) {
      this.#tally.droppedOffline++;
      return "offline";
    }
    const waiting = this.#ws.bufferedAmount;
    const now = Date.now();
    if (waiting < this.#waited || waiting === 0) {
      this.#tookAt = now;
    }
    this.#waited = waiting;
    const stalled = now - this.#tookAt >= STALLED_MS && waiting <= (HELD_MS * rate * 2) / 1000;
    this.#burst = stalled ? waiting : Math.min(this.#burst, waiting);
    if (waiting - this.#burst > (MAX_UNSENT_MS * rate * 2) / 1000 || now - at > MAX_UNSENT_MS) {
      this.#tally.droppedSlow++;
      return "slow";
    }
    this.#sendFrame(pcm);
    return "sent";
  }

  /** Sends frames that were stored while offline, regardless of their age. */
  sendHeld(frames: readonly ArrayBuffer[]): void {
    for (const pcm of frames) {
      this.#sendFrame(pcm);
    }
    this.#burst = this.#ws.bufferedAmount;
  }

  #sendFrame(pcm: ArrayBuffer): void {
    this.#ws.send(pcm);
    this.#tally.audioFramesSent++;
    this.#tally.bytesSent += pcm.byteLength;
  }

  /** Ends the session and closes. Does not call `closed`. Safe to call twice. */
  close(): void {
    this.#drop(DONE);
  }

  /** Closes like close, but the session can be resumed. */
  abandon(): void {
    this.#drop(ABANDONED);
  }

  #drop(code: number): void {
    this.#detach();
    this.#ws.close(code);
  }

  #text(frame: string): void {
    this.#tally.messagesReceived++;
    this.#tally.bytesReceived += utf8.encode(frame).length;
    const message = parseServerMessage(frame);
    if (message !== null) {
      this.#handlers.message(message);
      return;
    }
    const other = parseObject(frame);
    if (typeof other?.["type"] === "string") {
      this.#tally.unknownMessages++;
      this.#handlers.unknown(other as { type: string });
    }
  }

  #detach(): void {
    this.#unwatch();
    this.#ws.onopen = null;
    this.#ws.onmessage = null;
    this.#ws.onclose = null;
  }
}

/** The voice endpoint: `given`, or `v1/voice` relative to the page. */
export function voiceUrl(given: string | URL | undefined, page: string): URL {
  const url = new URL(given ?? "v1/voice", page);
  url.protocol = url.protocol === "https:" || url.protocol === "wss:" ? "wss:" : "ws:";
  url.search = "";
  url.hash = "";
  return url;
}
