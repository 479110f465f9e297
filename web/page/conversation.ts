import { MicError, Microphone } from "./capture.js";
import { Downlink } from "./downlink.js";
import { Player } from "./playback.js";
import type { ServerMessage } from "./protocol.js";
import { whyUnopened } from "./gateway.js";
import { Questions } from "./questions.js";
import { Run } from "./run.js";
import { Socket, voiceUrl, type Closed } from "./socket.js";
import { IDLE, onMessage, onPlayback, type State } from "./state.js";
import { Transcript } from "./transcript.js";
import * as words from "./words.js";
import type { PlayNotice } from "./worklets/messages.js";

// What recognisers listen at, and half the traffic of the downlink.
const INPUT_RATE = 16000;
const OUTPUT_RATE = 24000;

/** Longer than the gateway's own three tries at a provider. */
const START_TIMEOUT_MS = 15_000;

/** Errors after which an answer to a question may be given again. */
const NOT_RECORDED = new Set(["store_unavailable", "limit"]);

/** What the page shows; called from the page's thread only. */
export interface Display {
  state(state: State): void;
  transcript(): void;
  questions(): void;
  /** Levels are RMS values, 0 to 1. */
  level(side: "user" | "model", level: number): void;
}

/** One conversation after the other: devices, connection and what is known. */
export class Conversation {
  readonly transcript = new Transcript();
  readonly questions = new Questions();
  private state: State = IDLE;
  private run: Run | null = null;
  private typed = 0;

  constructor(private readonly display: Display) {}

  /** What is shown now. */
  get current(): State {
    return this.state;
  }

  /**
   * Starts a conversation. Call it from a click or key press: browsers start
   * audio only then. Without the microphone the user can type only.
   */
  async start(provider: string | null, withMicrophone: boolean): Promise<void> {
    if (this.run !== null) {
      return;
    }
    const run = new Run();
    this.run = run;
    this.transcript.clear();
    this.display.transcript();
    this.set({ ...IDLE, phase: withMicrophone ? "asking" : "connecting" });
    await this.openAudio(run);
    if (withMicrophone && run.context !== null) {
      await this.openMicrophone(run);
    }
    if (!run.over) {
      this.connect(run, provider);
    }
  }

  /** Turns the microphone on, or mutes and unmutes it. */
  async toggleMicrophone(): Promise<void> {
    const { run, state } = this;
    if (run === null || state.phase === "asking") {
      return;
    }
    if (run.mic === null) {
      await this.openMicrophone(run);
      return;
    }
    const muted = state.mic === "live";
    run.mic.mute(muted);
    this.set({ ...this.state, mic: muted ? "muted" : "live" });
    this.display.level("user", 0);
  }

  /** The user wants silence now. */
  stop(): void {
    const run = this.run;
    if (run !== null && (this.state.sounding !== null || this.state.owed)) {
      run.downlink?.stop();
      run.socket?.send({ type: "interrupt" });
    }
  }

  /** A typed turn. What sounds is silenced, as if the user had spoken. */
  say(text: string): void {
    const run = this.run;
    if (run === null) {
      return;
    }
    // Only ours to tell lines apart; crypto.randomUUID needs a secure address.
    const id = `typed-${++this.typed}`;
    this.transcript.typed(id, text);
    this.display.transcript();
    if (this.state.phase === "open") {
      // The message itself interrupts the model; the silence need not wait.
      run.downlink?.stop();
      run.socket?.send({ type: "input.text", text, id });
      this.set({ ...this.state, owed: true, notice: null });
    } else {
      run.unsent.push({ id, text });
    }
  }

  /** The user's answer to a question of a tool. */
  resolve(token: string, approved: boolean): void {
    if (this.questions.answer(token, approved, Date.now())) {
      this.run?.socket?.send({ type: "confirmation.resolve", token, approved });
      this.display.questions();
    }
  }

