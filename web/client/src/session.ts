// One conversation by voice: the connection, the devices, and what is told of both.
import { onDeviceChange } from "./audio/devices.js";
import { Microphone } from "./audio/microphone.js";
import { Speaker } from "./audio/speaker.js";
import { loadWorklets, packagedWorklets } from "./audio/worklets/load.js";
import { Line } from "./connection/line.js";
import { Outbox } from "./connection/outbox.js";
import { VoiceError, gatewayError } from "./errors.js";
import { Emitter, type Ended, type LocalEvents, type SessionState, type VoiceEvents } from "./events.js";
import { Items } from "./items.js";
import { TurnLatencies, UplinkClock } from "./latency.js";
import type { ConnectOptions } from "./options.js";
import type { ClientMessage, ServerMessage, SessionStarted } from "./protocol/messages.js";
import { Questions } from "./questions.js";
import { withoutSecrets } from "./secrets.js";
import { addTurn, newTally, type Stats } from "./stats.js";

/** A slow line is complained of so often at most. */
const SLOW_EVERY_MS = 10_000;

/**
 * Opens a conversation. Call it from a click or key press: browsers start audio only then.
 * Resolves when the gateway has opened the session; rejects with a VoiceError.
 */
export async function connect(options: ConnectOptions = {}): Promise<VoiceSession> {
  const session = new VoiceSession(options);
  await session.open();
  return session;
}

/** A conversation. Made by connect, or with new and open where its events are wanted from the first on. */
export class VoiceSession extends Emitter<VoiceEvents> {
  readonly microphone: Microphone;
  readonly speaker: Speaker;
  readonly #options: ConnectOptions;
  readonly #tally = newTally();
  readonly #line: Line;
  readonly #outbox = new Outbox();
  readonly #questions = new Questions();
  #uplink!: UplinkClock;
  #latencies!: TurnLatencies;
  readonly #items: Items;
  #context: AudioContext | null = null;
  #unwatchDevices: (() => void) | undefined;
  #started: SessionStarted | null = null;
  #current: SessionState = "connecting";
  #opened: Promise<void> | undefined;
  #opening: { resolve: () => void; reject: (error: VoiceError) => void } | null = null;
  readonly #whenEnded: Promise<Ended>;
  #conclude!: (ended: Ended) => void;
  #typed = 0;
  /** Typed texts that the gateway has not told back yet. */
  readonly #untold = new Set<string>();
  /** Push-to-talk: whether it is pressed, and whether the session knows. */
  #pressed = false;
  #pressTold = false;
  #slowAt = -Infinity;
  #reason = "lost";
  #handback: Ended["handback"];

