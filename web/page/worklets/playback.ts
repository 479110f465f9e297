// The audio thread's half of the loudspeaker.
import { rms } from "../pcm.js";
import { PlayQueue } from "../playqueue.js";
import { PLAYBACK, type PlayCommand, type PlayNotice } from "./messages.js";

/** Levels are sent about 25 times a second: enough for an eye. */
const LEVEL_SECONDS = 0.04;

class PlaybackProcessor extends AudioWorkletProcessor {
  private readonly queue: PlayQueue;
  private closed = false;
  private loudest = 0;
  private sinceLevel = 0;
  private quiet = true;

  constructor(options: AudioWorkletNodeOptions) {
    super(options);
    this.queue = new PlayQueue(sampleRate, (event) => this.tell(event));
    this.port.onmessage = (event: MessageEvent<PlayCommand>) => this.obey(event.data);
  }

  process(_inputs: Float32Array[][], outputs: Float32Array[][]): boolean {
    const out = outputs[0]?.[0];
    if (out !== undefined) {
      this.queue.pull(out);
      this.meter(out);
    }
    return !this.closed;
  }

  private obey(command: PlayCommand): void {
    switch (command.type) {
      case "start":
        return this.queue.start(command.item, command.rate);
      case "audio":
        return this.queue.push(command.item, new Int16Array(command.pcm));
      case "end":
        return this.queue.end(command.item);
      case "flush":
        return this.queue.flush(command.item);
      case "close":
        this.closed = true;
    }
  }

  private meter(out: Float32Array): void {
    this.loudest = Math.max(this.loudest, rms(out));
    this.sinceLevel += out.length;
    if (this.sinceLevel < LEVEL_SECONDS * sampleRate) {
      return;
    }
    // One zero after the sound, then nothing until there is sound again.
    if (this.loudest > 0 || !this.quiet) {
      this.tell({ type: "level", level: this.loudest });
    }
    this.quiet = this.loudest === 0;
    this.loudest = 0;
    this.sinceLevel = 0;
  }

  private tell(notice: PlayNotice): void {
    this.port.postMessage(notice);
  }
}

registerProcessor(PLAYBACK, PlaybackProcessor);
