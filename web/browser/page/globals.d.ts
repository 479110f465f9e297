// The globals of the scripts in this folder, and those of the worklet scope that client/src/audio/worklets does not
// declare.
import type { ConnectOptions, VoiceSession, Device } from "@voicegw/client";

declare global {
  interface Window {
    spy: Spy;
    talk: {
      session: VoiceSession | null;
      /** The model's voice, if a test records it. */
      downlink: Int16Array<ArrayBuffer>[];
      downlinkText(): Promise<string>;
      open(options: ConnectOptions, context?: number): Promise<unknown>;
      listMicrophones(): Promise<Device[]>;
    };
    /** Reports to the test; see harness/page.ts. */
    tell(type: string, event: unknown): void;
  }

  /** The recordings of spy.js. Frames are on the clock of the newest AudioContext. */
  interface Spy {
    contexts: AudioContext[];
    streams: MediaStream[];
    /** The constraints of each getUserMedia. */
    wishes: MediaStreamConstraints[];
    /** The taps, and whether they record yet: a worklet takes a moment to begin. */
    taps: { context: BaseAudioContext; listens: boolean }[];
    /** The blocks that sounded. */
    sound: { frame: number; samples: Float32Array }[];
    /** The blocks of the microphone. */
    microphone: { frame: number; samples: Float32Array }[];
    /** The PCM16 frames that were sent. */
    uplink: Int16Array[];
    /** The gateway's messages; `closed` is the end of a connection, `audio` a number of samples. */
    arrivals: { type: string; item?: string; samples?: number; frame: number; at: number }[];
    /** Disables the browser's audio processing, so that samples can be compared. */
    plain: boolean;
    /** There is no microphone. Set by plug. */
    unplugged: boolean;
    /** Unplugs the microphone (false) or plugs it in. */
    plug?: (plugged: boolean) => void;
  }

  // Of an AudioWorkletGlobalScope (Web Audio API, section 1.32).
  const currentFrame: number;
  class AudioWorkletProcessor {
    readonly port: MessagePort;
  }
  function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;
}
