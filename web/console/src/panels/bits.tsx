// Small components shared by the instruments.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Chip } from "./words-instruments.js";

/** performance.now(), updated a few times a second while `active`. */
export function useNow(active: boolean): number {
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    if (!active) {
      return undefined;
    }
    setNow(performance.now());
    const timer = setInterval(() => setNow(performance.now()), 200);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}

/** Shown if there is nothing else. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="i-empty">{children}</p>;
}

export function Chips({ chips }: { chips: readonly Chip[] }) {
  return (
    <>
      {chips.map(({ text, tone, title }) => (
        <span key={text} class={`i-chip i-chip-${tone}`} title={title}>
          {text}
        </span>
      ))}
    </>
  );
}

/** A name and its value in a list. An unknown value is not shown. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return children === undefined || children === "" || children === null ? null : (
    <div class="i-fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Downloads content as a file. */
export function save(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // By then the browser has started to read it.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
