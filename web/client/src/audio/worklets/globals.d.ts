// What exists in an AudioWorkletGlobalScope only; TypeScript's DOM types leave
// it out. Source: Web Audio API, section 1.32 (AudioWorklet).

declare const sampleRate: number;
/** The first frame of the block that is rendered now, or next. */
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
