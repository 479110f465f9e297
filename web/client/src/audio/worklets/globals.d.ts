// Globals of an AudioWorkletGlobalScope that TypeScript's DOM types lack. Source: Web Audio API, section 1.32
// (AudioWorklet).

declare const sampleRate: number;
/** The first frame of the current or next block. */
declare const currentFrame: number;

declare abstract class AudioWorkletProcessor {
  readonly port: MessagePort;
  constructor(options?: AudioWorkletNodeOptions);
  abstract process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean;
}

declare function registerProcessor(
  name: string,
  processor: new (options: AudioWorkletNodeOptions) => AudioWorkletProcessor,
): void;
