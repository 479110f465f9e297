import { useSyncExternalStore } from "react";
import type { VoiceSession } from "@voicegw/client";

/** A value that changes, and those who look at it. */
export class Store<T> {
  readonly #watchers = new Set<() => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  readonly get = (): T => this.#value;

  readonly subscribe = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  };

  set(value: T): void {
    if (!Object.is(value, this.#value)) {
      this.#value = value;
      for (const watcher of [...this.#watchers]) {
        watcher();
      }
    }
  }
}

/** The value of a store, now and whenever it changes. */
export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get, store.get);
}

/**
 * One store for each session, made when it is first asked for: however often components come
 * and go, also twice as in StrictMode, it listens once and misses nothing in between. It goes
 * with the session.
 */
export function perSession<S extends Store<unknown>>(make: (session: VoiceSession) => S, none: S): (session: VoiceSession | null) => S {
  const stores = new WeakMap<VoiceSession, S>();
  return (session) => {
    if (session === null) {
      return none;
    }
    const store = stores.get(session) ?? make(session);
    stores.set(session, store);
    return store;
  };
}
