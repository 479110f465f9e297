// The connection to the gateway: one WebSocket after another, for one conversation.
import type { UplinkFrame } from "../audio/worklets/messages.js";
import { VoiceError, closeError, type VoiceErrorCode } from "../errors.js";
import type { Kept } from "../kept.js";
import type { ConnectOptions } from "../options.js";
import type { AudioPosition, ClientMessage, ErrorMessage, Pong, ServerMessage, SessionStart, SessionStarted } from "../protocol/messages.js";
import type { Tally } from "../stats.js";
import { DISPLACED, LIMIT, MOVING, reconnects } from "./codes.js";
import { Heartbeat } from "./heartbeat.js";
import { Held } from "./held.js";
import { Order } from "./order.js";
import { whyUnopened } from "./probe.js";
import { Wait, tries } from "./retry.js";
import { ABANDONED, Socket, voiceUrl, type Closed } from "./socket.js";
import { Spoken, type Said } from "./spoken.js";
import { randomConversation, sessionStart, type Opening, type Resume } from "./start.js";

/** Longer than the gateway's three attempts at a provider. It includes fetching a ticket. */
const START_TIMEOUT_MS = 15_000;
/**
 * How long to wait for the gateway's last messages after session.end. The gateway waits up to a second for
 * its store.
 */
const GOODBYE_MS = 5000;
/** After a connection has lasted this long, the next loss starts again with the first attempt. */
const STABLE_MS = 30_000;
/** The most unanswered pings remembered. */
const PINGS = 4;
/** Advice shown when a session cannot be resumed and a new one starts. */
const NEW_SESSION = "The conversation continues in a new one.";
/** How long the gateway refuses to resume a session after too many attempts; see docs/protocol.md. */
const EAGER_MS = 10_000;

export interface LineHandlers {
  /** A session is open. `back` says how it was restored; it is undefined for this page's first session. */
  opened(started: SessionStarted, back: { resumed: boolean; lostMs: number } | undefined): void;
  /** The audio received so far; the gateway continues from there. Called before a session is resumed. */
  position(): AudioPosition | undefined;
  message(message: ServerMessage): void;
  unknown(message: { type: string }): void;
  audio(pcm: ArrayBuffer): void;
  sent(message: ClientMessage): void;
  /** The connection broke at `since` (performance.now()). The next attempt starts in delayMs. */
  broke(attempt: number, delayMs: number, error: VoiceError, since: number): void;
  /** The session cannot be resumed. A new session of the same conversation is opened. */
  refused(error: VoiceError): void;
  roundTrip(ms: number): void;
  /** Called once, last. */
  over(closeCode: number, error: VoiceError | undefined): void;
}

type Phase = "idle" | "dialling" | "open" | "waiting" | "ending" | "over";

/** Opens a session, restores it after lost connections, and ends it. */
export class Line {
  readonly #options: ConnectOptions;
  readonly #tally: Tally;
  readonly #handlers: LineHandlers;
  #order: Order;
  #phase: Phase = "idle";
  #socket: Socket | null = null;
  /** Counts attempts, so that late results of an earlier attempt are ignored. */
  #dialled = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #heartbeat = new Heartbeat({ ping: () => this.#ping(), lost: () => this.#silent() });
  readonly #wait = new Wait(() => void this.#dial());
  readonly #held: Held;
  readonly #spoken: Spoken;
  /** Audio to send again: requested by the gateway, or lost with the connection. */
  #again: Said[] = [];
  /** The gateway requested the audio in #again. */
  #asked = false;
  /** The number of the current attempt to reconnect, from 1. A connection that lasted resets it to 0. */
  #attempt = 0;
  /** When the newest session began; undefined before the first. */
  #openedAt: number | undefined;
  #lostAt: number | undefined;
  #resume: Resume | undefined;
  #conversation: string;
  /** The gateway's last error, until another message follows it. */
  #said: ErrorMessage | null = null;
  /** The answer to the pending request has begun. */
  #answered = false;
  /** The number of the last turn that ended. */
  #ended = 0;
  /** Times in this connection's unanswered pings. */
  #pinged: number[] = [];

  constructor(options: ConnectOptions, tally: Tally, handlers: LineHandlers) {
    this.#options = options;
    this.#tally = tally;
    this.#handlers = handlers;
    this.#order = new Order(tally);
    this.#held = new Held(options.inputRate ?? 16000);
    this.#spoken = new Spoken(options.inputRate ?? 16000);
    this.#conversation = options.conversationId ?? randomConversation();
  }

