// A gateway that the test controls: it accepts voicegw.v1 sessions, records the uplink and sends what the test sends.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";
import type { ClientMessage, ServerMessage, SessionStart, Usage } from "@voicegw/client";
import { serveTestFile } from "./files.ts";
import { passOn } from "./front.ts";
import type { Gateway } from "./gateway.ts";
import { Mailbox } from "./mailbox.ts";

/** A strict policy, which an application's page may have. */
const STRICT = "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Why a gateway refuses a handshake, by status (docs/protocol.md). */
const REASONS: Readonly<Record<number, string>> = { 403: "origin", 421: "host", 429: "limit", 503: "draining" };

/** A message without the fields that the gateway adds. */
export type Sent = { [M in ServerMessage as M["type"]]: Omit<M, "seq"> }[ServerMessage["type"]];

/** The usage of a free turn. */
export const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0, input: { text: 0, audio: 0, cached_text: 0, cached_audio: 0 }, output: { text: 0, audio: 0 } };

export class FakeGateway {
  /** The connections, in order. */
  readonly visits = new Mailbox<Visit>((visit) => `a session that sent ${visit.texts.all.length} messages`);
  /** If set, handshakes fail with this status. */
  refusing: number | undefined;

  private constructor(
    private readonly server: Server,
    readonly url: string,
    private readonly behind: Gateway | undefined,
  ) {}

  /** A one-time console code of the gateway behind. */
  async code(): Promise<string> {
    return (await this.behind?.code()) ?? "";
  }

  /**
   * `behind` is a real gateway, which serves everything except voice sessions. `headers` replaces the page's strict
   * content security policy.
   */
  static async open(behind?: Gateway, headers: Record<string, string> = { "Content-Security-Policy": STRICT }): Promise<FakeGateway> {
    const server = createServer((request, response) => {
      if (serveTestFile(request, response)) {
        return;
      }
      if (request.url === "/v1/voice") {
        gateway.explain(request, response);
        return;
      }
      if (behind !== undefined) {
        passOn(request, response, behind.front.target);
        return;
      }
      const status = request.url === "/readyz" ? 200 : 404;
      response.writeHead(status, { "Content-Type": "text/html", ...headers }).end();
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const gateway = new FakeGateway(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, behind);
    const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => (offered.has("voicegw.v1") ? "voicegw.v1" : false) });
    server.on("upgrade", (request: IncomingMessage, socket, head) => {
      const status = request.url === "/v1/voice" ? gateway.refusing : 404;
      if (status !== undefined) {
        socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
        return;
      }
      sockets.handleUpgrade(request, socket, head, (ws) => gateway.visits.put(new Visit(ws, request, () => gateway.heardSamples())));
    });
    return gateway;
  }

  /** Answers a GET of the voice endpoint with the reason a handshake would fail. Pages of any origin may read it. */
  private explain({ headers: { origin = "*" } }: IncomingMessage, response: ServerResponse): void {
    const status = this.refusing ?? 426;
    const code = REASONS[status] ?? "upgrade";
    response.writeHead(status, { "Content-Type": "application/json", "Access-Control-Allow-Origin": origin }).end(JSON.stringify({ error: { code, message: `This gateway says ${code}.` } }));
  }

  /** Samples of the newest session's uplink, over all its connections. */
  private heardSamples(): number {
    const all = this.visits.all;
    const first = all.findLastIndex((visit) => visit.opened);
    return all.slice(Math.max(0, first)).reduce((sum, visit) => sum + visit.samples, 0);
  }

  /** The page's next connection. */
  async visit(): Promise<Visit> {
    return this.visits.next("a session of the page", () => true);
  }

  /** The next connection, with its session started. */
  async welcome(more: Partial<Extract<Sent, { type: "session.started" }>> = {}): Promise<Visit> {
    const visit = await this.visit();
    await visit.welcome(more);
    return visit;
  }

  async close(): Promise<void> {
    for (const visit of this.visits.all) {
      visit.cut();
    }
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}

/** An uplink frame. */
export interface Heard {
  /** Time of arrival: performance.now(). */
  at: number;
  pcm: Int16Array;
}

/** A connection of the page. */
export class Visit {
  readonly texts = new Mailbox<ClientMessage>((message) => JSON.stringify(message));
  readonly frames = new Mailbox<Heard>((frame) => `${frame.pcm.length} samples`);
  /** Resolves with the close code when the connection has ended. */
  readonly gone: Promise<number>;
  /** It started a new session rather than resuming one. */
  opened = false;
  private seq = 0;
  /** Ignores everything that arrives from now on. */
  private over = false;

