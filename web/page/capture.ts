import { CAPTURE, type CapturedFrame, type CaptureOptions } from "./worklets/messages.js";

/** Why there is no microphone. */
export type MicFailure = "insecure" | "denied" | "missing" | "busy" | "unknown";

/** Thrown by Microphone.open, with the reason the user is told about. */
export class MicError extends Error {
  constructor(
    readonly failure: MicFailure,
    cause?: unknown,
  ) {
    super(`microphone: ${failure}`, { cause });
  }
}

export interface MicHandlers {
  /** One uplink frame of 20 ms, PCM16. */
  frame(pcm: ArrayBuffer, level: number): void;
  /** The device was unplugged or its permission taken back. */
  lost(): void;
}

/** The microphone of one conversation, from permission to uplink frames. */
export class Microphone {
  private constructor(
    private readonly stream: MediaStream,
    private readonly source: MediaStreamAudioSourceNode,
    private readonly node: AudioWorkletNode,
  ) {}

  /**
   * Asks for the microphone and starts it. `context` must have the capture
   * worklet loaded. `rate` is the uplink's in Hz. Throws MicError.
   */
  static async open(context: AudioContext, rate: number, handlers: MicHandlers): Promise<Microphone> {
    const stream = await ask();
    try {
      return Microphone.attach(context, stream, rate, handlers);
    } catch (cause) {
      // The conversation may have ended while the browser was asking.
      stream.getTracks().forEach((track) => track.stop());
      throw new MicError("unknown", cause);
    }
  }

  private static attach(context: AudioContext, stream: MediaStream, rate: number, handlers: MicHandlers): Microphone {
    const options: CaptureOptions = { rate };
    const source = context.createMediaStreamSource(stream);
    const node = new AudioWorkletNode(context, CAPTURE, {
      numberOfInputs: 1,
      numberOfOutputs: 1,
      processorOptions: options,
    });
    node.port.onmessage = (event: MessageEvent<CapturedFrame>) => {
      handlers.frame(event.data.pcm, event.data.level);
    };
    for (const track of stream.getAudioTracks()) {
      track.onended = () => handlers.lost();
    }
    source.connect(node).connect(context.destination);
    return new Microphone(stream, source, node);
  }

  /**
   * Muted, the frames go on as silence: the gateway counts time in samples,
   * and the model needs the silence to notice that a sentence has ended.
   */
  mute(muted: boolean): void {
    for (const track of this.stream.getAudioTracks()) {
      track.enabled = !muted;
    }
  }

  /** Gives the device back. May be called more than once. */
  close(): void {
    this.node.port.onmessage = null;
    this.node.port.postMessage("close");
    this.source.disconnect();
    this.node.disconnect();
    for (const track of this.stream.getTracks()) {
      track.onended = null;
      track.stop();
    }
  }
}

async function ask(): Promise<MediaStream> {
  // Browsers hide mediaDevices from pages that came over plain http.
  if (!globalThis.isSecureContext || navigator.mediaDevices === undefined) {
    throw new MicError("insecure");
  }
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    });
  } catch (cause) {
    throw new MicError(failureOf(cause), cause);
  }
}

// Names from the Media Capture and Streams specification, getUserMedia().
function failureOf(cause: unknown): MicFailure {
  switch (cause instanceof DOMException ? cause.name : "") {
    case "NotAllowedError":
    case "SecurityError":
      return "denied";
    case "NotFoundError":
    case "OverconstrainedError":
      return "missing";
    case "NotReadableError":
    case "AbortError":
      return "busy";
    default:
      return "unknown";
  }
}
