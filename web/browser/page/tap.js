// Reports, for every block that sounds, its first frame on the audio clock and the mean of its channels; null first,
// when it starts.
registerProcessor("tap", class extends AudioWorkletProcessor {
  listens = false;

  /**
   * @param {Float32Array[][]} inputs
   */
  process(inputs) {
    if (!this.listens) {
      this.listens = true;
      this.port.postMessage(null);
    }
    const channels = inputs[0] ?? [];
    const samples = Float32Array.from(channels[0] ?? [], (_, i) => channels.reduce((sum, channel) => sum + (channel[i] ?? 0), 0) / channels.length);
    if (samples.some((x) => x !== 0)) {
      this.port.postMessage({ frame: currentFrame, samples });
    }
    return true;
  }
});
