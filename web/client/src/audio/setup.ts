import { VoiceError } from "../errors.js";
import type { ConnectOptions } from "../options.js";
import type { Microphone } from "./microphone.js";
import type { Speaker } from "./speaker.js";
import { loadWorklets, packagedWorklets } from "./worklets/load.js";

/** The session's AudioContext with its microphone and loudspeaker. */
export class AudioSetup {
  readonly #options: ConnectOptions;
  readonly #speaker: Speaker;
  readonly #microphone: Microphone;
  #context: AudioContext | null = null;

  constructor(options: ConnectOptions, speaker: Speaker, microphone: Microphone) {
    this.#options = options;
    this.#speaker = speaker;
    this.#microphone = microphone;
  }

  /** Whether it is open. */
  get ready(): boolean {
    return this.#context !== null;
  }

  /**
   * Opens the loudspeaker and prepares the microphone. Rejects with a VoiceError, with nothing open, if audio
   * cannot start.
   */
  async open(): Promise<void> {
    const { audioContext, outputRate, inputRate, worklets, turnDetection } = this.#options;
    try {
      // Uses the device's rate, because Firefox cannot connect a microphone to a context of another one.
      this.#context = audioContext ?? new AudioContext({ latencyHint: "interactive" });
      const prepare = (context: AudioContext): Promise<void> => loadWorklets(context, worklets ?? packagedWorklets());
      const pair = Math.random();
      await this.#speaker.open(this.#context, outputRate ?? 24000, pair, prepare(this.#context));
      this.#microphone.ready({ context: this.#context, rate: inputRate ?? 16000, pair, prepare, pushToTalk: turnDetection === "client" });
    } catch (cause) {
      this.close();
      const error = cause instanceof VoiceError ? cause : new VoiceError("audio_unavailable", undefined, { cause });
      this.#microphone.unavailable = error;
      throw error;
    }
  }

  /** Releases the loudspeaker. Safe to call twice. */
  close(): void {
    this.#speaker.close();
    if (this.#options.audioContext === undefined) {
      void this.#context?.close();
    }
    this.#context = null;
  }
}
