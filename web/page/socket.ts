import { parseServerMessage, SUBPROTOCOL, type ClientMessage, type ServerMessage } from "./protocol.js";

/** How a connection ended. */
export interface Closed {
  /** The WebSocket close code; 1006 when there was no closing handshake. */
  code: number;
  /** Whether the handshake had succeeded. */
  opened: boolean;
}

export interface SocketHandlers {
  opened(): void;
  message(message: ServerMessage): void;
  audio(pcm: ArrayBuffer): void;
  /** Called once. Nothing else is called after it. */
  closed(how: Closed): void;
}

// Two seconds of uplink. A line that cannot carry more will not catch up, and
// the model should hear what is said now, not what was said then.
const MAX_UNSENT_BYTES = 2 * 16_000 * 2;

/** One connection to the gateway: frames in, messages out. */
export class Socket {
  private readonly ws: WebSocket;
  private opened = false;

  constructor(url: URL, handlers: SocketHandlers) {
    const ws = new WebSocket(url, [SUBPROTOCOL]);
    ws.binaryType = "arraybuffer";
    ws.onopen = () => {
      this.opened = true;
      handlers.opened();
    };
    ws.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      if (typeof event.data !== "string") {
        handlers.audio(event.data);
        return;
      }
      const message = parseServerMessage(event.data);
      if (message !== null) {
        handlers.message(message);
      }
    };
    // An error event says nothing and is always followed by close.
    ws.onclose = (event) => {
      this.detach();
      handlers.closed({ code: event.code, opened: this.opened });
    };
    this.ws = ws;
  }

  /** Sends a message, or nothing when the connection is not open. */
  send(message: ClientMessage): void {
    if (this.ws.readyState === WebSocket.OPEN) {
      this.ws.send(JSON.stringify(message));
    }
  }

  /** Sends one uplink frame; false when it was dropped for a slow line. */
  sendAudio(pcm: ArrayBuffer): boolean {
    if (this.ws.readyState !== WebSocket.OPEN) {
      return true;
    }
    if (this.ws.bufferedAmount > MAX_UNSENT_BYTES) {
      return false;
    }
    this.ws.send(pcm);
    return true;
  }

  /** Closes; `closed` is not called any more. May be called more than once. */
  close(): void {
    this.detach();
    this.ws.close(1000);
  }

  private detach(): void {
    this.ws.onopen = null;
    this.ws.onmessage = null;
    this.ws.onclose = null;
  }
}

/** The voice endpoint of the gateway that served this page. */
export function voiceUrl(page: string): URL {
  const url = new URL("v1/voice", page);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.search = "";
  url.hash = "";
  return url;
}
