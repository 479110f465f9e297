/** Calls back whenever the browser has a network again or the user looks at the page again; the function returned ends that. */
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
