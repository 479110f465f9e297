// The response times of the last turns as a plot, with median and 95th percentile.
import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { history } from "../model/turns.js";
import { onTheme, paletteOf } from "../ui/theme.js";
import { LATENCY } from "./words-instruments.js";

const HEIGHT = 150;
/** The percentiles cover this many turns. */
const WINDOW = 50;

/** Response times in ms, oldest first. */
export function Plot({ waits }: { waits: readonly number[] }) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = useRef<uPlot.AlignedData>([[]]);
  const { p50, p95 } = history(waits, WINDOW);
  data.current = [waits.map((_, i) => i + 1), [...waits], p50, p95];

  useEffect(() => {
    const element = host.current!;
    let make = (): void => {};
    // The library is half of the page's code and used in one tab, so it loads on demand.
    void import("uplot").then(({ default: Plotter }) => {
      make = () => {
        plot.current?.destroy();
        plot.current = new Plotter(options(element), data.current, element);
      };
      if (host.current !== null) {
        make();
      }
    });
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    const offTheme = onTheme(() => make());
    return () => {
      resized.disconnect();
      offTheme();
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  const newest = waits.at(-1);
  useEffect(() => plot.current?.setData(data.current), [waits.length, newest]);

  return <div class="i-plot" ref={host} role="img" aria-label={LATENCY.plotAloud} />;
}

function options(element: HTMLElement): uPlot.Options {
  const colour = paletteOf(element);
  const font = `${getComputedStyle(element).fontSize} ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: colour.faint, font, grid: { stroke: colour.line, width: 1 }, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: (_, min, max) => [min - 0.5, Math.max(max, min + 1) + 0.5] }, y: { range: (_, __, max) => [0, Math.max(200, max * 1.1)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 24, gap: 4, incrs: [1, 2, 5, 10, 20, 50, 100], values: (_, marks) => marks.map((mark) => (Number.isInteger(mark) ? String(mark) : "")) },
      { ...axis, size: 56, gap: 6, values: (_, marks) => marks.map((mark) => (mark === 0 ? "0" : `${mark} ms`)) },
    ],
    series: [
      {},
      { stroke: colour.faint, fill: colour.faint, paths: () => null, points: { show: true, size: 5, fill: colour.faint, width: 0 } },
      { stroke: colour.accent, width: 2, points: { show: false } },
      { stroke: colour.warn, width: 2, dash: [5, 4], points: { show: false } },
    ],
  };
}
