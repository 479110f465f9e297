import { useEffect, useRef } from "preact/hooks";
import type { Levels } from "../control/levels.js";
import { Drawing } from "./drawing.js";
import { TICK_MS, ticks } from "./ticks.js";
import "./meter.css";

/** The share of a peak left at the next drawing. */
const DECAY = 0.5;
/** Steps of a meter; finer ones are not visible. */
const STEPS = 50;

/** A meter's position for an RMS value: 0 at -60 dB, 1 at -6 dB and above. */
function meterPosition(level: number): number {
  if (level <= 0) {
    return 0;
  }
  const db = 20 * Math.log10(level);
  return Math.max(0, Math.min(1, (db + 60) / 54));
}

/** A level bar that rises at once, falls slowly, and draws nothing while still. */
export function Meter({ levels, side, muted = false }: { levels: Levels; side: "user" | "model"; muted?: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    let newest = 0;
    let peak = 0;
    let shown = 0;
    const calm = matchMedia("(prefers-reduced-motion: reduce)");
    const show = (): void => drawing.show({ kind: "level", side, share: shown, glideMs: calm.matches ? 0 : TICK_MS });
    const drawing = new Drawing(canvas.current!, show);
    const move = (): void => {
      const next = Math.round(Math.max(peak, shown * DECAY) * STEPS) / STEPS;
      peak = newest;
      if (next !== shown) {
        shown = next;
        show();
      }
      if (shown > 0) {
        ticks.ask(move);
      }
    };
    const off = levels.on(side, (level) => {
      newest = meterPosition(level);
      peak = Math.max(peak, newest);
      if (peak > 0) {
        ticks.ask(move);
      }
    });
    return () => {
      off();
      ticks.drop(move);
      drawing.close();
    };
  }, [levels, side]);
  return (
    <div class={`meter meter-${side}`} data-muted={muted} aria-hidden="true">
      <canvas ref={canvas} />
    </div>
  );
}
