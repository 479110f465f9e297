import { useRef, useState } from "preact/hooks";

interface Keyed {
  readonly key: string;
}

/** What is shown of a list, and how many of it, the oldest, are not. */
export interface Newest<T> {
  shown: readonly T[];
  hidden: number;
  /** Shows so many more. */
  earlier: () => void;
}

/**
 * Where the part of a list that is shown begins: with its newest `most`, or where it began before, if
 * that is to `stay`. `first` is the key of the item with which it began; what is gone is not waited for.
 */
export function begins(all: readonly Keyed[], most: number, first: string | undefined, stay: boolean): number {
  const newest = Math.max(0, all.length - most);
  const before = stay ? all.findIndex(({ key }) => key === first) : -1;
  return before < 0 ? newest : Math.min(before, newest);
}

/**
 * The newest items of a list that grows: a page that showed all of it would cost more with each. Nothing is
 * taken away while the user is `elsewhere` than at the end, or has asked for what came earlier; both are over when
 * the user is back at the end.
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
