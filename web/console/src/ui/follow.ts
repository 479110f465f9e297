import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

/** Within this distance (in pixels) of its end, a list follows new content. */
const NEAR_END = 48;

/**
 * Keeps the end of a scroller visible while the user is there, regardless of new content and size changes. It
 * scrolls before the frame is painted and causes no layout of its own. Its children stay the same while it is
 * `on`. Returns whether the end is visible, and a function that scrolls there.
 */
export function useFollow<E extends HTMLElement>(on: boolean): { ref: RefObject<E | null>; atEnd: boolean; toEnd: () => void } {
  const ref = useRef<E>(null);
  const following = useRef(true);
  const size = useRef("");
  const [atEnd, setAtEnd] = useState(true);

  const toEnd = (): void => {
    following.current = true;
    setAtEnd(true);
    ref.current?.scrollTo({ top: ref.current.scrollHeight });
  };

  useEffect(() => {
    const scroller = ref.current;
    if (scroller === null || !on) {
      return undefined;
    }
    const measure = (): string => `${scroller.clientWidth}x${scroller.clientHeight}`;
    const scrolled = (): void => {
      // A size change scrolls too, but is not the user's action.
      if (measure() === size.current) {
        const near = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END;
        // More content may have arrived since the last scroll; the next frame follows it.
        following.current = near || (following.current && scroller.scrollTop === end);
        setAtEnd(following.current);
        anchor();
      }
    };
    let end = 0;
    // At the end, scroll anchoring would move the view up when lines are removed at the top.
    const anchor = (): void => void (scroller.style.overflowAnchor = following.current ? "none" : "auto");
    const follow = (): void => {
      size.current = measure();
      anchor();
      if (following.current) {
        scroller.scrollTop = scroller.scrollHeight;
        end = scroller.scrollTop;
      }
    };
    scroller.addEventListener("scroll", scrolled, { passive: true });
    // A phone's keyboard, a question or a picture must not hide the newest line.
    const watch = new ResizeObserver(follow);
    watch.observe(scroller);
    for (const child of scroller.children) {
      watch.observe(child);
    }
    return () => {
      scroller.removeEventListener("scroll", scrolled);
      watch.disconnect();
    };
  }, [on]);

  return { ref, atEnd, toEnd };
}
