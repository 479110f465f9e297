// A voice session: the connection, the devices and their events.
import { Agent, type AgentState } from "./agentstate.js";
import { onDeviceChange } from "./audio/devices.js";
import { Microphone } from "./audio/microphone.js";
import { AudioSetup } from "./audio/setup.js";
import { Speaker } from "./audio/speaker.js";
import type { UplinkFrame } from "./audio/worklets/messages.js";
import { DISPLACED } from "./connection/codes.js";
import { Line } from "./connection/line.js";
import { Outage } from "./connection/outage.js";
import { Outbox } from "./connection/outbox.js";
import { VoiceError, gatewayError } from "./errors.js";
import { Emitter, type Disconnected, type LocalEvents, type SessionState, type VoiceEvents } from "./events.js";
import { packed, type ImageSource } from "./image.js";
import { Items } from "./items.js";
import { Measures } from "./measures.js";
import type { ConnectOptions } from "./options.js";
import { Owed } from "./owed.js";
import type { ClientMessage, ErrorMessage, PlaybackReport, ServerMessage, SessionStarted } from "./protocol/messages.js";
import { Press } from "./press.js";
import { Questions } from "./questions.js";
import { withoutSecrets, withoutToken } from "./secrets.js";
import { Tab } from "./tab.js";
import type { Stats } from "./stats.js";
import { Tools } from "./tools.js";

/** The shortest interval between two reports of a slow connection. */
const SLOW_EVERY_MS = 10_000;

/** Matches a visible character. The gateway's package blank follows the same rule. */
const VISIBLE = /[^\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufffd]/u;

