// Tells, for every block that sounds, its first frame on the audio clock and the mean of its channels.
registerProcessor("tap", class extends AudioWorkletProcessor {
  /**
   * @param {Float32Array[][]} inputs
   */
  process(inputs) {
    const channels = inputs[0] ?? [];
    const samples = Float32Array.from(channels[0] ?? [], (_, i) => channels.reduce((sum, channel) => sum + (channel[i] ?? 0), 0) / channels.length);
    if (samples.some((x) => x !== 0)) {
      this.port.postMessage({ frame: currentFrame, samples });
    }
    return true;
  }
});
