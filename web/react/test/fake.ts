// A session without a gateway, for the tests of the hooks.
import { Emitter, VoiceError, type ConnectOptions, type Disconnected, type SessionState, type VoiceEvents } from "@voicegw/client";
import { vi } from "vitest";

/** Replaces VoiceSession; the test emits the events. */
export class FakeSession extends Emitter<VoiceEvents> {
  /** All instances, oldest first. */
  static all: FakeSession[] = [];

  state: SessionState = "connecting";
  readonly approve = vi.fn<(token: string) => void>();
  readonly decline = vi.fn<(token: string) => void>();
  muted = false;
  ends = 0;
  #opening: { resolve: () => void; reject: (error: VoiceError) => void } | undefined;

  constructor(readonly options: ConnectOptions = {}) {
    super();
    FakeSession.all.push(this);
  }

  static get last(): FakeSession {
    return FakeSession.all.at(-1)!;
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => (this.#opening = { resolve, reject }));
  }

  disconnect(): Promise<Disconnected> {
    this.ends++;
    const ended: Disconnected = { reason: "client_ended", code: 1000, error: undefined, handback: undefined };
    this.finish(ended);
    return Promise.resolve(ended);
  }

  // The test emits events with these.

  started(): void {
    this.change("connected");
    this.#opening?.resolve();
  }

  finish(ended: Disconnected): void {
    if (this.state !== "disconnected") {
      this.change("disconnected");
      this.#opening?.reject(ended.error ?? new VoiceError("aborted"));
      this.tell("disconnected", ended);
    }
  }

  change(state: SessionState): void {
    this.state = state;
    this.tell("state", state);
  }

  tell<T extends keyof VoiceEvents>(type: T, event: VoiceEvents[T]): void {
    this.emit(type, event);
  }
}