  constructor(options: ConnectOptions = {}) {
    super();
    this.#options = options;
    this.#whenEnded = new Promise((resolve) => (this.#conclude = resolve));
    this.#measure();
    this.speaker = new Speaker(
      {
        sounding: (event) => this.#onSounding(event),
        played: (event) => this.#onPlayed(event),
        silenced: (event) => this.emit("silenced", this.#renamed(event)),
        underrun: (event) => this.#onUnderrun(event),
        level: (level) => this.emit("level", { side: "model", level }),
        changed: (event) => this.emit("speaker", event),
        failed: (error) => this.emit("warning", error),
      },
      options.speakerId,
    );
    this.microphone = new Microphone(typeof options.microphone === "object" ? options.microphone : {}, {
      frame: (pcm, at) => this.#onFrame(pcm, at),
      level: (level) => this.emit("level", { side: "user", level }),
      changed: (event) => this.#onMicrophone(event),
      failed: (error) => this.emit("warning", error),
      activity: (active) => this.#press(active),
    });
    this.#items = new Items(this.speaker);
    this.#line = new Line(options, this.#tally, {
      opened: (started, back) => this.#onOpened(started, back),
      message: (message) => this.#onMessage(message),
      unknown: (message) => this.emit("message", message),
      audio: (pcm) => this.#onAudio(pcm),
      sent: (message) => this.emit("sent", withoutSecrets(message)),
      broke: (attempt, delayMs, error) => {
        this.#setState("reconnecting");
        this.emit("reconnecting", { attempt, delayMs, error });
      },
      roundTrip: (rttMs) => {
        this.#tally.rttMs = rttMs;
        this.#tally.bestRttMs = Math.min(rttMs, this.#tally.bestRttMs ?? rttMs);
        this.emit("network", { rttMs });
      },
      over: (code, error) => this.#finish(code, error),
    });
  }

  get state(): SessionState {
    return this.#current;
  }

  get #over(): boolean {
    return this.#current === "ended";
  }

  /** What the gateway said when it opened the session, the newest one after a reconnect; null before. */
  get info(): SessionStarted | null {
    return this.#started;
  }

  /** Opens it; a second call is the first one's. See connect. */
  open(): Promise<void> {
    return (this.#opened ??= this.#begin());
  }

  /**
   * A typed turn; it interrupts. Returns the id that its transcript will have. While there
   * is no connection it is kept and sent afterwards. After the end it is nothing.
   */
  say(text: string): string {
    const id = `typed-${++this.#typed}`;
    this.#items.stop();
    this.#deliver({ type: "input.text", text, id });
    return id;
  }

  /** The user wants silence now: what sounds stops at once, without waiting for the gateway. */
  interrupt(): void {
    this.#items.stop();
    this.#send({ type: "interrupt" });
  }

  /** The user's answer to a confirmation.request, from a button. */
  resolve(token: string, approved: boolean): void {
    this.#deliver({ type: "confirmation.resolve", token, approved });
  }

  /** While it is reconnecting: the next try is made now. Otherwise it is nothing. */
  retry(): void {
    this.#line.retry();
  }

  /**
   * Ends the conversation and gives every device back, at once. Resolves as the event
   * `ended` comes: when the gateway has had its last word, 5 s later at the latest. May be
   * called more than once, and while it is being opened.
   */
  end(): Promise<Ended> {
    if (!this.#over) {
      this.#release();
      this.#reason = "client_ended";
      this.#line.end();
    }
    return this.#whenEnded;
  }

  stats(): Stats {
    return { ...this.#tally };
  }

  async #begin(): Promise<void> {
    if (this.#options.signal?.aborted === true) {
      this.#abort();
    }
    if (!this.#over) {
      this.#options.signal?.addEventListener("abort", this.#abort);
      globalThis.addEventListener("pagehide", this.#leave);
      this.#unwatchDevices = onDeviceChange(() => this.emit("devices", undefined));
      await this.#openDevices();
    }
    if (this.#over) {
      // The devices may have come after the end, and are given back.
      this.#release();
      throw (await this.#whenEnded).error ?? new VoiceError("aborted");
    }
    await new Promise<void>((resolve, reject) => {
      this.#opening = { resolve, reject };
      this.#line.open();
    });
  }

  async #openDevices(): Promise<void> {
    await this.#openAudio();
    if (this.#options.microphone !== false && this.#context !== null && !this.#over) {
      await this.microphone.start().catch((error: VoiceError) => this.emit("warning", error));
    }
  }

  async #openAudio(): Promise<void> {
    try {
      // The device's own rate: Firefox cannot connect a microphone to a context of another one.
      this.#context = this.#options.audioContext ?? new AudioContext({ latencyHint: "interactive" });
      const prepare = (context: AudioContext): Promise<void> => loadWorklets(context, this.#options.worklets ?? packagedWorklets());
      await this.speaker.open(this.#context, this.#options.outputRate ?? 24000, prepare(this.#context));
      this.microphone.ready({
        context: this.#context,
        rate: this.#options.inputRate ?? 16000,
        prepare,
        pushToTalk: this.#options.turnDetection === "client",
      });
    } catch (cause) {
      this.#closeAudio();
      this.emit("warning", new VoiceError("audio_unavailable", undefined, { cause }));
    }
  }

  #onOpened(started: SessionStarted, back: { resumed: boolean; lostMs: number } | undefined): void {
    this.#started = started;
    this.#reason = "lost";
    this.#handback = undefined;
    if (back?.resumed === true) {
      this.#uplink.lose();
    } else if (back !== undefined) {
      this.#renew();
    }
    this.#tell(started);
    this.#setState("open");
    this.#opening?.resolve();
    this.#opening = null;
    if (back !== undefined) {
      this.#tally.reconnects++;
      this.#tally.resumes += Number(back.resumed);
      this.#tally.lostMs += back.lostMs;
      this.emit("reconnected", back);
    }
    this.#tellPress();
    for (const kept of this.#outbox.take(back?.resumed ?? true)) {
      this.#send(kept);
    }
  }

  /** Another session goes on with the conversation: what the last one owed is not coming any more. */
  #renew(): void {
    this.#items.renew();
    this.#pressTold = false;
    this.#measure();
    this.#loseQuestions();
    if (this.#untold.size > 0) {
      this.#untold.clear();
      this.emit("warning", new VoiceError("unsent"));
    }
  }

  /** Begins to measure a session. */
  #measure(): void {
    this.#uplink = new UplinkClock(this.#options.inputRate ?? 16000);
    this.#latencies = new TurnLatencies(this.#uplink);
  }

  #loseQuestions(): void {
    for (const ended of this.#questions.lose()) {
      this.#tell(ended);
    }
  }

  #onMessage(message: ServerMessage): void {
    this.#questions.note(message);
    switch (message.type) {
      case "speech.started":
      case "turn.started":
        this.#items.outdate();
        break;
      case "transcript":
        this.#untold.delete(message.id);
        break;
      case "turn.ended":
        this.#untold.clear();
        break;
      case "audio.start":
        this.#items.start(message.item_id, this.#started?.output_rate ?? 24000);
        break;
      case "audio.end":
        this.#items.end(message.item_id);
        break;
      case "audio.flush":
        this.#items.flush(message.item_id);
        break;
      case "session.ended":
        this.#reason = message.reason;
        this.#handback = message.handback;
        break;
      default:
    }
    this.#tell(message);
    if (message.type === "error" && this.#current === "open") {
      this.emit("warning", gatewayError(message));
    }
    const latency = this.#latencies.message(message, performance.now(), this.#tally.bestRttMs);
    if (latency !== undefined) {
      addTurn(this.#tally, latency);
      this.emit("latency", latency);
    }
  }

  #onAudio(pcm: ArrayBuffer): void {
    const item = this.#items.playing;
    if (item !== null && pcm.byteLength % 2 === 0 && this.listened("downlink")) {
      this.emit("downlink", { item, pcm: new Int16Array(pcm.slice(0)), at: performance.now() });
    }
    this.#items.audio(pcm);
  }

  #onMicrophone(event: LocalEvents["microphone"]): void {
    if (event.state === "live") {
      // A page that is allowed to listen may also play, in browsers that refused it before.
      this.speaker.resume();
    }
    this.emit("microphone", event);
  }

  #onFrame(pcm: ArrayBuffer, madeAt: number): void {
    if (this.#current !== "open" && this.#current !== "reconnecting") {
      return;
    }
    const at = performance.now();
    const became = this.#line.sendAudio(pcm, madeAt);
    if (became === "sent") {
      this.#uplink.sent(pcm.byteLength / 2, at);
      this.emit("uplink", { pcm: new Int16Array(pcm), at });
    } else if (became === "slow" && at - this.#slowAt >= SLOW_EVERY_MS) {
      this.#slowAt = at;
      this.emit("warning", new VoiceError("slow"));
    }
  }

  #press(active: boolean): void {
    this.#pressed = active;
    this.#tellPress();
  }

  #tellPress(): void {
    const active = this.#pressed;
    if (active !== this.#pressTold && this.#send({ type: "input.activity", active }) === "sent") {
      this.#pressTold = active;
    }
  }

  #onSounding(event: LocalEvents["sounding"]): void {
    const { item, own } = this.#items.named(event.item);
    this.#tally.cushionMs = event.cushionMs;
    if (own) {
      this.#latencies.sounding(item, event.at, event.at - event.firstByteAt);
    }
    this.emit("sounding", { ...event, item });
  }

  #onPlayed(event: LocalEvents["played"]): void {
    const { item, own } = this.#items.named(event.item);
    if (own) {
      this.#send({ type: "playback", item_id: item, played_ms: event.playedMs, done: event.done });
    }
    this.emit("played", { ...event, item });
  }

  #onUnderrun(event: LocalEvents["underrun"]): void {
    this.#tally.underruns++;
    this.#tally.cushionMs = event.cushionMs;
    this.emit("underrun", this.#renamed(event));
  }

  /** With the gateway's name of the item, in place of the player's. */
  #renamed<E extends { item: string }>(event: E): E {
    return { ...event, item: this.#items.named(event.item).item };
  }

  readonly #abort = (): void => void this.end();

  readonly #leave = (): void => {
    if (!this.#over) {
      this.#release();
      this.#reason = "client_ended";
      this.#line.leave();
    }
  };

  /** The conversation is over for the user: gives everything back. May be called more than once. */
  #release(): void {
    this.#options.signal?.removeEventListener("abort", this.#abort);
    globalThis.removeEventListener("pagehide", this.#leave);
    this.#unwatchDevices?.();
    this.microphone.close();
    this.#closeAudio();
    this.#setState("ended");
  }

  #closeAudio(): void {
    this.speaker.close();
    if (this.#options.audioContext === undefined) {
      void this.#context?.close();
    }
    this.#context = null;
  }

  #finish(code: number, error: VoiceError | undefined): void {
    this.#release();
    this.#loseQuestions();
    const ended: Ended = { reason: this.#reason, code, error, handback: this.#handback };
    this.#opening?.reject(error ?? new VoiceError("aborted"));
    this.#opening = null;
    this.#conclude(ended);
    this.emit("ended", ended);
  }

  #setState(state: SessionState): void {
    if (this.#current !== state) {
      this.#current = state;
      this.emit("state", state);
    }
  }

  #tell(message: ServerMessage): void {
    this.emit("message", message);
    this.emit(message.type, message as never);
  }

  /** Sends what the user has done, now or when there is a connection. */
  #deliver(message: ClientMessage): void {
    if (!this.#over && this.#send(message) === "lost") {
      this.emit("warning", new VoiceError("unsent"));
    }
  }

  /** kept: it will be sent when there is a connection. lost: it will not. */
  #send(message: ClientMessage): "sent" | "kept" | "lost" {
    if (this.#line.send(message)) {
      this.#sent(message, performance.now());
      return "sent";
    }
    return !this.#over && this.#outbox.keep(message) ? "kept" : "lost";
  }

  #sent(message: ClientMessage, at: number): void {
    if (message.type === "input.text" && message.id !== undefined) {
      this.#untold.add(message.id);
      this.#latencies.acted(message.id, at);
    } else if (message.type === "confirmation.resolve" && message.approved) {
      this.#latencies.acted(message.token, at);
    }
  }
}
