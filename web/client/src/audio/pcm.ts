// Converts between PCM16 and float samples, and measures levels.

/** Full scale of PCM16. */
export const FULL_SCALE = 32768;

/** Writes out[i] = input[i] as PCM16, clipped to full scale. */
export function toPcm16(input: Float32Array, out: Int16Array): void {
  for (let i = 0; i < out.length; i++) {
    const sample = Math.round((input[i] ?? 0) * FULL_SCALE);
    out[i] = Math.max(-FULL_SCALE, Math.min(FULL_SCALE - 1, sample));
  }
}

/** Root mean square of a block, 0 to 1. */
export function rms(block: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < block.length; i++) {
    sum += block[i]! * block[i]!;
  }
  return block.length === 0 ? 0 : Math.sqrt(sum / block.length);
}
