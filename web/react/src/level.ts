import type { VoiceSession } from "@voicegw/client";
import { Store, perSession, useStore } from "./store.js";

type Side = "user" | "model";

/** The level of one side. */
class LevelStore extends Store<number> {
  constructor(session: VoiceSession | null, side: Side) {
    super(0);
    session?.on("level", (event) => {
      if (event.side === side) {
        this.set(event.level);
      }
    });
    // No level event reports the end of the measurements.
    session?.on("state", (state) => {
      if (state === "disconnected") {
        this.set(0);
      }
    });
    session?.on("microphone", ({ state }) => {
      if (side === "user" && state !== "live") {
        this.set(0);
      }
    });
  }
}

const levelOf = {
  user: perSession((session) => new LevelStore(session, "user"), new LevelStore(null, "user")),
  model: perSession((session) => new LevelStore(session, "model"), new LevelStore(null, "model")),
};

/**
 * Returns the RMS level of a side, 0 to 1, updated 25 times a second. Use it in a small component of its own,
 * because each update renders.
 */
export function useLevel(session: VoiceSession | null, side: Side): number {
  return useStore(levelOf[side](session));
}
