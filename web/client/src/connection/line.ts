// The way to the gateway: one connection after another, for one conversation.
import { VoiceError, closeError } from "../errors.js";
import type { ConnectOptions } from "../options.js";
import type { ClientMessage, ErrorMessage, ServerMessage, SessionStart, SessionStarted } from "../protocol/messages.js";
import type { Tally } from "../stats.js";
import { reconnects } from "./codes.js";
import { Heartbeat } from "./heartbeat.js";
import { Order } from "./order.js";
import { whyUnopened } from "./probe.js";
import { Wait, tries } from "./retry.js";
import { Socket, voiceUrl, type Closed } from "./socket.js";
import { randomConversation, sessionStart, type Resume } from "./start.js";

/** Longer than the gateway's own three tries at a provider; a ticket is got in it, too. */
const START_TIMEOUT_MS = 15_000;
/** So long the last word may take after session.end: the gateway waits a second for its store, and lines are slow. */
const GOODBYE_MS = 5000;
/** A connection that lasted so long was a good one: the next loss has all its tries. */
const STABLE_MS = 30_000;

export interface LineHandlers {
  /** A session is open; back says how it was restored, and is undefined for the first. */
  opened(started: SessionStarted, back: { resumed: boolean; lostMs: number } | undefined): void;
  message(message: ServerMessage): void;
  unknown(message: { type: string }): void;
  audio(pcm: ArrayBuffer): void;
  sent(message: ClientMessage): void;
  /** The connection broke; the next try is made in delayMs. */
  broke(attempt: number, delayMs: number, error: VoiceError): void;
  roundTrip(ms: number): void;
  /** The end; called once, and nothing else after it. */
  over(closeCode: number, error: VoiceError | undefined): void;
}

type Phase = "idle" | "dialling" | "open" | "waiting" | "ending" | "over";

/**
 * Opens a session, keeps it open over broken connections as far as that makes sense, and
 * ends it.
 */
export class Line {
  readonly #options: ConnectOptions;
  readonly #tally: Tally;
  readonly #handlers: LineHandlers;
  #order: Order;
  #phase: Phase = "idle";
  #socket: Socket | null = null;
  /** Counts the dials, so that what comes late of an earlier one is known. */
  #dialled = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #heartbeat = new Heartbeat({ ping: () => this.#ping(), lost: () => this.#silent() });
  readonly #wait = new Wait(() => void this.#dial());
  /** The newest try at restoring, from 1; counts from 0 again after a connection that lasted. */
  #attempt = 0;
  /** When the newest session began; undefined before the first. */
  #openedAt: number | undefined;
  #lostAt: number | undefined;
  #resume: Resume | undefined;
  #conversation: string;
  /** The error that the gateway said last, while nothing else has followed. */
  #said: ErrorMessage | null = null;
  /** Something has come of the pending request. */
  #answered = false;

  constructor(options: ConnectOptions, tally: Tally, handlers: LineHandlers) {
    this.#options = options;
    this.#tally = tally;
    this.#handlers = handlers;
    this.#order = new Order(tally);
    this.#conversation = options.conversationId ?? randomConversation();
  }

  /** Begins; LineHandlers tell how it goes. */
  open(): void {
    void this.#dial();
  }

  /** False when it could not be sent. */
  send(message: ClientMessage): boolean {
    if (this.#phase !== "open" || this.#socket?.send(message) !== true) {
      return false;
    }
    this.#handlers.sent(message);
    return true;
  }

  /** One frame of PCM16, made at Date.now(); what is not sent is dropped, and counted. */
  sendAudio(pcm: ArrayBuffer, at: number): "sent" | "slow" | "offline" {
    if (this.#phase === "open" && this.#socket !== null) {
      return this.#socket.sendAudio(pcm, at, this.#options.inputRate ?? 16000);
    }
    this.#tally.droppedOffline++;
    return "offline";
  }

