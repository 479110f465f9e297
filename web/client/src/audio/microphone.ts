import { VoiceError } from "../errors.js";
import type { LocalEvents, MicrophoneState } from "../events.js";
import type { MicrophoneOptions } from "../options.js";
import { askMicrophone } from "./ask.js";
import { claimAudioSession } from "./audiosession.js";
import { Capture } from "./capture.js";
import { microphonePermission, onMicrophoneChange } from "./devices.js";
import { FRAME_MS } from "./framer.js";
import { PushToTalk } from "./pushtotalk.js";
import type { CapturedFrame, UplinkFrame } from "./worklets/messages.js";

/** A microphone that delivers only silence for this long is reported. */
const SILENCED_MS = 1000;
/** Levels are reported for every second frame: 25 per second. */
const FRAMES_PER_LEVEL = 40 / FRAME_MS;

/** @internal */
export interface MicrophoneHandlers {
  /** One uplink frame of 20 ms. */
  frame(frame: UplinkFrame): void;
  /** RMS of the user's voice, 25 per second while frames arrive. */
  level(level: number): void;
  /** RMS of the loudspeaker's signal, sent along with the frame. */
  played(level: number): void;
  changed(event: LocalEvents["microphone"]): void;
  /** An error after which the microphone keeps working. */
  failed(error: VoiceError): void;
  /** Push-to-talk: the user's speech begins or ends between two frames. */
  activity(active: boolean): void;
}

/** @internal */
export interface CaptureSetup {
  /** Has loaded the capture worklet. */
  context: AudioContext;
  /** The uplink's sample rate in Hz. */
  rate: number;
  /** See CaptureOptions. */
  pair: number;
  /** Loads the capture worklet into a context. */
  prepare: (context: AudioContext) => Promise<void>;
  /** Sends speech only while the button is pressed. */
  pushToTalk: boolean;
}

/** The microphone of one conversation. */
export class Microphone {
  /** @internal The reason why there is no audio context to start in. */
  unavailable: VoiceError | undefined;
  readonly #options: MicrophoneOptions;
  readonly #handlers: MicrophoneHandlers;
  #setup: CaptureSetup | null = null;
  #capture: Capture | null = null;
  /** The session's context. The microphone may need another one; see sourceOf. */
  #shared: AudioContext | null = null;
  #stream: MediaStream | null = null;
  #current: MicrophoneState = "off";
  #muted = false;
  /** The device delivers silence: switched off, muted by the system, or taken by a call. */
  #silenced = false;
  #wanted: string | undefined;
  /** The permission was "granted" while the device was on, so a later change revokes it. */
  #allowed = false;
  /** Counts requests for a device. The result of an outdated request is released. */
  #asked = 0;
  /** Whether a lost device is being replaced, and whether the devices have changed since. */
  #retaking = false;
  #changed = false;
  /** Number of the user's choices in progress. */
  #choosing = 0;
  #talk: PushToTalk | null = null;
  #loudest = 0;
  #frames = 0;
  #stopWatching: (() => void) | null = null;
  #releaseSession: (() => void) | null = null;

  /** @internal */
  constructor(options: MicrophoneOptions, handlers: MicrophoneHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#wanted = options.deviceId;
  }

  get state(): MicrophoneState {
    return this.#current;
  }

  /** Whether the microphone is muted, or will be when it starts. See mute. */
  get muted(): boolean {
    return this.#muted;
  }

  /** The spectrum of the microphone's signal; see Speaker.frequencyData. Empty while the microphone is off. */
  frequencyData(): Uint8Array {
    return this.#capture?.frequencyData() ?? new Uint8Array(0);
  }

  /** @internal */
  ready(setup: CaptureSetup): void {
    this.#setup = setup;
    this.#shared = setup.context;
    this.#talk = setup.pushToTalk ? new PushToTalk((active) => this.#handlers.activity(active)) : null;
    this.#stopWatching = onMicrophoneChange(() => void this.#retake());
  }

  /** Asks for the microphone and turns it on. Throws a VoiceError. */
  async start(): Promise<void> {
    if (this.#setup === null) {
      throw this.unavailable ?? new VoiceError("audio_unavailable");
    }
    if (this.#stream !== null) {
      return;
    }
    this.#set("asking");
    const number = this.#asked + 1;
    try {
      await this.#take(this.#wanted);
    } catch (error) {
      if (number === this.#asked) {
        this.stop();
      }
      throw error;
    }
  }

