/**
 * Calls `back` each time the browser is online again or the page becomes visible. Call the returned function to
 * stop.
 */
export function whenBack(back: () => void): () => void {
  const seen = (): void => {
    if (document.visibilityState === "visible") {
      back();
    }
  };
  globalThis.addEventListener("online", back);
  document.addEventListener("visibilitychange", seen);
  return () => {
    globalThis.removeEventListener("online", back);
    document.removeEventListener("visibilitychange", seen);
  };
}
