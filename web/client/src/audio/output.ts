import { VoiceError } from "../errors.js";

/** A target whose output device can be set, if the browser lets pages choose. */
interface Sinkable {
  setSinkId?: (id: string) => Promise<void>;
}

/**
 * Connects the Web Audio graph to the loudspeaker.
 *
 * It plays through an audio element, because an echo canceller may not know the sound of Web Audio (Chromium
 * issue 687574, since fixed). Without it the model hears its own voice and interrupts itself. If the browser
 * refuses the element, the context plays directly: an echo is better than silence.
 */
export class Output {
  readonly #context: AudioContext;
  readonly #changed: () => void;
  readonly #failed: (error: VoiceError) => void;
  readonly #sink: MediaStreamAudioDestinationNode;
  readonly #element = new Audio();
  #from: AudioNode | null = null;
  #route: "element" | "direct" = "element";
  #refused = false;
  #deviceId = "";

  /** `changed` is called when `playing` may have changed. */
  constructor(context: AudioContext, changed: () => void, failed: (error: VoiceError) => void) {
    this.#context = context;
    this.#changed = changed;
    this.#failed = failed;
    this.#sink = context.createMediaStreamDestination();
    this.#element.srcObject = this.#sink.stream;
    this.#element.onplaying = changed;
    this.#element.onpause = changed;
  }

  /** Sets the node to play. */
  attach(from: AudioNode): void {
    this.#from = from;
    this.#connect();
  }

  /** Whether the rendered sound is heard, once the context runs. */
  get playing(): boolean {
    return this.#route === "direct" || !this.#element.paused;
  }

  /** Asks the browser to play; useful after a gesture. */
  play(): void {
    this.#element.play().then(
      () => this.#take("element"),
      (cause: unknown) => {
        // If the context is stopped too, the page as a whole may not play yet.
        if (this.#element.srcObject !== null && this.#context.state === "running") {
          this.#take("direct", cause);
        }
      },
    );
  }

  /** Plays on a device; "" is the default one. Returns false if the browser does not let pages choose. */
  async use(deviceId: string): Promise<boolean> {
    const playing = (this.#route === "element" ? this.#element : this.#context) as Sinkable;
    if (playing.setSinkId === undefined) {
      return false;
    }
    try {
      await playing.setSinkId(deviceId);
    } catch (cause) {
      throw new VoiceError("speaker_failed", undefined, { cause });
    }
    this.#deviceId = deviceId;
    return true;
  }

  close(): void {
    this.#from?.disconnect();
    this.#element.pause();
    this.#element.srcObject = null;
  }

  #take(route: "element" | "direct", cause?: unknown): void {
    if (this.#element.srcObject === null) {
      return;
    }
    if (route !== this.#route) {
      this.#from?.disconnect(this.#target);
      this.#route = route;
      this.#connect();
      this.use(this.#deviceId).catch((error: VoiceError) => this.#failed(error));
    }
    if (route === "direct" && !this.#refused) {
      this.#refused = true;
      this.#failed(new VoiceError("echo_possible", undefined, { cause }));
    }
    this.#changed();
  }

  #connect(): void {
    this.#from?.connect(this.#target);
  }

  get #target(): AudioNode {
    return this.#route === "direct" ? this.#context.destination : this.#sink;
  }
}
