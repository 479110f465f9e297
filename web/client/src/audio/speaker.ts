import { VoiceError } from "../errors.js";
import type { LocalEvents, SpeakerState } from "../events.js";
import { heardAt, outputLatency } from "./clock.js";
import { canChoose, listSpeakers, onDeviceChange } from "./devices.js";
import { Output } from "./output.js";
import { Tap } from "./tap.js";
import { onWake } from "./wake.js";
import { PLAYBACK, type PlaybackOptions, type PlayCommand, type PlayNotice } from "./worklets/messages.js";

/** Silence is reported after this time: starting takes a moment, and some interruptions are short. */
const DOUBT_MS = 1000;
/** Time constant of volume changes: too fast to hear, too slow to click. */
const VOLUME_SECONDS = 0.015;

/** @internal */
export interface SpeakerHandlers {
  sounding(event: LocalEvents["sounding"]): void;
  played(event: LocalEvents["played"]): void;
  silenced(event: LocalEvents["silenced"]): void;
  underrun(event: LocalEvents["underrun"]): void;
  /** The item has run dry but not ended. */
  dry(item: string): void;
  /** RMS of the model's voice before the volume, 25 per second while it plays. */
  level(level: number): void;
  changed(event: LocalEvents["speaker"]): void;
  /** An error after which the speaker keeps working. */
  failed(error: VoiceError): void;
}

/** Exists while the speaker is open. */
interface Parts {
  context: AudioContext;
  /** Null until the worklet is loaded. */
  node: AudioWorkletNode | null;
  gain: GainNode;
  output: Output;
  tap: Tap;
  /** Clean-up functions. */
  ends: (() => void)[];
}

/** The loudspeaker of one conversation. */
export class Speaker {
  readonly #handlers: SpeakerHandlers;
  #wanted: string | undefined;
  #parts: Parts | null = null;
  #current: SpeakerState = "closed";
  #loudness = 1;
  /** The chosen device in use. */
  #inUse: string | undefined;
  #stopWaking: (() => void) | null = null;
  /** Runs while audio should play but does not. */
  #doubt: ReturnType<typeof setTimeout> | undefined;

  /** @internal `wanted` is the device to play on, if the browser lets pages choose. */
  constructor(handlers: SpeakerHandlers, wanted: string | undefined) {
    this.#handlers = handlers;
    this.#wanted = wanted;
  }

  /** Whether the model's voice can be heard. */
  get state(): SpeakerState {
    return this.#current;
  }

  /** The volume, from 0 to 1 of the device's. */
  get volume(): number {
    return this.#loudness;
  }

  set volume(volume: number) {
    this.#loudness = Math.max(0, Math.min(1, volume));
    this.#parts?.gain.gain.setTargetAtTime(this.#loudness, this.#parts.context.currentTime, VOLUME_SECONDS);
  }

  /**
   * The agent's voice as it plays here: for recorders, speech recognition and avatars. Each opening makes a
   * new stream; null while the speaker is closed.
   */
  get stream(): MediaStream | null {
    return this.#parts?.tap.stream ?? null;
  }

  /**
   * The spectrum of the playing sound: 1,024 equal steps from 0 to half the device's rate, each from 0 (-100
   * dB) to 255 (-30 dB). Returns the same array each time; empty while the speaker is closed.
   */
  frequencyData(): Uint8Array {
    return this.#parts?.tap.frequencyData() ?? new Uint8Array(0);
  }

  /**
   * Plays on another device (see listSpeakers); undefined is the default one. Returns false if the browser
   * does not let pages choose. Throws a VoiceError if the device does not play.
   */
  async use(deviceId: string | undefined): Promise<boolean> {
    const before = this.#wanted;
    this.#wanted = deviceId;
    try {
      return this.#parts === null ? canChoose() : await this.#play(deviceId);
    } catch (error) {
      this.#wanted = before;
      throw error;
    }
  }

  /**
   * Tries to play again. Call it from a click or key press while the state is `suspended`. Gestures on the
   * page and its return to the foreground do the same.
   */
  resume(): void {
    // The promise stays pending while the browser does not allow sound.
    this.#parts?.context.resume().catch(() => undefined);
    this.#parts?.output.play();
  }

