import type { LocalEvents } from "@voicegw/client";

type Level = LocalEvents["level"];
type Listener = (level: number) => void;

/**
 * How loud both sides are, 25 times a second. Not part of the state: meters move without
 * the page being drawn again.
 */
export class Levels {
  private readonly listeners: { [S in Level["side"]]: Set<Listener> } = { user: new Set(), model: new Set() };

  /** Calls back with each level as RMS, 0 to 1; the function returned ends that. */
  on(side: Level["side"], listener: Listener): () => void {
    this.listeners[side].add(listener);
    return () => void this.listeners[side].delete(listener);
  }

  tell({ side, level }: Level): void {
    for (const listener of this.listeners[side]) {
      listener(level);
    }
  }

  silence(): void {
    this.tell({ side: "user", level: 0 });
    this.tell({ side: "model", level: 0 });
  }
}
