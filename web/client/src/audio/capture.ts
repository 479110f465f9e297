import { Tap } from "./tap.js";
import { CAPTURE, type CaptureCommand, type CapturedFrame, type CaptureOptions } from "./worklets/messages.js";

/**
 * The capture worklet and its input. It follows the context's clock: without a device it produces silent
 * frames.
 */
export class Capture {
  readonly #node: AudioWorkletNode;
  #source: MediaStreamAudioSourceNode | null = null;
  #tap: Tap | null = null;

  /** `context` must have loaded the worklet. `rate` is the uplink's in Hz. `pair`: see CaptureOptions. */
  constructor(
    readonly context: AudioContext,
    rate: number,
    pair: number,
    frame: (frame: CapturedFrame) => void,
  ) {
    const processorOptions: CaptureOptions = { rate, pair };
    this.#node = new AudioWorkletNode(context, CAPTURE, { numberOfInputs: 1, numberOfOutputs: 1, processorOptions });
    this.#node.port.onmessage = (event: MessageEvent<CapturedFrame>) => frame(event.data);
    // The node outputs silence. Some browsers do not run a node without a destination.
    this.#node.connect(context.destination);
  }

  /** Switches to this device between two blocks. */
  from(source: MediaStreamAudioSourceNode): void {
    source.connect(this.#node);
    this.#source?.disconnect();
    this.#source = source;
    this.#tap = new Tap(this.context, source);
    this.#tell("on");
  }

  /** Produces one more second of silence, then nothing. */
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
