// Gestures after which a page may play sound: HTML, "user activation".
const GESTURES = ["keydown", "mousedown", "pointerup", "touchend"] as const;

/**
 * Calls back when a browser that stopped the sound may allow it again: after a gesture on the page, and when
 * the page becomes visible. Call the returned function to stop.
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
