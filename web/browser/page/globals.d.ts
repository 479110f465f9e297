// What the scripts in this folder put into the page, and what the worklet's scope holds
// beside what client/src/audio/worklets declares.
import type { ConnectOptions, VoiceSession, Device } from "@voicegw/client";

declare global {
  interface Window {
    spy: Spy;
    talk: {
      session: VoiceSession | null;
      /** What came of the model's voice, where a test has listened to it. */
      downlink: Int16Array<ArrayBuffer>[];
      downlinkText(): Promise<string>;
      open(options: ConnectOptions, context?: number): Promise<unknown>;
      listMicrophones(): Promise<Device[]>;
    };
    /** Told to the test: see harness/page.ts. */
    tell(type: string, event: unknown): void;
  }

  /** What spy.js keeps. Frames count on the clock of the newest AudioContext. */
  interface Spy {
    contexts: AudioContext[];
    streams: MediaStream[];
    /** The constraints of each getUserMedia. */
    wishes: MediaStreamConstraints[];
    /** What listens, and whether it does already: a worklet takes a moment to begin. */
    taps: { context: BaseAudioContext; listens: boolean }[];
    /** The blocks that sounded. */
    sound: { frame: number; samples: Float32Array }[];
    /** The same of what came from the microphone. */
    microphone: { frame: number; samples: Float32Array }[];
    /** The frames of PCM16 that were sent. */
    uplink: Int16Array[];
    /** What came from the gateway, and when; `closed` for the end of a connection, `audio` for so many samples of it. */
    arrivals: { type: string; item?: string; samples?: number; frame: number; at: number }[];
    /** Takes the browser's own processing out of the way, so that samples can be compared. */
    plain: boolean;
    /** No microphone is there. Set by plug. */
    unplugged: boolean;
    /** Pulls the microphone out (false), puts it back. */
    plug?: (plugged: boolean) => void;
  }

  // Of an AudioWorkletGlobalScope (Web Audio API, section 1.32).
  const currentFrame: number;
  class AudioWorkletProcessor {
    readonly port: MessagePort;
  }
  function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;
}
