// PCM16 and float samples, and how loud they are.

/** Full scale of PCM16. */
const SCALE = 32768;

/** Writes out[i] = input[i] as PCM16, clipping what is beyond full scale. */
export function toPcm16(input: Float32Array, out: Int16Array): void {
  for (let i = 0; i < out.length; i++) {
    const sample = Math.round((input[i] ?? 0) * SCALE);
    out[i] = Math.max(-SCALE, Math.min(SCALE - 1, sample));
  }
}

/** Writes count samples of input, from an offset, as floats to out. */
export function toFloat(input: Int16Array, from: number, count: number, out: Float32Array): void {
  for (let i = 0; i < count; i++) {
    out[i] = input[from + i]! / SCALE;
  }
}

/** Root mean square of a block, 0 to 1. */
export function rms(block: Float32Array): number {
  let sum = 0;
  for (const sample of block) {
    sum += sample * sample;
  }
  return block.length === 0 ? 0 : Math.sqrt(sum / block.length);
}

/** A meter's position for an RMS value: 0 at -60 dB, 1 at -6 dB and above. */
export function meterPosition(level: number): number {
  if (level <= 0) {
    return 0;
  }
  const db = 20 * Math.log10(level);
  return Math.max(0, Math.min(1, (db + 60) / 54));
}
