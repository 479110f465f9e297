import { PLAYBACK, type PlayCommand, type PlayNotice } from "./worklets/messages.js";

/** The loudspeaker of one conversation. */
export class Player {
  private constructor(
    private readonly node: AudioWorkletNode,
    private readonly element: HTMLAudioElement,
  ) {}

  /** `context` must have the playback worklet loaded. */
  static open(context: AudioContext, notice: (notice: PlayNotice) => void): Player {
    const node = new AudioWorkletNode(context, PLAYBACK, {
      numberOfInputs: 0,
      numberOfOutputs: 1,
      outputChannelCount: [1],
    });
    node.port.onmessage = (event: MessageEvent<PlayNotice>) => notice(event.data);

    // Not straight to context.destination: the browser's echo canceller takes
    // what media elements play as its reference and may not see what Web Audio
    // plays. Without it the model hears its own voice from the loudspeaker,
    // takes it for the user and interrupts itself.
    const sink = context.createMediaStreamDestination();
    const element = new Audio();
    element.srcObject = sink.stream;
    node.connect(sink);
    element.play().catch((cause: unknown) => {
      // Closed again before it began to play: nothing is wrong.
      if (element.srcObject === null) {
        return;
      }
      // A browser that refuses the element still lets the context play, since
      // a click began all this. An echo is better than silence.
      console.warn("voicegw: the echo canceller may not hear the model", cause);
      node.disconnect();
      node.connect(context.destination);
    });
    return new Player(node, element);
  }

  /** A new item begins; rate in Hz. */
  start(item: string, rate: number): void {
    this.tell({ type: "start", item, rate });
  }

  /** PCM16 of the item. The buffer is handed over and empty afterwards. */
  audio(item: string, pcm: ArrayBuffer): void {
    this.tell({ type: "audio", item, pcm }, [pcm]);
  }

  end(item: string): void {
    this.tell({ type: "end", item });
  }

  /** Silences the item, or everything, within 10 ms. */
  flush(item: string | null): void {
    this.tell({ type: "flush", item });
  }

  /** Frees the device. May be called more than once. */
  close(): void {
    this.node.port.onmessage = null;
    this.tell({ type: "close" });
    this.node.disconnect();
    this.element.pause();
    this.element.srcObject = null;
  }

  private tell(command: PlayCommand, transfer: Transferable[] = []): void {
    this.node.port.postMessage(command, transfer);
  }
}
