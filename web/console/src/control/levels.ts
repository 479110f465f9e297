import type { LocalEvents } from "@voicegw/client";

type Level = LocalEvents["level"];
type Listener = (level: number) => void;

/** The levels of both sides, 25 per second. Not part of the state, so meters move without rendering the page. */
export class Levels {
  private readonly listeners: { [S in Level["side"]]: Set<Listener> } = { user: new Set(), model: new Set() };

  /** Calls back with each RMS level, 0 to 1. Call the returned function to stop. */
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
