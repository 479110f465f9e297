// Whether a page has settled: what it keeps must not grow for ever.

/** What a page keeps at the end of a minute, after the garbage was collected. */
export interface Kept {
  heapMb: number;
  nodes: number;
  listeners: number;
}

/** By then all that is bounded is full: the turns' audio, the log, the wave. */
export const SETTLED_MINUTES = 10;

/** So much one minute may have more than another, without anything growing. */
const SLACK: Kept = { heapMb: 0.75, nodes: 60, listeners: 20 };

/** What has grown after the tenth minute, in words: the least of the last two minutes against the most of the tenth and the eleventh. Too few minutes tell nothing. */
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
