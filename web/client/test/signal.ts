// Test signals and measurements.

/** A sine: frequency and rate in Hz, length in samples. */
export function sine(frequency: number, rate: number, length: number, amplitude = 0.5): Float32Array {
  return Float32Array.from({ length }, (_, i) => amplitude * Math.sin((2 * Math.PI * frequency * i) / rate));
}

/** Random numbers from 0 to 1, repeatable by seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** White noise. */
export function noise(length: number, seed: number, amplitude = 0.5): Float32Array {
  const next = random(seed);
  return Float32Array.from({ length }, () => amplitude * (2 * next() - 1));
}

/** A sine as PCM16. */
export function tone(rate: number, ms: number, frequency = 440): Int16Array {
  return Int16Array.from(sine(frequency, rate, (rate * ms) / 1000), (x) => Math.round(x * 32767));
}

/** Signal to noise in dB: the part of the block that is a sine of this frequency, against the rest. */
export function purity(block: Float32Array, frequency: number, rate: number): number {
  // Least squares against sine and cosine, which are not quite orthogonal over a fractional number of periods; then
  // the energy of the residual.
  let cc = 0;
  let ss = 0;
  let cs = 0;
  let xc = 0;
  let xs = 0;
  const step = (2 * Math.PI * frequency) / rate;
  block.forEach((x, i) => {
    const c = Math.cos(step * i);
    const s = Math.sin(step * i);
    cc += c * c;
    ss += s * s;
    cs += c * s;
    xc += x * c;
    xs += x * s;
  });
  const det = cc * ss - cs * cs;
  const a = (xc * ss - xs * cs) / det;
  const b = (xs * cc - xc * cs) / det;
  let wanted = 0;
  let rest = 0;
  block.forEach((x, i) => {
    const fit = a * Math.cos(step * i) + b * Math.sin(step * i);
    wanted += fit * fit;
    rest += (x - fit) ** 2;
  });
  return 10 * Math.log10(wanted / Math.max(rest, 1e-20));
}

/** Root mean square in dB of full scale. */
export function decibel(block: Float32Array): number {
  const sum = block.reduce((total, x) => total + x * x, 0);
  return 10 * Math.log10(Math.max(sum / block.length, 1e-20));
}
