// The user's choices in the instruments, which stay when the tab changes.
import { signal } from "@preact/signals";
import { GROUPS, type Entry, type Filter } from "../model/log.js";
import { TABS } from "./words-instruments.js";

export type Tab = keyof typeof TABS;

export class View {
  readonly tab = signal<Tab>("tools");
  /** Names of the calls and turns with open details. */
  readonly calls = signal<ReadonlySet<string>>(new Set());
  readonly turns = signal<ReadonlySet<string>>(new Set());
  readonly filter = signal<Filter>({ text: "", side: "", direction: "", groups: new Set(GROUPS.filter((group) => group !== "drafts" && group !== "reports")) });
  /** The paused list; null while it follows. */
  readonly paused = signal<readonly Entry[] | null>(null);
  /** The entry shown in full. */
  readonly chosen = signal<Entry | null>(null);
  /** Durations of faults chosen by the user, in ms, by the fault's name. */
  readonly lasting = signal<Readonly<Record<string, number>>>({});

  toggleCall(name: string): void {
    this.calls.value = toggled(this.calls.value, name);
  }

  toggleTurn(name: string): void {
    this.turns.value = toggled(this.turns.value, name);
  }
}

/** Returns a copy with the name added or removed. */
export function toggled<T>(set: ReadonlySet<T>, name: T): ReadonlySet<T> {
  const copy = new Set(set);
  if (!copy.delete(name)) {
    copy.add(name);
  }
  return copy;
}
