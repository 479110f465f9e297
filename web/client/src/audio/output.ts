import { VoiceError } from "../errors.js";

/** What can be told to play on a device, where the browser lets a page choose. */
interface Sinkable {
  setSinkId?: (id: string) => Promise<void>;
}

/**
 * The way from the Web Audio graph to the loudspeaker.
 *
 * Not straight to the context's destination: a browser's echo canceller may not know what
 * Web Audio plays (older Chromium's did not, Chromium issue 687574). Without it the model
 * hears its own voice, takes it for the user and interrupts itself. Where the browser refuses
 * the element, the sound goes straight all the same: an echo is better than silence.
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

  /** `changed` is called whenever `playing` may have. */
  constructor(context: AudioContext, changed: () => void, failed: (error: VoiceError) => void) {
    this.#context = context;
    this.#changed = changed;
    this.#failed = failed;
    this.#sink = context.createMediaStreamDestination();
    this.#element.srcObject = this.#sink.stream;
    this.#element.onplaying = changed;
    this.#element.onpause = changed;
  }

  /** What is to be heard. */
  attach(from: AudioNode): void {
    this.#from = from;
    this.#connect();
  }

  /** Whether what is rendered is heard, once the context runs. */
  get playing(): boolean {
    return this.#route === "direct" || !this.#element.paused;
  }

  /** Asks the browser to let it sound; of use after a gesture. */
  play(): void {
    this.#element.play().then(
      () => this.#take("element"),
      (cause: unknown) => {
        // With a context that does not run either, it is the page that may not sound yet.
        if (this.#element.srcObject !== null && this.#context.state === "running") {
          this.#take("direct", cause);
        }
      },
    );
  }

  /** Plays on a device; "" is the default one. False where the browser has no choice. */
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
