// Converts a whole recording to another sample rate.
import { toPcm16 } from "../../../client/src/audio/pcm.js";
import { Resampler } from "../../../client/src/audio/resample.js";

/** Below the resampler's limit per write. */
const FEED = 2048;

/** Converts PCM16; rates in Hz. */
export function resampled(pcm: Int16Array, from: number, to: number): Int16Array {
  if (from === to) {
    return pcm;
  }
  const resampler = new Resampler(from, to);
  const out = new Float32Array(Math.round((pcm.length * to) / from));
  let n = 0;
  for (let i = 0; i < pcm.length; i += FEED) {
    resampler.writePcm16(pcm, i, Math.min(pcm.length, i + FEED));
    n += resampler.read(out, n);
  }
  resampler.finish();
  resampler.read(out, n);
  const result = new Int16Array(out.length);
  toPcm16(out, result);
  return result;
}