  /** Whether a session runs over an open connection. */
  get connected(): boolean {
    return this.#phase === "open";
  }

  /** The credentials for resuming the session; undefined if the gateway sent none. */
  get resume(): Resume | undefined {
    return this.#resume;
  }

  /** The conversation's id. */
  get conversation(): string {
    return this.#conversation;
  }

  /** All messages up to this seq have arrived. */
  get seq(): number {
    return this.#order.complete;
  }

  /**
   * Connects and reports the result to the handlers. `kept` is the session that an earlier page of this tab
   * stored.
   */
  open(kept: Kept | null): void {
    if (kept !== null) {
      this.#resume = { session_id: kept.sessionId, token: kept.token };
      this.#conversation = kept.conversationId;
      this.#answered = true;
      // This page has received nothing yet and needs all that the gateway still has.
      this.#order = new Order(this.#tally, 0);
    }
    void this.#dial();
  }

  /** Returns false if the message could not be sent. */
  send(message: ClientMessage): boolean {
    if (this.#phase !== "open" || this.#socket?.send(message) !== true) {
      return false;
    }
    if (message.type === "input.activity") {
      this.#spoken.sent(message.active);
    }
    this.#handlers.sent(message);
    return true;
  }

  /**
   * Sends one frame. While the session waits to resume, the newest 15 s are stored for sendHeld. Dropped
   * frames are counted.
   */
  sendAudio(frame: UplinkFrame): "sent" | "slow" | "kept" | "offline" {
    if (this.#phase === "open" && this.#socket !== null) {
      const became = this.#socket.sendAudio(frame.pcm, frame.at, this.#options.inputRate ?? 16000);
      if (became === "sent") {
        this.#spoken.sent(frame);
      }
      return became;
    }
    if (this.#resume !== undefined && this.#openedAt !== undefined && this.#phase !== "ending" && this.#phase !== "over") {
      this.#tally.droppedOffline += this.#held.push(frame);
      return "kept";
    }
    this.#tally.droppedOffline++;
    return "offline";
  }

  /**
   * Sends again the user's speech that the gateway lacks, before newer audio. Returns whether the gateway
   * then regards the push-to-talk button as pressed, or undefined if that did not change.
   */
  sendAgain(): boolean | undefined {
    let pressed = this.#asked ? false : undefined;
    for (const one of this.#again) {
      if (typeof one === "boolean") {
        pressed = one;
        this.send({ type: "input.activity", active: one });
      } else {
        this.#socket?.sendHeld([one.pcm]);
        this.#spoken.sent(one);
      }
    }
    this.#again = [];
    return pressed;
  }

  /** Sends the audio recorded while offline, before newer audio, and returns it. */
  sendHeld(): UplinkFrame[] {
    const frames = this.#held.take();
    this.#asked = false;
    this.#socket?.sendHeld(frames.map(({ pcm }) => pcm));
    frames.forEach((frame) => this.#spoken.sent(frame));
    this.#tally.audioFramesKept += frames.length;
    return frames;
  }

  /** Reconnects now if an attempt is scheduled. */
  retry(): void {
    if (this.#phase === "waiting") {
      this.#wait.over();
    }
  }

  /** Ends the session for the user and waits briefly for the gateway's last messages. */
  end(): void {
    if (this.send({ type: "session.end" })) {
      this.#phase = "ending";
      this.#heartbeat.stop();
      this.#timer = setTimeout(() => this.#over(1000, undefined), GOODBYE_MS);
    } else {
      this.#over(1000, undefined);
    }
  }

  /** Ends the session because the page closes, without waiting. */
  leave(): void {
    this.send({ type: "session.end" });
    this.#over(1000, undefined);
  }

  /** Disconnects because the page closes. The next page resumes the session. */
  depart(): void {
    this.#socket?.abandon();
    this.#socket = null;
    this.#over(ABANDONED, undefined);
  }

  async #dial(): Promise<void> {
    this.#phase = "dialling";
    this.#said = null;
    const mine = ++this.#dialled;
    const resume = this.#resuming();
    this.#timer = setTimeout(() => this.#unstarted(), START_TIMEOUT_MS);
    let ticket: string | undefined;
    try {
      ticket = resume === undefined ? await this.#ticket() : undefined;
    } catch (cause) {
      if (mine === this.#dialled) {
        this.#failed(1006, new VoiceError("ticket_failed", undefined, { retryable: true, cause }));
      }
      return;
    }
    if (mine !== this.#dialled) {
      return; // ended or timed out
    }
    const start = sessionStart(this.#options, { ticket, resume, conversation: this.#conversation, pending: !this.#answered });
    try {
      this.#connect(start);
    } catch (cause) {
      this.#over(1006, new VoiceError(uncallable(cause), undefined, { cause }));
    }
  }

  #resuming(): Opening["resume"] {
    if (this.#resume === undefined) {
      return undefined;
    }
    const audio = this.#handlers.position();
    const input = this.#spoken.range(this.#held.bytes);
    return { ...this.#resume, last_seq: this.#order.complete, ...(audio === undefined ? {} : { audio }), ...(input === undefined ? {} : { input }) };
  }

  #connect(start: SessionStart): void {
    const { url, key } = this.#options;
    this.#socket = new Socket(voiceUrl(url, document.baseURI), typeof key === "function" ? key() : key, start.resume !== undefined, this.#tally, {
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
    if (typeof ticket !== "function") {
      return ticket;
    }
    const given: unknown = await ticket();
    if (typeof given !== "string") {
      throw new TypeError("the option ticket must return a string");
    }
    return given;
  }

