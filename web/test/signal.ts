// Test signals and what to measure on them.

/** A sine of a frequency (Hz), at a rate (Hz), of a length in samples. */
export function sine(frequency: number, rate: number, length: number, amplitude = 0.5): Float32Array {
  return Float32Array.from({ length }, (_, i) => amplitude * Math.sin((2 * Math.PI * frequency * i) / rate));
}

/** The same as PCM16. */
export function tone(rate: number, ms: number, frequency = 440): Int16Array {
  return Int16Array.from(sine(frequency, rate, (rate * ms) / 1000), (x) => Math.round(x * 32767));
}

/**
 * Signal to noise in dB: how much of the block is a sine of this frequency, of
 * whatever phase and amplitude, and how much is something else.
 */
export function purity(block: Float32Array, frequency: number, rate: number): number {
  let re = 0;
  let im = 0;
  let energy = 0;
  block.forEach((x, i) => {
    const angle = (2 * Math.PI * frequency * i) / rate;
    re += x * Math.cos(angle);
    im += x * Math.sin(angle);
    energy += x * x;
  });
  const wanted = (2 * (re * re + im * im)) / block.length;
  return 10 * Math.log10(wanted / Math.max(energy - wanted, 1e-20));
}

/** Root mean square in dB of full scale. */
export function decibel(block: Float32Array): number {
  const sum = block.reduce((total, x) => total + x * x, 0);
  return 10 * Math.log10(Math.max(sum / block.length, 1e-20));
}
