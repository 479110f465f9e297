// The audio thread's half of the microphone.
import { Framer } from "../framer.js";
import { CAPTURE, type CaptureCommand, type CapturedFrame, type CaptureOptions } from "./messages.js";

/**
 * So much silence follows when the microphone is turned off: the model needs it to notice
 * that the sentence before it has ended.
 */
const TAIL_SECONDS = 1;

class CaptureProcessor extends AudioWorkletProcessor {
  readonly #framer: Framer;
  #closed = false;
  #on = true;
  /** Frames of silence still to be made while off. */
  #tail = 0;

  constructor(options: AudioWorkletNodeOptions) {
    super(options);
    const { rate } = options.processorOptions as CaptureOptions;
    this.#framer = new Framer(sampleRate, rate, (pcm, level) => {
      const frame: CapturedFrame = { pcm: pcm.buffer, level, at: Date.now(), clockMs: (currentFrame * 1000) / sampleRate };
      this.port.postMessage(frame, [pcm.buffer]);
    });
    this.port.onmessage = (event: MessageEvent<CaptureCommand>) => this.#obey(event.data);
  }

  // The output stays silent: it is connected only because some browsers do not run a node
  // that leads nowhere.
  process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean {
    const quantum = outputs[0]?.[0]?.length ?? 128;
    const channels = inputs[0];
    if (this.#on && channels !== undefined && channels.length > 0) {
      this.#framer.push(channels);
    } else if (this.#on || this.#tail > 0) {
      // No device, or between two: the uplink's clock goes on.
      this.#framer.pushSilence(quantum);
      this.#tail = Math.max(0, this.#tail - quantum);
    }
    return !this.#closed;
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
    }
  }
}

registerProcessor(CAPTURE, CaptureProcessor);
