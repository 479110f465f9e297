import type { VoiceSession } from "@voicegw/client";
import { Store, perSession, useStore } from "./store.js";

type Side = "user" | "model";

/** How loud one side is. */
class LevelStore extends Store<number> {
  constructor(session: VoiceSession | null, side: Side) {
    super(0);
    session?.on("level", (event) => {
      if (event.side === side) {
        this.set(event.level);
      }
    });
    // Nobody says that it is silent when nothing is measured any more.
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
 * How loud a side is, as RMS from 0 to 1, 25 times a second. Use it in a component of its
 * own, which alone is rendered so often.
 */
export function useLevel(session: VoiceSession | null, side: Side): number {
  return useStore(levelOf[side](session));
}
