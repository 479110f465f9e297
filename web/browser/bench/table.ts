// Output of the measurements.

/** The percentile by the nearest-rank method. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil((percent / 100) * sorted.length) - 1)] ?? NaN;
}

/** A table row with the median, 95th percentile and maximum. */
export function spread(name: string, values: readonly number[], unit: string): string[] {
  const shown = (value: number) => value.toFixed(1);
  return [name, `${shown(percentile(values, 50))} ${unit}`, `${shown(percentile(values, 95))} ${unit}`, `${shown(percentile(values, 100))} ${unit}`, String(values.length)];
}

/** Prints rows in columns; the first row is the heading. */
export function print(rows: readonly (readonly string[])[]): void {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  process.stdout.write(`\n${rows.map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join("   ")).join("\n")}\n\n`);
}
