import { useRef, useState } from "preact/hooks";

interface Keyed {
  readonly key: string;
}

/** The visible part of a list, and the number of older items hidden. */
export interface Newest<T> {
  shown: readonly T[];
  hidden: number;
  /** Shows that many more. */
  earlier: () => void;
}

/**
 * Returns where the visible part of a list begins: at its newest `most` items, or, with `stay`, where it
 * began before. `first` is the key of the item where it began, if it still exists.
 */
export function begins(all: readonly Keyed[], most: number, first: string | undefined, stay: boolean): number {
  const newest = Math.max(0, all.length - most);
  const before = stay ? all.findIndex(({ key }) => key === first) : -1;
  return before < 0 ? newest : Math.min(before, newest);
}

/**
 * Shows the newest items of a growing list, because a page with all of them would become slow. Removes
 * nothing while the user is `elsewhere` than at the end or has asked for earlier items; both end when the
 * user returns to the end.
 */
export function useNewest<T extends Keyed>(all: readonly T[], most: number, elsewhere: boolean): Newest<T> {
  const first = useRef<string | undefined>(undefined);
  const asked = useRef(false);
  const was = useRef(elsewhere);
  const [, again] = useState(0);
  if (was.current && !elsewhere) {
    asked.current = false;
  }
  was.current = elsewhere;
  const begin = begins(all, most, first.current, elsewhere || asked.current);
  first.current = all[begin]?.key;
  const earlier = (): void => {
    asked.current = true;
    first.current = all[Math.max(0, begin - most)]?.key;
    again((count) => count + 1);
  };
  return { shown: begin === 0 ? all : all.slice(begin), hidden: begin, earlier };
}
