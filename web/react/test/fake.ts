// A conversation without a gateway, for the tests of hooks.
import { Emitter, VoiceError, type ConnectOptions, type Ended, type SessionState, type VoiceEvents } from "@voicegw/client";
import { vi } from "vitest";

/** In the place of VoiceSession: the test says what happens. */
export class FakeSession extends Emitter<VoiceEvents> {
  /** All that were made, oldest first. */
  static all: FakeSession[] = [];

  state: SessionState = "connecting";
  readonly resolve = vi.fn<(token: string, approved: boolean) => void>();
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

  end(): Promise<Ended> {
    this.ends++;
    const ended: Ended = { reason: "client_ended", code: 1000, error: undefined, handback: undefined };
    this.finish(ended);
    return Promise.resolve(ended);
  }

  // What the test says.

  started(): void {
    this.change("open");
    this.#opening?.resolve();
  }

  finish(ended: Ended): void {
    if (this.state !== "ended") {
      this.change("ended");
      this.#opening?.reject(ended.error ?? new VoiceError("aborted"));
      this.tell("ended", ended);
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