  /** Ends the conversation and gives every device back. */
  hangUp(): void {
    if (this.run !== null) {
      this.run.socket?.send({ type: "session.end" });
      this.finish(this.run, null);
    }
  }

  private async openAudio(run: Run): Promise<void> {
    // Chromium would convert for us, but Firefox cannot connect a microphone
    // to a context of another rate: so the device's own rate, and our filter.
    const context = typeof AudioContext === "undefined" ? null : new AudioContext({ latencyHint: "interactive" });
    if (context?.audioWorklet === undefined) {
      void context?.close();
      this.set({ ...this.state, notice: words.NO_AUDIO });
      return;
    }
    run.context = context;
    // A phone call or a locked screen may suspend it in between.
    context.onstatechange = () => {
      if (!run.over && context.state !== "running") {
        void context.resume();
      }
    };
    try {
      await Promise.all([
        context.audioWorklet.addModule(CAPTURE_WORKLET),
        context.audioWorklet.addModule(PLAYBACK_WORKLET),
      ]);
      if (!run.over) {
        run.player = Player.open(context, (notice) => this.onPlayback(run, notice));
        run.downlink = new Downlink(run.player);
      }
    } catch (cause) {
      console.error("voicegw: audio did not start", cause);
      this.set({ ...this.state, notice: words.NO_AUDIO });
    }
    if (run.over) {
      run.release();
    }
  }

  private async openMicrophone(run: Run): Promise<void> {
    if (run.context === null) {
      this.set({ ...this.state, notice: words.MICROPHONE.insecure });
      return;
    }
    if (run.asking) {
      return;
    }
    run.asking = true;
    const result = await Microphone.open(run.context, INPUT_RATE, {
      frame: (pcm, level) => this.onFrame(run, pcm, level),
      lost: () => this.onMicrophoneLost(run),
    }).catch((cause: unknown) => (cause instanceof MicError ? cause.failure : "unknown"));
    run.asking = false;
    if (typeof result !== "string") {
      run.mic = result;
    }
    if (run.over) {
      run.release();
    } else if (typeof result === "string") {
      this.set({ ...this.state, notice: words.MICROPHONE[result] });
    } else {
      this.set({ ...this.state, mic: "live", notice: null });
    }
  }

  private connect(run: Run, provider: string | null): void {
    this.set({ ...this.state, phase: "connecting" });
    run.socket = new Socket(voiceUrl(document.baseURI), {
      opened: () =>
        run.socket?.send({
          type: "session.start",
          ...(provider === null ? {} : { provider }),
          input_rate: INPUT_RATE,
          output_rate: OUTPUT_RATE,
          client: { name: "voicegw-page", version: PAGE_VERSION },
        }),
      message: (message) => this.onMessage(run, message),
      audio: (pcm) => run.downlink?.audio(pcm),
      closed: (how) => void this.onClosed(run, how),
    });
    run.expect(START_TIMEOUT_MS, () => this.finish(run, words.NO_START));
  }

  private onMessage(run: Run, message: ServerMessage): void {
    this.set(onMessage(this.state, message));
    switch (message.type) {
      case "session.started":
        run.started(message.output_rate ?? OUTPUT_RATE);
        for (const { id, text } of run.unsent.splice(0)) {
          run.socket?.send({ type: "input.text", text, id });
          this.set({ ...this.state, owed: true });
        }
        return;
      case "audio.start":
        return run.downlink?.start(message.item_id, run.rate);
      case "audio.end":
        return this.onAudioEnd(run, message.item_id);
      case "audio.flush":
        run.downlink?.flush(message.item_id);
        return this.cutOff(message.turn);
      case "turn.ended":
        return message.status === "completed" ? undefined : this.cutOff(message.turn);
      case "turn.started":
        if (this.state.notice === run.error) {
          // The model goes on: what went wrong before is past.
          this.set({ ...this.state, notice: null });
        }
        return;
      case "session.ending":
        return this.set({ ...this.state, notice: words.endingNotice(message.reason, message.after) });
      case "session.moving":
        return this.set({ ...this.state, notice: words.MOVING });
      case "timeout":
        return this.set({ ...this.state, notice: { title: message.message, advice: "" } });
      case "confirmation.request":
        this.questions.asked(message, Date.now());
        return this.display.questions();
      case "confirmation.ended":
        return this.answered(message.token, message.outcome);
      case "error":
        run.error = words.errorNotice(message);
        if (NOT_RECORDED.has(message.code)) {
          this.questions.reopen();
          this.display.questions();
        }
        return this.set({ ...this.state, notice: run.error });
      case "session.ended":
        run.reason = message.reason;
        return;
      default:
        this.record(message);
    }
  }

