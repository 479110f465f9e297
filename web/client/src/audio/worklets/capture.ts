// The microphone's part on the audio thread.
import { FRAME_MS, Framer } from "../framer.js";
import { takers } from "./along.js";
import { CAPTURE, type CaptureCommand, type CapturedFrame, type CaptureOptions } from "./messages.js";

/** Silence sent after the microphone is turned off; the model needs it to detect the end of speech. */
const TAIL_SECONDS = 1;

class CaptureProcessor extends AudioWorkletProcessor {
  readonly #framer: Framer;
  readonly #leave: () => void;
  #closed = false;
  #on = true;
  /** Silent frames left to send while off. */
  #tail = 0;
  /** The loudspeaker's level, sent with the next frame. */
  #played: number | undefined;

  constructor(options: AudioWorkletNodeOptions) {
    super(options);
    const { rate, pair } = options.processorOptions as CaptureOptions;
    this.#framer = new Framer(sampleRate, rate, (pcm, level) => {
      const frame: CapturedFrame = { pcm: pcm.buffer, level, at: Date.now(), clockMs: (currentFrame * 1000) / sampleRate };
      if (this.#played !== undefined) {
        frame.played = this.#played;
        this.#played = undefined;
      }
      this.port.postMessage(frame, [pcm.buffer]);
    });
    const take = (level: number): boolean => this.#take(level);
    takers().set(pair, take);
    this.#leave = () => takers().get(pair) === take && takers().delete(pair);
    this.port.onmessage = (event: MessageEvent<CaptureCommand>) => this.#obey(event.data);
  }

  // The output stays silent; it is connected only because some browsers do not run a node without a
  // destination.
  process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean {
    const quantum = outputs[0]?.[0]?.length ?? 128;
    const channels = inputs[0];
    if (this.#on && channels !== undefined && channels.length > 0) {
      this.#framer.push(channels);
    } else if (this.#on || this.#tail > 0) {
      // There is no device, so silence keeps the uplink's clock running.
      this.#framer.pushSilence(quantum);
      this.#tail = Math.max(0, this.#tail - quantum);
    }
    return !this.#closed;
  }

  #take(level: number): boolean {
    const soon = this.#on || this.#tail > (2 * FRAME_MS * sampleRate) / 1000;
    if (soon) {
      this.#played = Math.max(this.#played ?? 0, level);
    }
    return soon;
  }

  #obey(command: CaptureCommand): void {
    switch (command) {
      case "on":
        this.#on = true;
        return;
      case "off":
        this.#on = false;
        this.#tail = TAIL_SECONDS * sampleRate;
        return;
      case "close":
        this.#closed = true;
        this.#leave();
    }
  }
}

registerProcessor(CAPTURE, CaptureProcessor);
