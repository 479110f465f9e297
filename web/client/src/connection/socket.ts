import { parseObject, parseServerMessage } from "../protocol/codec.js";
import { SUBPROTOCOL, type ClientMessage, type ServerMessage } from "../protocol/messages.js";
import { onBlocked } from "../policy.js";
import { HELD_MS } from "./held.js";
import type { Tally } from "../stats.js";

/** How a connection ended. */
export interface Closed {
  /** The WebSocket close code; 1006 when there was no closing handshake. */
  code: number;
  /** Whether the handshake had succeeded. */
  opened: boolean;
  /** The page's content security policy blocks the address. */
  blocked: boolean;
}

export interface SocketHandlers {
  opened(): void;
  message(message: ServerMessage): void;
  /** A message of a type that this version does not know, or cannot use. */
  unknown(message: { type: string }): void;
  audio(pcm: ArrayBuffer): void;
  /** Called once. Nothing else is called after it. */
  closed(how: Closed): void;
}

// How much audio may wait for a slow line, and how long for a page that is held up. A line
// that cannot carry more will not catch up, and the model should hear what is said now, not
// what was said then. A line over which nothing goes for STALLED_MS is not slow: packets are
// lost, and what waits goes when they pass again.
const MAX_UNSENT_MS = 2000;
const STALLED_MS = 500;

/** "The user is done", to the gateway; other codes leave the session to be taken up again. */
const DONE = 1000;
/** The connection is given up, not the session. */
export const ABANDONED = 4000;

/** Begins the subprotocol that carries an operator's key. */
const KEY = "voicegw.key.";
/** The subprotocol of a connection that comes back to a session. */
const BACK = "voicegw.resume";

const utf8 = new TextEncoder();

/** One connection to the gateway: frames in, messages out. */
export class Socket {
  readonly #tally: Tally;
  readonly #handlers: SocketHandlers;
  readonly #ws: WebSocket;
  readonly #unwatch: () => void;
  #opened = false;
  /** What was kept and sent at once may wait for the line beside what is said now, in bytes. */
  #burst = 0;
  /** What waited after the last frame, in bytes, and when the line last took something, as Date.now(). */
  #waited = 0;
  #tookAt = Date.now();

  /** `back` says that it comes back to a session: a gateway that takes no new one accepts it all the same. */
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

  /** Sends a message; false when the connection is not open. */
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

  /** Sends one uplink frame of PCM16 at rate Hz, made at Date.now(), or drops it. */
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

  /** Sends frames that were kept until there was a connection, however old they are. */
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

  /** Says goodbye for good; `closed` is not called any more. May be called more than once. */
  close(): void {
    this.#drop(DONE);
  }

  /** Gives the connection up, as close does, but leaves the session to be taken up again. */
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

/** The voice endpoint: as given, or `v1/voice` beside the page. */
export function voiceUrl(given: string | URL | undefined, page: string): URL {
  const url = new URL(given ?? "v1/voice", page);
  url.protocol = url.protocol === "https:" || url.protocol === "wss:" ? "wss:" : "ws:";
  url.search = "";
  url.hash = "";
  return url;
}