  constructor(
    private readonly ws: WebSocket,
    readonly request: IncomingMessage,
    private readonly heardSamples: () => number,
  ) {
    ws.on("message", (data: Buffer, binary) => {
      if (this.over) {
        return;
      }
      if (binary) {
        const pcm = new Int16Array(data.length >> 1);
        pcm.forEach((_, i) => (pcm[i] = data.readInt16LE(2 * i)));
        this.frames.put({ at: performance.now(), pcm });
      } else {
        this.take(JSON.parse(data.toString()) as ClientMessage);
      }
    });
    this.gone = new Promise((gone) => ws.on("close", gone));
  }

  async started(): Promise<SessionStart> {
    await this.texts.until("session.start", () => this.texts.all.length > 0);
    const start = this.texts.all[0]!;
    if (start.type !== "session.start") {
      throw new Error(`the first message is ${start.type}, want session.start`);
    }
    return start;
  }

  /** Starts the session as requested. A resumed session continues its sequence numbers. */
  async welcome(more: Partial<Extract<Sent, { type: "session.started" }>> = {}): Promise<void> {
    const start = await this.started();
    this.seq = more.resumed === true ? (start.resume?.last_seq ?? 0) : 0;
    this.opened = more.resumed !== true;
    const heard = this.opened ? {} : { input_ms: Math.floor((this.heardSamples() * 1000) / start.input_rate) };
    this.send({
      type: "session.started", session_id: "voice-1", resume_token: "token-1", provider: start.provider ?? "gemini", model: "a-model",
      agent: start.agent ?? "default", conversation_id: start.conversation_id ?? "c-1", tools_version: "1.0.0", input_rate: start.input_rate,
      output_rate: start.output_rate, expires_at: null, resumed: false, ...heard, ...more,
    });
  }

  /** The next message of a type. */
  async next<T extends ClientMessage["type"]>(type: T): Promise<Extract<ClientMessage, { type: T }>> {
    return this.texts.next(type, (message): message is Extract<ClientMessage, { type: T }> => message.type === type);
  }

  /** The next playback report of an item with this `done`. */
  async report(item: string, done: boolean): Promise<Extract<ClientMessage, { type: "playback" }>> {
    return this.texts.next(`playback of ${item}, done: ${done}`, (m): m is Extract<ClientMessage, { type: "playback" }> =>
      m.type === "playback" && m.item_id === item && m.done === done);
  }

  /** Sends a message; its type may be unknown to the library. */
  send(message: Sent | { type: `shiny.${string}`; [field: string]: unknown }): void {
    this.ws.send(JSON.stringify({ seq: ++this.seq, ...message }));
  }

  /** Sends audio at once, in frames of `frame` samples. */
  sendAudio(pcm: Int16Array, frame = 960): void {
    for (let at = 0; at < pcm.length; at += frame) {
      this.sendFrame(pcm.subarray(at, at + frame));
    }
  }

  sendFrame(pcm: Int16Array): void {
    this.ws.send(Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength));
  }

  /** Returns the uplink so far. */
  heard(): Int16Array {
    const all = new Int16Array(this.frames.all.reduce((sum, frame) => sum + frame.pcm.length, 0));
    let at = 0;
    for (const { pcm } of this.frames.all) {
      all.set(pcm, at);
      at += pcm.length;
    }
    return all;
  }

  /** Samples of the uplink so far. */
  get samples(): number {
    return this.frames.all.reduce((sum, frame) => sum + frame.pcm.length, 0);
  }

  /** Waits for this many samples of the uplink in total. */
  async hears(samples: number): Promise<Int16Array> {
    await this.frames.until(`${samples} samples`, () => this.samples >= samples);
    return this.heard();
  }

  private take(message: ClientMessage): void {
    if (message.type === "ping") {
      this.send({ type: "pong", t: message.t });
      return;
    }
    this.texts.put(message);
  }

  close(code: number, reason = ""): void {
    this.over = true;
    this.ws.close(code, reason);
  }

  /** Cuts the connection without a close frame, as a broken network does. */
  cut(): void {
    this.over = true;
    this.ws.terminate();
  }
}
