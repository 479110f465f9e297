// Tells, for every block that sounds, its first frame on the audio clock and its samples.
registerProcessor("tap", class extends AudioWorkletProcessor {
  /**
   * @param {Float32Array[][]} inputs
   */
  process(inputs) {
    const block = inputs[0]?.[0];
    if (block !== undefined && block.some((x) => x !== 0)) {
      this.port.postMessage({ frame: currentFrame, samples: block.slice() });
    }
    return true;
  }
});
