// HTML, "user activation": what counts as a gesture, after which a page may make sound.
const GESTURES = ["keydown", "mousedown", "pointerup", "touchend"] as const;

/**
 * Calls back whenever a browser that has stopped the sound may let it go on: at a gesture
 * anywhere on the page, and when the page is seen again. What it returns ends that.
 */
export function onWake(call: () => void): () => void {
  const seen = (): void => {
    if (document.visibilityState === "visible") {
      call();
    }
  };
  for (const gesture of GESTURES) {
    window.addEventListener(gesture, call, { capture: true, passive: true });
  }
  window.addEventListener("pageshow", seen);
  document.addEventListener("visibilitychange", seen);
  return () => {
    for (const gesture of GESTURES) {
      window.removeEventListener(gesture, call, { capture: true });
    }
    window.removeEventListener("pageshow", seen);
    document.removeEventListener("visibilitychange", seen);
  };
}
