// The audio thread's half of the microphone.
import { Framer } from "../framer.js";
import { CAPTURE, type CapturedFrame, type CaptureOptions } from "./messages.js";

class CaptureProcessor extends AudioWorkletProcessor {
  private readonly framer: Framer;
  private closed = false;

  constructor(options: AudioWorkletNodeOptions) {
    super();
    const { rate } = options.processorOptions as CaptureOptions;
    this.framer = new Framer(sampleRate, rate, (pcm, level) => {
      const frame: CapturedFrame = { pcm: pcm.buffer, level };
      this.port.postMessage(frame, [pcm.buffer]);
    });
    this.port.onmessage = () => {
      this.closed = true;
    };
  }

  // The output stays silent: it is connected only because some browsers do not
  // run a node that leads nowhere.
  process(inputs: Float32Array[][]): boolean {
    const channels = inputs[0];
    if (channels !== undefined && channels.length > 0) {
      this.framer.push(channels);
    }
    return !this.closed;
  }
}

registerProcessor(CAPTURE, CaptureProcessor);