/** A conversation. Created by connect, or with new and open to receive its events from the start. */
export class VoiceSession extends Emitter<VoiceEvents> {
  readonly microphone: Microphone;
  readonly speaker: Speaker;
  readonly #options: ConnectOptions;
  readonly #measures: Measures;
  readonly #line: Line;
  readonly #outbox = new Outbox();
  readonly #outage = new Outage((tried) => {
    this.#setState("reconnecting");
    this.emit("reconnecting", tried);
  });
  readonly #questions = new Questions();
  readonly #items: Items;
  readonly #audio: AudioSetup;
  #unwatchDevices: (() => void) | undefined;
  #started: SessionStarted | null = null;
  #current: SessionState = "connecting";
  #opened: Promise<void> | undefined;
  #opening: { resolve: () => void; reject: (error: VoiceError) => void } | null = null;
  readonly #whenEnded: Promise<Disconnected>;
  #conclude!: (ended: Disconnected) => void;
  #typed = 0;
  readonly #owed = new Owed();
  readonly #tools: Tools;
  /** The session as stored in the tab; undefined before open. */
  #tab: Tab | undefined;
  /** Why the previous page's session could not be resumed. */
  #refusal: VoiceError | undefined;
  readonly #press = new Press((active) => this.#send({ type: "input.activity", active }) === "sent");
  readonly #agent = new Agent((state) => this.emit("agentState", state));
  /** The gateway's newest error that was reported. */
  #toldError: ErrorMessage | null = null;
  #slowAt = -Infinity;
  #reason = "lost";
  #handback: Disconnected["handback"];

  constructor(options: ConnectOptions = {}) {
    super();
    this.#options = options;
    this.#whenEnded = new Promise((resolve) => (this.#conclude = resolve));
    this.#measures = new Measures(options.inputRate ?? 16000, (latency) => this.emit("latency", latency), (waited) => this.emit("answered", waited));
    this.speaker = new Speaker(
      {
        sounding: (event) => this.#onSounding(event),
        played: (event) => this.#onPlayed(event),
        silenced: (event) => this.emit("silenced", this.#renamed(event)),
        underrun: (event) => this.#onUnderrun(event),
        dry: (item) => this.#onDry(item),
        level: (level) => this.emit("level", { side: "model", level }),
        changed: (event) => this.emit("speaker", event),
        failed: (error) => this.#fail(error),
      },
      options.speakerId,
    );
    this.microphone = new Microphone(typeof options.microphone === "object" ? options.microphone : {}, {
      frame: (frame) => this.#onFrame(frame),
      level: (level) => this.emit("level", { side: "user", level }),
      played: (level) => this.emit("level", { side: "model", level }),
      changed: (event) => this.#onMicrophone(event),
      failed: (error) => this.#fail(error),
      activity: (active) => this.#onPress(active),
    });
    this.#audio = new AudioSetup(options, this.speaker, this.microphone);
    this.#items = new Items(this.speaker);
    this.#tools = new Tools(options.tools, (answer) => this.#line.send(answer));
    this.#line = new Line(options, this.#measures.tally, {
      opened: (started, back) => this.#onOpened(started, back),
      position: () => this.#items.position,
      message: (message) => this.#onMessage(message),
      unknown: (message) => this.emit("message", message),
      audio: (pcm) => this.#onAudio(pcm),
      sent: (message) => {
        if (message.type === "session.start") {
          this.#tab?.own();
        }
        this.emit("sent", withoutSecrets(message));
      },
      broke: (attempt, delayMs, error, since) => this.#onBroke(attempt, delayMs, error, since),
      refused: (error) => {
        this.#refusal = error;
        this.#outage.show();
      },
      roundTrip: (rttMs) => this.#onRoundTrip(rttMs),
      over: (code, error) => this.#finish(code, error),
    });
  }

  get state(): SessionState {
    return this.#current;
  }

  /** What the agent does; see the event of the same name. */
  get agentState(): AgentState {
    return this.#agent.state;
  }

  /** Whether the microphone is muted. The agent then receives silence. Can be set at any time. */
  get muted(): boolean {
    return this.microphone.muted;
  }

  set muted(muted: boolean) {
    this.microphone.mute(muted);
  }

  get #over(): boolean {
    return this.#current === "disconnected";
  }

  /** The gateway's newest session.started; null before the first. */
  get info(): SessionStarted | null {
    return this.#started;
  }

  /** Opens the session. A second call returns the first one's promise. See connect. */
  open(): Promise<void> {
    return (this.#opened ??= this.#begin());
  }

  /**
   * Sends a typed turn, which interrupts the agent. Returns the id of its transcript. While offline the text
   * is stored and sent later; after the end it is ignored. A text without a visible character is not sent,
   * and the event `error` reports `empty`.
   */
  sendText(text: string): string {
    const id = `typed-${this.#tab?.prefix ?? ""}${++this.#typed}`;
    if (!VISIBLE.test(text)) {
      if (!this.#over) {
        this.#fail(new VoiceError("empty"));
      }
      return id;
    }
    this.#items.stop();
    this.#agent.owe(!this.#over);
    this.#deliver({ type: "input.text", text, id });
    return id;
  }

  /**
   * Shows the agent a still image, which it sees in its next answer. Resolves when it is sent. Rejects with
   * the error `image` if `info.images` is not true, there is no connection, or the source is not an image.
   * For a camera or a screen, pass its video at most once a second.
   */
  async sendImage(image: ImageSource): Promise<void> {
    const data = await packed(image);
    if (this.#started?.images !== true || !this.#line.send({ type: "input.image", mime: "image/jpeg", data })) {
      throw new VoiceError("image");
    }
  }

  /**
   * Gives the agent context that the user does not say, such as what is on the screen. The agent knows it in
   * its next answer. It begins no turn, interrupts nothing, and appears in no transcript. At most 4 KiB of
   * UTF-8. While offline it is stored and sent later. The event `error` reports a text that is too long or
   * that the model does not take (`info.context` is not true).
   */
  sendContext(text: string): void {
    this.#deliver({ type: "input.context", text });
  }

  /** Stops the agent's voice at once, without waiting for the gateway. */
  interrupt(): void {
    this.#items.stop();
    this.#agent.owe(false);
    if (this.#started !== null) {
      this.#send({ type: "interrupt" });
    }
  }

  /** Approves a confirmation.request. Call it from a button. */
  approve(token: string): void {
    this.#deliver({ type: "confirmation.resolve", token, approved: true });
  }

  /** Declines a confirmation.request. */
  decline(token: string): void {
    this.#deliver({ type: "confirmation.resolve", token, approved: false });
  }

  /** Reconnects now if an attempt is scheduled. */
  retry(): void {
    this.#line.retry();
  }

  /**
   * Ends the conversation and releases the devices at once. Resolves with the event `disconnected`, after the
   * gateway's last message or 5 s. Can be called more than once, and while opening.
   */
  disconnect(): Promise<Disconnected> {
    if (!this.#over) {
      this.#release();
      this.#reason = "client_ended";
      this.#line.end();
    }
    return this.#whenEnded;
  }

  stats(): Stats {
    return { ...this.#measures.tally };
  }

  async #begin(): Promise<void> {
    if (typeof document === "undefined") {
      this.#finish(1006, new VoiceError("no_browser"));
    }
    if (this.#options.signal?.aborted === true) {
      this.#abort();
    }
    if (!this.#over) {
      this.#lookForKept();
    }
    if (!this.#over) {
      this.#options.signal?.addEventListener("abort", this.#abort);
      globalThis.addEventListener("pagehide", this.#leave);
      this.#unwatchDevices = onDeviceChange(() => this.emit("devices", undefined));
      await this.#openDevices();
    }
    if (this.#over) {
      // The devices may have opened after the end.
      this.#release();
      throw (await this.#whenEnded).error ?? new VoiceError("aborted");
    }
    await new Promise<void>((resolve, reject) => {
      this.#opening = { resolve, reject };
      this.#line.open(this.#tab?.taken ?? null);
    });
  }

  /** Looks for the previous page's session, to resume it. */
  #lookForKept(): void {
    this.#tab = new Tab(this.#options);
    this.#press.told = this.#tab.taken?.pressed ?? false;
    if (this.#options.resume === "only" && this.#tab.taken === null) {
      this.#finish(1006, new VoiceError("resume_refused"));
    }
  }

  async #openDevices(): Promise<void> {
    await this.#audio.open().catch((error: VoiceError) => this.#fail(error));
    if (this.#options.microphone !== false && this.#audio.ready && !this.#over) {
      await this.microphone.start().catch((error: VoiceError) => this.#fail(error));
    }
  }

  #onOpened(given: SessionStarted, back: { resumed: boolean; lostMs: number } | undefined): void {
    const started = withoutToken(given);
    const first = this.#started === null;
    const told = this.#outage.end();
    this.#started = started;
    this.#reason = "lost";
    this.#handback = undefined;
    if (started.resumed) {
      this.#measures.resumed();
      this.#items.broken();
      this.#owed.resumed(started.snapshot === true);
      if (started.snapshot === true) {
        this.#questions.doubt();
        this.#items.doubt();
        this.#agent.forget();
      }
    } else {
      this.#renew(first);
    }
    // Store the new token before sending anything; the gateway then revokes the old one.
    this.#keep(null);
    this.#tell(started);
    this.#setState("connected");
    this.#opening?.resolve();
    this.#opening = null;
    if (first) {
      this.emit("connected", started);
    }
    if (back !== undefined && (told || !first)) {
      this.#measures.back(back, told);
      if (told) {
        this.emit("reconnected", back);
      }
    }
    if (first && this.#refusal !== undefined) {
      this.#fail(this.#refusal);
    }
    this.#refusal = undefined;
    this.#catchUp(started.resumed || first);
  }

  /** Sends the audio and messages stored while offline, in their order. */
  #catchUp(same: boolean): void {
    this.#press.told = this.#line.sendAgain() ?? this.#press.told;
    if (this.#press.pressed) {
      this.#press.tell();
    }
    for (const frame of this.#line.sendHeld()) {
      this.#onSent(frame);
    }
    this.#press.tell();
    for (const kept of this.#outbox.take(same)) {
      this.#send(kept);
    }
  }

  /** Stores the session for the next page. Returns false if it cannot be resumed. */
  #keep(leftAt: number | null): boolean {
    const { resume, conversation } = this.#line;
    return this.#tab?.keep(resume, { conversation, leftAt, pressed: this.#press.told, heard: this.#items.heard }, this.#started) ?? false;
  }

  #onBroke(attempt: number, delayMs: number, error: VoiceError, since: number): void {
    const resumable = this.#line.resume !== undefined;
    const hidden = resumable && this.#started !== null && !this.#items.waiting;
    this.#outage.tried({ attempt, delayMs, resumable, error, since }, hidden);
  }

  #onDry(item: string): void {
    this.#items.ranDry(item);
    if (this.#items.waiting) {
      this.#outage.show();
    }
  }

  #onRoundTrip(rttMs: number): void {
    this.#measures.roundTrip(rttMs);
    this.#items.caughtUp();
    this.#questions.caughtUp().forEach((ended) => this.#onMessage(ended));
    this.#owed.caughtUp().forEach((lost) => this.#deliver(lost));
    this.emit("network", { rttMs });
  }

  /** A new session continues the conversation; the old one's open turns and questions end. */
  #renew(first: boolean): void {
    this.#tab?.renew();
    this.#press.told = false;
    if (first) {
      return;
    }
    this.#items.renew();
    this.#tools.over();
    this.#agent.forget();
    this.#measures.renew();
    this.#questions.lose().forEach((ended) => this.#onMessage(ended));
    if (this.#owed.lose()) {
      this.#fail(new VoiceError("unsent"));
    }
  }

  #onMessage(message: ServerMessage): void {
    this.#questions.note(message);
    this.#owed.told(message);
    this.#tools.told(message, this.#tab?.taken != null);
    switch (message.type) {
      case "speech.started":
      case "turn.started":
        this.#items.outdate();
        break;
      case "audio.start":
        this.#items.start(message.item_id, this.#started?.output_rate ?? 24000, message.from_ms);
        break;
      case "audio.end":
        this.#items.end(message.item_id);
        break;
      case "audio.flush":
        this.#flush(message.item_id);
        break;
      case "session.ended":
        this.#reason = message.reason;
        this.#handback = message.handback;
        break;
      default:
    }
    this.#agent.told(message);
    this.#tell(message);
    if (message.type === "error" && this.#line.connected) {
      this.#toldError = message;
      this.#fail(gatewayError(message));
    }
    this.#measures.message(message);
  }

  #flush(item: string): void {
    const before = this.#tab?.heardBefore(item);
    if (before === undefined) {
      this.#items.flush(item);
    } else {
      this.#send({ type: "playback", item_id: item, played_ms: before, done: true });
    }
  }

  #onAudio(frame: ArrayBuffer): void {
    const pcm = this.#items.fresh(frame);
    if (pcm === null) {
      return;
    }
    if (this.listened("downlink")) {
      this.emit("downlink", { item: this.#items.playing!, pcm: new Int16Array(pcm.slice(0)), at: performance.now() });
    }
    this.#items.audio(pcm);
  }

  #onMicrophone(event: LocalEvents["microphone"]): void {
    if (event.state === "live") {
      // Some browsers allow a page with microphone permission to play sound.
      this.speaker.resume();
    }
    this.emit("microphone", event);
  }

  #onFrame(frame: UplinkFrame): void {
    if (this.#current !== "connected" && this.#current !== "reconnecting") {
      return;
    }
    const became = this.#line.sendAudio(frame);
    const now = performance.now();
    if (became === "sent") {
      this.#onSent(frame);
    } else if (became === "slow" && now - this.#slowAt >= SLOW_EVERY_MS) {
      this.#slowAt = now;
      this.#fail(new VoiceError("slow"));
    }
  }

  #onSent({ pcm, at: madeAt, clockMs }: UplinkFrame): void {
    const at = performance.now() - (Date.now() - madeAt);
    this.#measures.audio(pcm, at);
    this.emit("uplink", { pcm: new Int16Array(pcm), at, clockMs });
  }

  #onPress(active: boolean): void {
    this.#press.press(active);
    this.#agent.owe(!active);
  }

  #onSounding(event: LocalEvents["sounding"]): void {
    const { item, own } = this.#items.named(event.item);
    this.#measures.tally.cushionMs = event.cushionMs;
    this.#agent.sounds(event.item);
    this.emit("sounding", { ...event, item });
    if (own) {
      this.#measures.sounding(item, event.at, event.at - event.firstByteAt);
    }
  }

  #onPlayed(event: LocalEvents["played"]): void {
    if (event.done) {
      this.#agent.silent(event.item);
    }
    const { item, own, playedMs, receivedMs } = this.#items.played(event.item, event.playedMs, event.done);
    if (own) {
      this.#send({ type: "playback", item_id: item, played_ms: playedMs, done: event.done, ...this.#received(receivedMs) });
    }
    this.emit("played", { ...event, item, playedMs });
  }

  /** The audio received so far, so that the gateway can stop storing it for a resume. */
  #received(receivedMs: number | undefined): Pick<PlaybackReport, "received_ms" | "seq"> {
    if (this.#line.resume === undefined) {
      return {};
    }
    return { ...(receivedMs === undefined ? {} : { received_ms: receivedMs }), seq: this.#line.seq };
  }

  #onUnderrun(event: LocalEvents["underrun"]): void {
    this.#measures.tally.underruns++;
    this.#measures.tally.cushionMs = event.cushionMs;
    this.emit("underrun", this.#renamed(event));
  }

  /** Replaces the player's name of the item with the gateway's. */
  #renamed<E extends { item: string }>(event: E): E {
    return { ...event, item: this.#items.named(event.item).item };
  }

  readonly #abort = (): void => void this.disconnect();

  /** The page closes. The next one may resume the session. */
  readonly #leave = (): void => {
    if (this.#over) {
      return;
    }
    const kept = this.#keep(Date.now());
    this.#release();
    this.#reason = kept ? "page_left" : "client_ended";
    if (kept) {
      this.#line.depart();
    } else {
      this.#line.leave();
    }
  };

  /** The conversation is over for the user. Releases everything; safe to call twice. */
  #release(): void {
    this.#options.signal?.removeEventListener("abort", this.#abort);
    globalThis.removeEventListener?.("pagehide", this.#leave);
    this.#unwatchDevices?.();
    this.microphone.close();
    this.#audio.close();
    this.#tools.over();
    this.#setState("disconnected");
    this.#agent.end();
  }

  #finish(code: number, error: VoiceError | undefined): void {
    this.#release();
    this.#outage.end();
    this.#reason = code === DISPLACED ? "moved" : this.#reason;
    if (this.#reason !== "page_left") {
      this.#tab?.clear();
      this.#questions.lose().forEach((ended) => this.#onMessage(ended));
    }
    this.#tab?.close();
    const ended: Disconnected = { reason: this.#reason, code, error, handback: this.#handback };
    this.#opening?.reject(error ?? new VoiceError("aborted"));
    this.#opening = null;
    this.#conclude(ended);
    if (error !== undefined && (error.gatewayMessage === undefined || error.gatewayMessage !== this.#toldError)) {
      this.#fail(error);
    }
    this.emit("disconnected", ended);
  }

  #setState(state: SessionState): void {
    if (this.#current !== state) {
      this.#current = state;
      this.emit("state", state);
    }
  }

  #tell(message: ServerMessage): void {
    this.emit("message", message);
    if (message.type !== "error") {
      this.emit(message.type, message as never);
    }
  }

  #fail(error: VoiceError): void {
    this.emit("error", error);
  }

  /** Sends the user's message now or when there is a connection. */
  #deliver(message: ClientMessage): void {
    if (!this.#over && this.#send(message) === "lost") {
      this.#fail(new VoiceError("unsent"));
    }
  }

  /** kept: sent when there is a connection. lost: not sent. */
  #send(message: ClientMessage): "sent" | "kept" | "lost" {
    if (this.#line.send(message)) {
      this.#owed.sent(message);
      this.#outbox.sent(message);
      this.#measures.sent(message, performance.now());
      return "sent";
    }
    return !this.#over && this.#outbox.keep(message) ? "kept" : "lost";
  }
}
