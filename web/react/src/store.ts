import { useSyncExternalStore } from "react";
import type { VoiceSession } from "@voicegw/client";

/** A value and its listeners. */
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

/** Returns a store's value and renders again when it changes. */
export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get, store.get);
}

/**
 * Creates one store per session on first use. It listens once, even if components mount twice as in
 * StrictMode, so it misses no event between them. It is collected with the session.
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