  /** The next try at restoring is made now. Nothing where none is waited for. */
  retry(): void {
    if (this.#phase === "waiting") {
      this.#wait.over();
    }
  }

  /** The user is done: says so, and waits a moment for the gateway's last word. */
  end(): void {
    if (this.send({ type: "session.end" })) {
      this.#phase = "ending";
      this.#heartbeat.stop();
      this.#timer = setTimeout(() => this.#over(1000, undefined), GOODBYE_MS);
    } else {
      this.#over(1000, undefined);
    }
  }

  /** The page goes away: says so and waits for nothing. */
  leave(): void {
    this.send({ type: "session.end" });
    this.#over(1000, undefined);
  }

  async #dial(): Promise<void> {
    this.#phase = "dialling";
    this.#said = null;
    const mine = ++this.#dialled;
    const resume = this.#resume === undefined ? undefined : { ...this.#resume, last_seq: this.#order.highest };
    this.#timer = setTimeout(() => this.#unstarted(), START_TIMEOUT_MS);
    let ticket: string | undefined;
    try {
      ticket = resume === undefined ? await this.#ticket() : undefined;
    } catch (cause) {
      if (mine === this.#dialled) {
        this.#failed(1006, new VoiceError("ticket", undefined, { retryable: true, cause }));
      }
      return;
    }
    if (mine !== this.#dialled) {
      return; // ended, or taking too long
    }
    const start = sessionStart(this.#options, { ticket, resume, conversation: this.#conversation, pending: !this.#answered });
    try {
      this.#connect(start);
    } catch (cause) {
      const advice = "It must be a wss address on a page that came over https.";
      this.#over(1006, new VoiceError("unreachable", "The gateway's address cannot be used.", { advice, cause }));
    }
  }

