// The low-pass filter of the sample rate converter: polyphase, Kaiser-windowed sinc. The design is the same
// as the gateway's (audio/filter.go).

/** Passband and stopband edges, as fractions of the lower rate. Aliasing begins at STOP. */
const PASS = 0.43;
const STOP = 0.5;
/** About the noise floor of PCM16. */
const ATTENUATION_DB = 96;

// With more phases, the nearest one is used. Common rates need at most 441 (48 000 to 44 100) and are exact.
const MAX_PHASES = 1024;

/** The filter for one pair of rates. Immutable, so streams can share it. */
export interface Filter {
  phases: number;
  /** Coefficients per phase, a multiple of four. The centre of phase 0 is taps/2 - 1. */
  taps: number;
  /** All phases in order, each in the order of its input samples. */
  table: Float32Array;
}

/** Rates in Hz, whole numbers. `of` is the number of phases for an exact result. */
export function design(from: number, to: number, of: number): Filter {
  const phases = Math.min(of, MAX_PHASES);
  if (from === to) {
    return { phases: 1, taps: 4, table: Float32Array.of(0, 1, 0, 0) };
  }
  // In cycles per input sample. Length and beta follow Kaiser's formulas (J. F. Kaiser, "Nonrecursive digital
  // filter design using the I0-sinh window function", 1974).
  const lower = Math.min(1, to / from);
  const cutoff = ((STOP + PASS) / 2) * lower;
  const beta = 0.1102 * (ATTENUATION_DB - 8.7);
  const length = (ATTENUATION_DB - 7.95) / (2.285 * 2 * Math.PI * (STOP - PASS) * lower);
  const taps = Math.ceil((length + 1) / 4) * 4;

  const table = new Float32Array(phases * taps);
  const peak = bessel(beta);
  const row = new Float64Array(taps);
  for (let phase = 0; phase < phases; phase++) {
    let sum = 0;
    for (let tap = 0; tap < taps; tap++) {
      // Distance of this tap's sample from the output's instant.
      const at = tap - (taps / 2 - 1) - phase / phases;
      const edge = 1 - (at / (taps / 2)) ** 2;
      row[tap] = edge < 0 ? 0 : sinc(2 * cutoff * at) * (bessel(beta * Math.sqrt(edge)) / peak);
      sum += row[tap]!;
    }
    // Each phase has a DC gain of exactly one; otherwise the phases would modulate a constant.
    for (let tap = 0; tap < taps; tap++) {
      table[phase * taps + tap] = row[tap]! / sum;
    }
  }
  return { phases, taps, table };
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** Modified Bessel function of the first kind, order zero, as a power series. */
function bessel(x: number): number {
  const quarter = (x * x) / 4;
  let sum = 1;
  let term = 1;
  for (let k = 1; term > 1e-17 * sum; k++) {
    term *= quarter / (k * k);
    sum += term;
  }
  return sum;
}
