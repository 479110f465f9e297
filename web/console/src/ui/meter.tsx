import { useEffect, useRef } from "preact/hooks";
import type { Levels } from "../control/levels.js";
import "./meter.css";

/** Share that is left of a peak after one frame of the display. */
const DECAY = 0.86;

/** A meter's position for an RMS value: 0 at -60 dB, 1 at -6 dB and above. */
function meterPosition(level: number): number {
  if (level <= 0) {
    return 0;
  }
  const db = 20 * Math.log10(level);
  return Math.max(0, Math.min(1, (db + 60) / 54));
}

/** A level bar: rises at once, falls slowly, rests when nothing moves. */
export function Meter({ levels, side }: { levels: Levels; side: "user" | "model" }) {
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let wanted = 0;
    let shown = 0;
    let frame = 0;
    const move = (): void => {
      shown = Math.max(wanted, shown * DECAY);
      shown = shown < 0.005 ? 0 : shown;
      bar.current?.style.setProperty("transform", `scaleX(${shown.toFixed(3)})`);
      frame = shown > 0 ? requestAnimationFrame(move) : 0;
    };
    const off = levels.on(side, (level) => {
      wanted = meterPosition(level);
      if (frame === 0 && wanted > 0) {
        frame = requestAnimationFrame(move);
      }
    });
    return () => {
      off();
      cancelAnimationFrame(frame);
    };
  }, [levels, side]);
  return (
    <div class={`meter meter-${side}`} aria-hidden="true">
      <div ref={bar} />
    </div>
  );
}