  #connect(start: SessionStart): void {
    const { url, key } = this.#options;
    this.#socket = new Socket(voiceUrl(url, document.baseURI), typeof key === "function" ? key() : key, this.#tally, {
      opened: () => {
        this.#socket?.send(start);
        this.#handlers.sent(start);
      },
      message: (message) => this.#onMessage(message),
      unknown: (message) => this.#onUnknown(message),
      audio: (pcm) => this.#onAudio(pcm),
      closed: (how) => this.#onClosed(how, start.resume !== undefined),
    });
  }

  async #ticket(): Promise<string | undefined> {
    const { ticket } = this.#options;
    return typeof ticket === "function" ? ticket() : ticket;
  }

  #onMessage(message: ServerMessage): void {
    this.#heartbeat.heard();
    if (message.type === "session.started" && this.#phase === "dialling") {
      this.#onStarted(message);
      return;
    }
    // Before that, the gateway says only why there is no session.
    if (this.#phase !== "dialling" && !this.#order.fresh(message.seq)) {
      return;
    }
    this.#note(message);
    this.#handlers.message(message);
  }

  #onStarted(started: SessionStarted): void {
    clearTimeout(this.#timer);
    if (!started.resumed) {
      this.#order = new Order(this.#tally);
    }
    this.#order.fresh(started.seq);
    this.#resume = started.resume_token === undefined ? undefined : { session_id: started.session_id, token: started.resume_token };
    this.#conversation = started.conversation_id ?? this.#conversation;
    this.#said = null;
    const now = performance.now();
    this.#openedAt = now;
    this.#phase = "open";
    this.#heartbeat.start();
    this.#handlers.opened(started, this.#lostAt === undefined ? undefined : { resumed: started.resumed, lostMs: Math.round(now - this.#lostAt) });
    this.#lostAt = undefined;
  }

  #onUnknown(message: { type: string; seq?: unknown }): void {
    this.#heartbeat.heard();
    if (this.#phase === "dialling" || this.#order.fresh(message.seq)) {
      this.#handlers.unknown(message);
    }
  }

  #onAudio(pcm: ArrayBuffer): void {
    this.#heartbeat.heard();
    this.#handlers.audio(pcm);
  }

  /** Keeps what is needed when the connection breaks. */
  #note(message: ServerMessage): void {
    switch (message.type) {
      case "pong":
        this.#handlers.roundTrip(Math.max(0, performance.now() - message.t));
        return;
      case "error":
        this.#said = message;
        return;
      case "audio.start":
      case "tool.started":
      case "turn.ended":
        this.#answered = true;
    }
    if (message.type !== "session.ended") {
      this.#said = null;
    }
  }

  #ping(): void {
    this.send({ type: "ping", t: performance.now() });
  }

  /** No frame has come for too long. */
  #silent(): void {
    this.#lostAt = this.#heartbeat.lastHeard;
    this.#socket?.abandon();
    this.#onClosed({ code: 1006, opened: true }, false);
  }

  /** session.started, or the ticket, takes too long. */
  #unstarted(): void {
    this.#socket?.abandon();
    this.#failed(1006, new VoiceError("no_start", undefined, { retryable: true }));
  }

  #onClosed(how: Closed, resuming: boolean): void {
    this.#socket = null;
    if (this.#phase === "ending") {
      this.#over(how.code, undefined);
      return;
    }
    if (resuming && this.#phase === "dialling" && how.code >= 4500 && how.code !== 4503) {
      // The session is no more, or this gateway takes none up. The conversation goes on in a new one.
      clearTimeout(this.#timer);
      this.#resume = undefined;
      if (!this.#spent(how.code)) {
        void this.#dial();
      }
      return;
    }
    const error = how.opened ? closeError(how.code, this.#said) : new VoiceError("unreachable", undefined, { retryable: true, closeCode: how.code });
    this.#failed(how.code, error, how.opened);
  }

  /** A connection broke, or there was none: begins to restore it, or ends the conversation. */
  #failed(code: number, error: VoiceError | undefined, opened = true): void {
    clearTimeout(this.#timer);
    this.#heartbeat.stop();
    this.#socket = null;
    this.#dialled++;
    // In a conversation that was open: a gateway that has not noticed the loss takes the old
    // session for one that runs.
    const again = this.#openedAt !== undefined && error !== undefined && (reconnects(code) || error.gatewayCode === "voice_active");
    if (this.#phase === "open") {
      this.#attempt = performance.now() - (this.#openedAt ?? 0) >= STABLE_MS ? 0 : this.#attempt;
      this.#lostAt ??= performance.now();
    }
    if (again && this.#attempt < tries(this.#options.reconnect)) {
      this.#retry(code, error);
    } else if (opened) {
      this.#over(code, error);
    } else {
      void this.#explain(code);
    }
  }

  #retry(code: number, error: VoiceError): void {
    if (this.#spent(code)) {
      return;
    }
    this.#phase = "waiting";
    this.#attempt++;
    const { reconnect } = this.#options;
    const delayMs = this.#wait.start(this.#attempt, typeof reconnect === "object" ? reconnect : {});
    this.#handlers.broke(this.#attempt, delayMs, error);
  }

  /** Ends the conversation, and says so, where there is no ticket for another session of it. */
  #spent(code: number): boolean {
    if (this.#resume !== undefined || typeof this.#options.ticket !== "string") {
      return false;
    }
    this.#over(code, new VoiceError("ticket", undefined, { closeCode: code }));
    return true;
  }

  /** Ends with the best that is known of a gateway that was not reached. */
  async #explain(code: number): Promise<void> {
    const why = await whyUnopened(voiceUrl(this.#options.url, document.baseURI));
    this.#over(code, new VoiceError(why, undefined, { retryable: true, closeCode: code }));
  }

  #over(code: number, error: VoiceError | undefined): void {
    if (this.#phase === "over") {
      return;
    }
    this.#phase = "over";
    this.#dialled++;
    clearTimeout(this.#timer);
    this.#wait.stop();
    this.#heartbeat.stop();
    this.#socket?.close();
    this.#socket = null;
    this.#handlers.over(code, error);
  }
}
