// Checks that a page's memory stops growing.

/** A page's size at the end of a minute, after a garbage collection. */
export interface Kept {
  heapMb: number;
  nodes: number;
  listeners: number;
}

/** By then every bounded buffer is full: the turns' audio, the log, the waveform. */
export const SETTLED_MINUTES = 10;

/** The tolerance between two minutes. */
const SLACK: Kept = { heapMb: 0.75, nodes: 60, listeners: 20 };

/**
 * Lists the values that grew after the tenth minute: the lower of the last two minutes against the higher of the
 * tenth and the eleventh. Empty if there are too few minutes.
 */
export function grown(minutes: readonly Kept[]): string[] {
  const later = minutes.slice(SETTLED_MINUTES - 1);
  if (later.length < 4) {
    return [];
  }
  return (Object.keys(SLACK) as (keyof Kept)[]).flatMap((what) => {
    const before = Math.max(...later.slice(0, 2).map((kept) => kept[what]));
    const after = Math.min(...later.slice(-2).map((kept) => kept[what]));
    return after > before + SLACK[what] ? [`${what}: ${before.toFixed(1)} after minute ${SETTLED_MINUTES}, ${after.toFixed(1)} after minute ${minutes.length}`] : [];
  });
}