  #onMessage(message: ServerMessage): void {
    this.#heartbeat.heard();
    if (message.type === "session.started" && this.#phase === "dialling") {
      this.#onStarted(message);
      return;
    }
    // Before the session starts, the gateway only reports why it does not start.
    if (this.#phase !== "dialling" && !this.#order.fresh(message.seq)) {
      return;
    }
    if (message.type === "session.started") {
      return; // a repeat from an earlier connection
    }
    if (message.type === "turn.started" || message.type === "turn.ended") {
      const turn = message.turn ?? 0;
      if (turn <= this.#ended) {
        return; // after a takeover the gateway does not know that the end was sent, and repeats the turn
      }
      this.#ended = message.type === "turn.ended" ? turn : this.#ended;
    }
    this.#note(message);
    this.#handlers.message(message);
    if (message.type === "session.moving") {
      this.#leaveForMove();
    }
  }

  #onStarted(started: SessionStarted): void {
    clearTimeout(this.#timer);
    if (!started.resumed) {
      this.#order = new Order(this.#tally);
      this.#ended = 0;
      this.#tally.droppedOffline += this.#held.take().length;
      this.#spoken.begin(0);
    } else {
      const lost = this.#spoken.resumed(started);
      this.#asked = started.input_again === true;
      this.#again = this.#asked ? lost : this.#held.beside(lost);
      this.#tally.droppedOffline += lost.length - this.#again.length;
    }
    if (started.snapshot === true) {
      // Missed messages are not repeated, and after a takeover the numbers begin far above them.
      this.#order = new Order(this.#tally, started.seq);
    }
    this.#order.fresh(started.seq);
    this.#resume = started.resume_token === undefined ? undefined : { session_id: started.session_id, token: started.resume_token };
    this.#conversation = started.conversation_id ?? this.#conversation;
    this.#said = null;
    const now = performance.now();
    this.#openedAt = now;
    this.#phase = "open";
    this.#pinged = [];
    this.#heartbeat.start();
    this.#handlers.opened(started, this.#lostAt === undefined ? undefined : { resumed: started.resumed, lostMs: Math.round(now - this.#lostAt) });
    this.#lostAt = undefined;
    if (started.resumed) {
      // The first message from here confirms session.started; the gateway then revokes the old token.
      this.#ping();
    }
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

  /** Records what is needed if the connection breaks. */
  #note(message: ServerMessage): void {
    switch (message.type) {
      case "pong":
        this.#onPong(message);
        return;
      case "error":
        this.#said = message;
        if (message.code === "audio_too_fast" || message.code === "invalid_audio") {
          this.#spoken.doubt(); // the gateway did not count the frame
        }
        return;
      case "speech.stopped":
        this.#spoken.stopped(message.audio_ms, message.turn ?? 0);
        break;
      case "turn.ended":
        this.#spoken.ended(message.turn ?? 0);
        this.#answered = true;
        break;
      case "audio.start":
      case "tool.started":
        this.#answered = true;
    }
    if (message.type !== "session.ended") {
      this.#said = null;
    }
  }

  #ping(): void {
    const t = performance.now();
    const seq = this.#resume === undefined ? {} : { seq: this.#order.complete };
    if (this.send({ type: "ping", t, ...seq })) {
      this.#pinged = [...this.#pinged, t].slice(-PINGS);
    }
  }

  /** Ignores a pong to an earlier connection's or another page's ping. */
  #onPong({ t, seq }: Pong): void {
    if (!this.#pinged.includes(t)) {
      return;
    }
    this.#pinged = this.#pinged.filter((asked) => asked > t);
    // Repeats after a resume arrive before the pong, so whatever is still missing never arrives.
    this.#order.skip(seq);
    this.#handlers.roundTrip(performance.now() - t);
  }

  /** The gateway released the session; another gateway resumes it. */
  #leaveForMove(): void {
    if (this.#phase === "open" && this.#resume !== undefined) {
      this.#socket?.abandon();
      this.#failed(MOVING, closeError(MOVING, null));
    }
  }

  /** No frame has arrived for too long. */
  #silent(): void {
    this.#lostAt = this.#heartbeat.lastHeard;
    this.#socket?.abandon();
    this.#onClosed({ code: 1006, opened: true, blocked: false }, false);
  }

  /** session.started or the ticket did not arrive in time. */
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
    if (how.blocked) {
      this.#over(how.code, new VoiceError("socket_blocked"));
      return;
    }
    if (resuming && this.#phase === "dialling" && how.code >= 4500 && how.code !== 4503 && how.code !== DISPLACED) {
      this.#onRefused(how.code);
      return;
    }
    const error = how.opened ? closeError(how.code, this.#said) : new VoiceError("unreachable", undefined, { retryable: true, closeCode: how.code });
    this.#failed(how.code, error, how.opened);
  }

  /** The session has ended or this gateway cannot resume it. The conversation continues in a new one. */
  #onRefused(code: number): void {
    clearTimeout(this.#timer);
    this.#resume = undefined;
    const more = { closeCode: code, gatewayMessage: this.#said ?? undefined };
    if (this.#openedAt === undefined && this.#options.resume === "only") {
      this.#over(code, new VoiceError("resume_refused", undefined, more));
    } else if (!this.#spent(code)) {
      this.#lostAt ??= performance.now();
      this.#handlers.refused(new VoiceError("resume_refused", undefined, { ...more, advice: NEW_SESSION }));
      void this.#dial();
    }
  }

  /** Handles a failed connection: reconnects or ends the conversation. */
  #failed(code: number, error: VoiceError | undefined, opened = true): void {
    clearTimeout(this.#timer);
    this.#heartbeat.stop();
    this.#socket = null;
    this.#dialled++;
    // If the conversation was open, on this page or the one before, the gateway may not have noticed the loss
    // and still regard the old session as active.
    const wasOpen = this.#openedAt !== undefined || this.#resume !== undefined;
    const again = wasOpen && error !== undefined && (reconnects(code) || error.gatewayCode === "voice_active" || this.#tooEager(code));
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
    this.#lostAt ??= performance.now();
    // The gateways spread the moves themselves. A session that moves again at once waits as after any other
    // loss.
    const moved = code === MOVING && this.#attempt === 1;
    const { reconnect } = this.#options;
    const atLeastMs = this.#tooEager(code) ? (error.gatewayMessage?.retry_after_ms ?? EAGER_MS) : 0;
    const delayMs = moved ? 0 : this.#wait.start(this.#attempt, typeof reconnect === "object" ? reconnect : {}, atLeastMs);
    this.#handlers.broke(this.#attempt, delayMs, error, this.#lostAt);
    if (moved) {
      void this.#dial();
    }
  }

  /** The gateway refuses further attempts to resume for a moment. */
  #tooEager(code: number): boolean {
    return code === LIMIT && this.#phase !== "open" && this.#resume !== undefined;
  }

  /** Ends the conversation if it needs another session and has no ticket for it. */
  #spent(code: number): boolean {
    if (this.#resume !== undefined || typeof this.#options.ticket !== "string") {
      return false;
    }
    this.#over(code, new VoiceError("ticket", undefined, { closeCode: code }));
    return true;
  }

  /** Ends the conversation after finding out why the gateway could not be reached. */
  async #explain(code: number): Promise<void> {
    this.#over(code, await whyUnopened(voiceUrl(this.#options.url, document.baseURI), code));
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

/**
 * Maps an exception of `new WebSocket` to a code
 * (https://websockets.spec.whatwg.org/#dom-websocket-websocket).
 */
function uncallable(cause: unknown): VoiceErrorCode {
  const refused = cause instanceof DOMException && cause.name === "SecurityError";
  if (!refused) {
    return "invalid_url";
  }
  return location.protocol === "https:" ? "mixed_content" : "socket_blocked";
}