  private onAudioEnd(run: Run, item: string): void {
    if (run.downlink === null) {
      // Nothing can be heard here. The gateway must not wait for it.
      run.socket?.send({ type: "playback", item_id: item, played_ms: 0, done: true });
    } else {
      run.downlink.end(item);
    }
  }

  private record(message: ServerMessage): void {
    switch (message.type) {
      case "transcript":
        this.transcript.upsert(message);
        break;
      case "tool.started":
        this.transcript.toolStarted(message);
        break;
      case "tool.progress":
        this.transcript.toolProgress(message);
        break;
      case "tool.ended":
        this.transcript.toolEnded(message);
        break;
      default:
        return;
    }
    this.display.transcript();
  }

  /** A question is over, whoever has answered it. */
  private answered(token: string, outcome: string): void {
    const question = this.questions.ended(token);
    if (question !== undefined) {
      this.transcript.outcome(token, question.preview, outcome);
      this.display.transcript();
      this.display.questions();
    }
  }

  private onPlayback(run: Run, notice: PlayNotice): void {
    switch (notice.type) {
      case "level":
        return this.display.level("model", notice.level);
      case "report":
        run.socket?.send({ type: "playback", item_id: notice.item, played_ms: notice.playedMs, done: notice.done });
        break;
      case "overflow":
        this.set({ ...this.state, notice: words.TOO_LONG });
        break;
      default:
    }
    this.set(onPlayback(this.state, notice));
  }

  private onFrame(run: Run, pcm: ArrayBuffer, level: number): void {
    this.display.level("user", this.state.mic === "live" ? level : 0);
    if (this.state.phase !== "open") {
      return;
    }
    const slow = run.socket?.sendAudio(pcm) === false;
    if (slow && this.state.notice === null) {
      this.set({ ...this.state, notice: words.SLOW_LINE });
    }
  }

  private onMicrophoneLost(run: Run): void {
    run.mic?.close();
    run.mic = null;
    this.display.level("user", 0);
    this.set({ ...this.state, mic: "off", userSpeaking: false, notice: words.MICROPHONE_LOST });
  }

  private async onClosed(run: Run, how: Closed): Promise<void> {
    if (how.opened) {
      this.finish(run, words.closeNotice(how, run.error));
    } else {
      this.finish(run, words.UNOPENED[await whyUnopened()]);
    }
  }

  private cutOff(turn: number | undefined): void {
    this.transcript.cutOff(turn);
    this.display.transcript();
  }

  private finish(run: Run, notice: words.Notice | null): void {
    if (this.run !== run) {
      return;
    }
    this.run = null;
    run.release();
    this.transcript.settle();
    for (const { token } of [...this.questions.list]) {
      this.answered(token, "unanswered");
    }
    this.display.transcript();
    const { provider, model, answeredInMs } = this.state;
    const phase = this.state.phase === "open" ? "ended" : "failed";
    this.set({ ...IDLE, phase, provider, model, answeredInMs, notice, reason: run.reason });
    this.display.level("user", 0);
    this.display.level("model", 0);
  }

  private set(state: State): void {
    if (state !== this.state) {
      this.state = state;
      this.display.state(state);
    }
  }
}
