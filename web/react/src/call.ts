import { useEffect, useRef, useState } from "react";
import { VoiceSession, keptSession, type AgentState, type ConnectOptions, type Disconnected, type LocalEvents, type SessionState, type VoiceError } from "@voicegw/client";
import { Store, useStore } from "./store.js";

/** The state of a voice conversation. */
export interface VoiceCall {
  /** The conversation, from connect until the next one begins; null before the first. */
  session: VoiceSession | null;
  state: "idle" | SessionState;
  /** Why it could not be opened or ended; undefined after a normal end. */
  error: VoiceError | undefined;
  /** The newest error that did not end the conversation, until it is dismissed. */
  warning: VoiceError | undefined;
  /** The microphone's state; null before it was requested. */
  microphone: LocalEvents["microphone"] | null;
  /** Whether the microphone is muted. */
  muted: boolean;
  /** The agent's activity. `speaking` means that its voice plays here. */
  agentState: AgentState;
  /** How the conversation ended; undefined before. */
  disconnected: Disconnected | undefined;
}

/** The result of useVoiceSession: the state and the actions. The functions never change. */
export interface VoiceControls {
  /**
   * Opens a conversation. Call it from a click or key press, because browsers start audio only then. Resolves
   * when it is open or has failed; the state shows which. Does nothing during a conversation.
   */
  connect(): Promise<void>;
  /**
   * Resumes the conversation after the page reloads; for an effect of the component. Never begins a new call.
   * Resolves when it is open or could not be resumed. Does nothing during a conversation.
   */
  resume(): Promise<void>;
  disconnect(): void;
  /** Mutes or unmutes the microphone. Does nothing without a conversation. */
  mute(muted: boolean): void;
  /** Clears the warning. */
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
      // Ignore late events of an earlier conversation.
      if (this.get().session === session) {
        this.set({ ...this.get(), ...part });
      }
    };
    session.on("state", (next) => change({ state: next }));
    session.on("microphone", (microphone) => change({ microphone, muted: session.muted }));
    session.on("agentState", (agentState) => change({ agentState }));
    session.on("error", (warning) => {
      // An error that ends the conversation also arrives with `disconnected`.
      if (session.state !== "disconnected") {
        change({ warning });
      }
    });
    session.on("disconnected", (disconnected) => change({ disconnected, error: disconnected.error }));
    this.set({ ...IDLE, session, state: session.state });
    // `disconnected` reports the error too.
    await session.open().catch(() => undefined);
  }

  async resume(options: ConnectOptions): Promise<void> {
    const { keep } = options;
    const kept = keep === false ? null : keptSession(keep);
    // Otherwise this may be a copy of a tab whose call continues.
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
 * A voice conversation that a component begins and ends; it also ends when the component unmounts. connect
 * uses the options of the moment it is called.
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
