/** An analyser of a playing signal, created on first use. */
export class Tap {
  readonly #context: AudioContext;
  readonly #from: AudioNode;
  #sink: MediaStreamAudioDestinationNode | undefined;
  #analyser: AnalyserNode | undefined;
  #bins = new Uint8Array(0);

  constructor(context: AudioContext, from: AudioNode) {
    this.#context = context;
    this.#from = from;
  }

  get stream(): MediaStream {
    if (this.#sink === undefined) {
      this.#sink = this.#context.createMediaStreamDestination();
      this.#from.connect(this.#sink);
    }
    return this.#sink.stream;
  }

  /** See Speaker.frequencyData. */
  frequencyData(): Uint8Array {
    if (this.#analyser === undefined) {
      this.#analyser = this.#context.createAnalyser();
      this.#from.connect(this.#analyser);
      this.#bins = new Uint8Array(this.#analyser.frequencyBinCount);
    }
    this.#analyser.getByteFrequencyData(this.#bins);
    return this.#bins;
  }
}