  /**
   * Releases the device; the session continues. One more second of silence is sent, so that the model detects
   * the end of speech.
   */
  stop(): void {
    this.#asked++;
    this.#talk?.release();
    this.#drop();
    this.#capture?.rest();
    this.#releaseSession?.();
    this.#releaseSession = null;
    if (this.#current !== "off") {
      this.#set("off");
    }
  }

  /**
   * Mutes or unmutes. Muted frames are sent as silence: the gateway counts time in samples, and the model
   * needs silence to detect the end of speech.
   */
  mute(muted: boolean): void {
    this.#muted = muted;
    if (this.#stream !== null) {
      this.#applyMute(this.#stream);
      this.#set(this.#hearing);
    }
  }

  /** The state while there is a device. */
  get #hearing(): MicrophoneState {
    return this.#muted ? "muted" : this.#silenced ? "silenced" : "live";
  }

  /**
   * Changes the device (see listMicrophones), also while running; undefined is the default device. The
   * current device stays in use until the new one is open. Throws a VoiceError if it does not open; the
   * current device then remains.
   */
  async use(deviceId: string | undefined): Promise<void> {
    const before = this.#wanted;
    const number = this.#asked + 1;
    this.#wanted = deviceId;
    if (this.#current === "off") {
      return;
    }
    this.#choosing++;
    try {
      await this.#exchange(deviceId, before);
    } catch (error) {
      this.#wanted = before;
      if (this.#current === "asking" && number === this.#asked) {
        this.stop();
      }
      throw error;
    } finally {
      this.#choosing--;
      void this.#retake();
    }
  }

  /**
   * Push-to-talk (turnDetection "client"): the user begins or ends speaking. Speech up to 200 ms after the
   * end is sent too.
   */
  press(active: boolean): void {
    if (this.#setup !== null && this.#talk === null) {
      throw new Error('Microphone.press is for sessions with turnDetection "client".');
    }
    if (!active || this.#stream !== null) {
      this.#talk?.press(active);
    }
  }

  /** @internal Releases all devices. Safe to call twice. */
  close(): void {
    this.#stopWatching?.();
    this.#stopWatching = null;
    this.stop();
    this.#setup = null;
    this.#closeCapture();
  }

  async #exchange(deviceId: string | undefined, before: string | undefined): Promise<void> {
    const old = this.#stream;
    if (old !== null) {
      // Some browsers end the old track when the new one opens; that is not a lost device.
      unwatch(old);
    }
    try {
      await this.#take(deviceId);
    } catch (error) {
      if (old === null || old !== this.#stream) {
        throw error;
      }
      if ((error as VoiceError).code !== "microphone_busy") {
        this.#watch(old);
        throw error;
      }
      // Some browsers open only one device at a time, so release the old one first.
      this.#drop();
      await this.#take(deviceId).catch(async (again: unknown) => {
        await this.#take(before).catch(() => this.#lost());
        throw again;
      });
    }
  }

  /** Asks for a device and switches to it, unless another request came first. */
  async #take(deviceId: string | undefined): Promise<void> {
    const number = ++this.#asked;
    this.#releaseSession ??= claimAudioSession();
    const stream = await askMicrophone(this.#options, deviceId);
    const source = await this.#sourceOf(stream, number).catch((error: unknown) => {
      end(stream);
      throw error;
    });
    if (source === null || this.#setup === null || number !== this.#asked) {
      end(stream);
      this.#giveBack(source?.context);
      return;
    }
    this.#listenTo(source, this.#setup);
    this.#drop();
    this.#keep(stream);
  }

  /** Returns null if another request came first. */
  async #sourceOf(stream: MediaStream, number: number): Promise<MediaStreamAudioSourceNode | null> {
    if (this.#setup === null || number !== this.#asked) {
      return null;
    }
    const { context, prepare } = this.#setup;
    try {
      return (this.#capture?.context ?? context).createMediaStreamSource(stream);
    } catch (cause) {
      if (!(cause instanceof DOMException) || cause.name !== "NotSupportedError") {
        throw new VoiceError("microphone_failed", undefined, { cause });
      }
    }
    // Firefox connects no device to a context of another rate (Mozilla bug 1674892), and a headset plugged in
    // later may have its own.
    const sampleRate = stream.getAudioTracks()[0]?.getSettings().sampleRate;
    const own = new AudioContext(sampleRate === undefined ? {} : { sampleRate });
    try {
      await prepare(own);
      return own.createMediaStreamSource(stream);
    } catch (cause) {
      this.#giveBack(own);
      throw new VoiceError("microphone_failed", undefined, { cause });
    }
  }

  #listenTo(source: MediaStreamAudioSourceNode, { rate, pair }: CaptureSetup): void {
    if (this.#capture?.context !== source.context) {
      this.#closeCapture();
      this.#capture = new Capture(source.context as AudioContext, rate, pair, (frame) => this.#onFrame(frame));
    }
    this.#capture.from(source);
  }

  #closeCapture(): void {
    const context = this.#capture?.context;
    this.#capture?.close();
    this.#capture = null;
    this.#giveBack(context);
  }

  /** Closes a context that belongs to the microphone and is no longer used. */
  #giveBack(context: BaseAudioContext | undefined): void {
    if (context !== undefined && context !== this.#shared && context !== this.#capture?.context) {
      void (context as AudioContext).close();
    }
  }

  #keep(stream: MediaStream): void {
    this.#stream = stream;
    this.#allowed = false;
    void microphonePermission().then((now) => (this.#allowed ||= now === "granted" && stream === this.#stream));
    this.#applyMute(stream);
    this.#silenced = false;
    this.#set(this.#hearing);
    this.#watch(stream);
  }

  #watch(stream: MediaStream): void {
    for (const track of stream.getAudioTracks()) {
      const silenced = (): void => void setTimeout(() => this.#saySilenced(stream, track), SILENCED_MS);
      track.onended = () => this.#lost();
      track.onmute = silenced;
      track.onunmute = () => this.#setSilenced(false);
      if (track.readyState === "ended") {
        this.#lost();
      } else if (track.muted) {
        silenced();
      }
    }
  }

  /** Releases the device. Frames are silent until another one is there. */
  #drop(): void {
    if (this.#stream !== null) {
      end(this.#stream);
      this.#stream = null;
    }
  }

  // The device was unplugged or the permission revoked.
  #lost(): void {
    const allowed = this.#allowed;
    this.#drop();
    this.#set("lost");
    void microphonePermission().then((now) => {
      const code = allowed && now !== "granted" ? "microphone_revoked" : "microphone_lost";
      this.#handlers.failed(new VoiceError(code, undefined, { retryable: true }));
    });
    void this.#retake();
  }

  // Replaces a lost device after the devices have changed, with itself or another. A device that the user
  // turned off stays off.
  async #retake(): Promise<void> {
    this.#changed = true;
    if (this.#retaking) {
      return;
    }
    this.#retaking = true;
    while (this.#changed && this.#missing) {
      this.#changed = false;
      await this.#take(this.#wanted).catch(() => undefined);
      if (this.#missing && this.#wanted !== undefined) {
        await this.#take(undefined).catch(() => undefined);
      }
    }
    this.#retaking = false;
  }

  /** Whether to look for a replacement. The user's own choice takes precedence. */
  get #missing(): boolean {
    return this.#current === "lost" && this.#choosing === 0;
  }

  #saySilenced(stream: MediaStream, track: MediaStreamTrack): void {
    if (stream !== this.#stream || !track.muted) {
      return;
    }
    this.#setSilenced(true);
    if (!this.#muted) {
      this.#handlers.failed(new VoiceError("microphone_silenced", undefined, { retryable: true }));
    }
  }

  #setSilenced(silenced: boolean): void {
    if (this.#silenced !== silenced) {
      this.#silenced = silenced;
      if (!this.#muted) {
        this.#set(this.#hearing);
      }
    }
  }

  #applyMute(stream: MediaStream): void {
    for (const track of stream.getAudioTracks()) {
      track.enabled = !this.#muted;
    }
  }

  #onFrame({ pcm, level, at, clockMs, played }: CapturedFrame): void {
    const heard = this.#talk?.active ?? true;
    if (!heard) {
      new Uint8Array(pcm).fill(0);
    }
    this.#loudest = Math.max(this.#loudest, heard ? level : 0);
    this.#handlers.frame({ pcm, at, clockMs });
    this.#talk?.frameSent();
    if (++this.#frames % FRAMES_PER_LEVEL === 0) {
      this.#handlers.level(this.#loudest);
      this.#loudest = 0;
    }
    if (played !== undefined) {
      this.#handlers.played(played);
    }
  }

  #set(state: MicrophoneState): void {
    const track = this.#stream?.getAudioTracks()[0];
    this.#current = state;
    this.#handlers.changed({ state, deviceId: track?.getSettings().deviceId, label: track?.label ?? "" });
  }
}

function end(stream: MediaStream): void {
  unwatch(stream);
  stream.getTracks().forEach((track) => track.stop());
}

function unwatch(stream: MediaStream): void {
  for (const track of stream.getTracks()) {
    track.onended = null;
    track.onmute = null;
    track.onunmute = null;
  }
}
