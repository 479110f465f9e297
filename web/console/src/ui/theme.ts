// The page's colours for canvases, which have no style sheets.

const COLOURS = ["ink", "faint", "line", "edge", "accent", "raised", "sunken", "user", "model", "warn", "bad"] as const;

export type Palette = Record<(typeof COLOURS)[number], string>;

/** The current colours within an element. */
export function paletteOf(host: Element): Palette {
  const probe = document.createElement("span");
  probe.hidden = true;
  // In forced-colours mode the tokens already contain system colours, which must not be replaced.
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

/** Calls back when the colours may have changed. Call the returned function to stop. */
export function onTheme(changed: () => void): () => void {
  const queries = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"].map((query) => matchMedia(query));
  queries.forEach((query) => query.addEventListener("change", changed));
  // The page may let its user choose the theme.
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true });
  return () => {
    queries.forEach((query) => query.removeEventListener("change", changed));
    observer.disconnect();
  };
}
