// The loudspeaker's part on the audio thread.
import { rms } from "../pcm.js";
import { PlayQueue } from "../playqueue.js";
import { takers } from "./along.js";
import { PLAYBACK, type PlaybackOptions, type PlayCommand, type PlayNotice } from "./messages.js";

/** Levels are sent 25 times a second: enough for an eye. */
const LEVEL_SECONDS = 0.04;

class PlaybackProcessor extends AudioWorkletProcessor {
  readonly #queue: PlayQueue;
  readonly #pair: number;
  #closed = false;
  #loudest = 0;
  #sinceLevel = 0;
  #quiet = true;

  constructor(options: AudioWorkletNodeOptions) {
    super(options);
    const { rate, pair } = options.processorOptions as PlaybackOptions;
    this.#pair = pair;
    this.#queue = new PlayQueue(sampleRate, rate, (event) => this.#tell(event));
    this.port.onmessage = (event: MessageEvent<PlayCommand>) => this.#obey(event.data);
  }

  process(_inputs: Float32Array[][], outputs: Float32Array[][]): boolean {
    const out = outputs[0]?.[0];
    if (out !== undefined) {
      this.#queue.pull(out, currentFrame);
      this.#meter(out);
    }
    return !this.#closed;
  }

  #obey(command: PlayCommand): void {
    switch (command.type) {
      case "start":
        return this.#queue.start(command.item, command.rate);
      case "audio":
        return this.#queue.push(command.item, new Int16Array(command.pcm), command.at);
      case "end":
        return this.#queue.end(command.item);
      case "flush":
        return this.#queue.flush(command.item, command.at);
      case "latency":
        return this.#queue.setLatency(command.seconds);
      case "close":
        this.#closed = true;
    }
  }

  #meter(out: Float32Array): void {
    this.#loudest = Math.max(this.#loudest, rms(out));
    this.#sinceLevel += out.length;
    if (this.#sinceLevel < LEVEL_SECONDS * sampleRate) {
      return;
    }
    // Sends one zero after the sound, then nothing until it plays again. The zero is a message of its own
    // because it must arrive.
    const taken = this.#loudest > 0 && takers().get(this.#pair)?.(this.#loudest) === true;
    if (!taken && (this.#loudest > 0 || !this.#quiet)) {
      this.#tell({ type: "level", level: this.#loudest });
    }
    this.#quiet = this.#loudest === 0;
    this.#loudest = 0;
    this.#sinceLevel = 0;
  }

  #tell(notice: PlayNotice): void {
    this.port.postMessage(notice);
  }
}

registerProcessor(PLAYBACK, PlaybackProcessor);