  /**
   * @internal Opens at once, because a browser may allow this only within the user's gesture, and plays once
   * `loaded` resolves: the context then has the playback worklet. Rejects if it rejects. `rate` is the
   * downlink's in Hz; `pair`: see CaptureOptions.
   */
  async open(context: AudioContext, rate: number, pair: number, loaded: Promise<void>): Promise<void> {
    const gain = context.createGain();
    gain.gain.value = this.#loudness;
    const check = (): void => this.#check();
    const output = new Output(context, check, (error) => this.#handlers.failed(error));
    context.addEventListener("statechange", check);
    const ends = [onDeviceChange(() => void this.#onDevices()), () => context.removeEventListener("statechange", check)];
    const parts: Parts = { context, node: null, gain, output, tap: new Tap(context, gain), ends };
    this.#parts = parts;
    this.#check();
    if (this.#wanted !== undefined) {
      this.#play(this.#wanted).catch((error: VoiceError) => this.#handlers.failed(error));
    }
    try {
      await loaded;
    } catch (error) {
      this.close();
      throw error;
    }
    if (this.#parts === parts) {
      parts.node = this.#player(context, rate, pair);
      parts.node.connect(gain);
      output.attach(gain);
    }
  }

  /** @internal Begins an item; rate in Hz. */
  start(item: string, rate: number): void {
    if (this.#parts !== null) {
      // The latency changes with the device.
      this.#tell({ type: "latency", seconds: outputLatency(this.#parts.context) });
    }
    this.#tell({ type: "start", item, rate });
  }

  /** @internal Plays PCM16 of the item. Transfers the buffer, which is empty afterwards. */
  audio(item: string, pcm: ArrayBuffer): void {
    this.#tell({ type: "audio", item, pcm, at: performance.now() }, [pcm]);
  }

  /** @internal */
  end(item: string): void {
    this.#tell({ type: "end", item });
    this.#unheard(item);
  }

  /** @internal Silences the item, or all if null, within 10 ms. */
  flush(item: string | null): void {
    this.#tell({ type: "flush", item, at: this.#parts?.context.currentTime ?? 0 });
    this.#unheard(item);
  }

  /** @internal Releases the device. Safe to call twice. */
  close(): void {
    if (this.#parts === null) {
      return;
    }
    this.#tell({ type: "close" });
    const { node, output, ends } = this.#parts;
    this.#parts = null;
    if (node !== null) {
      node.port.onmessage = null;
      node.disconnect();
    }
    output.close();
    ends.forEach((end) => end());
    this.#set("closed");
  }

  #player(context: AudioContext, rate: number, pair: number): AudioWorkletNode {
    const processorOptions: PlaybackOptions = { rate, pair };
    const node = new AudioWorkletNode(context, PLAYBACK, { numberOfInputs: 0, numberOfOutputs: 1, outputChannelCount: [1], processorOptions });
    node.port.onmessage = (event: MessageEvent<PlayNotice>) => this.#onNotice(context, event.data);
    return node;
  }

  #onNotice(context: AudioContext, notice: PlayNotice): void {
    switch (notice.type) {
      case "level":
        return this.#handlers.level(notice.level);
      case "sounding": {
        const { item, firstByteAt, cushionMs, frame } = notice;
        const at = heardAt(context, frame / context.sampleRate, performance.now());
        return this.#handlers.sounding({ item, at, firstByteAt, cushionMs });
      }
      case "report":
        return this.#handlers.played({ item: notice.item, playedMs: notice.playedMs, done: notice.done, at: performance.now() });
      case "silenced":
        return this.#handlers.silenced({ item: notice.item, ms: notice.ms, latencyMs: Math.round(outputLatency(context) * 1000) });
      case "underrun":
        return this.#handlers.underrun({ item: notice.item, cushionMs: notice.cushionMs });
      case "dry":
        return this.#handlers.dry(notice.item);
      case "overflow":
        return this.#handlers.failed(new VoiceError("too_long"));
    }
  }

  // If no sound can play, an item is over once all of it has arrived, with nothing heard.
  #unheard(item: string | null): void {
    if (item !== null && (this.#parts?.node ?? null) === null) {
      this.#handlers.played({ item, playedMs: 0, done: true, at: performance.now() });
    }
  }

  #sounds(): boolean {
    return this.#parts !== null && this.#parts.context.state === "running" && this.#parts.output.playing;
  }

  // Reacts to changes of the context or the element: an incoming call, a hidden page, a media key.
  #check(): void {
    if (this.#parts === null) {
      return;
    }
    if (this.#sounds()) {
      this.#set("playing");
    } else if (this.#current === "suspended") {
      if (this.#parts.context.state === "running") {
        this.#parts.output.play();
      }
    } else if (this.#doubt === undefined) {
      this.#doubt = setTimeout(() => this.#set("suspended"), DOUBT_MS);
      this.resume();
    }
  }

  #set(state: SpeakerState): void {
    clearTimeout(this.#doubt);
    this.#doubt = undefined;
    if (state === this.#current) {
      return;
    }
    this.#current = state;
    this.#stopWaking?.();
    this.#stopWaking = state === "suspended" ? onWake(() => this.resume()) : null;
    this.#tellChange();
    if (state === "suspended") {
      this.#handlers.failed(new VoiceError("audio_suspended", undefined, { retryable: true }));
    }
  }

  async #play(deviceId: string | undefined): Promise<boolean> {
    const chosen = (await this.#parts?.output.use(deviceId ?? "")) ?? false;
    if (chosen && this.#inUse !== deviceId) {
      this.#inUse = deviceId;
      this.#tellChange();
    }
    return chosen;
  }

  // In some browsers a chosen device that is unplugged leaves silence.
  async #onDevices(): Promise<void> {
    const wanted = this.#wanted;
    if (wanted === undefined || this.#parts === null) {
      return;
    }
    const there = (await listSpeakers()).some((device) => device.id === wanted);
    const next = there ? wanted : undefined;
    if (next !== this.#inUse && wanted === this.#wanted) {
      await this.#play(next).catch((error: VoiceError) => this.#handlers.failed(error));
    }
  }

  #tellChange(): void {
    this.#handlers.changed({ state: this.#current, deviceId: this.#inUse });
  }

  #tell(command: PlayCommand, transfer: Transferable[] = []): void {
    this.#parts?.node?.port.postMessage(command, transfer);
  }
}
