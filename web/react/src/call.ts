import { useEffect, useRef, useState } from "react";
import { VoiceSession, keptSession, type ConnectOptions, type Ended, type LocalEvents, type SessionState, type VoiceError } from "@voicegw/client";
import { Store, useStore } from "./store.js";

/** How a conversation by voice stands. */
export interface VoiceCall {
  /** The conversation, from start on and until the next one; null before the first. */
  session: VoiceSession | null;
  state: "idle" | SessionState;
  /** Why it could not be opened, or ended; undefined where it ended as it should. */
  error: VoiceError | undefined;
  /** The newest thing that went wrong while it went on, until it is dismissed. */
  warning: VoiceError | undefined;
  /** What has become of the microphone; null before it was asked for. */
  microphone: LocalEvents["microphone"] | null;
  /** How it ended; undefined while it goes on. */
  ended: Ended | undefined;
}

/** What useVoiceSession returns: how it stands, and what can be done. The functions are always the same ones. */
export interface VoiceControls {
  /**
   * Opens a conversation. Call it from a click or key press: browsers start audio only then.
   * Resolves when it is open or could not be opened; the state tells which. Does nothing
   * while there is one.
   */
  start(): Promise<void>;
  /**
   * Goes on with the conversation in which the page was loaded again, for an effect of the
   * component: begins no new call if no call was open. Resolves when it is open or could not be
   * taken up. Does nothing while there is one.
   */
  resume(): Promise<void>;
  end(): void;
  dismiss(): void;
}

const IDLE: VoiceCall = { session: null, state: "idle", error: undefined, warning: undefined, microphone: null, ended: undefined };

/** Holds one conversation after another. */
class CallStore extends Store<VoiceCall> {
  constructor() {
    super(IDLE);
  }

  async start(options: ConnectOptions): Promise<void> {
    const { state } = this.get();
    if (state !== "idle" && state !== "ended") {
      return;
    }
    const session = new VoiceSession(options);
    const change = (part: Partial<VoiceCall>): void => {
      // What an earlier conversation still has to say is not about this one.
      if (this.get().session === session) {
        this.set({ ...this.get(), ...part });
      }
    };
    session.on("state", (next) => change({ state: next }));
    session.on("microphone", (microphone) => change({ microphone }));
    session.on("warning", (warning) => change({ warning }));
    session.on("ended", (ended) => change({ ended, error: ended.error }));
    this.set({ ...IDLE, session, state: session.state });
    // Why it could not be opened comes with `ended`, too.
    await session.open().catch(() => undefined);
  }

  async resume(options: ConnectOptions): Promise<void> {
    const { keep } = options;
    const kept = keep === false ? null : keptSession(keep);
    // Where nobody has seen the page go, this may be a copy of a tab whose call goes on.
    if (kept !== null && kept.leftAt !== null) {
      await this.start({ ...options, resume: "only" });
    }
  }

  end(): void {
    void this.get().session?.end();
  }

  dismiss(): void {
    this.set({ ...this.get(), warning: undefined });
  }
}

/**
 * A conversation by voice that a component begins and ends; it ends with the component, too.
 * The options are those of the moment in which start is called.
 */
export function useVoiceSession(options: ConnectOptions = {}): VoiceCall & VoiceControls {
  const newest = useRef(options);
  useEffect(() => {
    newest.current = options;
  });
  const [{ store, controls }] = useState(() => {
    const store = new CallStore();
    const controls: VoiceControls = {
      start: () => store.start(newest.current),
      resume: () => store.resume(newest.current),
      end: () => store.end(),
      dismiss: () => store.dismiss(),
    };
    return { store, controls };
  });
  useEffect(() => () => store.end(), [store]);
  return { ...useStore(store), ...controls };
}
