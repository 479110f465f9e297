"use strict";
// Draws the charts of the page's data with uPlot.
(() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colours = { s1: "--c1", s2: "--c2", s3: "--c3", bad: "--bad" };
  const number = (v) => v.toLocaleString("en-US", { maximumFractionDigits: Math.abs(v) < 10 ? 2 : 1 });

  const clock = (ms) => {
    const s = Math.round(ms / 1000), two = (n) => String(n).padStart(2, "0");
    if (s >= 3600) return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
    return s >= 60 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${s} s`;
  };

  // What is across: how it is labelled, where its ticks may stand, and its scale.
  const across = {
    time: {
      label: clock,
      axis: { incrs: [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800].map((s) => s * 1000) },
    },
    share: {
      label: (q) => `${+(q * 100).toFixed(4)} %`,
      axis: {
        splits: (plot) => [0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999].filter((q) => q <= plot.scales.x.max),
        filter: (plot, splits) => splits,
      },
      // The slow ones have most of the room.
      scale: { distr: 100, fwd: (q) => -Math.log10(1 - Math.min(q, 0.99999)), inv: (v) => 1 - 10 ** -v },
    },
    sessions: { label: number, axis: { splits: (plot) => plot.data[0], filter: (plot, splits) => splits } },
  };

  const styles = {
    line: (colour) => ({ width: 2, stroke: colour }),
    area: (colour) => ({ width: 2, stroke: colour, fill: () => colour() + "22" }),
    dots: (colour) => ({ stroke: colour, paths: () => null, points: { show: true, size: 4, fill: colour } }),
    bars: (colour) => ({ stroke: colour, fill: colour, paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } }),
  };

  const limit = (value) => (plot) => {
    const y = plot.valToPos(value, "y", true), { left, width } = plot.bbox, ctx = plot.ctx;
    ctx.save();
    ctx.strokeStyle = css("--bad");
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    ctx.moveTo(left, y);
    ctx.lineTo(left + width, y);
    ctx.stroke();
    ctx.restore();
  };

  const draw = (chart, box) => {
    const { label, axis, scale } = across[chart.across];
    const value = (v) => (v == null ? "–" : `${number(v)} ${chart.unit}`.trim());
    const soft = { stroke: () => css("--soft"), font: "12px system-ui, sans-serif", ticks: { show: false } };
    const size = () => ({ width: box.clientWidth, height: 260 });
    const plot = new uPlot({
      ...size(),
      scales: {
        x: { time: false, ...scale },
        y: { range: (_, low, high) => uPlot.rangeNum(0, Math.max(high, 1.2 * (chart.limit || 0)) || 1, 0.05, true) },
      },
      axes: [
        { ...soft, ...axis, size: 30, grid: { show: false }, values: (_, ticks) => ticks.map(label) },
        { ...soft, size: 76, grid: { stroke: () => css("--rule"), width: 1 }, values: (_, ticks) => ticks.map(value) },
      ],
      series: [
        { label: "at", value: (_, v) => (v == null ? "" : label(v)) },
        ...chart.lines.map((l) => ({ label: l.name, value: (_, v) => value(v), ...styles[l.style](() => css(colours[l.class])) })),
      ],
      hooks: { draw: chart.limit ? [limit(chart.limit)] : [] },
    }, [chart.x, ...chart.lines.map((l) => l.y)], box);
    new ResizeObserver(() => plot.setSize(size())).observe(box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot.redraw());
  };

  const charts = JSON.parse(document.getElementById("charts").textContent);
  document.querySelectorAll(".plot").forEach((box, i) => draw(charts[i], box));
})();
