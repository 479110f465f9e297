import { useEffect, useState } from "preact/hooks";

/** The time in ms since the epoch, updated every everyMs while `on`. */
export function useNow(everyMs: number, on = true): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!on) {
      return undefined;
    }
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, on]);
  return now;
}
