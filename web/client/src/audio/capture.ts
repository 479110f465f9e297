import { Tap } from "./tap.js";
import { CAPTURE, type CaptureCommand, type CapturedFrame, type CaptureOptions } from "./worklets/messages.js";

/**
 * The capture worklet and what leads to it. Its clock is the context's, not the device's:
 * between two devices, and without one, the frames go on as silence.
 */
export class Capture {
  readonly #node: AudioWorkletNode;
  #source: MediaStreamAudioSourceNode | null = null;
  #tap: Tap | null = null;

  /** `context` must have the worklet loaded; rate of the uplink in Hz; `pair`: see CaptureOptions. */
  constructor(
    readonly context: AudioContext,
    rate: number,
    pair: number,
    frame: (frame: CapturedFrame) => void,
  ) {
    const processorOptions: CaptureOptions = { rate, pair };
    this.#node = new AudioWorkletNode(context, CAPTURE, { numberOfInputs: 1, numberOfOutputs: 1, processorOptions });
    this.#node.port.onmessage = (event: MessageEvent<CapturedFrame>) => frame(event.data);
    // It gives out silence. Not every browser runs a node that leads nowhere.
    this.#node.connect(context.destination);
  }

  /** Takes its sound from this device, from one block to the next. */
  from(source: MediaStreamAudioSourceNode): void {
    source.connect(this.#node);
    this.#source?.disconnect();
    this.#source = source;
    this.#tap = new Tap(this.context, source);
    this.#tell("on");
  }

  /** A second of silence more, then nothing. */
  rest(): void {
    this.#source?.disconnect();
    this.#source = this.#tap = null;
    this.#tell("off");
  }

  /** See Microphone.frequencyData. */
  frequencyData(): Uint8Array | undefined {
    return this.#tap?.frequencyData();
  }

  close(): void {
    this.#source?.disconnect();
    this.#tell("close");
    this.#node.port.onmessage = null;
    this.#node.disconnect();
  }

  #tell(command: CaptureCommand): void {
    this.#node.port.postMessage(command);
  }
}
