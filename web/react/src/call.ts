import { useEffect, useRef, useState } from "react";
import { VoiceSession, keptSession, type AgentState, type ConnectOptions, type Disconnected, type LocalEvents, type SessionState, type VoiceError } from "@voicegw/client";
import { Store, useStore } from "./store.js";

/** How a conversation by voice stands. */
export interface VoiceCall {
  /** The conversation, from connect on and until the next one; null before the first. */
  session: VoiceSession | null;
  state: "idle" | SessionState;
  /** Why it could not be opened, or ended; undefined where it ended as it should. */
  error: VoiceError | undefined;
  /** The newest thing that went wrong while it went on, until it is dismissed. */
  warning: VoiceError | undefined;
  /** What has become of the microphone; null before it was asked for. */
  microphone: LocalEvents["microphone"] | null;
  /** Whether the microphone is muted. */
  muted: boolean;
  /** What the agent does: `speaking` is what sounds here. */
  agentState: AgentState;
  /** How it ended; undefined while it goes on. */
  disconnected: Disconnected | undefined;
}

/** What useVoiceSession returns: how it stands, and what can be done. The functions are always the same ones. */
export interface VoiceControls {
  /**
   * Opens a conversation. Call it from a click or key press: browsers start audio only then.
   * Resolves when it is open or could not be opened; the state tells which. Does nothing
   * while there is one.
   */
  connect(): Promise<void>;
  /**
   * Goes on with the conversation in which the page was loaded again, for an effect of the
   * component: begins no new call if no call was open. Resolves when it is open or could not be
   * taken up. Does nothing while there is one.
   */
  resume(): Promise<void>;
  disconnect(): void;
  /** Mutes the microphone, or lets it be heard again. Does nothing without a conversation. */
  mute(muted: boolean): void;
  /** Takes the warning away. */
  dismiss(): void;
}

const IDLE: VoiceCall = { session: null, state: "idle", error: undefined, warning: undefined, microphone: null, muted: false, agentState: "listening", disconnected: undefined };

/** Holds one conversation after another. */
class CallStore extends Store<VoiceCall> {
  constructor() {
    super(IDLE);
  }

  async connect(options: ConnectOptions): Promise<void> {
    const { state } = this.get();
    if (state !== "idle" && state !== "disconnected") {
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
    session.on("microphone", (microphone) => change({ microphone, muted: session.muted }));
    session.on("agentState", (agentState) => change({ agentState }));
    session.on("error", (warning) => {
      // What ends it comes with `disconnected`, too.
      if (session.state !== "disconnected") {
        change({ warning });
      }
    });
    session.on("disconnected", (disconnected) => change({ disconnected, error: disconnected.error }));
    this.set({ ...IDLE, session, state: session.state });
    // Why it could not be opened comes with `disconnected`, too.
    await session.open().catch(() => undefined);
  }

  async resume(options: ConnectOptions): Promise<void> {
    const { keep } = options;
    const kept = keep === false ? null : keptSession(keep);
    // Where nobody has seen the page go, this may be a copy of a tab whose call goes on.
    if (kept !== null && kept.leftAt !== null) {
      await this.connect({ ...options, resume: "only" });
    }
  }

  disconnect(): void {
    void this.get().session?.disconnect();
  }

  mute(muted: boolean): void {
    const { session } = this.get();
    if (session !== null) {
      session.muted = muted;
      this.set({ ...this.get(), muted });
    }
  }

  dismiss(): void {
    this.set({ ...this.get(), warning: undefined });
  }
}

/**
 * A conversation by voice that a component begins and ends; it ends with the component, too.
 * The options are those of the moment in which connect is called.
 */
export function useVoiceSession(options: ConnectOptions = {}): VoiceCall & VoiceControls {
  const newest = useRef(options);
  useEffect(() => {
    newest.current = options;
  });
  const [{ store, controls }] = useState(() => {
    const store = new CallStore();
    const controls: VoiceControls = {
      connect: () => store.connect(newest.current),
      resume: () => store.resume(newest.current),
      disconnect: () => store.disconnect(),
      mute: (muted) => store.mute(muted),
      dismiss: () => store.dismiss(),
    };
    return { store, controls };
  });
  useEffect(() => () => store.disconnect(), [store]);
  return { ...useStore(store), ...controls };
}
