// The page's colours, for what is drawn: a canvas knows no style sheet.

const COLOURS = ["ink", "faint", "line", "edge", "accent", "raised", "sunken", "user", "model", "warn", "bad"] as const;

export type Palette = Record<(typeof COLOURS)[number], string>;

/** The colours as they are within an element now. */
export function paletteOf(host: Element): Palette {
  const probe = document.createElement("span");
  probe.hidden = true;
  // In the system's own colours the tokens name them; nothing else is to take their place.
  probe.style.setProperty("forced-color-adjust", "none");
  host.append(probe);
  const palette = {} as Palette;
  for (const name of COLOURS) {
    probe.style.color = `var(--${name})`;
    palette[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return palette;
}

/** Calls back whenever the colours may have changed; the function returned ends that. */
export function onTheme(changed: () => void): () => void {
  const queries = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"].map((query) => matchMedia(query));
  queries.forEach((query) => query.addEventListener("change", changed));
  // The page may let its user choose.
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true });
  return () => {
    queries.forEach((query) => query.removeEventListener("change", changed));
    observer.disconnect();
  };
}
