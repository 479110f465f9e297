import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

/** So close to the end (in pixels) a list follows what is new. */
const NEAR_END = 48;

/**
 * Keeps the end of a scroller in sight while the user is there, whatever comes or changes
 * its size: before the frame in which that is seen, and with no layout of its own. Its children
 * are the same while it is `on`. Elsewhere, and while it is not `on`, nothing moves. Returns
 * whether the end is in sight, and a way to go there.
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
      // Another size scrolls too, and says nothing about what the user wants.
      if (measure() === size.current) {
        const near = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END;
        // More may have come since this has scrolled to the end, and is followed in the next frame.
        following.current = near || (following.current && scroller.scrollTop === end);
        setAtEnd(following.current);
        anchor();
      }
    };
    let end = 0;
    // At the end, the browser must not hold on to what is seen: it would go up with it when lines go at the top.
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
    // A keyboard that comes up on a phone, a question, a picture must not hide the newest line.
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
