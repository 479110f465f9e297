// A gateway without a network.
import { vi } from "vitest";
import type { ClientMessage } from "../src/protocol/messages.js";

/** A WebSocket controlled by the test. */
export class FakeWebSocket {
  static readonly CONNECTING = 0;
  static readonly OPEN = 1;
  static readonly CLOSED = 3;
  /** All since installNetwork, oldest first. */
  static all: FakeWebSocket[] = [];

  readonly url: string;
  readyState = FakeWebSocket.CONNECTING;
  bufferedAmount = 0;
  binaryType = "blob";
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  readonly texts: ClientMessage[] = [];
  readonly sent: (string | ArrayBuffer)[] = [];
  /** The frames of the uplink. */
  readonly audio16: Int16Array[] = [];
  /** This side's close code. */
  closedWith: number | undefined;

  constructor(
    url: string | URL,
    readonly protocols: string[],
  ) {
    this.url = String(url);
    FakeWebSocket.all.push(this);
  }

  static get last(): FakeWebSocket {
    const last = FakeWebSocket.all.at(-1);
    if (last === undefined) {
      throw new Error("no connection was opened");
    }
    return last;
  }

  send(data: string | ArrayBuffer): void {
    this.sent.push(data);
    if (typeof data === "string") {
      this.texts.push(JSON.parse(data) as ClientMessage);
    } else {
      this.audio16.push(new Int16Array(data));
    }
  }

  close(code: number): void {
    this.closedWith ??= code;
    this.readyState = FakeWebSocket.CLOSED;
  }

  get audioFrames(): number {
    return this.audio16.length;
  }

  // Actions of the gateway.

  open(): void {
    this.readyState = FakeWebSocket.OPEN;
    this.onopen?.();
  }

  say(message: { type: string; [field: string]: unknown }): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  audio(bytes = 960): void {
    this.onmessage?.({ data: new ArrayBuffer(bytes) });
  }

  /** Closes with a code; browsers report 1006 for a connection without a close frame. */
  drop(code = 1006): void {
    this.readyState = FakeWebSocket.CLOSED;
    this.onclose?.({ code });
  }

  /** Opens the connection and starts a session. */
  start(fields: Record<string, unknown> = {}): void {
    this.open();
    this.say({ ...STARTED, ...fields });
  }

  of<T extends ClientMessage["type"]>(type: T): Extract<ClientMessage, { type: T }>[] {
    return this.texts.filter((message) => message.type === type) as Extract<ClientMessage, { type: T }>[];
  }
}

const STARTED = {
  type: "session.started",
  seq: 1,
  session_id: "voice-1",
  provider: "sim",
  model: "sim",
  input_rate: 16000,
  output_rate: 24000,
  expires_at: null,
  resumed: false,
};

/** Replaces the browser's WebSocket, and its clock with one that the test advances. */
export function installNetwork(): void {
  FakeWebSocket.all = [];
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeWebSocket);
  vi.stubGlobal("CLIENT_VERSION", "0.0.0");
  // Random pauses have their maximum.
  vi.spyOn(Math, "random").mockReturnValue(1);
}

export function removeNetwork(): void {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
}

/** Runs all pending promises. */
export async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}

export const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

/** Shows or hides the page. */
export function show(visible: boolean): void {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue(visible ? "visible" : "hidden");
  document.dispatchEvent(new Event("visibilitychange"));
}

/** Takes the browser online or offline. */
export function network(on: boolean): void {
  vi.spyOn(navigator, "onLine", "get").mockReturnValue(on);
  globalThis.dispatchEvent(new Event(on ? "online" : "offline"));
}
