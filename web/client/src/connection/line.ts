// The way to the gateway: one connection after another, for one conversation.
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

/** Longer than the gateway's own three tries at a provider; a ticket is got in it, too. */
const START_TIMEOUT_MS = 15_000;
/** So long the last word may take after session.end: the gateway waits a second for its store, and lines are slow. */
const GOODBYE_MS = 5000;
/** A connection that lasted so long was a good one: the next loss has all its tries. */
const STABLE_MS = 30_000;
/** So many pings are waited for at most. */
const PINGS = 4;
/** Advice where a session cannot be taken up, and another one goes on. */
const NEW_SESSION = "A new one goes on with the conversation.";
/** A gateway refuses further tries to take a session up for so long: docs/protocol.md. */
const EAGER_MS = 10_000;

export interface LineHandlers {
  /** A session is open; back says how it was restored, and is undefined for the first of this page. */
  opened(started: SessionStarted, back: { resumed: boolean; lostMs: number } | undefined): void;
  /** Which audio has come: the gateway goes on from there. Asked before a session is taken up. */
  position(): AudioPosition | undefined;
  message(message: ServerMessage): void;
  unknown(message: { type: string }): void;
  audio(pcm: ArrayBuffer): void;
  sent(message: ClientMessage): void;
  /** The connection broke, at `since` (performance.now()); the next try is made in delayMs. */
  broke(attempt: number, delayMs: number, error: VoiceError, since: number): void;
  /** The session cannot be taken up. A new one of the same conversation is opened. */
  refused(error: VoiceError): void;
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
  readonly #held: Held;
  readonly #spoken: Spoken;
  /** What is sent again: what the gateway has asked for, or what was lost with the connection. */
  #again: Said[] = [];
  /** The gateway has asked for it. */
  #asked = false;
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
  /** The number of the last turn that has ended. */
  #ended = 0;
  /** What was sent in pings of this connection and has not come back. */
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

  /** Whether a session runs and the gateway can be reached, as far as is known. */
  get connected(): boolean {
    return this.#phase === "open";
  }

  /** What the session can be taken up with; undefined where the gateway has given nothing. */
  get resume(): Resume | undefined {
    return this.#resume;
  }

  /** The name of the conversation. */
  get conversation(): string {
    return this.#conversation;
  }

  /** All messages up to this seq have come. */
  get seq(): number {
    return this.#order.complete;
  }

  /** Begins; LineHandlers tell how it goes. `kept` is what a page before this one has left. */
  open(kept: Kept | null): void {
    if (kept !== null) {
      this.#resume = { session_id: kept.sessionId, token: kept.token };
      this.#conversation = kept.conversationId;
      this.#answered = true;
      // This page has nothing of it: all that the gateway still knows is wanted.
      this.#order = new Order(this.#tally, 0);
    }
    void this.#dial();
  }

  /** False when it could not be sent. */
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
   * One frame. While a session waits to be taken up again the
   * newest 15 s are kept, for sendHeld. What is dropped is counted.
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
   * Sends again what the user was saying, as far as the gateway has not got it, before anything
   * else of the microphone. Returns whether the gateway then takes the push-to-talk button for
   * pressed; undefined where that is as it was.
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

  /** Sends what was kept of the microphone, before anything newer; returns what was sent. */
  sendHeld(): UplinkFrame[] {
    const frames = this.#held.take();
    this.#asked = false;
    this.#socket?.sendHeld(frames.map(({ pcm }) => pcm));
    frames.forEach((frame) => this.#spoken.sent(frame));
    this.#tally.audioFramesKept += frames.length;
    return frames;
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

  /** The page goes away, and the session with it: says so and waits for nothing. */
  leave(): void {
    this.send({ type: "session.end" });
    this.#over(1000, undefined);
  }

  /** The page goes away, and the session is to be taken up by the next one. */
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
      return; // ended, or taking too long
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
      throw new TypeError("the option ticket brought no text");
    }
    return given;
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
    if (message.type === "session.started") {
      return; // of an earlier connection, said again
    }
    if (message.type === "turn.ended") {
      const turn = message.turn ?? 0;
      if (turn <= this.#ended) {
        return; // a gateway that has taken the session over cannot know that this was told
      }
      this.#ended = turn;
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
      // Of what was missed nothing comes again, and a gateway that has taken the session over begins far above it.
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
      // The first frame tells the gateway that its answer has come: the old token is over.
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

  /** Keeps what is needed when the connection breaks. */
  #note(message: ServerMessage): void {
    switch (message.type) {
      case "pong":
        this.#onPong(message);
        return;
      case "error":
        this.#said = message;
        if (message.code === "audio_too_fast" || message.code === "invalid_audio") {
          this.#spoken.doubt(); // the gateway has not counted a frame
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

  /** One that answers a ping of an earlier connection, or of another page, says nothing. */
  #onPong({ t, seq }: Pong): void {
    if (!this.#pinged.includes(t)) {
      return;
    }
    this.#pinged = this.#pinged.filter((asked) => asked > t);
    // What was said again after a resume has come before it: what is missing now never comes.
    this.#order.skip(seq);
    this.#handlers.roundTrip(performance.now() - t);
  }

  /** The gateway has given the session up: it is taken up where it goes on. */
  #leaveForMove(): void {
    if (this.#phase === "open" && this.#resume !== undefined) {
      this.#socket?.abandon();
      this.#failed(MOVING, closeError(MOVING, null));
    }
  }

  /** No frame has come for too long. */
  #silent(): void {
    this.#lostAt = this.#heartbeat.lastHeard;
    this.#socket?.abandon();
    this.#onClosed({ code: 1006, opened: true, blocked: false }, false);
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

  /** The session is no more, or this gateway takes none up. The conversation goes on in a new one. */
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

  /** A connection broke, or there was none: begins to restore it, or ends the conversation. */
  #failed(code: number, error: VoiceError | undefined, opened = true): void {
    clearTimeout(this.#timer);
    this.#heartbeat.stop();
    this.#socket = null;
    this.#dialled++;
    // In a conversation that was open, on this page or the one before: a gateway that has not
    // noticed the loss takes the old session for one that runs.
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
    // The gateways spread the moves themselves. One that moves a session that has just come waits like any other loss.
    const moved = code === MOVING && this.#attempt === 1;
    const { reconnect } = this.#options;
    const atLeastMs = this.#tooEager(code) ? (error.gatewayMessage?.retry_after_ms ?? EAGER_MS) : 0;
    const delayMs = moved ? 0 : this.#wait.start(this.#attempt, typeof reconnect === "object" ? reconnect : {}, atLeastMs);
    this.#handlers.broke(this.#attempt, delayMs, error, this.#lostAt);
    if (moved) {
      void this.#dial();
    }
  }

  /** A session was to be taken up too often in a short time: it may be, a moment later. */
  #tooEager(code: number): boolean {
    return code === LIMIT && this.#phase !== "open" && this.#resume !== undefined;
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

/** Why `new WebSocket` throws (https://websockets.spec.whatwg.org/#dom-websocket-websocket). */
function uncallable(cause: unknown): VoiceErrorCode {
  const refused = cause instanceof DOMException && cause.name === "SecurityError";
  if (!refused) {
    return "invalid_url";
  }
  return location.protocol === "https:" ? "mixed_content" : "socket_blocked";
}
